"""The data source `tagwire-capture`: request logs and captured packets as a table of observations.

    spark.read.format("tagwire-capture").load("/var/log/kafka")

A row tells of requests of one API in one version on one connection: see `tagwire.capture.tables.OBSERVATIONS`. Paths
are files, directories and patterns that every worker can open. Large request logs are read by many tasks, a capture
of packets by one, since the packets of a connection belong together. What is not understood is counted: with
`includeLosses` there are rows of it, whose column `loss` says what. With `gathered` each task tells what it has
counted, losses too, in the rows of `tagwire.capture.tables.CENSUS`: what `tagwire.spark.jobs.audit` reads.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from tagwire.capture import Census, Losses, Offers, Piece, paths_of, pieces, seen_in, take_census
from tagwire.errors import CaptureError, ConfigError
from tagwire.spark.columns import arrow_schema
from tagwire.spark.ddl import parse_schema
from tagwire.spark.failure import without_tracebacks
from tagwire.spark.option_values import count, flag, known_options
from tagwire.spark.prefetch import prefetched
from tagwire.spark.refused_stream import RefusedStreamReader

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

SPLIT_BYTES = 128 << 20
_NAMES = ("path", "paths", "bodies", "maxPartitionBytes", "includeLosses", "gathered")
_LOSS = "loss"
_TYPES: dict[str, DataType] = {
    "timestamp[us, tz=UTC]": TimestampType(),
    "string": StringType(),
    "int16": ShortType(),
    "int32": IntegerType(),
    "int64": LongType(),
    "list<item: int16>": ArrayType(ShortType()),
}
_PLACE = "file: string, position: bigint"
_CENSUS = f"""
    software_name string, software_version string, client_id string, principal string, address string,
    api_key int, api_version int, count bigint,
    first struct<unknown: boolean, time: bigint, {_PLACE}>, last struct<time: bigint, {_PLACE}>,
    highest_offered int, error_codes array<struct<code: int, count: bigint>>,
    minute bigint, loss string, place struct<{_PLACE}>,
    connection struct<client_port: int, broker_address: string, broker_port: int>
"""
_CONNECTIONS = 20_000
"""How many a task keeps before it tells of them."""


def schema_of(*, losses: bool) -> StructType:
    """The table's columns; with losses, everything may be null but where a row comes from, and how often it counts."""
    from tagwire.capture.tables import OBSERVATIONS

    schema = StructType()
    for field in OBSERVATIONS:
        schema.add(field.name, _TYPES[str(field.type)], nullable=field.nullable or losses)
    return schema.add(_LOSS, StringType()) if losses else schema


@without_tracebacks
class CaptureDataSource(DataSource):
    """Format `tagwire-capture`. A wrong option is a `ConfigError` at load."""

    @classmethod
    def name(cls) -> str:
        return "tagwire-capture"

    def schema(self) -> StructType | str:
        if _flag(self.options, "gathered"):
            return _CENSUS
        return schema_of(losses=_flag(self.options, "includeLosses"))

    def reader(self, schema: StructType) -> DataSourceReader:
        return (GatheringReader if _flag(self.options, "gathered") else CaptureReader)(self.options, schema)

    def streamReader(self, schema: StructType) -> RefusedStreamReader:  # noqa: N802
        said = f"format {self.name()}: has no stream; files are read as they are now, by spark.read"
        return RefusedStreamReader(ConfigError(said))


@without_tracebacks
class CaptureReader(DataSourceReader):
    """One task for each file, or piece of a log."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        given, _ = known_options(options, _NAMES, ())
        self._paths = _paths(options)
        self._bodies = flag("bodies", given, default=False)
        self._losses = flag("includeLosses", given, default=False)
        self._split_bytes = count("maxPartitionBytes", given) or SPLIT_BYTES
        self._schema = self._checked(schema)

    def _checked(self, schema: StructType) -> StructType:
        whole = schema_of(losses=self._losses)
        unknown = [name for name in schema.fieldNames() if name not in whole.fieldNames()]
        if unknown:
            raise ConfigError(f"column {', '.join(unknown)}: unknown; there are {', '.join(whole.fieldNames())}")
        wrong = [field.name for field in schema if field.dataType != whole[field.name].dataType]
        if wrong:
            raise ConfigError(f"column {wrong[0]}: is {whole[wrong[0]].dataType.simpleString()}")
        return schema

    def partitions(self) -> list[InputPartition]:
        """The tasks. Raises CaptureError where a path names nothing."""
        passed_over = Losses()
        paths = paths_of(self._paths, passed_over)
        for reason, times in passed_over.counts.items():
            log.warning("left out: %d x %s, first %s", times, reason, passed_over.first[reason].file)
        return [
            InputPartition((str(piece.path), piece.start, piece.end, size))
            for path in paths
            for size, piece in _sized(path, pieces(path, self._split_bytes))
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The observations of one file, or piece of one. Raises CaptureError where it is not what was planned."""
        if partition is None or partition.value is None:  # what Spark makes of a plan without tasks
            return iter(())
        path, start, end, size = partition.value
        _refuse_rotated(Path(path), size)
        return prefetched(self._batches(Piece(Path(path), start, end)))

    def _batches(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        from tagwire.capture.tables import loss_batch, observation_batch

        wanted = arrow_schema(self._schema)
        losses, offers = Losses(), Offers()
        for seen in seen_in(piece, losses, bodies=self._bodies):
            yield _shaped(observation_batch(seen, offers), wanted)
        if self._losses and losses.counts:
            yield _shaped(loss_batch(losses), wanted)


@without_tracebacks
class GatheringReader(CaptureReader):
    """One task for each file, or piece of a log, which counts what it sees."""

    def _checked(self, schema: StructType) -> StructType:
        if schema != parse_schema(_CENSUS):
            raise ConfigError("gathered: its rows have columns of their own, and all of them")
        return schema

    def _batches(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        from tagwire.capture.tables import census_batches, connection_batches

        losses, census = Losses(), Census(keeps_connections=True)
        for seen in seen_in(piece, losses, bodies=self._bodies):
            take_census(census, seen)
            if len(census.begun or ()) >= _CONNECTIONS:
                yield from connection_batches(census)
        yield from connection_batches(census)
        yield from census_batches(census, losses)


def _sized(path: Path, cut: list[Piece]) -> Iterator[tuple[int, Piece]]:
    """The pieces of a file, each with how large all of it is."""
    size = max(path.stat().st_size, cut[-1].end or 0)
    return ((size, piece) for piece in cut)


def _refuse_rotated(path: Path, size: int) -> None:
    """Logs grow; what is smaller than it was stands elsewhere by now, and a verdict would be without it."""
    there = path.stat().st_size
    if there < size:
        raise CaptureError(
            f"{path}: has {there:,} bytes, and had {size:,} when the read began: it was rotated meanwhile, as brokers "
            "do with their logs; read again"
        )


def _shaped(batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    """The columns that are wanted, of exactly the types that Spark takes."""
    import pyarrow as pa

    columns = [
        pa.nulls(batch.num_rows, field.type)
        if batch.schema.get_field_index(field.name) < 0
        else batch.column(field.name).cast(field.type)
        for field in wanted
    ]
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def _flag(options: Mapping[str, str], name: str) -> bool:
    given, _ = known_options(options, _NAMES, ())
    return flag(name, given, default=False)


def _paths(options: Mapping[str, str]) -> Iterable[str]:
    """What `load` was given: one path as it is, several as a JSON array, as Spark hands them over."""
    if options.get("paths"):
        found: list[str] = json.loads(options["paths"])
        return found
    if not options.get("path"):
        raise ConfigError("option path: missing; give files, directories or patterns to load()")
    return [options["path"]]
