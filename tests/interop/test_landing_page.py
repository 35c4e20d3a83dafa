"""docs/landing.md followed from its first line to its last, in one directory: each command and block as it stands.

Three things are put in: where the brokers are, since the page's are nobody's; the catalog `prod` and the object store,
by the configuration and environment in which their users have them; and an end of what goes on for ever. What it has
`pip install` is here already.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import pytest

from tagwire.broker import Broker
from tagwire.client import Producer

from ..doc_blocks import ROOT
from .conftest import not_run_without
from .s3_server import KEY, REGION, SECRET, s3_server

PAGE = (ROOT / "docs" / "landing.md").read_text("utf-8")
BROKERS = "kafka-1:9092"
STEP = re.compile(r"^    (tagwire [^\n]*)$|^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RECORDS = 20
SECONDS = 300.0
TOPICS = ("orders", "payments", "orders.eu", "orders.us")

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(fsync="never") as running:
        with Producer(running.bootstrap) as producer:
            for topic in TOPICS:
                for number in range(RECORDS):
                    value = json.dumps({"id": number, "total": number / 4}).encode()
                    producer.send(topic, value, key=b"k", headers={"tenant": b"acme"})
        yield running


@pytest.fixture(scope="module")
def environment(place: Path) -> Iterator[dict[str, str]]:
    """A catalog `prod`, and an S3 server, where the page takes them to be."""
    catalog = f"catalog:\n  prod:\n    type: sql\n    uri: sqlite:///{place}/prod.db\n    warehouse: file://{place}/warehouse\n"
    (place / ".pyiceberg.yaml").write_text(catalog)
    with not_run_without(), s3_server() as url:
        yield {
            **os.environ,
            "PYICEBERG_HOME": str(place),
            "AWS_ENDPOINT_URL": url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": REGION,
        }


def steps(bootstrap: str) -> Iterator[list[str]]:
    """What is run, in the page's order."""
    for command, block in STEP.findall(PAGE):
        if block:
            yield [sys.executable, "-c", block.replace(BROKERS, bootstrap)]
        else:
            words = shlex.split(command.replace(BROKERS, bootstrap))[1:]
            yield [sys.executable, "-m", "tagwire", *words, *([] if BROKERS in command else ["--bootstrap", bootstrap])]


def followed(step: list[str], place: Path, environment: dict[str, str], goes_on: bool) -> None:
    """Runs it to its end; what goes on is told to stop when all is landed."""
    log = place / "log"
    with log.open("w") as said:
        process = subprocess.Popen(step, cwd=place, env=environment, stdout=said, stderr=subprocess.STDOUT)
        try:
            until = time.monotonic() + SECONDS
            while goes_on and process.poll() is None and time.monotonic() < until:
                if all(rows_of(place / "lake" / topic) == RECORDS for topic in TOPICS if topic.startswith("orders.")):
                    process.send_signal(signal.SIGTERM)
                    break
                time.sleep(0.5)
            status = process.wait(max(until - time.monotonic(), 1))
        finally:
            process.kill()
            process.wait()
    assert status == 0, f"{shlex.join(step[1:])}\n{log.read_text()[-3000:]}"


def rows_of(table: Path | str, options: dict[str, str] | None = None) -> int:
    """How many records a Delta table has, each once; 0 where there is none."""
    if isinstance(table, Path) and not (table / "_delta_log").is_dir():
        return 0
    rows = deltalake.DeltaTable(str(table), storage_options=options).to_pyarrow_table(columns=["partition", "offset"])
    found = list(zip(*rows.to_pydict().values()))
    assert len(set(found)) == len(found)
    return len(found)


def iceberg_rows(catalog: Any, name: str) -> int:
    return catalog.load_table(name).scan(selected_fields=("offset",)).to_arrow().num_rows  # type: ignore[no-any-return]


def test_the_page_can_be_followed_from_its_first_line_to_its_last(
    place: Path, broker: Broker, environment: dict[str, str]
) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    taken = list(steps(broker.bootstrap))
    assert len(taken) == len(re.findall(r"^    tagwire |^```python", PAGE, re.MULTILINE)) >= 9
    for step in taken:
        followed(step, place, environment, "--follow" in step)

    tables = {"orders", "typed-orders", "orders-by-day", "payments", "orders.eu", "orders.us"}
    assert {path.parent.name for path in (place / "lake").glob("*/_delta_log")} == tables
    assert {table: rows_of(place / "lake" / table) for table in tables} == dict.fromkeys(tables, RECORDS)
    store = {name.lower(): value for name, value in environment.items() if name.startswith("AWS_")}
    assert rows_of("s3://lake/orders", store) == RECORDS
    beside = SqlCatalog(
        "tagwire", uri=f"sqlite:///{place}/iceberg/orders/_catalog.db", warehouse=f"file://{place}/iceberg"
    )
    assert iceberg_rows(beside, "default.orders") == RECORDS
    prod = SqlCatalog("prod", uri=f"sqlite:///{place}/prod.db", warehouse=f"file://{place}/warehouse")
    assert iceberg_rows(prod, "sales.orders") == RECORDS


def test_what_the_page_says_opens_and_alters_a_table_does(
    place: Path, monkeypatch: pytest.MonkeyPatch, broker: Broker, environment: dict[str, str]
) -> None:
    import polars

    if not (place / "lake" / "orders").exists():
        followed(next(steps(broker.bootstrap)), place, environment, goes_on=False)
    monkeypatch.chdir(place)
    named = {"deltalake": deltalake, "polars": polars}
    told = [code for code in re.findall(r"`([^`\n]+)`", PAGE) if code.startswith(("deltalake.", "polars.read"))]
    assert len(told) == 3
    for code in told:
        found = eval(code, named)
        assert found is None or len(found) == RECORDS
    table = deltalake.DeltaTable("lake/orders")
    assert table.metadata().configuration["delta.logRetentionDuration"] == "interval 7 days"
