"""The landing job, with typed values and small files, killed dead at each step and run again: nothing lost or twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable

from tagwire.client import Admin
from tagwire.records import Record
from tagwire.spark.jobs.land import TableSettings, land
from tagwire.spark.tables.parquet_table import ParquetTable

from .killing import Standing, land_and_die
from .test_iceberg_table import table_of

NOON = 1_372_939_200_000  # 2013-07-04 12:00 UTC
DAY = 86_400_000
RECORDS = 30
BATCH = 20

FORMATS = ("parquet", "delta", "iceberg")
BY_FORMAT = ["parquet", *(pytest.param(name, marks=pytest.mark.long) for name in FORMATS[1:])]
"""For what is much the same whichever it is; tests of the formats themselves are in files of their own."""

# Step and its occurrence. A micro-batch has files of three days, in three directories: `moved` stops between two files.
STEPS = [
    ("checked", 1),
    ("locked", 1),
    ("claimed", 1),
    ("started", 1),
    ("cleared", 1),
    ("staged", 1),
    ("moved", 2),
    ("published", 1),
    ("committed", 1),
    ("landed", 1),
]


def offsets_of(out: Path) -> Counter[tuple[int, int]]:
    table = rows_of(out)
    return Counter(zip(table["partition"].to_pylist(), table["offset"].to_pylist()))


def rows_of(out: Path) -> pa.Table:
    """The rows as readers of the format see them: of a Delta table, those of files that its log names."""
    if (out / "_delta_log").exists():
        return DeltaTable(out).to_pyarrow_table()
    if (out / "_catalog.db").exists():
        table = table_of(out)
        return pa.table({"partition": [], "offset": []}) if table is None else table.scan().to_arrow()
    if not (out / "_tagwire/table.json").exists() or not ParquetTable(out).files():
        return pa.table({"partition": [], "offset": []})
    return ds.dataset(out, format="parquet", partitioning="hive").to_table()


def killed_and_run_again(
    broker, topic, produce, tmp_path, wanted: Sequence[tuple[str, str, int]]
) -> dict[str, Counter[tuple[int, int]]]:
    """Lands tables of these formats up to these steps, dies, and runs each job again; what the kill had left."""
    records = [Record(None, b'{"n":%d}' % i, (), NOON + (i % 3) * DAY) for i in range(RECORDS)]
    produce(topic, {0: records, 1: records})
    jobs = [
        Standing(
            step,
            at,
            str(tmp_path / f"{format}-{step}-{at}"),
            format,
            {"values": {"value.format": "json", "value.schema": "n int"}, "partition_by": "day,partition"},
            {"batch_offsets": BATCH, "file_rows": 4},
        )
        for format, step, at in wanted
    ]
    land_and_die(broker.bootstrap, topic, tmp_path / "spark.log", jobs)
    names = [Path(job.to).name for job in jobs]
    left = {name: offsets_of(tmp_path / name) for name in names}
    assert all(set(found.values()) <= {1} for found in left.values())
    for name in names:
        format = name.partition("-")[0]
        land(broker.bootstrap, topic, tmp_path / name, format=format, table=TableSettings(partition_by="day,partition"))
    everything = Counter((partition, offset) for partition in (0, 1) for offset in range(RECORDS))
    assert {name: offsets_of(tmp_path / name) for name in names} == dict.fromkeys(names, everything)
    return left


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.nightly
def test_a_job_killed_at_any_step_and_run_again_lands_every_record_once(spark, broker, topic, produce, tmp_path):
    # All files of a Delta or Iceberg table appear at once: nothing moves.
    wanted = [(format, *step) for format in FORMATS for step in STEPS if format == "parquet" or step != ("moved", 2)]
    left = killed_and_run_again(broker, topic, produce, tmp_path, wanted)
    for format in FORMATS:
        assert not left[f"{format}-staged-1"]
        assert 0 < len(left[f"{format}-published-1"]) == len(left[f"{format}-committed-1"])
        assert len(left[f"{format}-committed-1"]) < len(left[f"{format}-landed-1"])
    assert 0 < len(left["parquet-moved-2"]) < len(left["parquet-published-1"])
    for format in FORMATS:
        rows = rows_of(tmp_path / f"{format}-landed-1").to_pylist()
        assert {(row["offset"], row["value"]["n"]) for row in rows} == {(n, n) for n in range(RECORDS)}


@pytest.mark.spark
@pytest.mark.long
def test_a_job_killed_amid_its_micro_batches_and_run_again_lands_every_record_once(
    spark, broker, topic, produce, tmp_path
):
    wanted = [("parquet", "moved", 2), ("delta", "published", 1), ("iceberg", "staged", 2)]
    left = killed_and_run_again(broker, topic, produce, tmp_path, wanted)
    assert 0 < len(left["parquet-moved-2"]) < len(left["delta-published-1"]) == len(left["iceberg-staged-2"])


@pytest.mark.spark
@pytest.mark.long
def test_what_a_killed_job_had_landed_stays_though_the_topic_has_forgotten_it(spark, broker, topic, produce, tmp_path):
    """Spark runs the micro-batch again that it had not noted as done, and asks for the start of a first one anew."""
    produce(topic, {0: [Record(None, b"v", (), NOON)] * RECORDS})
    batches = {"batch_offsets": BATCH, "file_rows": 4}
    jobs = [Standing(step, 1, str(tmp_path / step), "parquet", {}, batches) for step in ("published", "moved")]
    land_and_die(broker.bootstrap, topic, tmp_path / "spark.log", jobs)
    assert set(offsets_of(tmp_path / "published")) == {(0, offset) for offset in range(BATCH)}
    assert set(offsets_of(tmp_path / "moved")) == {(0, offset) for offset in range(4)}
    with Admin(broker.bootstrap) as admin:
        admin.delete_records({(topic, 0): BATCH - 5})
    for job in jobs:
        assert land(broker.bootstrap, topic, job.to, format="parquet", spark=spark).rows == RECORDS - BATCH
        assert offsets_of(Path(job.to)) == Counter((0, offset) for offset in range(RECORDS))
