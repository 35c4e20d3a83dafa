"""The main job: a topic becomes a table, each record once, however often the job is killed and run again.

A Structured Streaming query (AvailableNow) lands what the topic holds now and ends; the next run lands what is new.
Columns: key, value, partition, offset, timestamp and one per named header; with `partition_by`, the month, date or hour
(UTC) of the timestamp, where that is named. A header's column is the value of its last occurrence in a record; null
where the record has none, or a null one. Header values are text; what is not UTF-8 stands as `0x` and its hexadecimal
digits. Key and value are bytes, or with `text` written like headers. With `values` the value, the key or both are
typed, and one more column each holds the bytes of those that could not be decoded. Tasks write Parquet files, and the
driver makes those of a micro-batch part of the table: `tagwire.spark.tables` says why nothing is lost or repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tagwire.errors import (
    UNREACHABLE,
    ConfigError,
    KafkaError,
    SchemaRegistryUnavailableError,
    StorageUnavailableError,
    TagwireError,
)
from tagwire.spark.jobs.land_connect import ConnectRun
from tagwire.spark.jobs.land_run import LandRun
from tagwire.spark.jobs.landed import Follow, LandListener, LandReport, Progress, check_metrics, report_of
from tagwire.spark.jobs.landed_topic import FAIL, SKIP, LandedTopic
from tagwire.spark.session import check_spark, check_streams, session
from tagwire.spark.tables.iceberg_catalog import CatalogSettings
from tagwire.spark.tables.identity import Identity
from tagwire.spark.tables.opening import ICEBERG, PARQUET, open_table
from tagwire.spark.tables.table_settings import CORRUPT, CORRUPT_OPTIONS, BatchSettings, TableSettings, Upkeep
from tagwire.spark.values.options import registry_options, resolved_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tagwire.client import Client

__all__ = ["BatchSettings", "CatalogSettings", "Follow", "LandListener", "TableSettings", "Upkeep", "land"]

_TABLE = TableSettings()
_BATCHES = BatchSettings()
_UPKEEP = Upkeep()
_LISTENER = LandListener()
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_APIS = (18, 3, 2, 1)  # ApiVersions, Metadata, ListOffsets, Fetch


def land(
    bootstrap: str,
    topic: str,
    to: str | Path,
    *,
    format: str | None = None,
    table: TableSettings = _TABLE,
    batches: BatchSettings = _BATCHES,
    upkeep: Upkeep = _UPKEEP,
    follow: Follow | None = None,
    on_data_loss: str = FAIL,
    storage_options: Mapping[str, str] | None = None,
    catalog: CatalogSettings | None = None,
    spark: SparkSession | None = None,
    properties: Mapping[str, str] | None = None,
    checkpoint: str | Path | None = None,
    metrics: str | Path | None = None,
    listener: LandListener = _LISTENER,
) -> LandReport:
    """Land what `topic` holds now, and has not landed yet, in the table that `to` is.

        land("kafka-1:9092", "orders", "lake/orders", table=TableSettings(headers=["tenant"]))

    Args:
        bootstrap: brokers, `HOST:PORT,HOST:PORT`.
        to: a directory of this machine, which becomes the table; of a Delta table also a URL, such as s3://bucket/table.
        format: delta, iceberg or parquet; None is that of the table that is there, else delta where its extra is
            installed.
        table: columns and directories of the table; a table that was begun needs none.
        batches: how large micro-batches and files become.
        upkeep: what is done to the table at the end.
        follow: goes on landing what comes, until it is told to stop; None ends with what the topic holds now.
        on_data_loss: "fail" where brokers no longer keep offsets that were not landed yet, or "skip" to what they keep.
        storage_options: of the object store that `to` is in, as delta-rs has them.
        catalog: that an Iceberg table is in, which then says where it stands; None is one of SQLite in `to`.
        spark: a session, whose settings stay as they are, also one of Spark Connect where tasks and this process see
            the table under the same name; None takes the classic one that runs, or starts one.
        properties: further ones of the client: security, `isolation.level`, ...
        checkpoint: directory of the query's checkpoint; `to/_checkpoint` unless said otherwise. A table of Delta or
            Iceberg needs it for as long as a run goes on.
        metrics: a file that holds how far the run is, as Prometheus reads it; written anew after each micro-batch. Its
            directory is there.
        listener: is told how the run goes on.

    Raises:
        ConfigError: an argument is wrong, or there is no Java or PySpark.
        SpecError, UnsupportedVersionError: `table.values` names no message.
        ValueSchemaError, SchemaRegistryError: it names no schema, or the schema's registry is away.
        StorageError: `to` or `checkpoint` is not ours, does not fit or is in use, or the disk fails.
        ConnectError, KafkaError, CorruptRecordError: as the brokers respond.
        DecodeError: a value cannot be decoded, with mode FAILFAST.
        TagwireError: Spark failed; its reason in one line.
    """
    from tagwire.client import Client

    if not topic or "," in topic:
        raise ConfigError(f"topic {topic!r}: needs the name of one topic")
    table.check()
    batches.check()
    if follow is not None:
        follow.check()
    if metrics is not None:
        check_metrics(Path(metrics).parent)
    if on_data_loss not in (FAIL, SKIP):
        raise ConfigError(f"on_data_loss={on_data_loss!r}: needs {FAIL} or {SKIP}")
    check_spark(spark)
    check_streams()
    remote = spark is not None and not hasattr(spark, "_jsparkSession")
    client_properties = {**(properties or {}), "bootstrap.servers": bootstrap}
    there = open_table(to, format, checkpoint, storage_options, catalog, topic)
    if there.name == PARQUET:
        _refuse_for_parquet(table, upkeep, storage_options)
        if remote:
            raise ConfigError("format parquet: needs the checkpoint of a query, which Spark Connect has on its server")
    if there.name == ICEBERG:
        _refuse_for_iceberg(upkeep, storage_options)
    elif catalog is not None:
        raise ConfigError(f"catalog: a table of the format {there.name} is in none; format iceberg is")
    there.inspect()
    mode = (table.values or {}).get("mode")
    registry: dict[str, str] = {}
    if table.values is not None:
        registry = registry_options(table.values)
        table = replace(table, values=_decoding(table, topic, there.identity()))
    with Client.from_properties(client_properties) as client:
        topic_id = client.topic(topic).topic_id
        cluster_id = client.metadata([topic]).cluster_id or ""
        wanted = (topic, cluster_id, str(topic_id) if topic_id.int else "", table)
        there.judge(*wanted)
        versions = _versions(client)  # at the end brokers may be away
        listener.on_step("checked")
        with there.lock():
            listener.on_step("locked")
            with session(there.state / "spark.log", spark) as own:
                claimed = there.judge(*wanted)
                there.claim(claimed)
                listener.on_step("claimed")
                own.conf.set("spark.sql.adaptive.advisoryPartitionSizeInBytes", str(batches.file_bytes))
                # Else Spark makes as many files as there are cores, however small.
                own.conf.set("spark.sql.adaptive.coalescePartitions.parallelismFirst", "false")

                source = LandedTopic(client, claimed, skip=on_data_loss == SKIP)

                def run(progress: Progress) -> Progress:
                    told = None if metrics is None else Path(metrics)
                    kind = ConnectRun if remote else LandRun
                    while True:
                        landing = kind(there, claimed, batches, listener, told, progress, mode, registry)
                        partitions = source.partitions()
                        try:
                            return landing.run(own, client_properties, source, follow)
                        except TagwireError as error:
                            source.refuse_another(error)
                            # Where a query begins is said of each partition; one was added meanwhile, and not named.
                            if isinstance(error, ConfigError) and source.partitions() != partitions:
                                continue
                            if (lost := source.loss(there.where, error)) is not None:
                                raise lost from error
                            raise

                progress = _followed(run, follow, listener)
            there.keep_up(upkeep)
    listener.on_step("landed")
    return report_of(there, claimed, bootstrap, progress, versions)


def _followed(run: Callable[[Progress], Progress], follow: Follow | None, listener: LandListener) -> Progress:
    """Runs the query; where it is to follow the topic, again after pauses that grow, when brokers, a schema registry or
    the table's store were away.
    """
    progress = Progress()
    pause = _FIRST_PAUSE
    while True:
        landed = progress.rows
        try:
            return run(progress)
        except TagwireError as error:
            if follow is None or not may_pass(error):
                raise
            pause = _FIRST_PAUSE if progress.rows > landed else min(pause * 2, _LONGEST_PAUSE)
            listener.on_pause(error, pause)
            if follow.stop.wait(pause):
                return progress


def may_pass(error: object) -> bool:
    """Whether it says that brokers, a schema registry or the table's store are away, and may be back."""
    if isinstance(error, KafkaError):
        return error.retriable
    return isinstance(error, (*UNREACHABLE, SchemaRegistryUnavailableError, StorageUnavailableError))


def _refuse_for_parquet(table: TableSettings, upkeep: Upkeep, storage_options: Mapping[str, str] | None) -> None:
    asked = {**vars(upkeep), "evolve": table.evolve, "restart": table.restart, "storage_options": storage_options}
    for name, wanted in asked.items():
        if wanted:
            raise ConfigError(f"{name}: plain Parquet files have no log that it could be done by; format delta has")


def _refuse_for_iceberg(upkeep: Upkeep, storage_options: Mapping[str, str] | None) -> None:
    if upkeep.optimize:
        raise ConfigError("optimize: pyiceberg rewrites no files; Spark's rewrite_data_files does")
    if storage_options:
        raise ConfigError("storage_options: are of Delta; an Iceberg table's are among the properties of its catalog")


def _decoding(table: TableSettings, topic: str, begun: Identity | None) -> dict[str, str]:
    """How values and keys are decoded; what is not said is as the table was begun with, unless it may get further
    columns.
    """
    there = begun.values if begun is not None else {}
    values = table.values or {}
    found = {**there, **values}
    for column, option in CORRUPT_OPTIONS.items():
        if f"{column}.format" not in values:
            continue
        own = (option, *(name for name in there if name.startswith(f"{column}.")))
        for name in own:
            if name not in values:
                found.pop(name, None)
        found.setdefault(option, there.get(option, CORRUPT[column]))
        subject = f"{column}.subject"
        same_subject = values.get(subject) in (None, there.get(subject))
        if same_subject and not table.evolve and f"{column}.schema" not in values:
            for name in (subject, f"{column}.schema.version"):
                if name in there:
                    found.setdefault(name, there[name])
    return resolved_options(found, topic, names=tuple(CORRUPT_OPTIONS))


def _versions(client: Client) -> dict[str, int]:
    """What the driver and the workers speak with the brokers, per API the job uses."""
    from tagwire.client.versions import OURS
    from tagwire.rpc import api_name, negotiate

    versions = negotiate(OURS, client.versions())
    return {api_name(api): versions[api] for api in _APIS}
