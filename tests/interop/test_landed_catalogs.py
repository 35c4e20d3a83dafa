"""Iceberg tables of catalogs other than the embedded one, in an S3 store: each record once, whatever fails where.

The catalog speaks the REST protocol and gives its clients the keys of the store; AWS Glue is moto's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog

from tagwire.broker import Broker
from tagwire.client import Admin, NewTopic, Producer
from tagwire.errors import StorageError
from tagwire.spark.tables.iceberg_catalog import CatalogSettings
from tagwire.spark.tables.iceberg_table import IcebergTable

from ..spark.killing import Standing, land_and_die, reports_of
from ..spark.test_iceberg_table import PARTITIONS, ROWS, Job, Killed, begun, everything, written
from .conftest import not_run_without
from .iceberg_rest import TOKEN, RestCatalog, serving
from .s3_server import BUCKET, KEY, REGION, SECRET, packages, s3_server

SECONDS = 900


@pytest.fixture(scope="module")
def store() -> Iterator[dict[str, str]]:
    """What pyiceberg opens the store by."""
    with not_run_without(), s3_server() as url:
        yield {
            "s3.endpoint": url,
            "s3.access-key-id": KEY,
            "s3.secret-access-key": SECRET,
            "s3.region": REGION,
        }


@pytest.fixture
def server(store: dict[str, str], tmp_path: Path) -> RestCatalog:
    return RestCatalog(tmp_path / "catalog", f"s3://{BUCKET}/{tmp_path.name}", store)


@pytest.fixture
def settings(server: RestCatalog) -> Iterator[CatalogSettings]:
    """What a job is told of the catalog: no keys of the store."""
    with serving(server) as url:
        yield CatalogSettings(properties={"type": "rest", "uri": url, "token": TOKEN}, table="sales.orders")


def offsets_of(settings: CatalogSettings) -> Counter[tuple[int, int]]:
    table = load_catalog("theirs", **settings.properties).load_table(settings.table or "")
    found = table.scan(selected_fields=("partition", "offset")).to_arrow()
    assert table.location().startswith(f"s3://{BUCKET}/")
    return Counter(zip(found["partition"].to_pylist(), found["offset"].to_pylist()))


def test_each_offset_stands_once_wherever_a_job_is_killed_between_its_steps(
    settings: CatalogSettings, tmp_path: Path
) -> None:
    for kill_after in (3, 4, 5, 4):
        with pytest.raises(Killed):
            Job(tmp_path, 2, kill_after, settings).run()
    Job(tmp_path, 2, None, settings).run()
    assert offsets_of(settings) == everything(2)
    Job(tmp_path, 3, None, settings).run()
    assert offsets_of(settings) == everything(3)


@pytest.mark.nightly
def test_a_job_of_spark_killed_at_a_step_lands_each_record_once_in_the_next_run(
    server: RestCatalog, settings: CatalogSettings, tmp_path: Path
) -> None:
    steps = {"cleared": 0, "staged": 0, "published": 1, "committed": 1}
    tables = {step: f"sales.{step}" for step in steps}
    with Broker(fsync="never") as broker:
        with Admin(broker.bootstrap) as admin:
            admin.create_topics([NewTopic("orders", num_partitions=2, configs={"retention.ms": "-1"})])
        with Producer(broker.bootstrap) as producer:
            for part, at in everything(2):
                producer.send("orders", b"%d" % at, partition=part)
        jobs = [
            Standing(
                step,
                1,
                "unused",
                "iceberg",
                batches={"batch_offsets": 2 * ROWS},
                catalog={"properties": dict(settings.properties), "table": table},
            )
            for step, table in tables.items()
        ]
        land_and_die(broker.bootstrap, "orders", tmp_path / "spark.log", jobs)
        left = {step: offsets_of(replace(settings, table=table)) for step, table in tables.items()}
        assert left == {step: everything(batches) for step, batches in steps.items()}
        given = [part for each in settings.properties.items() for part in ("--catalog-property", "=".join(each))]
        command = ["orders", "--bootstrap", broker.bootstrap, "--format", "iceberg", *given]
        reports = reports_of(
            tmp_path / "spark.log", [[*command, "--table", table] for table in [*tables.values(), "sales.staged"]]
        )
    assert [report["rows"] for report in reports] == [*(2 * ROWS * (2 - batches) for batches in steps.values()), 0]
    assert all(offsets_of(replace(settings, table=table)) == everything(2) for table in tables.values())
    assert not {SECRET, TOKEN} & set(json.dumps(reports).split('"'))
    assert SECRET not in (log := (tmp_path / "spark.log").read_text())
    assert TOKEN not in log


def answered(status: int, *, done: bool) -> Callable[[Callable[[], None]], int | None]:
    """Answers the first commit so, whether it is made or not."""
    left = [status]

    def on_commit(commit: Callable[[], None]) -> int | None:
        failing = left.pop() if left else None
        if done or failing is None:
            commit()
        return failing

    return on_commit


@pytest.mark.parametrize("done", [False, True], ids=["not made", "made"])
@pytest.mark.parametrize(
    "status", [409, 503, *(pytest.param(code, marks=pytest.mark.nightly) for code in (500, 502, 504))]
)
def test_a_commit_that_the_catalog_reports_wrongly_lands_once(
    server: RestCatalog, settings: CatalogSettings, tmp_path: Path, status: int, done: bool
) -> None:
    table = IcebergTable(tmp_path, catalog=settings)
    assert begun(table) == {}
    end = dict.fromkeys(PARTITIONS, ROWS)
    files = written(table, 0, {}, end)
    server.on_commit = answered(status, done=done)
    if done or status == 409:
        table.commit(0, files, end)
    else:
        with pytest.raises(StorageError, match=r"iceberg://tagwire/sales.orders: "):
            table.commit(0, files, end)
        assert offsets_of(settings) == Counter()
    Job(tmp_path, 2, None, settings).run()
    assert offsets_of(settings) == everything(2)


def test_of_two_jobs_at_once_on_one_table_one_loses_by_name(
    server: RestCatalog, settings: CatalogSettings, tmp_path: Path
) -> None:
    first, second = (IcebergTable(tmp_path, catalog=settings) for _ in range(2))
    end = dict.fromkeys(PARTITIONS, ROWS)
    assert [begun(table) for table in (first, second)] == [{}, {}]
    ready, said = threading.Barrier(2), []
    # Both have looked at the table when one of them commits.
    server.on_commit = lambda commit: (ready.wait(60), server.lock.acquire(), _released(server, commit))[-1]

    def land(table: IcebergTable) -> None:
        files = written(table, 0, {}, end)
        try:
            table.commit(0, files, end)
        except StorageError as error:
            said.append(str(error))

    threads = [threading.Thread(target=land, args=(table,)) for table in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 1
    assert "another job has landed into the table meanwhile" in said[0]
    server.on_commit = None
    assert offsets_of(settings) == everything(1)


def _released(server: RestCatalog, commit: Callable[[], None]) -> None:
    try:
        commit()
    finally:
        server.lock.release()


def test_a_catalog_and_a_store_that_refuse_are_named_without_their_secrets(
    server: RestCatalog, settings: CatalogSettings, tmp_path: Path
) -> None:
    wrong = CatalogSettings(properties={**settings.properties, "token": "not-the-token"}, table="sales.orders")
    with pytest.raises(StorageError, match=r"iceberg://tagwire/sales.orders: ") as told:
        IcebergTable(tmp_path, catalog=wrong).inspect()
    assert "not-the-token" not in str(told.value)
    table = IcebergTable(tmp_path, catalog=settings)
    begun(table)
    server.given = {**server.given, "s3.endpoint": "http://127.0.0.1:1", "s3.connect-timeout": "1"}
    with pytest.raises(StorageError, match=f"s3://{BUCKET}/.*: cannot be written") as told:
        written(table, 0, {}, dict.fromkeys(PARTITIONS, ROWS))
    assert SECRET not in str(told.value)


def test_keys_of_the_store_that_the_catalog_has_renewed_are_taken_for_the_next_micro_batch(
    server: RestCatalog, settings: CatalogSettings, tmp_path: Path
) -> None:
    server.given = {**server.given, "s3.endpoint": "http://127.0.0.1:1"}
    table = IcebergTable(tmp_path, catalog=settings)
    begun(table)
    server.given = dict(server.catalog.properties) | {"uri": "", "warehouse": ""}
    end = dict.fromkeys(PARTITIONS, ROWS)
    table.commit(0, written(table, 0, {}, end), end)
    assert offsets_of(settings) == everything(1)


GLUE = """
import json, sys
from collections import Counter
from pathlib import Path
from pyiceberg.catalog import load_catalog
from tagwire.spark.tables.iceberg_catalog import CatalogSettings
from tests.spark.test_iceberg_table import Job, Killed, everything
properties, out = json.loads(sys.argv[1]), Path(sys.argv[2])
settings = CatalogSettings(properties=properties, table="sales.orders")
for kill_after in (3, 4, 5, 4):
    try:
        Job(out, 2, kill_after, settings).run()
        sys.exit("was not killed")
    except Killed:
        pass
Job(out, 3, None, settings).run()
found = load_catalog("theirs", **properties).load_table("sales.orders").scan().to_arrow()
there = Counter(zip(found["partition"].to_pylist(), found["offset"].to_pylist()))
sys.exit(0 if there == everything(3) else f"{there}")
"""


BUSY_GLUE = """
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from tagwire.errors import StorageError
from tagwire.spark.tables.iceberg_catalog import CatalogSettings
from tagwire.spark.tables.iceberg_table import IcebergTable
properties, out = json.loads(sys.argv[1]), Path(sys.argv[2])
answers = {
    "throttled": (400, "ThrottlingException"),
    "limited": (429, "Unknown"),
    "broken": (500, "InternalServiceException"),
    "refused": (400, "AccessDeniedException"),
}
told = {}
class Glue(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"__type": code, "message": "as said"}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
def ask(what, url):
    given = {**properties, "type": "glue", "glue.endpoint": url, "glue.max-retries": 0}
    try:
        IcebergTable(out, catalog=CatalogSettings(properties=given, table="sales.orders")).identity()
    except StorageError as error:
        told[what] = [type(error).__name__, str(error)]
server = HTTPServer(("127.0.0.1", 0), Glue)
url = f"http://127.0.0.1:{server.server_port}"
thread = Thread(target=server.serve_forever)
thread.start()
for what, (status, code) in answers.items():
    ask(what, url)
server.shutdown()
thread.join()
server.server_close()
ask("gone", url)
print(json.dumps(told))
"""


def with_clients_of_aws(program: str, properties: dict[str, str], out: Path) -> str:
    """What a program prints that has the clients of AWS, moto's own: they are no part of this environment."""
    path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(packages())])
    command = [sys.executable, "-c", program, json.dumps(properties), str(out)]
    environment = {**os.environ, "PYTHONPATH": path}
    root = Path(__file__).parents[2]
    done = subprocess.run(
        command, env=environment, cwd=root, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_glue_that_is_busy_or_gone_is_told_from_one_that_refuses(tmp_path: Path) -> None:
    keys = {"glue.region": REGION, "glue.access-key-id": KEY, "glue.secret-access-key": SECRET}
    with not_run_without():
        told = json.loads(with_clients_of_aws(BUSY_GLUE, keys, tmp_path))
    kinds = {what: kind for what, (kind, _) in told.items()}
    away = dict.fromkeys(["throttled", "limited", "broken", "gone"], "StorageUnavailableError")
    assert kinds == {**away, "refused": "StorageError"}
    assert "AccessDeniedException" in told["refused"][1]


@pytest.mark.nightly
def test_a_table_of_glue_holds_each_offset_once_wherever_a_job_is_killed(store: dict[str, str], tmp_path: Path) -> None:
    properties = {
        **store,
        "type": "glue",
        "glue.endpoint": store["s3.endpoint"],
        "glue.region": REGION,
        "glue.access-key-id": KEY,
        "glue.secret-access-key": SECRET,
        "warehouse": f"s3://{BUCKET}/glue",
    }
    with_clients_of_aws(GLUE, properties, tmp_path)
