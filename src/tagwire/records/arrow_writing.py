"""Arrow rows to record batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Unpack

from tagwire.errors import ConfigError, EncodeError
from tagwire.extras import Needs
from tagwire.kernel import record_writing as kernel
from tagwire.records.batch import APPEND_TIME, HEADER_SIZE, next_sequence
from tagwire.records.message_set_writer import Encoded, transcribe
from tagwire.records.writer import BatchOptions, check, head, is_message_set, seal, set_format

with Needs("arrow"):
    import pyarrow as pa
    import pyarrow.compute as pc

MAX_BATCH_BYTES = 1 << 20
MAX_BATCH_RECORDS = 100_000
_UNBOUNDED = (1 << 62) - 1
_PLAIN = (pa.binary(), pa.string())
_VIEWS = (pa.binary_view(), pa.string_view())


def from_arrow(batch: pa.RecordBatch, **options: Unpack[BatchOptions]) -> bytes:
    """One record batch of the rows of `batch`, in order, or a message set; b"" for no rows. `options` are
    `BatchOptions`; keys of int headers are their decimal numbers, or names where there is a register.

    Four columns are looked at, and no other. key, value: binary or string of any kind, dictionaries of them too; a
    missing one is all null. timestamp: any timestamp, or integer milliseconds; null or missing is -1, finer units are
    cut to milliseconds. headers: list<struct<key, value>> of binary or string, a list of any kind or a map; a null
    list is no headers. `batches_from_arrow` bounds how many rows go into one batch.

    Raises EncodeError for a column of another type or that is there twice, naming it, for a row that cannot be written
    (a null header key, a timestamp below -1), or when the batch passes 2 GiB; ConfigError as `write` does.
    """
    check(options)
    if not batch.num_rows:
        return b""
    made, _ = _Rows(batch).written(0, _UNBOUNDED, _UNBOUNDED, options)
    return made


def batches_from_arrow(
    batch: pa.RecordBatch,
    *,
    max_batch_bytes: int = MAX_BATCH_BYTES,
    max_batch_records: int = MAX_BATCH_RECORDS,
    **options: Unpack[BatchOptions],
) -> Iterator[bytes]:
    """The rows of `batch`, in order, as record batches one after another, each made when the one before is taken.

    A batch has at most `max_batch_records` records, and `max_batch_bytes` bytes before compression, its header counted,
    and so has a message set; one record alone may be longer. Base offset and, where there is one, base sequence go on
    from batch to batch; 0 follows sequence 2147483647. The rest, the errors too, is as in `from_arrow`; an error comes
    when its batch is due. Raises ConfigError for a bound that leaves no room for a record.
    """
    if max_batch_records < 1 or max_batch_bytes <= HEADER_SIZE:
        raise ConfigError(
            f"batches of {max_batch_records} records and {max_batch_bytes} bytes: there is room for none "
            f"(a header has {HEADER_SIZE})"
        )
    check(options)
    return _batches(batch, max_batch_records, max_batch_bytes, options)


def _batches(batch: pa.RecordBatch, most_rows: int, most_bytes: int, options: BatchOptions) -> Iterator[bytes]:
    if not batch.num_rows:
        return
    rows, row = _Rows(batch), 0
    offset, sequence = options.get("base_offset", 0), options.get("base_sequence", -1)
    while row < batch.num_rows:
        position: BatchOptions = {"base_offset": offset + row, "base_sequence": next_sequence(sequence, row)}
        made, count = rows.written(row, most_rows, most_bytes, {**options, **position})
        row += count
        yield made


class _Rows:
    """The columns of some rows, as the kernel takes them."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.times = _milliseconds(_column(batch, "timestamp"))
        rows = batch.num_rows
        columns = [
            *(_slices(_binary(_column(batch, name), name), 0, rows) for name in ("key", "value")),
            *_header_slices(_column(batch, "headers")),
        ]
        self.views = [view for view, _ in columns]
        self.room = sum(size for _, size in columns) + rows * kernel.RECORD_OVERHEAD + HEADER_SIZE + kernel.SLACK

    def written(self, row: int, most_rows: int, most_bytes: int, options: BatchOptions) -> tuple[bytes, int]:
        """One batch of the rows from `row` on, or the messages of one, and how many it has."""
        if is_message_set(options):
            return self._message_set(row, most_rows, most_bytes, options)
        made, count, latest = self._encode(row, most_rows, most_bytes - HEADER_SIZE)
        payload = memoryview(made)[HEADER_SIZE:]
        if options.get("compression", "none") != "none":
            return seal(payload, count, self.times[row], latest, options), count
        return kernel.fronted(made, head(payload, count, self.times[row], latest, options)), count

    def _message_set(self, row: int, most_rows: int, most_bytes: int, options: BatchOptions) -> tuple[bytes, int]:
        form = set_format(options)
        while True:
            # Nothing is lost by their bound: records are shorter than messages, headers apart.
            made, count, latest = self._encode(row, most_rows, most_bytes)
            payload = memoryview(made)[HEADER_SIZE:]
            encoded = Encoded(payload, count, options.get("base_offset", 0), self.times[row], latest)
            messages, most_rows = transcribe(encoded, form, most_bytes, row)
            if most_rows == count or not form.attributes & APPEND_TIME:
                return messages, most_rows
            # The time of all is the latest of those that there was room for: once more, with these alone.

    def _encode(self, row: int, most_rows: int, most_bytes: int) -> tuple[bytes, int, int]:
        """The rows from `row` on as records, after room for a header; their number, and the latest of their times."""
        room = min(self.room, HEADER_SIZE + most_bytes + kernel.RECORD_OVERHEAD + 2 * kernel.SLACK)
        bounds = (row, most_rows, most_bytes, self.times, *self.views)
        made = kernel.encode_columns(HEADER_SIZE, room, room == self.room, *bounds)
        return made if made[1] else kernel.encode_columns(HEADER_SIZE, self.room, True, *bounds)


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    found = batch.schema.get_all_field_indices(name)
    if len(found) > 1:  # by its name there is none then, and none is all null
        raise EncodeError(f"column {name} is there {len(found)} times")
    return batch.column(found[0]) if found else pa.nulls(batch.num_rows)


def _binary(column: pa.Array, name: str) -> pa.Array:
    """`column` with the layout of binary, which is string's too."""
    kind = column.type
    if kind in _PLAIN:
        return column
    try:
        if pa.types.is_dictionary(kind) and kind.value_type in _VIEWS:  # no cast of Arrow's takes these (pyarrow 26)
            values = column.dictionary.cast(_PLAIN[0])
            column = pa.DictionaryArray.from_arrays(column.indices, values, safe=False)
        return column.cast(_PLAIN[0])
    except pa.ArrowIndexError as error:
        raise EncodeError(f"column {name} is broken: {error}") from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise EncodeError(f"column {name} is {kind}, not binary or string of less than 2 GiB") from None


def _milliseconds(column: pa.Array) -> memoryview:
    kind = column.type
    if not (pa.types.is_timestamp(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise EncodeError(f"column timestamp is {kind}, not a timestamp or integer milliseconds")
    try:
        if pa.types.is_timestamp(kind) and kind.unit != "ms":
            column = _cut(column, pa.timestamp("ms", kind.tz))
        column = column.view(pa.int64()) if pa.types.is_timestamp(kind) else column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise EncodeError(f"column timestamp does not fit into int64 milliseconds: {error}") from None
    if column.null_count:
        column = pc.fill_null(column, -1)
    return _viewed(column.buffers()[1], "q")[column.offset : column.offset + len(column)]


def _cut(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Times in milliseconds. One before -1 ms stays that: cut to -1 it would be none, and is refused."""
    if column.type.unit == "s":
        return column.cast(kind)
    cut, fine = column.cast(kind, safe=False).view(pa.int64()), column.view(pa.int64())
    is_earlier = pc.less(fine, -1000 if column.type.unit == "us" else -1_000_000)
    return pc.if_else(is_earlier, pc.min_element_wise(cut, -2), cut)


_Slices = tuple[kernel.Slices | None, int]
"""The kernel's view of a column, and the most bytes that writing the column takes."""


def _slices(column: pa.Array, first: int, last: int) -> _Slices:
    """Of the rows first..last-1 of `column`, which keep their numbers."""
    valid, ends, data = column.buffers()
    ends = _viewed(ends, "i")[column.offset : column.offset + len(column) + 1]
    view = kernel.Slices(
        _viewed(valid, "B") if column.null_count else None,
        column.offset,
        ends,
        _viewed(data, "B") if data else memoryview(b""),
        data.size if data else 0,
    )
    return view, max(0, ends[last] - ends[first])


def _header_slices(column: pa.Array) -> tuple[_Slices, _Slices, _Slices]:
    """Of the lists, the header keys and the header values; None where there is no header at all."""
    absent = (None, 0), (None, 0), (None, 0)
    if column.null_count == len(column):
        return absent
    column = _lists(column)
    pairs = column.values
    ends = _viewed(column.buffers()[1], "i")[column.offset : column.offset + len(column) + 1]
    first, last = ends[0], ends[-1]
    if not 0 <= first <= last <= len(pairs):
        raise EncodeError("column headers: its ends contradict each other")
    if first == last:
        return absent
    lists = kernel.Slices(
        _viewed(column.buffers()[0], "B") if column.null_count else None, column.offset, ends, None, len(pairs)
    )
    # a null pair makes its key null, which flattening tells; without one there is no need for it
    fields = pairs.flatten() if pairs.null_count else [pairs.field(0), pairs.field(1)]
    names, values = (fields[pairs.type.get_field_index(name)] for name in ("key", "value"))
    return (
        (lists, (last - first) * kernel.HEADER_OVERHEAD),
        _slices(_binary(names, "headers key"), first, last),
        _slices(_binary(values, "headers value"), first, last),
    )


def _lists(column: pa.Array) -> pa.Array:
    """`column` as lists of 32-bit ends, or the map that has the same layout."""
    kind = column.type
    pairs = column.values.type if pa.types.is_map(kind) else getattr(kind, "value_type", None)
    names = [] if pairs is None or not pa.types.is_struct(pairs) else sorted(field.name for field in pairs)
    if names != ["key", "value"]:
        raise EncodeError(f"column headers is {kind}, not list<struct<key, value>>")
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        return column
    # not by a cast: that of list views gives too few ends (pyarrow 26)
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    ends = pa.concat_arrays([pa.array([0], lengths.type), pc.cumulative_sum(lengths)])
    try:
        return pa.ListArray.from_arrays(ends.cast(pa.int32()), column.flatten(), mask=column.is_null())
    except pa.ArrowInvalid:
        raise EncodeError(f"column headers is {kind}, not list<struct<key, value>> of less than 2^31 pairs") from None


def _viewed(buffer: pa.Buffer, letter: Literal["B", "i", "q"]) -> memoryview:
    return memoryview(buffer).cast(letter)
