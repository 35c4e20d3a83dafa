"""Record batches to Arrow: many batches of a log into one set of buffers.

Making a pyarrow.RecordBatch costs some 15 microseconds whatever it holds, so a whole fetch becomes one (or, with
`arrow_chunks`, as few as the memory for them allows), never one for each batch of the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypedDict, Unpack

from tagwire.errors import ConfigError, DecodeError
from tagwire.extras import Needs
from tagwire.kernel.plain_batches import plain_run
from tagwire.records.aborted import AbortedTransactions
from tagwire.records.batch import CODEC_MASK, BatchHeader, Data
from tagwire.records.column_buffers import ColumnBuffers, Names
from tagwire.records.columns import DEFAULT_COLUMNS, check_columns
from tagwire.records.compression import default_limit
from tagwire.records.memory_records import check_dialect, run_at

with Needs("arrow"):
    import pyarrow as pa

_TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp_type": pa.int32(),
    "headers": pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())]))),
}

_MAX_DATA = (1 << 31) - 1
_MAX_OFFSET = (1 << 63) - 1
_UNBOUNDED = (1 << 62) - 1
_KEPT_ROWS, _KEPT_TEXT = 1 << 16, 64


def arrow_schema(columns: Sequence[str] = DEFAULT_COLUMNS, *, timestamp_unit: str = "ms") -> pa.Schema:
    """The schema of what `to_arrow` makes for `columns`.

    key and value are binary, topic string, partition int32, offset int64, timestamp timestamp[ms or us, UTC],
    timestamp_type int32 (0 CreateTime, 1 LogAppendTime, -1 where magic 0 has none), headers list<element: struct<key:
    string, value: binary>>. Raises ConfigError for an unknown or repeated column, for none, or an unknown unit.
    """
    return _schema(tuple(columns), timestamp_unit)


@lru_cache(maxsize=64)
def _schema(columns: tuple[str, ...], timestamp_unit: str) -> pa.Schema:
    check_columns(columns, timestamp_unit)
    types = {**_TYPES, "timestamp": pa.timestamp(timestamp_unit, "UTC")}
    return pa.schema([(name, types[name]) for name in columns])


class ReadOptions(TypedDict, total=False):
    """What `to_arrow` and `arrow_chunks` take.

    columns: which columns and in which order (`DEFAULT_COLUMNS`); what is left out is checked but not copied.
    start_offset, end_offset: keep start_offset <= offset < end_offset only. A batch that lies wholly outside is
        neither decompressed nor verified.
    topic, partition: what these columns hold; needed where they are among the columns.
    timestamp_unit: "ms" (the default) or "us". A record without a timestamp has -1 ms, never null. With LogAppendTime
        every record of a batch has the batch's max_timestamp.
    control: keep the records of control batches, such as transaction markers, which no consumer sees (False).
    aborted: read committed: the aborted transactions of a fetch response, (producer id, first offset) each, whose
        records are left out; or an `AbortedTransactions`, where one response is read by several calls.
    dialect: None, or "int-headers" for a log of that format, whose header keys are written in decimal.
    register: with that dialect, what knows header keys by name: those it knows are written by their names.
    max_decompressed: most bytes that compressed batches may become, in `to_arrow` all together, in `arrow_chunks` each;
        None (the default): 64 times `data` and 1 MiB.
    """

    columns: Sequence[str]
    start_offset: int | None
    end_offset: int | None
    topic: str | None
    partition: int | None
    timestamp_unit: str
    control: bool
    aborted: AbortedTransactions | Iterable[tuple[int, int]] | None
    dialect: str | None
    register: Names | None
    max_decompressed: int | None


def to_arrow(data: Data | Sequence[Data], **options: Unpack[ReadOptions]) -> pa.RecordBatch:
    """The records of all complete batches in `data`, which are of one partition and in order, as one RecordBatch.

    `options` are `ReadOptions`. headers is null for a record that has none; a header key that is not UTF-8 reads with
    U+FFFD, as in Java. A partial last batch is left out: `next_offset` tells where to go on.

    Raises CorruptRecordError naming batch, record and byte, and returns nothing then; ConfigError for a wrong option;
    DecodeError when the records pass 2 GiB (see `arrow_chunks`).
    """
    selection = _Selection(data, **options)
    whole = list(selection.pieces(_UNBOUNDED, _UNBOUNDED, together=True))
    return selection.build(whole[0] if whole else _Piece())


def arrow_chunks(
    data: Data | Sequence[Data], *, max_rows: int = 50_000, max_bytes: int = 16 << 20, **options: Unpack[ReadOptions]
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """What `to_arrow` gives, in pieces of bounded memory, each with the offset to go on from after it.

    A piece ends with the first batch that brings it to `max_rows` rows or `max_bytes` bytes of records. The last piece
    may have no rows (control batches, or an emptied one); without a complete batch in `data` there is no piece. Errors
    are those of `to_arrow`, raised when their piece is due.
    """
    selection = _Selection(data, **options)
    for piece in selection.pieces(max_rows, max_bytes):
        yield selection.build(piece), piece.after


class _Piece:
    """Batches that become one RecordBatch: runs of plain ones (bytes, start, end), others with their payload."""

    def __init__(self) -> None:
        self.spans: list[tuple[memoryview, int, int] | tuple[BatchHeader, memoryview]] = []
        self.rows = self.size = 0
        self.after = -1


class _Selection:
    """Which records and columns of which bytes are wanted."""

    def __init__(
        self,
        data: Data | Sequence[Data],
        *,
        columns: Sequence[str] = DEFAULT_COLUMNS,
        start_offset: int | None = None,
        end_offset: int | None = None,
        topic: str | None = None,
        partition: int | None = None,
        timestamp_unit: str = "ms",
        control: bool = False,
        aborted: AbortedTransactions | Iterable[tuple[int, int]] | None = None,
        dialect: str | None = None,
        register: Names | None = None,
        max_decompressed: int | None = None,
    ) -> None:
        self.schema = arrow_schema(columns, timestamp_unit=timestamp_unit)
        self.constants = {"topic": topic, "partition": partition}
        for name, value in self.constants.items():
            if name in columns and value is None:
                raise ConfigError(f"column {name!r} is chosen, but no {name} is given")
        self.first = 0 if start_offset is None else min(max(start_offset, 0), _MAX_OFFSET)
        self.limit = _MAX_OFFSET if end_offset is None else min(max(end_offset, 0), _MAX_OFFSET)
        self.microseconds = timestamp_unit == "us"
        self.control = control
        if aborted is not None and not isinstance(aborted, AbortedTransactions):
            aborted = AbortedTransactions(aborted)
        self.aborted = aborted
        parts = [data] if isinstance(data, bytes | bytearray | memoryview) else data
        self.parts = [memoryview(part).cast("B") for part in parts]
        check_dialect(dialect, register)
        self.dialect = dialect
        self.register = register
        self.max_decompressed = max_decompressed

    def pieces(self, max_rows: int, max_bytes: int, *, together: bool = False) -> Iterator[_Piece]:
        """The batches with wanted records, piece by piece; `together`: what they may become counts for all of them."""
        limit = self.max_decompressed
        if limit is None:
            limit = default_limit(sum(map(len, self.parts)))
        room = _UNBOUNDED if together else _MAX_DATA
        piece = _Piece()
        for part in self.parts:
            at = 0
            while at < len(part):
                end, rows, size, after = self._plain_run(
                    part, at, max_rows - piece.rows, max_bytes - piece.size, room - piece.size
                )
                if end > at:
                    if rows or size:
                        piece.spans.append((part, at, end))
                        piece.rows += rows
                        piece.size += size
                    at = end
                else:
                    header = run_at(part, at, self.dialect, limit)
                    if header is None:
                        break
                    at += header.size
                    after = header.next_offset
                    if self.wants(header, part):
                        payload = header.payload(part, limit)
                        if together and header.attributes & CODEC_MASK:
                            limit -= len(payload)
                        if piece.spans and len(payload) > room - piece.size:
                            yield piece
                            piece = _Piece()
                        piece.spans.append((header, payload))
                        piece.rows += header.count
                        piece.size += len(payload)
                piece.after = after
                if piece.rows >= max_rows or piece.size >= max_bytes:
                    yield piece
                    piece = _Piece()
        if piece.after >= 0:
            yield piece

    def _plain_run(
        self, part: memoryview, at: int, max_rows: int, max_bytes: int, room: int
    ) -> tuple[int, int, int, int]:
        if self.dialect is not None:
            return at, 0, 0, -1
        found: tuple[int, int, int, int] = plain_run(
            part, at, self.aborted is None, self.first, self.limit, max_rows, max_bytes, room
        )
        return found

    def wants(self, header: BatchHeader, part: memoryview) -> bool:
        """Whether any record of the batch may be among those wanted; if so, its checksum is right."""
        within = header.last_offset >= self.first and header.base_offset < self.limit
        if within or (self.aborted is not None and header.is_control):
            header.verify(part)
        hidden = self.aborted is not None and self.aborted.hides(header, part)
        return within and not hidden and (self.control or not header.is_control)

    def build(self, piece: _Piece) -> pa.RecordBatch:
        """The wanted records of the batches as one RecordBatch."""
        if piece.size > _MAX_DATA:
            raise DecodeError(f"{piece.size} bytes of records do not fit into one Arrow batch of {_MAX_DATA}")
        buffers = ColumnBuffers(self.schema.names, piece.rows, piece.size, self.register)
        for span in piece.spans:
            if len(span) == 3:
                buffers.decode_run(*span, self.first, self.limit, self.microseconds)
            else:
                buffers.decode(*span, self.first, self.limit, self.microseconds)
        arrays = [
            _repeated(self.constants[field.name], field.type, buffers.rows)
            if field.name in self.constants
            else buffers.array(field)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _repeated(value: str | int | None, kind: pa.DataType, rows: int) -> pa.Array:
    """`rows` times `value`, out of what was made for the piece before: making it takes as long as reading a column."""
    if 0 < rows <= _KEPT_ROWS and len(str(value)) <= _KEPT_TEXT:
        return _repeated_before(value, kind, 1 << (rows - 1).bit_length()).slice(0, rows)
    return pa.repeat(pa.scalar(value, kind), rows)


@lru_cache(maxsize=8)
def _repeated_before(value: str | int | None, kind: pa.DataType, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), rows)
