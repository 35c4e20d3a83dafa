"""Claim: topics land 1.5 times as fast as by Spark's connector and `delta-spark`.   make bench WHAT=land_tables

The embedded broker, in this process; a topic of two partitions, keys of 9 bytes, values of 100 random bytes. A query by
AvailableNow, from its start to its end, makes a table of it in micro-batches of as many offsets: the connector with
Delta Lake's jar in the PySpark that the jar is for, `land` in ours, each in a Spark of two cores that is up already,
taking turns. Both write two files for each micro-batch; codec, row groups and sizes of what each has written are told.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "scripts"), str(HERE)]

import pyarrow.parquet as pq  # noqa: E402
from kafka_jars import classpath  # noqa: E402
from rounds import alternate, arguments, table  # noqa: E402
from spark_connector import connector_of  # noqa: E402
from spark_sources import CONFS, PARTITIONS, Topic  # noqa: E402

from tagwire.broker import Broker  # noqa: E402
from tagwire.client import Admin, NewTopic, Producer  # noqa: E402
from tagwire.spark.jobs.land import BatchSettings, land  # noqa: E402
from tagwire.spark.session import SETTINGS, session  # noqa: E402
from tagwire.spark.tables.opening import FORMATS  # noqa: E402
from tests.interop.python_packages import fetched  # noqa: E402

DELTA_SPARK, CONNECTOR, TOKENS, PYSPARK = "4.0.1", "4.0.1", "4.0.0", "4.0.5"
GROUP_BYTES = 64 << 20
WIRE_BYTES = 128 << 10


class Connector:
    """Spark's connector and Delta Lake in a process of their own."""

    def __init__(self, folder: Path) -> None:
        packages = fetched(f"pyspark-{PYSPARK}", [f"pyspark=={PYSPARK}", "py4j==0.10.9.9"], alone=True)
        delta = classpath(f"delta-spark-{DELTA_SPARK}", [("io.delta", "delta-spark_2.13", DELTA_SPARK)], [])
        settings = {
            **SETTINGS,
            **CONFS,
            "spark.master": "local[2]",
            "spark.driver.memory": "2g",
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.hadoop.parquet.block.size": str(GROUP_BYTES),
        }
        jars = [str(path) for path in [*connector_of(CONNECTOR, TOKENS), *delta]]
        environment = {**os.environ, "PYTHONPATH": str(packages), "PYSPARK_PYTHON": sys.executable}
        environment.pop("SPARK_HOME", None)
        command = [sys.executable, str(HERE / "spark_delta.py"), json.dumps({"jars": jars, "settings": settings})]
        with open(folder / "connector.log", "w") as log:
            self.process = subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self.release = self._answer()["spark"]

    def land(self, bootstrap: str, topic: str, to: Path, batch: int) -> None:
        asked = {"bootstrap": bootstrap, "topic": topic, "to": str(to), "batch": str(batch)}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        self._answer()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            sys.exit("the connector's Spark has ended")
        return json.loads(line)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)


@contextmanager
def connector(folder: Path) -> Iterator[Connector]:
    peer = Connector(folder)
    try:
        yield peer
    finally:
        peer.close()


def landing(rows: int, batch: int, rounds: int, folder: Path) -> None:
    """Tables of a topic, the connector's first."""
    with (
        Broker(folder / "broker", fsync="never") as broker,
        connector(folder) as peer,
        session(folder / "spark.log") as spark,
    ):
        topic = Topic("rows", rows, batch_bytes=WIRE_BYTES)
        count = filled(broker.bootstrap, topic)
        print(f"Spark {peer.release} with delta-spark {DELTA_SPARK}, and {spark.version}; {count:,} rows", flush=True)
        settings = BatchSettings(batch_offsets=batch, file_rows=batch // PARTITIONS)
        written: dict[str, str] = {}

        def told(name: str, out: Path) -> None:
            """A fast wrong answer is no result; nor is one that writes other files."""
            written[name] = description(out, count)
            shutil.rmtree(out)
            shutil.rmtree(f"{out}-checkpoint", ignore_errors=True)

        def theirs() -> None:
            peer.land(broker.bootstrap, topic.name, folder / "theirs", batch)
            told("connector, delta-spark", folder / "theirs")

        def ours(format: str) -> None:
            land(broker.bootstrap, topic.name, folder / "ours", format=format, batches=settings, spark=spark)
            told(f"land, {format}", folder / "ours")

        contenders: dict[str, Callable[[], None]] = {"connector, delta-spark": theirs}
        contenders |= {f"land, {format}": lambda format=format: ours(format) for format in FORMATS}
        print(table("landing", alternate(contenders, rounds=rounds), units=count, unit="rows"))
        for name, files in written.items():
            print(f"  {name:32} {files}", flush=True)


def filled(bootstrap: str, topic: Topic) -> int:
    """Writes the topic, each value another, since a file of values that repeat is nearly empty; its records."""
    with Admin(bootstrap) as admin:
        admin.create_topics([NewTopic(topic.name, num_partitions=PARTITIONS, configs={"retention.ms": "-1"})])
    total = 0
    with Producer(bootstrap) as producer:
        while total < topic.rows:
            for partition in range(PARTITIONS):
                data, count = topic.batch()
                producer.send_batch(topic.name, partition, data)
                total += count
    return total


def description(out: Path, count: int) -> str:
    """What the Parquet files of a table are like. Ends the bench where they do not hold its rows."""
    files = [path for path in out.rglob("*.parquet") if "_delta_log" not in path.parts]
    footers = [pq.read_metadata(path) for path in files]
    found = sum(footer.num_rows for footer in footers)
    if found != count:
        sys.exit(f"{out}: holds {found} rows of {count}")
    groups = [footer.row_group(index) for footer in footers for index in range(footer.num_row_groups)]
    codecs = {group.column(0).compression for group in groups}
    size = sum(path.stat().st_size for path in files) / len(files) / (1 << 20)
    in_group = statistics.mean(group.num_rows for group in groups)
    return f"{len(files)} files of {size:.0f} MiB, row groups of {in_group:,.0f} rows, {'/'.join(sorted(codecs))}"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=500_000, help="offsets of a micro-batch")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        landing(asked.rows, asked.batch, asked.rounds, Path(folder))


if __name__ == "__main__":
    main()
