"""A Spark session that runs exactly-once queries as it is told: `python exactly_once_job.py MASTER SETTINGS`.

Each line of its input is a query as JSON, which it runs to the end of what there is; its answer is one line: the error,
or null. Queries may be told to fail: that is what this is for.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from tagwire.client import Client
from tagwire.errors import KafkaError
from tagwire.spark.sink import driver
from tagwire.spark.sink.exactly_once import ExactlyOnceWriter
from tagwire.spark.sink.options import parse
from tagwire.spark.source.topic import TopicDataSource


class FaultySource(TopicDataSource):
    """`tagwire`, whose streaming sink fails once. Option fault is KIND:NUMBER, and faultAt a path that says whether it
    has happened."""

    @classmethod
    def name(cls) -> str:
        return "faulty"

    def streamWriter(self, schema: StructType, overwrite: bool) -> FaultyWriter:  # noqa: N802
        options = dict(self.options)
        writer = FaultyWriter(options.pop("fault"), options.pop("faultat"), options, schema)
        if not self._is_copy:
            writer.prepare()
        return writer


class FaultyWriter(ExactlyOnceWriter):
    def __init__(self, fault: str, at: str, options: dict[str, str], schema: StructType, *found: Any) -> None:
        super().__init__(parse(options), schema, *found)
        self.given = fault, at, options, schema

    def __reduce__(self) -> tuple[Any, ...]:
        _, (_, _, *found) = super().__reduce__()
        return FaultyWriter, (*self.given, *found)

    def is_up(self, kind: str) -> int | None:
        """The number of the fault, if it is of that kind and has not happened."""
        fault, at, *_ = self.given
        own, _, number = fault.partition(":")
        return None if own != kind or Path(at).exists() else int(number)

    def happens(self) -> None:
        with suppress(FileExistsError):
            Path(self.given[1]).touch(exist_ok=False)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Fault stop: the first attempt of this partition stands still before it asks anybody anything."""
        context = TaskContext.get()
        assert context is not None
        if self.is_up("stop") == context.partitionId() and not context.attemptNumber():
            Path(self.given[1]).write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGSTOP)
        return super().write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Fault kill: all of the job dies instead of ending this transaction of a decision. raise: an error is raised
        instead. wait: until somebody says that it may go on."""
        kill, fail, wait = (self.is_up(kind) for kind in ("kill", "raise", "wait"))
        end_all = driver._end_all
        begun = 0

        def faulty(client: Client, transactions: Sequence[Any], **options: Any) -> dict[Any, KafkaError]:
            nonlocal begun
            first, begun = begun, begun + len(transactions)
            at = next((n - first for n in (kill, fail, wait) if n is not None and first <= n < begun), None)
            if at is None:
                return end_all(client, transactions, **options)
            ended = end_all(client, transactions[:at], **options)
            self.happens()
            if kill is not None:
                kill_session()
            if fail is not None:
                raise RuntimeError("the driver fails after its decision")
            while not Path(f"{self.given[1]}-over").exists():
                time.sleep(0.05)
            return ended | end_all(client, transactions[at:], **options)

        driver._end_all = faulty
        try:
            super().commit(messages, batchId)
        finally:
            driver._end_all = end_all


def kill_session() -> None:
    """This process, Java and all Python workers, which share a session."""
    listed = subprocess.run(["ps", "-A", "-o", "pid="], capture_output=True, text=True, check=True).stdout
    others = [process for process in map(int, listed.split()) if process != os.getpid()]
    for process in [*others, os.getpid()]:
        with suppress(ProcessLookupError, PermissionError):
            if os.getsid(process) == os.getsid(0):
                os.kill(process, signal.SIGKILL)


def run(spark: SparkSession, told: dict[str, Any]) -> str | None:
    """Runs a query; the error that it ended with."""
    reader = spark.readStream.format("tagwire").option("kafka.bootstrap.servers", told["bootstrap"])
    rows = reader.options(subscribe=told["source"], startingOffsets="earliest", maxOffsetsPerTrigger=told["limit"])
    writer = rows.load().select("key", "value").repartition(told["tasks"]).writeStream
    fault = {"fault": told["fault"], "faultAt": told["faultAt"]} if told.get("fault") else {}
    query = (
        writer.format("faulty" if fault else "tagwire")
        .option("kafka.bootstrap.servers", told["bootstrap"])
        .options(topic=told["target"], exactlyOnce="true", checkpointLocation=told["checkpoint"])
        .options(**fault, **told.get("options", {}))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    except Exception as error:
        return str(error)
    return None


def main(master: str, settings: dict[str, str]) -> None:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    told, sys.stdout = sys.stdout, sys.stderr
    builder = SparkSession.builder.master(master)
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "700m",
        "spark.sql.shuffle.partitions": "3",
        "spark.python.unix.domain.socket.enabled": "true",
        **settings,
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(FaultySource)
    print("ready", file=told, flush=True)
    for line in sys.stdin:
        print(json.dumps(run(spark, json.loads(line))), file=told, flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
