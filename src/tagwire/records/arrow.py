"""Record batches to Arrow: many batches into one set of buffers.

Making a pyarrow.RecordBatch costs some 15 microseconds whatever it holds, so a whole fetch becomes one (or, with
`arrow_chunks`, as few as the memory for them allows), never one for each batch of the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import pyarrow as pa

from tagwire.errors import ConfigError, DecodeError
from tagwire.kernel import records as kernel
from tagwire.records.batch import APPEND_TIME, CODEC_MASK, HEADER_SIZE, BatchHeader, Data, batch_headers
from tagwire.records.compression import default_limit

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
    Raises ConfigError for an unknown or repeated column, or an unknown unit.
    """
    if timestamp_unit not in TIMESTAMP_UNITS:
        raise ConfigError(f"timestamp unit {timestamp_unit!r} is unknown; allowed: {', '.join(TIMESTAMP_UNITS)}")
    types = {**_TYPES, "timestamp": pa.timestamp(timestamp_unit, "UTC")}
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
        old, self.room = self.room, rows
        valid, ends = _allocated((rows + 7) // 8), _allocated(4 * (rows + 1))
        _viewed(valid, "B")[: (old + 7) // 8] = _viewed(self.valid, "B")[: (old + 7) // 8]
        _viewed(ends, "i")[: old + 1] = _viewed(self.ends, "i")[: old + 1]
        self.valid, self.ends = valid, ends
        self.view.move(_viewed(valid, "B"), _viewed(ends, "i"))

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
            return pa.array([kernel.text(key) for key in keys.view(pa.binary()).to_pylist()], pa.string())
        return keys


def _allocated(size: int) -> pa.Buffer:
    return pa.allocate_buffer(size, resizable=True)


def _viewed(buffer: pa.Buffer, letter: Literal["B", "i", "q"]) -> memoryview:
    return memoryview(buffer).cast("B").cast(letter)
