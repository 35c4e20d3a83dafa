"""Claim: topics reach Spark faster than with Spark's own Kafka connector, typed values many times.

    make bench WHAT=spark          python bench/spark.py --scale 0.1 --rounds 3 --cases read,json

One real Apache Kafka, from its jars; both sources in one session with the same settings (`spark_sources.CONFS`), taking
turns, into Spark's `noop` sink. Topics of two partitions, written in batches of a producer's default size. The ceiling
is a source whose workers hold the same Arrow batches in memory: what is missing to it is fetching and decoding. By
default it takes half of the rows that the claims are about (`--scale`); a query by AvailableNow counts from its start.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "scripts"), str(HERE)]

import pyspark  # noqa: E402
from pyspark.sql import DataFrame, SparkSession  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402, N812
from rounds import alternate, table  # noqa: E402
from spark_connector import connector  # noqa: E402
from spark_sources import Topic, drain, fill, read, spark_session  # noqa: E402

from tagwire import messages  # noqa: E402
from tests.interop.real_broker import RealBroker  # noqa: E402

MILLION = 1_000_000
CHECK = "count(*)", "bit_xor(xxhash64(key, value, topic, partition, offset, timestamp, timestampType))"
FEW = "offset bigint, timestamp timestamp"
FLIGHT = "carrier string, flight int, origin string, dest string, dep_delay double, distance bigint"
HEARTBEAT = {"value.format": "message", "value.message": "HeartbeatRequest", "value.version": "0"}
HEARTBEAT_STRUCT = "group_id string, generation_id int, member_id string"
MICRO_BATCH = 1_000
MICRO_BATCHES = 30


@dataclass(frozen=True)
class Bench:
    """What all cases share. `scale`: which part of the rows that the claims are about."""

    spark: SparkSession
    bootstrap: str
    data: Path | None
    scale: float
    rounds: int

    def topic(self, name: str, rows: int, **options: object) -> tuple[str, int]:
        """A topic's name and how many rows it has."""
        topic = Topic(f"{name}-{int(rows * self.scale)}", int(rows * self.scale), **options)  # type: ignore[arg-type]
        return topic.name, fill(self.bootstrap, topic)

    def read(self, source: str, topic: str, schema: str | None = None, **options: str) -> DataFrame:
        return read(self.spark, source, self.bootstrap, topic, schema, **options)

    def compare(self, title: str, contenders: dict[str, Callable[[], object]], rows: int) -> None:
        """Prints a table of contenders, the connector first."""
        print(table(f"{title}, {rows:,} rows", alternate(contenders, rounds=self.rounds), units=rows, unit="rows"))
        sys.stdout.flush()


READS: dict[str, tuple[int, dict[str, object]]] = {
    "plain": (10 * MILLION, {}),
    "headers": (10 * MILLION, {"headers": 2}),
    "lz4": (10 * MILLION, {"compression": "lz4"}),
    "kib": (2 * MILLION, {"size": 1024}),
}


def reading(bench: Bench, names: Iterable[str] = READS) -> None:
    """Batch reads of every column."""
    for name in names:
        rows, options = READS[name]
        topic, rows = bench.topic(name, rows, **options)
        shown = {"includeHeaders": str("headers" in options).lower()}
        same_rows(bench, topic, rows)
        bench.compare(
            f"read, all columns, {name}",
            {
                "connector": lambda t=topic, s=shown: drain(bench.read("kafka", t, **s)),
                "tagwire": lambda t=topic, s=shown: drain(bench.read("tagwire", t, **s)),
                "ceiling": lambda t=topic, s=shown, n=rows: drain(bench.read("ceiling", t, rows=str(n), **s)),
            },
            rows,
        )


def same_rows(bench: Bench, topic: str, rows: int) -> None:
    """A fast wrong answer is no result."""
    answers = {source: bench.read(source, topic).selectExpr(*CHECK).first() for source in ("kafka", "tagwire")}
    if len(set(answers.values())) != 1 or answers["kafka"][0] != rows:
        sys.exit(f"{topic}: the sources differ: {answers}")


def columns(bench: Bench) -> None:
    """Two columns of seven."""
    topic, rows = bench.topic("plain", 10 * MILLION)
    bench.compare(
        "read, offset and timestamp",
        {
            "connector": lambda: drain(bench.read("kafka", topic).select("offset", "timestamp")),
            "tagwire": lambda: drain(bench.read("tagwire", topic, FEW)),
            "ceiling": lambda: drain(bench.read("ceiling", topic, FEW, rows=str(rows))),
        },
        rows,
    )


def stream(bench: Bench, source: str, topic: str, **options: str) -> list[int]:
    """Reads all of a topic by AvailableNow; how long each micro-batch took, in ms."""
    reader = bench.spark.readStream.format(source).option("kafka.bootstrap.servers", bench.bootstrap)
    frame = reader.option("subscribe", topic).option("startingOffsets", "earliest").options(**options).load()
    with tempfile.TemporaryDirectory() as folder:
        writer = frame.writeStream.format("noop").option("checkpointLocation", folder)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return [each.durationMs["triggerExecution"] for each in query.recentProgress if each.numInputRows]


def streaming(bench: Bench) -> None:
    """AvailableNow in one micro-batch, from the start of the query to its end; and many small ones."""
    topic, rows = bench.topic("plain", 10 * MILLION)
    bench.compare(
        "stream, AvailableNow",
        {
            "connector": lambda: stream(bench, "kafka", topic),
            "tagwire": lambda: stream(bench, "tagwire", topic),
            "ceiling": lambda: stream(bench, "ceiling", topic, rows=str(rows)),
        },
        rows,
    )
    small, rows = bench.topic("micro", int(MICRO_BATCH * MICRO_BATCHES / bench.scale))
    contenders: dict[str, Callable[[], list[int]]] = {
        "connector": lambda: stream(bench, "kafka", small, maxOffsetsPerTrigger=str(MICRO_BATCH)),
        "tagwire": lambda: stream(bench, "tagwire", small, maxOffsetsPerTrigger=str(MICRO_BATCH)),
        "ceiling": lambda: stream(
            bench, "ceiling", small, rows=str(MICRO_BATCH * MICRO_BATCHES), maxOffsetsPerTrigger=str(MICRO_BATCH)
        ),
    }
    taken: dict[str, list[int]] = {name: [] for name in contenders}
    for number in range(1 + bench.rounds):
        for name, work in contenders.items():
            found = work()
            taken[name] += found if number else []
    medians = {name: statistics.median(times) for name, times in taken.items()}
    print(f"stream, micro-batches of {MICRO_BATCH} rows, ms of one (median, quarters), speed")
    for name, times in taken.items():
        low, _, high = statistics.quantiles(times, n=4)
        spread, ratio = f"{low:.0f}..{high:.0f}", medians["connector"] / medians[name]
        print(f"  {name:32} {medians[name]:14.0f}  {spread:>24}  {ratio:5.2f}", flush=True)


def typed_json(bench: Bench) -> None:
    """JSON values as columns: in the source, against the connector and Spark's from_json."""
    values = [
        json.dumps(
            {"carrier": "UA", "flight": 1000 + i, "origin": "EWR", "dest": "IAH", "dep_delay": i / 4, "distance": 1400}
        ).encode()
        for i in range(500)
    ]
    topic, rows = bench.topic("json", 4 * MILLION, values=values)
    options = {"value.format": "json", "value.schema": FLIGHT}
    struct = f"offset bigint, value struct<{FLIGHT.replace(' ', ':').replace(',:', ',')}>"

    def theirs() -> DataFrame:
        return bench.read("kafka", topic).select(
            "offset", F.from_json(F.col("value").cast("string"), FLIGHT).alias("value")
        )

    def ours() -> DataFrame:
        return bench.read("tagwire", topic, struct, **options)

    same_sum(theirs(), ours(), "sum(offset + value.flight + value.dep_delay)")
    bench.compare(
        "typed values, json", {"connector + from_json": lambda: drain(theirs()), "tagwire": lambda: drain(ours())}, rows
    )


def typed_message(bench: Bench) -> None:
    """Kafka messages as columns: in the source, against the connector and a Python UDF over kafka-python."""
    values = [
        messages.HeartbeatRequest(group_id="group-of-flights", generation_id=i, member_id=f"member-{i:06}").encode(0)
        for i in range(300)
    ]
    topic, rows = bench.topic("message", 2 * MILLION, values=values)
    struct = f"offset bigint, value struct<{HEARTBEAT_STRUCT.replace(' ', ':').replace(',:', ',')}>"

    @F.udf(returnType=HEARTBEAT_STRUCT)  # type: ignore[call-overload]
    def decoded(value: bytes) -> tuple[str, int, str]:
        from kafka.protocol.consumer import HeartbeatRequest

        found = HeartbeatRequest.decode(bytes(value), version=0)
        return found.group_id, found.generation_id, found.member_id

    def theirs() -> DataFrame:
        return bench.read("kafka", topic).select("offset", decoded("value").alias("value"))

    def ours() -> DataFrame:
        return bench.read("tagwire", topic, struct, **HEARTBEAT)

    same_sum(theirs(), ours(), "sum(offset + value.generation_id + length(value.member_id))")
    bench.compare(
        "typed values, message",
        {"connector + kafka-python UDF": lambda: drain(theirs()), "tagwire": lambda: drain(ours())},
        rows,
    )


def same_sum(theirs: DataFrame, ours: DataFrame, expression: str) -> None:
    found = theirs.selectExpr(expression).first(), ours.selectExpr(expression).first()
    if found[0] != found[1]:
        sys.exit(f"{expression}: the sources differ: {found}")


def segments(bench: Bench) -> None:
    """The files of a topic, against the same records through the broker by the connector."""
    if bench.data is None:
        print("segments: NOT RUN, the data directory of the broker is not known (--data)")
        return
    topic, rows = bench.topic("plain", 10 * MILLION)

    def files() -> DataFrame:
        reader = bench.spark.read.format("tagwire-segments").option("subscribe", topic)
        return reader.load(str(bench.data))

    if files().count() != rows:
        sys.exit(f"the files of {topic} do not hold its {rows} rows")
    bench.compare(
        "segments",
        {"connector": lambda: drain(bench.read("kafka", topic)), "tagwire-segments": lambda: drain(files())},
        rows,
    )


CASES: dict[str, Callable[[Bench], None]] = {
    "read": reading,
    "columns": columns,
    "stream": streaming,
    "json": typed_json,
    "message": typed_message,
    "segments": segments,
    **{name: partial(reading, names=[name]) for name in READS},
}
ALL = [name for name in CASES if name not in READS]


@contextmanager
def kafka(at: str | None, data: str | None) -> Iterator[tuple[str, Path | None]]:
    """A broker: the one that is named, else one from the published jars."""
    if at:
        yield at, Path(data) if data else None
        return
    with tempfile.TemporaryDirectory() as folder, RealBroker.fetch().running(Path(folder)) as bootstrap:
        yield bootstrap, Path(folder) / "data"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--scale", type=float, default=0.5, help="part of the rows")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--cores", default="1,2", help="of local[N], one session after the other")
    arguments.add_argument("--cases", default=",".join(ALL), help="some of: " + ", ".join(CASES))
    arguments.add_argument("--broker", help="HOST:PORT of a Kafka that runs already")
    arguments.add_argument("--data", help="its data directory")
    asked = arguments.parse_args()
    peer = connector(pyspark.__version__)
    print(f"Spark {pyspark.__version__}, connector {peer.version}, {asked.scale:g} of the rows", flush=True)
    with kafka(asked.broker, asked.data) as (bootstrap, data):
        for cores in map(int, asked.cores.split(",")):
            print(f"local[{cores}]", flush=True)
            with spark_session(cores, peer.jars) as spark:
                for name in asked.cases.split(","):
                    started = time.monotonic()
                    CASES[name](Bench(spark, bootstrap, data, asked.scale, asked.rounds))
                    print(f"  ({name}: {time.monotonic() - started:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
