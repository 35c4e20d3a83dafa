"""Record batches to and from Arrow: many batches of a log into one set of buffers, rows into one batch.

Making a pyarrow.RecordBatch costs some 15 microseconds whatever it holds, so a whole fetch becomes one (or, with
`arrow_chunks`, as few as the memory for them allows), never one for each batch of the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from tagwire.errors import ConfigError, DecodeError, EncodeError
from tagwire.kernel import record_writing as writing
from tagwire.kernel import records as kernel
from tagwire.kernel.record_objects import text
from tagwire.records.batch import APPEND_TIME, CODEC_MASK, HEADER_SIZE, BatchHeader, Data, batch_headers
from tagwire.records.compression import default_limit
from tagwire.records.writer import BatchOptions, check, seal

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestamp_type", "headers")
"""Every column there is; `arrow_schema` has their types."""

DEFAULT_COLUMNS = ("offset", "timestamp", "key", "value", "headers")
TIMESTAMP_UNITS = ("ms", "us")

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
_SHRINK_FROM = 1 << 16


def arrow_schema(columns: Sequence[str] = DEFAULT_COLUMNS, *, timestamp_unit: str = "ms") -> pa.Schema:
    """The schema of what `to_arrow` makes for `columns`.

    key and value are binary, topic string, partition int32, offset int64, timestamp timestamp[ms or us, UTC],
    timestamp_type int32 (0 CreateTime, 1 LogAppendTime), headers list<element: struct<key: string, value: binary>>.
    Raises ConfigError for an unknown or repeated column, for none, or an unknown unit.
    """
    return _schema(tuple(columns), timestamp_unit)


@lru_cache(maxsize=64)
def _schema(columns: tuple[str, ...], timestamp_unit: str) -> pa.Schema:
    if timestamp_unit not in TIMESTAMP_UNITS:
        raise ConfigError(f"timestamp unit {timestamp_unit!r} is unknown; allowed: {', '.join(TIMESTAMP_UNITS)}")
    types = {**_TYPES, "timestamp": pa.timestamp(timestamp_unit, "UTC")}
    if not columns:
        raise ConfigError(f"no column is asked for; there are {', '.join(COLUMNS)}")
    for position, name in enumerate(columns):
        if name not in types:
            raise ConfigError(f"column {name!r} is unknown; allowed: {', '.join(COLUMNS)}")
        if name in columns[:position]:
            raise ConfigError(f"column {name!r} is asked for twice")
    return pa.schema([(name, types[name]) for name in columns])


def to_arrow(
    data: Data | Sequence[Data],
    *,
    columns: Sequence[str] = DEFAULT_COLUMNS,
    start_offset: int | None = None,
    end_offset: int | None = None,
    topic: str | None = None,
    partition: int | None = None,
    timestamp_unit: str = "ms",
    control: bool = False,
    max_decompressed: int | None = None,
) -> pa.RecordBatch:
    """The records of all complete batches in `data`, which are of one partition and in order, as one RecordBatch.

    Args:
        columns: which columns and in which order; what is not asked for is checked but not copied.
        start_offset, end_offset: keep start_offset <= offset < end_offset only. A batch that lies wholly outside is
            neither decompressed nor verified.
        topic, partition: what these columns hold; needed where they are asked for.
        timestamp_unit: "ms" or "us". A record without a timestamp has -1 ms, never null. With LogAppendTime every
            record of a batch has the batch's max_timestamp.
        control: keep the records of control batches, such as transaction markers, which no consumer sees.
        max_decompressed: most bytes that compressed batches may become, all together; None: 64 times `data` and 1 MiB.

    headers is null for a record that has none; a header key that is not UTF-8 reads with U+FFFD, as in Java. A partial
    last batch is left out: `next_offset` tells where to go on.

    Raises CorruptRecordError naming batch, record and byte, and returns nothing then; ConfigError for a wrong option;
    UnsupportedVersionError for magic 0 and 1; DecodeError when the records pass 2 GiB (see `arrow_chunks`).
    """
    selection = _Selection(columns, start_offset, end_offset, topic, partition, timestamp_unit, control)
    parts = _parts(data)
    limit = _limit(parts, max_decompressed)
    pending: list[_Payload] = []
    for part in parts:
        for header in batch_headers(part):
            if selection.wants(header):
                header.verify(part)
                payload = header.payload(part, limit)
                limit -= len(payload) if header.attributes & CODEC_MASK else 0
                pending.append((header, payload))
    return selection.build(pending)


def arrow_chunks(
    data: Data | Sequence[Data],
    *,
    columns: Sequence[str] = DEFAULT_COLUMNS,
    start_offset: int | None = None,
    end_offset: int | None = None,
    topic: str | None = None,
    partition: int | None = None,
    timestamp_unit: str = "ms",
    control: bool = False,
    max_decompressed: int | None = None,
    max_rows: int = 50_000,
    max_bytes: int = 16 << 20,
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """What `to_arrow` gives, in pieces of bounded memory, each with the offset to go on from after it.

    A piece ends with the first batch that brings it to `max_rows` rows or `max_bytes` bytes of records. Here
    `max_decompressed` is for each batch by itself. The last piece may have no rows (control batches, or an emptied
    one); without a complete batch in `data` there is no piece. Errors are those of `to_arrow`, raised when their piece
    is due.
    """
    selection = _Selection(columns, start_offset, end_offset, topic, partition, timestamp_unit, control)
    parts = _parts(data)
    limit = _limit(parts, max_decompressed)
    pending: list[_Payload] = []
    rows = size = 0
    given = after = -1
    for part in parts:
        for header in batch_headers(part):
            if selection.wants(header):
                header.verify(part)
                payload = header.payload(part, limit)
                if pending and size + len(payload) > _MAX_DATA:
                    yield selection.build(pending), after
                    pending, rows, size, given = [], 0, 0, after
                pending.append((header, payload))
                rows += header.count
                size += len(payload)
            after = header.next_offset
            if rows >= max_rows or size >= max_bytes:
                yield selection.build(pending), after
                pending, rows, size, given = [], 0, 0, after
    if after != given:
        yield selection.build(pending), after


def from_arrow(batch: pa.RecordBatch, **options: Unpack[BatchOptions]) -> bytes:
    """One record batch of the rows of `batch`, in order; b"" for no rows. `options` are `BatchOptions`.

    Four columns are looked at, and no other. key, value: binary or string of any kind; a missing one is all null.
    timestamp: any timestamp, or integer milliseconds; null or missing is -1, finer units are cut to milliseconds.
    headers: list<struct<key, value>> of binary or string; a null list is no headers. How many rows go into one batch is
    the caller's choice.

    Raises EncodeError for a column of another type, naming it, for a row that cannot be written (a null header key, a
    timestamp below -1), or when the batch passes 2 GiB; ConfigError as `write` does.
    """
    check(options)
    if not batch.num_rows:
        return b""
    key, value = (_binary(_column(batch, name), name) for name in ("key", "value"))
    columns = [_slices(key), _slices(value), *_header_slices(_column(batch, "headers"))]
    room = sum(size for _, size in columns) + batch.num_rows * writing.RECORD_OVERHEAD + writing.SLACK
    payload = memoryview(writing.uncleared(room))
    times = _milliseconds(_column(batch, "timestamp"))
    size, max_timestamp = writing.encode_columns(payload, times, *(view for view, _ in columns))
    return seal(payload[:size], batch.num_rows, times[0], max_timestamp, options)


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    position = batch.schema.get_field_index(name)
    return pa.nulls(batch.num_rows) if position < 0 else batch.column(position)


def _binary(column: pa.Array, name: str) -> pa.Array:
    """`column` with the layout of binary, which is string's too."""
    if column.type in (pa.binary(), pa.string()):
        return column
    try:
        return column.cast(pa.binary())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise EncodeError(f"column {name} is {column.type}, not binary or string of less than 2 GiB") from None


def _milliseconds(column: pa.Array) -> memoryview:
    kind = column.type
    if not (pa.types.is_timestamp(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise EncodeError(f"column timestamp is {kind}, not a timestamp or integer milliseconds")
    try:
        if pa.types.is_timestamp(kind):
            column = column.cast(pa.timestamp("ms", kind.tz), safe=kind.unit == "s")
        column = column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise EncodeError(f"column timestamp does not fit into int64 milliseconds: {error}") from None
    if column.null_count:
        column = pc.fill_null(column, -1)
    return _viewed(column.buffers()[1], "q")[column.offset : column.offset + len(column)]


_Slices = tuple[writing.Slices | None, int]
"""The kernel's view of a column, and the most bytes that writing the column takes."""


def _slices(column: pa.Array) -> _Slices:
    valid, ends, data = column.buffers()
    ends = _viewed(ends, "i")[column.offset : column.offset + len(column) + 1]
    view = writing.Slices(
        _viewed(valid, "B") if column.null_count else None,
        column.offset,
        ends,
        _viewed(data, "B") if data else memoryview(b""),
        data.size if data else 0,
    )
    return view, ends[-1] - ends[0]


def _header_slices(column: pa.Array) -> tuple[_Slices, _Slices, _Slices]:
    """Of the lists, the header keys and the header values; None where there is no header at all."""
    absent = (None, 0), (None, 0), (None, 0)
    if column.null_count == len(column):
        return absent
    kind = column.type
    pairs = kind.value_type if pa.types.is_list(kind) or pa.types.is_large_list(kind) else None
    if pairs is None or not pa.types.is_struct(pairs) or sorted(field.name for field in pairs) != ["key", "value"]:
        raise EncodeError(f"column headers is {kind}, not list<struct<key, value>>")
    if pa.types.is_large_list(kind):
        column = column.cast(pa.list_(pairs))
    first, last = column.offsets[0].as_py(), column.offsets[-1].as_py()
    if first == last:
        return absent
    ends = column.offsets if first == 0 else pc.subtract(column.offsets, pa.scalar(first, pa.int32()))
    elements = column.values.slice(first, last - first)
    fields = dict(zip((field.name for field in pairs), elements.flatten()))
    lists = writing.Slices(
        _viewed(column.buffers()[0], "B") if column.null_count else None,
        column.offset,
        _viewed(ends.buffers()[1], "i")[ends.offset :],
        None,
        last - first,
    )
    return (
        (lists, (last - first) * writing.HEADER_OVERHEAD),
        _slices(_binary(fields["key"], "headers key")),
        _slices(_binary(fields["value"], "headers value")),
    )


_Payload = tuple[BatchHeader, memoryview]


def _parts(data: Data | Sequence[Data]) -> list[memoryview]:
    parts = [data] if isinstance(data, bytes | bytearray | memoryview) else data
    return [memoryview(part).cast("B") for part in parts]


def _limit(parts: list[memoryview], max_decompressed: int | None) -> int:
    return default_limit(sum(map(len, parts))) if max_decompressed is None else max_decompressed


class _Selection:
    """Which records and columns are asked for."""

    def __init__(
        self,
        columns: Sequence[str],
        start_offset: int | None,
        end_offset: int | None,
        topic: str | None,
        partition: int | None,
        timestamp_unit: str,
        control: bool,
    ) -> None:
        self.schema = arrow_schema(columns, timestamp_unit=timestamp_unit)
        self.constants = {"topic": topic, "partition": partition}
        for name, value in self.constants.items():
            if name in columns and value is None:
                raise ConfigError(f"column {name!r} is asked for, but no {name} is given")
        self.first = 0 if start_offset is None else start_offset
        self.limit = _MAX_OFFSET if end_offset is None else end_offset
        self.microseconds = timestamp_unit == "us"
        self.control = control

    def wants(self, header: BatchHeader) -> bool:
        """Whether any record of the batch may be among those asked for."""
        if header.is_control and not self.control:
            return False
        return header.last_offset >= self.first and header.base_offset < self.limit

    def build(self, payloads: list[_Payload]) -> pa.RecordBatch:
        """The wanted records of the batches as one RecordBatch."""
        rows = sum(header.count for header, _ in payloads)
        size = sum(len(payload) for _, payload in payloads)
        if size > _MAX_DATA:
            raise DecodeError(f"{size} bytes of records do not fit into one Arrow batch of {_MAX_DATA}")
        buffers = _Buffers(self.schema.names, rows, size)
        for header, payload in payloads:
            buffers.decode(header, payload, self.first, self.limit, self.microseconds)
        arrays = [
            pa.repeat(pa.scalar(self.constants[field.name], field.type), buffers.rows)
            if field.name in self.constants
            else buffers.array(field)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


class _Strings:
    """A variable-size column being filled: Arrow's buffers, and the kernel's view of them."""

    def __init__(self, rows: int, size: int | None) -> None:
        self.valid, self.ends = _allocated((rows + 7) // 8), _allocated(4 * (rows + 1))
        self.data = None if size is None else _allocated(size + kernel.SLACK)
        self.room = rows
        self.view = kernel.Strings(
            _viewed(self.valid, "B"), _viewed(self.ends, "i"), None if self.data is None else _viewed(self.data, "B")
        )

    def grow(self, rows: int) -> None:
        """Makes room for `rows` rows, keeping those there are."""
        valid, ends = _allocated((rows + 7) // 8), _allocated(4 * (rows + 1))
        self.view.move(self.room, _viewed(valid, "B"), _viewed(ends, "i"))
        self.valid, self.ends, self.room = valid, ends, rows

    def buffers(self) -> list[pa.Buffer | None]:
        """Validity (None when no row is null), ends, and data cut to what it holds if that frees much."""
        valid = self.valid if self.view.nulls else None
        if self.data is None:
            return [valid, self.ends]
        if self.data.size > _SHRINK_FROM and self.view.size * 2 < self.data.size:
            self.data.resize(self.view.size, shrink_to_fit=True)
        return [valid, self.ends, self.data]


class _Buffers:
    """The buffers of the columns that come from records, large enough for all of them from the start.

    Header keys and values excepted: how many there are shows only while decoding, so they start with two a record.
    """

    def __init__(self, names: Sequence[str], rows: int, size: int) -> None:
        self.capacity, self.size = rows, size
        self.numbers = {
            name: _allocated(rows * width)
            for name, width in (("offset", 8), ("timestamp", 8), ("timestamp_type", 4))
            if name in names
        }
        self.strings = {name: _Strings(rows, size) for name in ("key", "value") if name in names}
        if "headers" in names:
            room = min(2 * rows + 8, size // 2)
            self.strings["headers"] = _Strings(rows, None)
            self.strings["header key"], self.strings["header value"] = _Strings(room, size), _Strings(room, size)
        self.kernel = kernel.Columns(
            self._number("offset", "q"),
            self._number("timestamp", "q"),
            self._number("timestamp_type", "i"),
            *(
                self.strings[name].view if name in self.strings else None
                for name in ("key", "value", "headers", "header key", "header value")
            ),
        )

    def _number(self, name: str, letter: Literal["q", "i"]) -> memoryview | None:
        return _viewed(self.numbers[name], letter) if name in self.numbers else None

    @property
    def rows(self) -> int:
        return int(self.kernel.rows)

    def decode(self, header: BatchHeader, payload: memoryview, first: int, limit: int, microseconds: bool) -> None:
        while needed := self.kernel.decode(
            payload,
            header.count,
            0 if header.attributes & CODEC_MASK else HEADER_SIZE,
            header.base_offset,
            header.last_offset_delta,
            header.base_timestamp,
            header.max_timestamp,
            bool(header.attributes & APPEND_TIME),
            first,
            limit,
            microseconds,
        ):
            room = min(max(needed, 2 * self.strings["header key"].room), max(needed, self.size // 2))
            self.strings["header key"].grow(room)
            self.strings["header value"].grow(room)

    def array(self, field: pa.Field) -> pa.Array:
        """The column `field`."""
        if field.name in self.numbers:
            return pa.Array.from_buffers(field.type, self.rows, [None, self.numbers[field.name]], 0)
        column = self.strings[field.name]
        if field.name != "headers":
            return pa.Array.from_buffers(field.type, self.rows, column.buffers(), column.view.nulls)
        count = column.view.size
        keys, values = self.strings["header key"], self.strings["header value"]
        pairs = pa.StructArray.from_arrays(
            [
                self._header_keys(pa.Array.from_buffers(pa.string(), count, keys.buffers(), 0)),
                pa.Array.from_buffers(pa.binary(), count, values.buffers(), values.view.nulls),
            ],
            fields=list(field.type.value_type),
        )
        return pa.Array.from_buffers(field.type, self.rows, column.buffers(), column.view.nulls, children=[pairs])

    def _header_keys(self, keys: pa.Array) -> pa.Array:
        if self.kernel.ascii_names:
            return keys
        try:
            keys.validate(full=True)
        except pa.ArrowInvalid:
            return pa.array([text(key) for key in keys.view(pa.binary()).to_pylist()], pa.string())
        return keys


def _allocated(size: int) -> pa.Buffer:
    return pa.allocate_buffer(size, resizable=True)


def _viewed(buffer: pa.Buffer, letter: Literal["B", "i", "q"]) -> memoryview:
    return memoryview(buffer).cast(letter)
