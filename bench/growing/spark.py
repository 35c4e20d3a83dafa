"""Partitions of a Spark read, beside Spark's connector where it can be had."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from spark_sources import drain, spark_session

from growing.brokers import BrokerProcess, running
from growing.embedded import PER_TOPIC
from growing.lines import Line, Lines, cpu_of_process, resident
from growing.row import Row, thousandfold
from tagwire.client import Admin, NewTopic, Producer

ROWS_EACH = 10
CORES = 2
BESIDE = 100  # partitions up to which the connector is beside it, which takes a third of a second for a task
APART = 1_000  # partitions up to which they are also read by a task each


def _fill(broker: BrokerProcess, partitions: int) -> None:
    per_topic = min(PER_TOPIC, partitions)
    names = [f"t{number}" for number in range(partitions // per_topic)]
    with Admin(broker.bootstrap, timeout=600) as admin:
        for name in names:
            admin.create_topics([NewTopic(name, num_partitions=per_topic)])
    with Producer(broker.bootstrap, timeout=600) as producer:
        for name in names:
            for number in range(per_topic * ROWS_EACH):
                producer.send(name, b"v" * 100, partition=number % per_topic)


def _jars() -> list[Path]:
    """The connector's; none where it cannot be had."""
    sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))
    import pyspark
    from kafka_jars import MavenError
    from spark_connector import connector

    try:
        return connector(pyspark.__version__).jars
    except MavenError as error:
        print(f"without the connector: {error}", file=sys.stderr)
        return []


def read(size: int, folder: Path, lines: Lines) -> None:
    """A batch read and a micro-batch of so many partitions, ten records each."""
    jars = _jars()
    data = str(folder / "data")
    with running(data_dir=data, fsync="never") as broker, spark_session(CORES, jars) as spark:
        _fill(broker, size)
        java: int = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
        options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribePattern": "t.*"}
        options |= {"startingOffsets": "earliest"}
        contenders = {"tagwire": ("tagwire", options)}
        if size <= APART:
            contenders["a task each"] = "tagwire", {**options, "coalescePartitions": "false"}
        if jars and size <= BESIDE:
            contenders["connector"] = "kafka", options
        for name, (source, options) in contenders.items():
            spark.range(10).count()
            with JavaLine(lines, f"{name}: a batch read", java, size) as line:
                drain(spark.read.format(source).options(**options).load())
            with JavaLine(lines, f"{name}: AvailableNow", java, size) as line:
                progress = _streamed(spark, source, options, folder / name)
            line.notes |= {f"ms of {part}": took for part, took in progress["durationMs"].items()}
            checkpoint = (folder / name / "offsets" / "0").stat().st_size
            line.notes["bytes of offsets in the checkpoint"] = checkpoint
            assert progress["numInputRows"] == size * ROWS_EACH, progress


class JavaLine:
    """A line about Java and the workers of Python together: their processor time, and the most that both have."""

    def __init__(self, lines: Lines, name: str, java: int, partitions: int) -> None:
        self.lines, self.name, self.java, self.partitions = lines, name, java, partitions

    def __enter__(self) -> Line:
        self._inner = self.lines.line(self.name)
        self._taken = self._inner.__enter__()
        self._before = self._cpu()
        return self._taken

    def __exit__(self, *error: Any) -> None:
        self._inner.__exit__(*error)
        self._taken.cpu += sum(taken - self._before.get(pid, 0.0) for pid, taken in self._cpu().items())
        # Workers wait for more for a minute: the most that one of them has had is still to be read.
        workers = []
        for pid in _descendants(self.java):
            with suppress(FileNotFoundError, ProcessLookupError):  # a stream's own process, which ends with it
                workers.append(resident(pid, "VmHWM"))
        self._taken.mib = max(workers, default=0.0)
        self._taken.notes["ms of a partition, two cores"] = self._taken.seconds / self.partitions * 1000
        self._taken.notes["MiB of Java"] = resident(self.java, "VmHWM")

    def _cpu(self) -> dict[int, float]:
        """Of each process that is there: a worker that was idle for a minute ends, and nobody is told what it had."""
        taken = {}
        for pid in (self.java, *_descendants(self.java)):
            with suppress(FileNotFoundError, ProcessLookupError):
                taken[pid] = cpu_of_process(pid)
        return taken


def _descendants(process: int) -> Iterator[int]:
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):
            for child in task.read_text().split():
                yield int(child)
                yield from _descendants(int(child))


def _streamed(spark: Any, source: str, options: dict[str, str], checkpoint: Path) -> dict[str, Any]:
    """The progress of the micro-batch that read everything."""
    frame = spark.readStream.format(source).options(**options).load()
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return max((json.loads(each.json) for each in query.recentProgress), key=lambda each: each["numInputRows"])


ROWS_OF_SPARK = (Row("spark-partitions", "partitions of a Spark read", thousandfold(10), read, 1_200),)
