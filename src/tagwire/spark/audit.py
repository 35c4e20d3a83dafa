"""The audit at any volume: observations gathered by Spark, so that only clients and versions reach the driver.

usages = gather(spark, ["/var/log/kafka"])
[judge(usage, "4.3") for usage in usages.census.usages()]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagwire.capture import Census, Client, Losses, Place, Use
from tagwire.capture.census import ANONYMOUS
from tagwire.spark.captures import CaptureDataSource

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_CLIENT = ("software_name", "software_version", "client_id", "principal", "client_address")
_MINUTE_SECONDS = 60


def gather(spark: SparkSession, paths: Sequence[str], *, bodies: bool = False) -> tuple[Census, Losses]:
    """Reads captures with all of Spark's tasks: who asked what, and what of them was not understood.

    Args:
        paths: files, directories and patterns, which every worker can open.
        bodies: whether the bodies of captured answers are decoded, for their error codes.

    Raises:
        CaptureError: a path names nothing.
    """
    return gathered(read(spark, paths, bodies=bodies))


def read(spark: SparkSession, paths: Sequence[str], *, bodies: bool = False) -> DataFrame:
    """The observations, with rows for what was not understood."""
    spark.dataSource.register(CaptureDataSource)
    reader = spark.read.format(CaptureDataSource.name()).option("includeLosses", "true")
    return reader.option("bodies", str(bodies).lower()).load(list(paths))


def save(rows: DataFrame, path: Path) -> None:
    """Writes the observations of rows that `read` gave as a Parquet directory, in place of one that is there."""
    seen = rows.where(rows["loss"].isNull()).drop("loss")
    seen.write.mode("overwrite").option("compression", "zstd").parquet(str(path))


def gathered(rows: DataFrame) -> tuple[Census, Losses]:
    """The same of rows that `read` gave."""
    from pyspark.sql import functions as f

    rows = rows.cache()
    try:
        losses, census = Losses(), Census()
        for row in _losses(rows).collect():
            losses.add(row.loss, Place(row.first.file, row.first.position), row["count"])
        seen = rows.where(f.col("loss").isNull())
        for row in _uses(seen).collect():
            client = Client(*(row[name] for name in _CLIENT))
            census.add_use(client, row.api_key, row.api_version, _use(row), row.connections)
        for row in _minutes(seen).collect():
            census.add_minute(row.api_key, row.api_version, row.minute, row["count"])
        return census, losses
    finally:
        rows.unpersist()


def _losses(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    lost = rows.where(f.col("loss").isNotNull())
    return lost.groupBy("loss").agg(f.sum("count").alias("count"), f.min(_place()).alias("first"))


def _uses(seen: DataFrame) -> DataFrame:
    """A row for each client, API and version. A connection counts where it was used first."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    principal = f.when(f.col("principal") == ANONYMOUS, "").otherwise(f.col("principal"))
    ends = ("client_address", "client_port", "broker_address", "broker_port")
    order = Window.partitionBy("file", *ends).orderBy("position")
    told = seen.withColumn("principal", principal).withColumn("is_first", f.row_number().over(order) == 1)
    return told.groupBy(*_CLIENT, "api_key", "api_version").agg(
        f.sum("count").alias("requests"),
        f.min(f.unix_micros("time")).alias("first_time"),
        f.max(f.unix_micros("time")).alias("last_time"),
        f.min(f.struct("time", _place().alias("place"))).alias("first"),
        f.max(f.struct("time", _place().alias("place"))).alias("last"),
        f.max("highest_offered").alias("highest_offered"),
        f.sum(f.col("is_first").cast("long")).alias("connections"),
        f.flatten(f.collect_list(f.transform("error_codes", lambda code: f.struct(code, "count")))).alias("errors"),
    )


def _minutes(seen: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    minute = f.floor(f.unix_seconds("time") / _MINUTE_SECONDS).cast("long").alias("minute")
    timed = seen.where(f.col("time").isNotNull())
    return timed.groupBy("api_key", "api_version", minute).agg(f.sum("count").alias("count"))


def _place() -> Column:
    from pyspark.sql import functions as f

    return f.struct("file", "position")


def _use(row: Any) -> Use:
    places = dict.fromkeys(Place(end.place.file, end.place.position) for end in (row.first, row.last))
    errors: dict[int, int] = {}
    for code, count in row.errors:
        errors[code] = errors.get(code, 0) + count
    unknown = row.first_time is None
    return Use(
        row.requests,
        -1 if unknown else row.first_time,
        -1 if unknown else row.last_time,
        tuple(places),
        row.highest_offered,
        errors,
    )
