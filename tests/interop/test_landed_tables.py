"""Tables that `tagwire land` made, read by the engines that people have, and landed into an S3 server.

DuckDB comes with its extension `delta` from the registry of Python packages, Spark with Delta Lake's jars for the
PySpark that the newest of them are for, and the S3 server is moto's.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from kafka_jars import MavenError, classpath

from tagwire.broker import Broker
from tagwire.cli import main
from tagwire.client import Admin, NewTopic, Producer
from tagwire.errors import StorageError
from tagwire.spark.jobs.report import ways_to_open
from tagwire.spark.tables.delta_table import DeltaTable
from tagwire.spark.tables.table_settings import Upkeep

from ..spark.test_delta_table import PARTITIONS, ROWS, begun, everything, written
from ..spark.test_report import report_of
from .conftest import not_run_without
from .peer import NotRunError
from .python_packages import fetched
from .s3_server import KEY, REGION, SECRET, s3_server

DUCKDB = ("duckdb==1.5.5", "duckdb-extension-delta==1.5.5", "pytz")
DELTA_SPARK, PYSPARK = "4.0.1", "4.0.5"
RECORDS = 40
SECONDS = 300


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(fsync="never") as running:
        settings = {"retention.ms": "-1"}
        with Admin(running.bootstrap) as admin:
            admin.create_topics([NewTopic("orders", num_partitions=2, configs=settings)])
        with Producer(running.bootstrap) as producer:
            for number in range(RECORDS):
                value = json.dumps({"id": number, "total": f"{number}.25", "lines": [{"n": number}]}).encode()
                when = 1_372_939_200_000 + number % 3 * 86_400_000
                producer.send("orders", value, key=b"k", partition=number % 2, timestamp=when)
        yield running


def command_of(broker: Broker, to: str, *options: str) -> list[str]:
    return ["orders", "--bootstrap", broker.bootstrap, "--to", to, *options]


def land(broker: Broker, to: str, *options: str) -> dict:
    """Runs the command; its report."""
    command = [sys.executable, "-m", "tagwire", "land", "orders", "--bootstrap", broker.bootstrap, "--to", to, "--json"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


VALUES = ("--value-format", "json", "--value-schema", "id bigint, total decimal(10,2), lines array<struct<n int>>")


@pytest.fixture(scope="module", params=["none", "date"])
def landed(request: pytest.FixtureRequest, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Delta table with typed values, whole, beside what a kill left."""
    out = tmp_path_factory.mktemp("lake") / "orders"
    report = land(broker, str(out), "--partition-by", request.param, *VALUES)
    assert (report["rows"], report["format"]) == (RECORDS, "delta")
    (out / "part-00000-left-by-a-kill.parquet").write_bytes(b"half a file")
    return out


def evaluated(program: str, environment: Mapping[str, str]) -> list:
    """What a program in a Python of its own prints as JSON."""
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def line_of(engine: str, table: Path) -> str:
    """The line that `tagwire land` says opens the table."""
    return dict(ways_to_open(report_of(table, format="delta"), str(table)))[engine]


def test_duckdb_reads_the_table_by_the_line_that_land_says(landed: Path) -> None:
    with not_run_without():
        packages = fetched("duckdb-1.5.5-delta", DUCKDB)
    extension = packages / "duckdb_extension_delta/extensions/v1.5.5/delta.duckdb_extension"
    program = f"""
import duckdb, json
duckdb.sql("load '{extension}'")
landed = {line_of("DuckDB", landed)}
columns = 'value.id, value.total::varchar, value.lines[1].n, "partition", "offset"'
found = duckdb.sql(f"select {{columns}} from landed").fetchall()
late = duckdb.sql("select count(*) from landed where timestamp >= '2013-07-06'").fetchall()
print(json.dumps([sorted(found), late]))
"""
    found, late = evaluated(program, {"PYTHONPATH": str(packages)})
    assert found == [[n, f"{n}.25", n, n % 2, n // 2] for n in range(RECORDS)]
    assert late == [[RECORDS // 3]]


def test_spark_reads_the_table_by_the_line_that_land_says(landed: Path) -> None:
    with not_run_without():
        packages = fetched(f"pyspark-{PYSPARK}", [f"pyspark=={PYSPARK}", "py4j==0.10.9.9"], alone=True)
        try:
            jars = classpath(f"delta-spark-{DELTA_SPARK}", [("io.delta", "delta-spark_2.13", DELTA_SPARK)], [])
        except MavenError as error:
            raise NotRunError(str(error)) from None
    program = f"""
import json
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.jars", {",".join(map(str, jars))!r})
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.ui.enabled", "false").config("spark.databricks.delta.snapshotPartitions", "1")
    .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.session.timeZone", "UTC").getOrCreate()
)
rows = {line_of("Spark", landed)}
columns = ["value.id", "string(value.total)", "value.lines[0].n", "partition", "offset"]
found = sorted(tuple(row) for row in rows.selectExpr(*columns).collect())
late = rows.where("timestamp >= '2013-07-06'").count()
print()
print(json.dumps([found, [[late]]]))
"""
    found, late = evaluated(program, {"PYTHONPATH": str(packages)})
    assert found == [[n, f"{n}.25", n, n % 2, n // 2] for n in range(RECORDS)]
    assert late == [[RECORDS // 3]]


@pytest.fixture(scope="module")
def store() -> Iterator[dict[str, str]]:
    """An S3 server with a bucket `lake`; the storage options for it."""
    with not_run_without(), s3_server() as url:
        yield {
            "aws_endpoint_url": url,
            "aws_access_key_id": KEY,
            "aws_secret_access_key": SECRET,
            "aws_region": REGION,
            "aws_allow_http": "true",
        }


def options_of(store: Mapping[str, str]) -> list[str]:
    return [part for name, value in store.items() for part in ("--storage-option", f"{name}={value}")]


def offsets_of(place: str, store: Mapping[str, str]) -> Counter[tuple[int, int]]:
    found = deltalake.DeltaTable(place, storage_options=dict(store)).to_pyarrow_table()
    return Counter(zip(found["partition"].to_pylist(), found["offset"].to_pylist()))


KILLED = """
import json, os, signal, sys
from tagwire.spark.jobs.land import BatchSettings, LandListener, land
bootstrap, to, step, options = sys.argv[1:]
def on_step(name):
    if name == step:
        os.kill(os.getpid(), signal.SIGKILL)
given = {"batches": BatchSettings(batch_offsets=15), "storage_options": json.loads(options)}
land(bootstrap, "orders", to, listener=LandListener(on_step=on_step), **given)
"""


@pytest.mark.parametrize(
    "step",
    ["published", *(pytest.param(step, marks=pytest.mark.nightly) for step in ("cleared", "staged", "committed"))],
)
def test_a_job_killed_at_a_step_in_an_object_store_lands_each_record_once(
    broker: Broker, store: dict[str, str], step: str
) -> None:
    to = f"s3://lake/killed-{step}"
    command = [sys.executable, "-c", KILLED, broker.bootstrap, to, step, json.dumps(store)]
    killed = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    left = offsets_of(to, store)
    assert set(left.values()) <= {1}
    assert (len(left) > 0) == (step in ("published", "committed"))
    report = land(broker, to, *options_of(store))
    assert report["rows"] == RECORDS - len(left)
    assert offsets_of(to, store) == Counter((n % 2, n // 2) for n in range(RECORDS))
    assert land(broker, to, *options_of(store), "--optimize", "--vacuum")["rows"] == 0
    assert SECRET not in json.dumps(report)


def test_of_two_jobs_on_one_table_in_an_object_store_one_loses_by_name(store: dict[str, str]) -> None:
    first, second = (DeltaTable("s3://lake/two", storage_options=store) for _ in range(2))
    end = dict.fromkeys(PARTITIONS, ROWS)
    assert [begun(table) for table in (first, second)] == [{}, {}]
    said = []

    def commit(table: DeltaTable) -> None:
        files = written(table, 0, {}, end)
        ready.wait()
        try:
            table.commit(0, files, end)
        except StorageError as error:
            said.append(str(error))

    ready = threading.Barrier(2)
    threads = [threading.Thread(target=commit, args=(table,)) for table in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 1
    assert "another job has landed into the table meanwhile" in said[0]
    assert offsets_of("s3://lake/two", store) == everything(1)
    theirs = pa.table({"partition": [9], "offset": [9], "value": [b""], "date": [0]}, deltalake_schema(store))
    deltalake.write_deltalake("s3://lake/two", theirs, mode="append", storage_options=store)
    third = DeltaTable("s3://lake/two", storage_options=store)
    third.keep_up(Upkeep(optimize=True, vacuum=True))
    assert begun(third) == end
    assert offsets_of("s3://lake/two", store) == everything(1) + Counter([(9, 9)])


def deltalake_schema(store: Mapping[str, str]) -> pa.Schema:
    table = deltalake.DeltaTable("s3://lake/two", storage_options=dict(store))
    return pa.schema(table.schema().to_arrow())


@pytest.mark.parametrize("wrong", [{"aws_endpoint_url": "http://127.0.0.1:1"}, {}], ids=["away", "no bucket"])
def test_an_object_store_that_refuses_is_named_without_its_secrets(
    broker: Broker, store: dict[str, str], wrong: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    given = options_of({**store, **wrong, "max_retries": "1", "retry_timeout": "2s"})
    place = "s3://nosuch/t"
    assert main(["land", *command_of(broker, place, *given)]) == 2
    said = capsys.readouterr()
    assert said.err.splitlines()[-1].startswith(f"tagwire: {place}: ")
    assert SECRET not in said.out + said.err
