"""Claim: tables reach topics faster than with Spark's own Kafka connector, and exactly once at nearly its speed.

    make bench WHAT=spark_sinks          python bench/spark_sinks.py --scale 0.1 --rounds 3 --cases batch,stream

One real Apache Kafka, from its jars; both sinks in one session with the same settings (`spark_sources.CONFS`), taking
turns. Topics of two partitions, rows with keys of 8 bytes and values of 100. Producers are left as they are: the
connector's sends batches of 16 KiB as they come; "waiting" is the connector told to gather, which its users have to
find out (`WAITING`). `noop` is what is left of the work without any sink, and "Python, keeping nothing" without any
sink but in Python, which no sink in Python can be quicker than.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "scripts"), str(HERE)]

import pyspark  # noqa: E402
from pyspark.sql import DataFrame, SparkSession  # noqa: E402
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage  # noqa: E402
from rounds import alternate, table  # noqa: E402
from spark_connector import connector  # noqa: E402
from spark_sources import PARTITIONS, read, spark_session  # noqa: E402

from tagwire.client import Admin, NewTopic  # noqa: E402
from tests.interop.real_broker import RealBroker  # noqa: E402

MILLION = 1_000_000
_NUMBERS = count()
MICRO_BATCHES = 30
MICRO_BATCH = 1_000
CHECK = "count(*)", "bit_xor(xxhash64(key, value))"
WAITING = {"kafka.linger.ms": "20", "kafka.batch.size": str(1 << 20)}
EXACTLY_ONCE = {"exactlyOnce": "true"}
COLUMNS = (
    "cast(lpad(id, 8, '0') as binary) as key",
    "cast(concat(repeat('v', 92), lpad(id, 8, '0')) as binary) as value",
)
HEADERS = "array(named_struct('key', 'origin', 'value', X'455752'), named_struct('key', 'n', 'value', key)) as headers"


@dataclass(frozen=True)
class Bench:
    """What all cases share. `scale`: which part of the rows that the claims are about."""

    spark: SparkSession
    bootstrap: str
    folder: Path
    scale: float
    rounds: int

    def rows(self, millions: float) -> int:
        return int(millions * MILLION * self.scale)

    @contextmanager
    def topics(self, *names: str) -> Iterator[dict[str, str]]:
        """A new topic for each contender."""
        made = {name: f"sink-{next(_NUMBERS)}" for name in names}
        configs = {"retention.ms": "-1"}
        with Admin(self.bootstrap) as admin:
            admin.create_topics(
                [NewTopic(topic, num_partitions=PARTITIONS, configs=configs) for topic in made.values()]
            )
            yield made
            admin.delete_topics(list(made.values()))

    def check(self, topic: str, expected: DataFrame, times: int = 1) -> None:
        """A fast wrong answer is no result."""
        committed = {"kafka.isolation.level": "read_committed"}
        found = read(self.spark, "tagwire", self.bootstrap, topic, **committed).selectExpr(*CHECK).first()
        wanted = expected.selectExpr(*CHECK).first()
        if found[0] != wanted[0] * times or (times % 2 and found[1] != wanted[1]):
            sys.exit(f"{topic}: {found}, should be {times} times {wanted}")


def table_of(spark: SparkSession, rows: int, parts: int = PARTITIONS) -> DataFrame:
    """Rows that cost next to nothing to make."""
    return spark.range(0, rows, 1, parts).selectExpr(*COLUMNS)


def batch(bench: Bench) -> None:
    """Batch writes."""
    for name, millions, headers in (("plain", 2, False), ("headers", 1, True)):
        rows = bench.rows(millions)
        frame = table_of(bench.spark, rows)
        if headers:
            frame = frame.selectExpr("*", HEADERS)

        def write(sink: str, topic: str, frame: DataFrame = frame, **options: str) -> None:
            writer = frame.write.format(sink).option("kafka.bootstrap.servers", bench.bootstrap)
            writer.options(topic=topic, **options).mode("append").save()

        with bench.topics("connector", "waiting", "tagwire") as topics:
            timings = alternate(
                {
                    "connector": lambda w=write, t=topics: w("kafka", t["connector"]),
                    "connector, waiting": lambda w=write, t=topics: w("kafka", t["waiting"], **WAITING),
                    "tagwire": lambda w=write, t=topics: w("tagwire", t["tagwire"]),
                    "noop": lambda f=frame: f.write.format("noop").mode("overwrite").save(),
                },
                rounds=bench.rounds,
            )
            print(table(f"batch write, {name}, {rows:,} rows", timings, units=rows, unit="rows"), flush=True)
            for topic in topics.values():
                bench.check(topic, frame, 1 + bench.rounds)


def run(bench: Bench, source: Path, sink: str, topic: str | None, files: int, **options: str) -> list[int]:
    """Streams all of a table of files to a topic; how long each micro-batch took, in ms."""
    reader = bench.spark.readStream.schema("key binary, value binary").option("maxFilesPerTrigger", str(files))
    with tempfile.TemporaryDirectory(dir=bench.folder) as checkpoint:
        writer = reader.parquet(str(source)).writeStream.format(sink).option("checkpointLocation", checkpoint)
        if topic is not None:
            writer = writer.options(topic=topic, **{"kafka.bootstrap.servers": bench.bootstrap}, **options)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return [each.durationMs["triggerExecution"] for each in query.recentProgress if each.numInputRows]


def files_of(bench: Bench, rows: int, number: int) -> Path:
    """A table as so many files."""
    path = bench.folder / f"table-{rows}-{number}"
    if not path.exists():
        table_of(bench.spark, rows, number).write.parquet(str(path))
    return path


SINKS = {
    "connector": ("kafka", {}),
    "connector, waiting": ("kafka", WAITING),
    "tagwire": ("tagwire", {}),
    "tagwire, exactly once": ("tagwire", EXACTLY_ONCE),
}


class KeepingNothing(DataSource):
    """A sink in Python that takes its rows and lets them go."""

    @classmethod
    def name(cls) -> str:
        return "keeping-nothing"

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        return TakingRows()


class TakingRows(DataSourceStreamArrowWriter):
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()

    def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803
        pass


WITHOUT_SINK = {"noop": "noop", "Python, keeping nothing": KeepingNothing.name()}


def stream(bench: Bench) -> None:
    """Streams in a few large micro-batches."""
    rows, batches = bench.rows(4), 4
    source = files_of(bench, rows, batches * PARTITIONS)
    with bench.topics(*SINKS) as topics:
        contenders: dict[str, Callable[[], object]] = {
            name: lambda s=sink, t=topics[name], o=options: run(bench, source, s, t, PARTITIONS, **o)
            for name, (sink, options) in SINKS.items()
        }
        contenders |= {
            name: lambda s=sink: run(bench, source, s, None, PARTITIONS) for name, sink in WITHOUT_SINK.items()
        }
        timings = alternate(contenders, rounds=bench.rounds)
        title = f"stream, {batches} micro-batches, {rows:,} rows"
        print(table(title, timings, units=rows, unit="rows"), flush=True)
        for topic in topics.values():
            bench.check(topic, bench.spark.read.parquet(str(source)), 1 + bench.rounds)


def micro(bench: Bench) -> None:
    """What a small micro-batch takes."""
    source = files_of(bench, MICRO_BATCH * MICRO_BATCHES, MICRO_BATCHES)
    sinks = {**SINKS, **{name: (sink, {}) for name, sink in WITHOUT_SINK.items()}}
    taken: dict[str, list[int]] = {name: [] for name in sinks}
    with bench.topics(*SINKS) as topics:
        for number in range(1 + bench.rounds):
            for name, (sink, options) in sinks.items():
                found = run(bench, source, sink, topics.get(name), 1, **options)
                taken[name] += found if number else []
    print(f"stream, micro-batches of {MICRO_BATCH} rows, ms from trigger to trigger (median)")
    for name, times in taken.items():
        print(f"  {name:32} {statistics.median(times):8.0f} ms", flush=True)


CASES: dict[str, Callable[[Bench], None]] = {"batch": batch, "stream": stream, "micro": micro}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--scale", type=float, default=1.0, help="part of the rows")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--cores", default="1,2", help="of local[N], one session after the other")
    arguments.add_argument("--cases", default=",".join(CASES))
    asked = arguments.parse_args()
    peer = connector(pyspark.__version__)
    print(f"Spark {pyspark.__version__}, connector {peer.version}", flush=True)
    with tempfile.TemporaryDirectory() as folder, RealBroker.fetch().running(Path(folder)) as bootstrap:
        for cores in map(int, asked.cores.split(",")):
            print(f"local[{cores}]", flush=True)
            with spark_session(cores, peer.jars) as spark:
                spark.dataSource.register(KeepingNothing)
                for name in asked.cases.split(","):
                    started = time.monotonic()
                    CASES[name](Bench(spark, bootstrap, Path(folder), asked.scale, asked.rounds))
                    print(f"  ({name}: {time.monotonic() - started:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
