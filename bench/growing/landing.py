"""Rows that are landed, from the start of the query to its end: what a terabyte costs."""

from __future__ import annotations

from pathlib import Path

from land_tables import filled
from spark_sources import Topic

from growing.brokers import running
from growing.lines import Lines
from growing.row import Row, thousandfold
from growing.spark import JavaLine
from tagwire.spark.jobs.land import BatchSettings, land
from tagwire.spark.session import session

BATCH = 2_000_000
WIRE_BYTES = 128 << 10


def rows(size: int, folder: Path, lines: Lines) -> None:
    """A topic of two partitions, values of 100 random bytes, as Parquet, in micro-batches of two million rows."""
    with running(data_dir=str(folder / "data"), fsync="never") as broker, session(folder / "spark.log") as spark:
        count = filled(broker.bootstrap, Topic("rows", size, batch_bytes=min(WIRE_BYTES, size * 60)))
        java: int = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
        settings = BatchSettings(batch_offsets=BATCH)
        warm = filled(broker.bootstrap, Topic("warm", 1_000, batch_bytes=WIRE_BYTES))
        land(broker.bootstrap, "warm", folder / "warm", format="parquet", batches=settings, spark=spark)
        assert warm
        with JavaLine(lines, "land, parquet", java, count) as line:
            land(broker.bootstrap, "rows", folder / "table", format="parquet", batches=settings, spark=spark)
        line.notes = {"rows": count, "MiB of Java": line.notes["MiB of Java"]}


ROWS_OF_LANDING = (Row("landed-rows", "rows landed", thousandfold(10_000), rows),)
