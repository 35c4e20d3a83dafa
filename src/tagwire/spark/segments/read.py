"""The views `records` and `batches` of `tagwire-segments`: a range of a segment as Arrow batches."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import BooleanType, IntegerType, LongType, StringType, StructField, StructType, TimestampType

from tagwire.errors import DecodeError, UnsupportedVersionError
from tagwire.records import AbortedTransactions, BatchHeader, HeaderRegister, RecordBatch, batch_headers
from tagwire.records.compression import MAX_DECOMPRESSED
from tagwire.records.control import control_type
from tagwire.records.files.transaction_index import AbortedTransaction
from tagwire.spark.segments.chunks import Chunk, chunks
from tagwire.spark.segments.file_splits import FileSplit, LogFile
from tagwire.spark.segments.times import microseconds

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

_ROWS = 10_000
_MAGIC_AT = 16
_LONG, _INT, _TEXT, _FLAG = LongType(), IntegerType(), StringType(), BooleanType()

BATCH_SCHEMA = StructType(
    [
        StructField(name, kind)
        for name, kind in (
            ("topic", _TEXT),
            ("partition", _INT),
            ("path", _TEXT),
            ("position", _LONG),
            ("size", _INT),
            ("magic", _INT),
            ("baseOffset", _LONG),
            ("lastOffset", _LONG),
            ("records", _INT),
            ("maxTimestamp", TimestampType()),
            ("timestampType", _INT),
            ("compression", _TEXT),
            ("leaderEpoch", _INT),
            ("producerId", _LONG),
            ("producerEpoch", _INT),
            ("baseSequence", _INT),
            ("isTransactional", _FLAG),
            ("isControl", _FLAG),
            ("controlType", _TEXT),
            ("error", _TEXT),
        )
    ]
)
"""The view `batches`. `size` in bytes; `records` as the header says; `controlType` of control batches
only; `error`: why a batch is broken, else null."""


@dataclass(frozen=True)
class RecordSelection:
    """Which records of a range are read, and how.

    Attributes:
        columns: of `tagwire.records.to_arrow`.
        start_offset, end_offset: offsets from the one to before the other; None has no end.
        aborted: of the range's partition; None reads uncommitted records too.
        drop: whether broken batches are left out with a warning.
    """

    columns: tuple[str, ...]
    start_offset: int = 0
    end_offset: int | None = None
    aborted: tuple[AbortedTransaction, ...] | None = None
    drop: bool = False
    dialect: str | None = None
    register: HeaderRegister | None = None


def read_records(split: FileSplit, wanted: RecordSelection) -> Iterator[pa.RecordBatch]:
    """The records of a range, in batches of `wanted.columns`. Control records are left out.

    Raises:
        CorruptRecordError: a broken batch, named by its file and byte, unless `drop`.
        StorageError: the file cannot be read.
    """
    import pyarrow as pa

    options: dict[str, Any] = {
        "columns": wanted.columns,
        "timestamp_unit": "us",
        "topic": split.topic or "",
        "partition": -1 if split.partition is None else split.partition,
        "start_offset": wanted.start_offset,
        "end_offset": wanted.end_offset,
        "dialect": wanted.dialect,
        "register": wanted.register,
        "max_decompressed": MAX_DECOMPRESSED,
    }
    hiding: AbortedTransactions | None = None
    nowhere = {"topic": split.topic is None, "partition": split.partition is None}
    for chunk in chunks(split.file, split.start, split.end, drop=wanted.drop):
        if hiding is None and wanted.aborted is not None:
            hiding = _hiding(chunk, wanted.aborted)
        for found in _decoded(split, chunk, hiding, options, wanted.drop):
            if found.num_rows:
                columns = [
                    pa.nulls(found.num_rows, field.type) if nowhere.get(field.name) else column
                    for field, column in zip(found.schema, found.columns)
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=found.schema)


def _hiding(chunk: Chunk, aborted: Iterable[AbortedTransaction]) -> AbortedTransactions:
    """Those aborted transactions whose markers are not before the chunk: a producer's later records are good again."""
    first = int.from_bytes(chunk.data[:8], "big", signed=True)
    return AbortedTransactions(each[:3] for each in aborted if each.last_offset >= first)


def _decoded(
    split: FileSplit, chunk: Chunk, hiding: AbortedTransactions | None, options: dict[str, Any], drop: bool
) -> Iterator[pa.RecordBatch]:
    from tagwire.records.arrow import arrow_chunks

    before = copy.deepcopy(hiding)
    after = options["start_offset"]
    try:
        for found, reached in arrow_chunks(chunk.data, aborted=hiding, **options):
            after = reached
            yield found
    except (DecodeError, UnsupportedVersionError):
        yield from _one_by_one(split, chunk, before, {**options, "start_offset": after}, drop)
        if hiding is not None and before is not None:
            hiding.__dict__.update(before.__dict__)


def _one_by_one(
    split: FileSplit, chunk: Chunk, hiding: AbortedTransactions | None, options: dict[str, Any], drop: bool
) -> Iterator[pa.RecordBatch]:
    """The batches of a chunk apart from each other, so that a broken one is known by its position."""
    from tagwire.records.arrow import arrow_chunks

    start = 0
    for end in chunk.ends:
        try:
            yield from (found for found, _ in arrow_chunks(chunk.data[start:end], aborted=hiding, **options))
        except (DecodeError, UnsupportedVersionError) as error:
            wrong = placed_error(error, f"{split.file.path}, batch at byte {chunk.position + start}")
            if not drop:
                raise wrong from None
            log.warning("left out: %s", wrong)
        start = end


def headers(file: LogFile, start: int, end: int, *, drop: bool) -> Iterator[tuple[BatchHeader, memoryview]]:
    """The headers of a range's batches, each with its batch.

    Args:
        drop: whether a batch whose header cannot be read is left out with a warning.

    Raises:
        CorruptRecordError, UnsupportedVersionError: as `chunks`, or for such a header; name file and byte.
        StorageError: the file cannot be read.
    """
    for chunk in chunks(file, start, end, drop=drop):
        begins = 0
        for ends in chunk.ends:
            data = chunk.data[begins:ends]
            try:
                (header,) = batch_headers(data, max_decompressed=MAX_DECOMPRESSED)
            except (DecodeError, UnsupportedVersionError) as error:
                wrong = placed_error(error, f"{file.path}, batch at byte {chunk.position + begins}")
                if not drop:
                    raise wrong from None
                log.warning("left out: %s", wrong)
            else:
                yield header, data
            begins = ends


def placed_error(error: DecodeError | UnsupportedVersionError, where: str) -> DecodeError | UnsupportedVersionError:
    """`error`, naming where it was found."""
    return error.under(where) if isinstance(error, DecodeError) else UnsupportedVersionError(f"{where}: {error}")


def read_batches(
    split: FileSplit, dialect: str | None, schema: pa.Schema, *, drop: bool = False
) -> Iterator[pa.RecordBatch]:
    """What the headers of a range's batches say, and what is wrong with a batch: a row each.

    Args:
        schema: columns of `BATCH_SCHEMA`.
        drop: whether what follows bytes that no batch can start with is left out with a warning.

    Raises:
        CorruptRecordError: there are such bytes, unless `drop`; names file and byte.
        StorageError: the file cannot be read.
    """
    import pyarrow as pa

    rows: list[dict[str, Any]] = []
    for chunk in chunks(split.file, split.start, split.end, drop=drop):
        start = 0
        for end in chunk.ends:
            rows.append(_statistics(split, chunk.data[start:end], chunk.position + start, dialect))
            start = end
            if len(rows) >= _ROWS:
                yield pa.RecordBatch.from_pylist(rows, schema=schema)
                rows = []
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _statistics(split: FileSplit, data: memoryview, position: int, dialect: str | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "topic": split.topic,
        "partition": split.partition,
        "path": split.file.path,
        "position": position,
        "size": len(data),
        "magic": data[_MAGIC_AT],
        "baseOffset": int.from_bytes(data[:8], "big", signed=True),
    }
    try:
        (header,) = batch_headers(data, dialect, verify=True, max_decompressed=MAX_DECOMPRESSED)
        row |= {
            "baseOffset": header.base_offset,
            "lastOffset": header.last_offset,
            "records": header.count,
            "maxTimestamp": microseconds(header.max_timestamp),
            "timestampType": int(header.timestamp_type == "LogAppendTime"),
            "compression": header.compression,
            "leaderEpoch": header.partition_leader_epoch,
            "producerId": header.producer_id,
            "producerEpoch": header.producer_epoch,
            "baseSequence": header.base_sequence,
            "isTransactional": header.is_transactional,
            "isControl": header.is_control,
        }
        if row["maxTimestamp"] is None:
            row["error"] = f"timestamp {header.max_timestamp} has no room in microseconds"
        if not header.crc_ok:
            header.verify(data)
        if header.is_control:
            row["controlType"] = marker(data)
    except (DecodeError, UnsupportedVersionError) as error:
        row["error"] = str(error)
    return row


def marker(data: memoryview) -> str | None:
    """The type of a control batch's record; None where compaction removed it. Raises CorruptRecordError."""
    record = next(RecordBatch(data, 0).records(max_decompressed=MAX_DECOMPRESSED), None)
    return None if record is None else control_type(record.key)
