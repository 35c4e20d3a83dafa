"""Rows back into a topic: a landed table, log files, or any DataFrame with the columns of the format `tagwire`.

Each partition's rows go in the order of their offsets; at a rate or a speed, those of all partitions by their
timestamps, as they once came. The producer is idempotent, the job is not: a task that Spark tries again, and a job that
is run again, write what was written before once more.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING

from tagwire.errors import ConfigError, StorageError
from tagwire.spark.columns import quoted
from tagwire.spark.failure import reason
from tagwire.spark.jobs.target import Target, create, target_of
from tagwire.spark.tables.identity import Identity
from tagwire.spark.tables.opening import PARQUET, open_table
from tagwire.spark.tables.table_format import LandTable
from tagwire.spark.tables.table_settings import CORRUPT_OPTIONS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

KEEP, NOW = "keep", "now"
_SLICES_A_SECOND = 20
_DUE = "_due"
_OF_PATTERNS = re.compile(r"[\\*?\[\]{}]")
_SAME_NAME = "COLUMN_ALREADY_EXISTS"
_NO_TIME = -1  # the timestamp of a record that has none
_JSON = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


@dataclass(frozen=True)
class Replay:
    """How rows are written. Pickled to the workers.

    Attributes:
        properties: of the client, `bootstrap.servers` among them.
        topic: where the rows go.
        rate: records per second; None is as fast as brokers take them.
        speed: seconds of the records' timestamps in a second; None is as `rate` says.
        keep_partitions: whether each row goes to the partition that it came from; else its key says where.
    """

    properties: Mapping[str, str]
    topic: str
    rate: float | None
    speed: float | None
    keep_partitions: bool

    def __repr__(self) -> str:
        return f"<{type(self).__name__} to {self.topic}>"

    def write(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes the batches of a task; gives one row, how many records they were."""
        import pyarrow as pa

        from tagwire.client import Client, Producer

        sent = 0
        left_out = [_DUE] if self.keep_partitions else [_DUE, "partition"]
        with Client.from_properties(self.properties) as client, Producer(client) as producer:
            for rows in self._paced(batches):
                producer.send_arrow(
                    self.topic, rows.drop_columns([name for name in left_out if name in rows.schema.names])
                )
                sent += rows.num_rows
        yield pa.record_batch({"sent": pa.array([sent], pa.int64())})

    def _paced(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows, each when its time has come."""
        # What Spark takes to sort the rows, and the producer to connect, is none of their time: the clock begins when
        # the first are sent.
        begun, sent, first = 0.0, 0, None
        for batch in batches:
            if self.speed is not None:
                if untimed := batch.column(_DUE).null_count:  # which come first
                    yield batch.slice(0, untimed)
                    batch = batch.slice(untimed)
                due = batch.column(_DUE).to_numpy(zero_copy_only=False)
                if first is None and len(due):
                    first = due[0]
                at = 0
                while at < len(due):
                    assert first is not None
                    elapsed = (time.monotonic() - begun) * self.speed * 1000 if begun else 0.0
                    until = max(int(due.searchsorted(first + elapsed, "right")), at)
                    if until > at:
                        yield batch.slice(at, until - at)
                        begun = begun or time.monotonic()
                    elif (wait := (due[at] - first - elapsed) / self.speed / 1000) > 0:
                        time.sleep(wait)
                    at = until
                continue
            step = batch.num_rows if self.rate is None else max(1, int(self.rate / _SLICES_A_SECOND))
            for start in range(0, batch.num_rows, step or 1):
                rows = batch.slice(start, step)
                yield rows
                begun = begun or time.monotonic()
                sent += rows.num_rows
                if self.rate is not None:
                    time.sleep(max(0.0, begun + sent / self.rate - time.monotonic()))


def replay(
    rows: DataFrame,
    properties: Mapping[str, str],
    topic: str,
    *,
    rate: float | None = None,
    speed: float | None = None,
    times: str | int = KEEP,
    keep_partitions: bool = True,
    partitions: int | None = None,
    on_target: Callable[[Target], None] = lambda target: None,
) -> int:
    """Write rows to a topic; how many they were.

    Args:
        rows: with `key` and `value` (binary or string), `partition` and `offset`; perhaps `topic`, `timestamp` and
            `headers`.
        properties: of the client, `bootstrap.servers` among them, and of the producer: acks, compression.type, ...
        rate: records per second, written by one task; None is as fast as brokers take them, by many.
        speed: how fast the time of the records goes by: 1 as they once came, 60 an hour in a minute. By one task too.
        times: the records' timestamps: "keep" as they are, "now" the time of writing, or a number of milliseconds that
            is added to them, but not to -1, which is none.
        keep_partitions: whether each row goes to the partition of its number; else its key says where.
        partitions: how many a topic gets that is not there; None is as many as the rows come from.
        on_target: told of the topic when it has all its partitions, before anything is written.

    Raises:
        ConfigError: an argument is wrong, a column is missing, or the topic lacks a partition that rows are for.
        KafkaError, ConnectError, ...: as the brokers respond.
    """
    for name, pace in (("rate", rate), ("speed", speed)):
        if pace is not None and not 0 < pace < math.inf:
            raise ConfigError(f"{name}={pace}: needs a number above 0")
    if rate is not None and speed is not None:
        raise ConfigError(f"rate={rate} and speed={speed}: both say how fast; give one")
    if not (times in (KEEP, NOW) or isinstance(times, int)):
        raise ConfigError(f"times={times!r}: needs keep, now or a number of milliseconds")
    needed = ["key", "value", "partition", "offset", *(["timestamp"] if speed is not None else [])]
    missing = [name for name in needed if name not in rows.columns]
    if missing:
        raise ConfigError(f"rows: no column {', '.join(missing)}; they have {', '.join(rows.columns)}")
    target = target_of(rows, properties, topic, partitions=partitions, keep_partitions=keep_partitions)
    if not target.rows:
        return 0
    if not target.is_there:
        create(target, properties)
    on_target(target)
    ordered = _ordered(rows) if rate is None and speed is None else _as_they_came(rows)
    job = Replay(dict(properties), topic, rate, speed, keep_partitions)
    try:
        counted = ordered.select(*_columns(ordered, times)).mapInArrow(job.write, "sent bigint").collect()
    except Exception as error:
        raise reason(error) from error
    return sum(row.sent for row in counted)


def landed_table(out: str | Path) -> tuple[LandTable, Identity]:
    """The table that `land` made in `out`, and whose it is. Raises StorageError: `land` began none there."""
    table = open_table(out)
    known = table.identity()
    if known is None:
        raise StorageError(f"{table.where}: holds no table that `tagwire land` began")
    return table, known


def landed_rows(spark: SparkSession, out: str | Path, registry: Mapping[str, str] | None = None) -> DataFrame:
    """The rows of the table that `land` made in `out`, as those of a topic.

    Header columns are headers again; one without a value is left out. Values that were decoded are written again:
    messages as they were, JSON with the fields that the table has, those of a schema registry by the version that the
    table has its columns of. Those that could not be are what they were.

    Args:
        registry: how a schema registry is reached: `schema.registry.url`, ...

    Raises:
        StorageError: `land` began no table there. TagwireError: Spark cannot read it. ConfigError: it has names that
            differ in case alone, and the session is not set to tell them apart.
        ConfigError, ValueSchemaError, SchemaRegistryError: as `tagwire.spark.functions.to_value`.
    """
    from pyspark.sql import functions as F  # noqa: N812

    landed, known = landed_table(out)
    try:
        table = _read(spark, landed, known)
        # A table may have got a column, and no file with it yet.
        for name in set(known.headers) - set(table.columns):
            table = table.withColumn(name, F.lit(None).cast("string"))
    except Exception as error:
        if _SAME_NAME in str(error):
            said = "names of columns or fields differ in case alone: set spark.sql.caseSensitive=true"
            raise ConfigError(f"{out}: {said}") from error
        raise reason(error) from error
    columns = [
        _written(table, name, known, registry or {}) if name in known.corrupt else F.col(name).cast("binary")
        for name in ("key", "value")
    ]
    columns = [column.alias(name) for column, name in zip(columns, ("key", "value"))]
    columns += [F.col("partition"), F.col("offset"), F.col("timestamp")]
    pairs = [
        F.struct(F.lit(name).alias("key"), F.col(quoted(name)).cast("binary").alias("value")) for name in known.headers
    ]
    if not pairs:
        return table.select(*columns)
    kept = F.filter(F.array(*pairs), lambda pair: pair["value"].isNotNull())
    return table.select(*columns, F.when(F.size(kept) > 0, kept).alias("headers"))


def _read(spark: SparkSession, table: LandTable, known: Identity) -> DataFrame:
    """The rows of a table: of the files that are part of it, as its log says, or of all in its directory."""
    named = [name for name in known.folders if name != known.time_folder]
    if table.name == PARQUET and not named:
        return spark.read.parquet(_url(table.where))
    files = [_url(path) for path in table.files()]
    if not files:
        raise StorageError(f"{table.where}: holds no rows")
    if table.has_deletes():
        raise StorageError(f"{table.where}: has rows deleted that its files still hold; rewrite its data files first")
    # Values that directories tell are not asked for: Spark would guess what types they are of.
    rows = spark.read.options(mergeSchema="true", recursiveFileLookup="true").parquet(*files)
    lacking = [name for name in named if name not in rows.columns]
    return _with_values(rows, table, lacking) if lacking else rows


def _url(path: str | Path) -> str:
    """A path of this machine as Spark takes it, which would find others by one that looks like a pattern."""
    return "file://" + _OF_PATTERNS.sub(r"\\\g<0>", str(path))


def _with_values(rows: DataFrame, table: LandTable, names: list[str]) -> DataFrame:
    """The rows with the columns that their files lack: partitions and headers."""
    from pyspark.sql import functions as F  # noqa: N812

    # Spark takes `..` out of a path, by its letters alone; a row whose file was not found here would be lost.
    found = [(normpath(file), *(values[name] for name in names)) for file, values in table.partition_values().items()]
    file = "_file"
    while file.lower() in {name.lower() for name in (*rows.columns, *names)}:  # a header may be called so
        file += "_"
    schema = ", ".join(f"{quoted(name)} string" for name in (file, *names))
    values = rows.sparkSession.createDataFrame(found, schema)
    if "partition" in names:
        values = values.withColumn("partition", F.col("partition").cast("int"))
    # Spark tells paths as URLs, in which a plus is a plus.
    url = F.replace(rows.metadataColumn("_metadata")["file_path"], F.lit("+"), F.lit("%2B"))
    path = F.regexp_replace(F.url_decode(url), "^file:/+", "/")
    return rows.withColumn(file, path).join(F.broadcast(values), file).drop(file)


def _written(table: DataFrame, column: str, known: Identity, registry: Mapping[str, str]) -> Column:
    """The bytes of decoded values, or of keys."""
    from pyspark.sql import functions as F  # noqa: N812

    from tagwire.spark.functions import to_message, to_value

    values = known.values
    if values[f"{column}.format"] == "message":
        message, version = values[f"{column}.message"], int(values[f"{column}.version"])
        written = to_message(column, message, version, mode="FAILFAST")
    elif values[f"{column}.format"] == "json":
        # Bytes were read from text, which is what they are again: of binary columns Spark would write Base64.
        text = F.col(column).cast(_with_text(table.schema[column].dataType))
        written = F.to_json(text, _JSON).cast("binary")
    else:
        own = {name: text for name, text in values.items() if name.startswith(f"{column}.")}
        own.pop(CORRUPT_OPTIONS[column], None)
        written = to_value(column, {**own, **registry}, topic=known.topic, mode="FAILFAST")
    return F.coalesce(written, F.col(quoted(known.corrupt[column])))


def _with_text(kind: DataType) -> DataType:
    """The type with strings where it has bytes."""
    from pyspark.sql.types import ArrayType, BinaryType, StringType, StructField, StructType

    if isinstance(kind, StructType):
        return StructType([StructField(field.name, _with_text(field.dataType)) for field in kind.fields])
    if isinstance(kind, ArrayType):
        return ArrayType(_with_text(kind.elementType))
    return StringType() if isinstance(kind, BinaryType) else kind


def _ordered(rows: DataFrame) -> DataFrame:
    """Each partition's rows in one task, in their order."""
    topic_partition = [name for name in ("topic", "partition") if name in rows.columns]
    tasks = int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    return rows.repartition(tasks, *topic_partition).sortWithinPartitions(*topic_partition, "offset")


def _as_they_came(rows: DataFrame) -> DataFrame:
    """All rows in one task, by their timestamps; those of a partition stay in their order, whatever these say.

    One without a timestamp comes with the one before it, and at once where none before it has one: -1 is no time, and
    whatever comes next would be waited for since 1970.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    topic_partition = [name for name in ("topic", "partition") if name in rows.columns]
    due = F.lit(0).cast("bigint")
    if "timestamp" in rows.columns:
        before = Window.partitionBy(*topic_partition).orderBy("offset").rowsBetween(Window.unboundedPreceding, 0)
        due = F.max(F.nullif(F.unix_millis("timestamp"), F.lit(_NO_TIME))).over(before)
    in_time = F.col(_DUE).asc_nulls_first()
    return rows.withColumn(_DUE, due).repartition(1).sortWithinPartitions(in_time, *topic_partition, "offset")


def _columns(rows: DataFrame, times: str | int) -> list[Column]:
    from pyspark.sql import functions as F  # noqa: N812

    columns = [F.col(name).cast("binary").alias(name) for name in ("key", "value")]
    columns += [F.col(name) for name in ("partition", _DUE) if name in rows.columns]
    if "headers" in rows.columns:
        columns.append(F.col("headers"))
    if "timestamp" in rows.columns and times != NOW:
        at = F.unix_millis("timestamp")
        if times != KEEP:
            at = F.when(at == _NO_TIME, at).otherwise(at + F.lit(times))
        columns.append(at.alias("timestamp"))
    return columns
