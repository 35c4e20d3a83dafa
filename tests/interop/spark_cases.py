"""What the Spark pipeline does, case by case, on whichever PySpark runs this: classic sessions, or Spark Connect.

    python spark_cases.py BOOTSTRAP FOLDER [connect]

Prints a line for each case, `ok NAME` or `FAILED NAME: the error in one line`, and last the version of PySpark. The
topics that it reads are there before: `flights` with 20 JSON values in two partitions, `copies` and `exact` without
records, like `typed`, whose values have a schema in the registry that FOLDER/registry says. FOLDER/log/flights-0 is a
log of ten records, FOLDER/log/__consumer_offsets-0 one of a commit at 4.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

warnings.simplefilter("ignore")

CONFS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}
HEARTBEAT = "named_struct('group_id', 'g', 'generation_id', int(id), 'member_id', 'm')"


class Cases:
    """Each method is a case; it raises where it does not work."""

    def __init__(self, spark: SparkSession, bootstrap: str, folder: Path) -> None:
        self.spark = spark
        self.bootstrap = bootstrap
        self.folder = folder

    def reader(self, stream: bool = False, **options: str):
        made = self.spark.readStream if stream else self.spark.read
        given = {"kafka.bootstrap.servers": self.bootstrap, "subscribe": "flights", **options}
        return made.format("tagwire").options(**given)

    def streamed(self, name: str, *, available_now: bool = True, **options: str) -> int:
        """Rows that a stream of `flights` left as files."""
        rows = self.reader(True, startingOffsets="earliest", **options).load()
        place = str(self.folder / name)
        writer = rows.writeStream.format("parquet").option("path", place).option("checkpointLocation", place + "-cp")
        query = (writer.trigger(availableNow=True) if available_now else writer).start()
        query.awaitTermination(60) if available_now else query.processAllAvailable()
        query.stop()
        return self.spark.read.parquet(place).count()

    def committed(self, topic: str) -> int:
        return self.reader(subscribe=topic, **{"kafka.isolation.level": "read_committed"}).load().count()

    def written(self, name: str, topic: str, times: int = 1, **options: str) -> None:
        """Writes `flights` to a topic as a stream, several times from one checkpoint."""
        for _ in range(times):
            rows = self.reader(True, startingOffsets="earliest").load().select("key", "value")
            given = {
                "kafka.bootstrap.servers": self.bootstrap,
                "topic": topic,
                "checkpointLocation": str(self.folder / name),
                **options,
            }
            query = rows.writeStream.format("tagwire").options(**given).trigger(availableNow=True).start()
            query.awaitTermination(90)
            query.stop()

    def batch_read(self) -> None:
        rows = self.reader(includeHeaders="true").load()
        assert rows.count() == 20
        assert rows.where("headers[0].key = 'h' and topic = 'flights' and key is not null").count() == 20

    def some_columns(self) -> None:
        assert self.reader().schema("offset bigint").load().agg(F.sum("offset")).first()[0] == 90

    def typed_values(self) -> None:
        rows = self.reader(**{"value.format": "json", "value.schema": "n int"}).load()
        assert rows.agg(F.sum("value.n")).first()[0] == 190

    def avro(self) -> dict[str, str]:
        return {"value.format": "avro", "schema.registry.url": (self.folder / "registry").read_text()}

    def written_and_read_by_a_registry(self) -> None:
        rows = self.spark.range(20).selectExpr("named_struct('n', id, 'at', timestamp_seconds(id)) as value")
        given = {"kafka.bootstrap.servers": self.bootstrap, "topic": "typed", **self.avro()}
        rows.write.format("tagwire").options(**given).mode("append").save()
        back = self.reader(subscribe="typed", mode="FAILFAST", **self.avro()).load()
        assert back.selectExpr("sum(value.n)", "max(unix_seconds(value.at))").first() == (190, 19)
        few = self.reader(subscribe="typed", **self.avro()).schema("value struct<n:bigint>").load()
        assert few.agg(F.sum("value.n")).first()[0] == 190

    def stream_by_a_registry(self) -> None:
        assert self.streamed("typed", subscribe="typed", mode="FAILFAST", **self.avro()) == 20

    def stream_written_by_a_registry(self) -> None:
        rows = self.reader(True, startingOffsets="earliest").load()
        rows = rows.selectExpr("named_struct('n', offset, 'at', timestamp) as value")
        given = {"kafka.bootstrap.servers": self.bootstrap, "topic": "typed", **self.avro()}
        query = rows.writeStream.format("tagwire").options(**given, checkpointLocation=str(self.folder / "typed-w"))
        query = query.trigger(availableNow=True).start()
        assert query.awaitTermination(90)
        assert self.reader(subscribe="typed", mode="FAILFAST", **self.avro()).load().count() == 40

    def functions_by_a_registry(self) -> None:
        from tagwire.spark.functions import from_value, to_value

        rows = self.spark.range(3).selectExpr("named_struct('n', id, 'at', timestamp_seconds(id)) as value")
        packed = rows.select(to_value("value", self.avro(), topic="typed", mode="FAILFAST").alias("v"))
        read = packed.select(from_value("v", self.avro(), topic="typed", mode="FAILFAST").alias("r"))
        assert read.agg(F.sum("r.n")).first()[0] == 3

    def filters(self) -> None:
        self.spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
        try:
            rows = self.reader(filterPushdown="true").load()
            assert rows.where("partition = 1 and offset >= 5").count() == 5
        finally:
            self.spark.conf.unset("spark.sql.python.filterPushdown.enabled")

    def stream_available_now(self) -> None:
        assert self.streamed("now") == 20

    def stream_that_goes_on(self) -> None:
        assert self.streamed("on", available_now=False) == 20

    def stream_with_limits(self) -> None:
        assert self.streamed("limited", maxOffsetsPerTrigger="7") == 20
        assert len(list((self.folder / "limited-cp" / "commits").glob("[0-9]*"))) > 1

    def batch_write(self) -> None:
        rows = self.reader(includeHeaders="true").load().select("key", "value", "headers")
        given = {"kafka.bootstrap.servers": self.bootstrap, "topic": "copies"}
        rows.write.format("tagwire").options(**given).mode("append").save()
        assert self.committed("copies") == 20

    def stream_write(self) -> None:
        before = self.committed("copies")
        self.written("write-cp", "copies")
        assert self.committed("copies") == before + 20

    def exactly_once(self) -> None:
        self.written("exact-cp", "exact", times=2, exactlyOnce="true")
        assert self.committed("exact") == 20

    def segments(self) -> None:
        rows = self.spark.read.format("tagwire-segments").option("subscribe", "flights")
        assert rows.load(str(self.folder / "log")).count() == 10

    def batches_of_segments(self) -> None:
        rows = self.spark.read.format("tagwire-segments").option("view", "batches").option("subscribe", "flights")
        assert rows.load(str(self.folder / "log")).count() == 2

    def functions(self) -> None:
        from tagwire.spark.functions import from_message, to_message

        packed = self.spark.range(3).select(to_message(F.expr(HEARTBEAT), "HeartbeatRequest", 0).alias("m"))
        read = packed.select(from_message("m", "HeartbeatRequest", 0, mode="FAILFAST").alias("r"))
        assert sorted(row.r.generation_id for row in read.collect()) == [0, 1, 2]

    def header_function(self) -> None:
        from tagwire.spark.functions import header

        rows = self.reader(includeHeaders="true").load().select(header("headers", "h").alias("h"))
        assert rows.where("h = X'31'").count() == 20

    def lag(self) -> None:
        from tagwire.spark.jobs.lag import lag_of_cluster, lag_of_files

        (row,) = lag_of_files(self.spark, str(self.folder / "log")).collect()
        assert (row.offset, row.lag) == (4, 6)
        assert lag_of_cluster(self.spark, {"bootstrap.servers": self.bootstrap}).where("lag < 0").count() == 0

    def replay(self) -> None:
        from tagwire.spark.jobs.replay import replay

        before = self.committed("copies")
        rows = self.reader(includeHeaders="true").load()
        assert replay(rows, {"bootstrap.servers": self.bootstrap}, "copies") == 20
        assert self.committed("copies") == before + 20

    def land(self) -> None:
        from tagwire.spark.jobs.land import BatchSettings, land

        small = BatchSettings(batch_offsets=8)
        for rows in (20, 0):
            report = land(self.bootstrap, "flights", self.folder / "landed", spark=self.spark, batches=small)
            assert (report.rows, report.table_rows) == (rows, 20)
            assert (report.batches > 2, report.header_keys) == ((True, {"h": 20}) if rows else (False, {}))
            assert report.partitions.keys() == ({0, 1} if rows else set())


def main() -> None:
    from tagwire.spark.failure import reason

    bootstrap, folder, *how = sys.argv[1:]
    builder = SparkSession.builder
    for name, value in CONFS.items():
        builder = builder.config(name, value)
    spark = (builder.remote("local[2]") if how else builder.master("local[2]")).getOrCreate()
    if not how:
        spark.sparkContext.setLogLevel("OFF")
    made = Cases(spark, bootstrap, Path(folder))
    cases: dict[str, Callable[[], None]] = {
        name: getattr(made, name)
        for name, method in vars(Cases).items()
        if callable(method) and name not in ("__init__", "reader", "streamed", "written", "committed", "avro")
    }
    for name, case in cases.items():
        try:
            case()
        except Exception as error:
            found = reason(error)
            print(f"FAILED {name}: {type(found).__name__}: {' '.join(str(found).split())}", flush=True)
        else:
            print(f"ok {name}", flush=True)
    print(f"version {spark.version}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
