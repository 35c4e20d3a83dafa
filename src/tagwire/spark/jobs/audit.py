"""The audit at any volume: each task gathers what it reads, so that only clients, versions and minutes leave it.

census, losses = gather(spark, ["/var/log/kafka"])
[judge(usage, "4.3") for usage in census.usages()]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagwire.capture import Census, Client, Losses, Place, Use

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CLIENT = ("software_name", "software_version", "client_id", "principal", "address")


def gather(spark: SparkSession, paths: Sequence[str], *, bodies: bool = False) -> tuple[Census, Losses]:
    """Reads captures with all of Spark's tasks: which client sent which requests, and what of them was not understood.

    Args:
        paths: files, directories and patterns, which every worker can open.
        bodies: whether the bodies of captured responses are decoded, for their error codes.

    Raises:
        CaptureError: a path names nothing.
    """
    from pyspark.sql import functions as f

    rows = _read(spark, paths, gathered="true", bodies=str(bodies).lower()).cache()
    try:
        losses, census = Losses(), Census()
        for row in _losses(rows.where(f.col("loss").isNotNull())).collect():
            losses.add(row.loss, Place(row.first.file, row.first.position), row["count"])
        for row in _uses(rows.where(f.col("first").isNotNull())).collect():
            client = Client(*(row[name] for name in _CLIENT))
            census.add_use(client, row.api_key, row.api_version, _use(row))
        for row in _connections(rows.where(f.col("connection").isNotNull())).collect():
            census.add_connections(Client(*row.client), row.connections)
        for row in _minutes(rows.where(f.col("minute").isNotNull())).collect():
            census.add_minute(row.api_key, row.api_version, row.minute, row["count"])
        return census, losses
    finally:
        rows.unpersist()


def save(spark: SparkSession, paths: Sequence[str], path: Path, *, bodies: bool = False) -> None:
    """Writes the observations as a Parquet directory, in place of one that is there."""
    seen = _read(spark, paths, bodies=str(bodies).lower())
    seen.write.mode("overwrite").option("compression", "zstd").parquet(str(path))


def _read(spark: SparkSession, paths: Sequence[str], **options: str) -> DataFrame:
    # Found by name, never registered: a session may not find what another of the same Spark has registered.
    return spark.read.format("tagwire-capture").options(**options).load(list(paths))


def _losses(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return rows.groupBy("loss").agg(f.sum("count").alias("count"), f.min("place").alias("first"))


def _uses(rows: DataFrame) -> DataFrame:
    """A row for each client, API and version."""
    from pyspark.sql import functions as f

    return rows.groupBy(*_CLIENT, "api_key", "api_version").agg(
        f.sum("count").alias("requests"),
        f.min("first").alias("first"),
        f.max("last").alias("last"),
        f.max("highest_offered").alias("highest_offered"),
        f.flatten(f.collect_list("error_codes")).alias("errors"),
    )


def _connections(rows: DataFrame) -> DataFrame:
    """How many connections each client has. One that several tasks have seen is the client's that was first on it."""
    from pyspark.sql import functions as f

    begun = rows.groupBy("address", "connection").agg(f.min_by(f.struct(*_CLIENT), "place").alias("client"))
    return begun.groupBy("client").agg(f.count("*").alias("connections"))


def _minutes(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return rows.groupBy("api_key", "api_version", "minute").agg(f.sum("count").alias("count"))


def _use(row: Any) -> Use:
    places = dict.fromkeys(Place(end.file, end.position) for end in (row.first, row.last))
    errors: dict[int, int] = {}
    for code, count in row.errors:
        errors[code] = errors.get(code, 0) + count
    return Use(row.requests, row.first.time, row.last.time, tuple(places), row.highest_offered, errors)
