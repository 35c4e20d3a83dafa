"""Iceberg tables as a landing job makes them, killed on its way, read by the engines that people have.

DuckDB comes with its extension `iceberg` from the registry of Python packages, Spark with Iceberg's runtime jar for the
PySpark that it is for. Both are given the metadata file that the catalog names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import polars
import pyiceberg.catalog
import pytest
from kafka_jars import MavenError, classpath

from tagwire.broker import Broker
from tagwire.client import Admin, NewTopic, Producer
from tagwire.spark.jobs.report import ways_to_open

from ..spark.killing import Standing, land_and_die, reports_of
from ..spark.test_iceberg_table import DAY, DAYS, ROWS, Job, Killed, everything, offsets_of, table_of
from ..spark.test_report import report_of
from .conftest import not_run_without
from .peer import NotRunError
from .python_packages import fetched

EXTENSIONS = ("avro", "iceberg")
DUCKDB = ("duckdb==1.5.5", *(f"duckdb-extension-{name}==1.5.5" for name in EXTENSIONS), "pytz")
RUNTIME, PYSPARK = "1.10.1", "4.0.5"
BATCHES = 3
SECONDS = 600


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of three micro-batches, beside what kills left."""
    out = tmp_path_factory.mktemp("lake") / "orders"
    for kill_after in (4, 5, 6):
        with pytest.raises(Killed):
            Job(out, BATCHES, kill_after).run()
    Job(out, BATCHES).run()
    (out / "data/left-by-a-kill.parquet").write_bytes(b"half a file")
    return out


@pytest.fixture(scope="module")
def by_command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table that `tagwire land` made of a topic, killed in its second micro-batch and run again."""
    folder = tmp_path_factory.mktemp("lake")
    out, decoding = folder / "orders", {"value.format": "json", "value.schema": "n tinyint, l array<string>"}
    with Broker(fsync="never") as broker:
        with Admin(broker.bootstrap) as admin:
            admin.create_topics([NewTopic("orders", num_partitions=2, configs={"retention.ms": "-1"})])
        with Producer(broker.bootstrap) as producer:
            for part, at in sorted(everything(BATCHES)):
                value = json.dumps({"n": at % 100, "l": [str(at)]}).encode()
                producer.send("orders", value, partition=part, timestamp=at % DAYS * DAY // 1000)
        given = {"table": {"values": decoding, "partition_by": "day"}, "batches": {"batch_offsets": 2 * ROWS}}
        job = Standing("staged", 2, str(out), "iceberg", **given)
        land_and_die(broker.bootstrap, "orders", folder / "spark.log", [job])
        assert offsets_of(out) == everything(1)
        command = ["orders", "--bootstrap", broker.bootstrap, "--to", str(out), "--batch-offsets", str(2 * ROWS)]
        (report,) = reports_of(folder / "spark.log", [command])
    assert (report["format"], report["rows"], report["batches"]) == ("iceberg", 4 * ROWS, 2)
    return out


def metadata(table: Path) -> str:
    """The file that says what the table is, by its catalog."""
    found = table_of(table)
    assert found is not None
    return found.metadata_location.removeprefix("file://")


def evaluated(program: str, packages: Path) -> tuple[list[tuple[int, int, int, str, int]], int]:
    """What a program in a Python of its own prints: partition, offset and parts of the value; the rows of one day."""
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    rows, late = json.loads(done.stdout.splitlines()[-1])
    return [tuple(row) for row in rows], late


def judge(rows: list[tuple[int, int, int, str, int]]) -> None:
    """Each place once, with its own value."""
    assert Counter(row[:2] for row in rows) == everything(BATCHES)
    assert all(row[2:] == (row[1] % 100, str(row[1]), row[1]) for row in rows)


def read_by_duckdb(table: Path, *columns: str) -> tuple[list[tuple], int]:
    """These columns behind partition and offset, and the rows of one day."""
    with not_run_without():
        packages = fetched("duckdb-1.5.5-iceberg-avro", DUCKDB)
    loaded = [f"{packages}/duckdb_extension_{name}/extensions/v1.5.5/{name}.duckdb_extension" for name in EXTENSIONS]
    program = f"""
import duckdb, json
for extension in {loaded}:
    duckdb.sql(f"load '{{extension}}'")
duckdb.sql("set timezone = 'UTC'")
landed = duckdb.sql("from iceberg_scan('{metadata(table)}')")
found = duckdb.sql({f'select "partition", "offset", {", ".join(columns)} from landed'!r}).fetchall()
late = duckdb.sql("select count(*) from landed where timestamp >= '1970-01-03'").fetchone()[0]
print(json.dumps([found, late]))
"""
    return evaluated(program, packages)


def test_duckdb_reads_each_row_once(table: Path) -> None:
    rows, late = read_by_duckdb(table, "value.n", "value.l[1]", "value.m['k']")
    judge(rows)
    assert late == len(rows) // 3


@pytest.mark.nightly
def test_duckdb_polars_and_pandas_read_each_row_once_that_the_command_landed(by_command: Path) -> None:
    rows, late = read_by_duckdb(by_command, "value.n", "value.l[1]")
    assert late == len(rows) // 3
    found = {"DuckDB": rows}
    lines = dict(ways_to_open(report_of(by_command, format="iceberg"), str(by_command)))
    for engine in ("Polars", "pandas"):
        read = eval(lines[engine], {"polars": polars, "pyiceberg": pyiceberg})
        columns = read.to_dict(as_series=False) if engine == "Polars" else read.to_dict("list")
        places = zip(columns["partition"], columns["offset"], columns["value"])
        found[engine] = [(part, at, value["n"], value["l"][0]) for part, at, value in places]
    wanted = [(part, at, at % 100, str(at)) for part, at in sorted(everything(BATCHES))]
    assert {engine: sorted(rows) for engine, rows in found.items()} == dict.fromkeys(found, wanted)


def test_spark_reads_each_row_once(table: Path) -> None:
    with not_run_without():
        packages = fetched(f"pyspark-{PYSPARK}", [f"pyspark=={PYSPARK}", "py4j==0.10.9.9"], alone=True)
        try:
            runtime = ("org.apache.iceberg", "iceberg-spark-runtime-4.0_2.13", RUNTIME)
            jars = classpath(f"iceberg-spark-runtime-4.0_2.13-{RUNTIME}", [], [runtime])
        except MavenError as error:
            raise NotRunError(str(error)) from None
    program = f"""
import json
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.jars", {",".join(map(str, jars))!r})
    .config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.session.timeZone", "UTC").getOrCreate()
)
rows = spark.read.format("iceberg").load("file://{metadata(table)}")
found = rows.selectExpr("partition", "offset", "value.n", "value.l[0]", "value.m['k']").collect()
late = rows.where("timestamp >= '1970-01-03'").count()
print()
print(json.dumps([[tuple(row) for row in found], late]))
"""
    rows, late = evaluated(program, packages)
    judge(rows)
    assert late == len(rows) // 3


@pytest.mark.parametrize("engine", ["Polars", "pandas"])
def test_polars_and_pandas_read_each_row_once_by_the_line_that_land_says(table: Path, engine: str) -> None:
    lines = dict(ways_to_open(report_of(table, format="iceberg"), str(table)))
    found = eval(lines[engine], {"polars": polars, "pyiceberg": pyiceberg})
    columns = found.to_dict(as_series=False) if engine == "Polars" else found.to_dict("list")
    places = zip(columns["partition"], columns["offset"], columns["value"])
    # A map is a list of pairs to pandas, and a dict to Polars.
    judge([(part, at, value["n"], value["l"][0], dict(value["m"])["k"]) for part, at, value in places])
