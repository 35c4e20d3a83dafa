"""The framing of values: which schema wrote each, and where its body begins. Whole columns at a time.

Either the value begins with it, or a header of its record, `__value_schema_id` or `__key_schema_id`, holds it: a byte 0
and the schema's id, four bytes, big-endian; or a byte 1 and the schema's GUID, sixteen bytes. Behind that Protobuf has
where in its file the message is: a count and as many indexes as zigzag varints, or one byte 0, which is the first
message.

Source: Confluent's SchemaId, DualSchemaIdDeserializer, HeaderSchemaIdSerializer; docs/values.md.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from tagwire.errors import DecodeError
from tagwire.extras import Needs

with Needs("arrow"):
    import pyarrow as pa
    import pyarrow.compute as pc

HEADERS: Final = {"value": "__value_schema_id", "key": "__key_schema_id"}
"""The header that names the schema, of values and of keys."""

MAX_NESTING: Final = 64
"""Indexes that say where a message is: messages nested deeper compile nowhere."""

_MAX_INDEX: Final = 100_000
_MAX_ID: Final = 2**31 - 1
_ID_SIZE: Final = 5
_GUID_SIZE: Final = 17
_VARINT_SIZE: Final = 5
_LONGEST: Final = 2**31 - 1


class Framing(NamedTuple):
    """Which schema wrote a value: its id, or its GUID as text; of Protobuf, where the message is."""

    schema: int | str
    message_indexes: tuple[int, ...] = ()

    def __str__(self) -> str:
        named = f"schema id {self.schema}" if isinstance(self.schema, int) else f"schema {self.schema}"
        return f"{named}, message {list(self.message_indexes)}" if any(self.message_indexes) else named


@dataclass(frozen=True)
class Framed:
    """Values of one framing.

    Attributes:
        rows: where they stand in their column; None is everywhere.
        bodies: binary, one for each of the rows; nulls are nulls of the column.
    """

    framing: Framing
    rows: pa.Array | None
    bodies: pa.Array


@dataclass(frozen=True)
class Split:
    """A column by its framings.

    Attributes:
        unframed: the rows without a framing that can be read; nulls are not among them.
    """

    groups: list[Framed]
    unframed: pa.Array


def prefix_of(schema_id: int, message_indexes: Sequence[int] | None = None) -> bytes:
    """What stands before a body; `message_indexes` is None but for Protobuf."""
    return b"\0" + schema_id.to_bytes(4, "big") + _indexes_bytes(message_indexes)


def header_value(guid: str, message_indexes: Sequence[int] | None = None) -> bytes:
    """The value of the header that names a schema."""
    return b"\1" + uuid.UUID(guid).bytes + _indexes_bytes(message_indexes)


def read_framing(data: bytes, indexed: bool) -> tuple[Framing, int]:
    """The framing that `data` begins with, and how many bytes it takes.

    Args:
        indexed: whether message indexes follow, as in Protobuf.

    Raises:
        DecodeError: there is none that can be read.
    """
    found = _scan(data, indexed)
    if isinstance(found, _More):
        raise DecodeError(f"ends in its framing: {len(data)} bytes, and it takes at least {found.size}")
    if isinstance(found, str):
        raise DecodeError(found)
    return found.framing, found.size


def split_prefixes(values: pa.Array, indexed: bool) -> Split:
    """A binary column whose values begin with their framing."""
    return _split(values, values, indexed)


def split_headers(values: pa.Array, headers: pa.Array, name: str, indexed: bool) -> tuple[Split, pa.Array | None]:
    """Of a binary column, what the header `name` of each record frames; and which rows have no such header: None is
    all of them. The last header of the name counts, and one that is null is none.

    Args:
        headers: a list of structs of key and value for each of the values, such as `tagwire.records.to_arrow` has.
    """
    found = _last_headers(headers, name)
    if found is None:
        return Split([], pa.array([], pa.int64())), None
    rows, frames = found
    every = len(rows) == len(values)
    if not every and values.null_count:  # a null is nobody's, whatever its header says
        there = values.is_valid().take(rows)
        rows, frames = rows.filter(there), frames.filter(there)
    chosen = values if every else values.take(rows)
    split = _split(frames, chosen, indexed)
    if every:
        return split, pa.array([], pa.int64())
    has = pc.is_in(counted(len(values)), value_set=rows)
    moved = [Framed(each.framing, _at(rows, each.rows), each.bodies) for each in split.groups]
    others = pc.indices_nonzero(pc.and_(pc.invert(has), values.is_valid())).cast(pa.int64())
    return Split(moved, rows.take(split.unframed)), others


def header_of(headers: Sequence[tuple[str, bytes | None]] | None, name: str) -> bytes | None:
    """The framing in one record's headers."""
    found = [value for key, value in headers or () if key == name]
    return found[-1] if found else None


def _last_headers(headers: pa.Array, name: str) -> tuple[pa.Array, pa.Array] | None:
    """The rows that have a header of the name, and the last one's value each; None where no row has."""
    lists = None
    if headers.null_count:
        # A null may stand over entries, which count for the parents and not for what is flattened.
        lists = pc.indices_nonzero(headers.is_valid()).cast(pa.int64())
        headers = headers.take(lists)
    entries = headers.flatten()
    if not len(entries):
        return None
    matches = pc.equal(pc.struct_field(entries, "key"), name)
    if not pc.any(matches).as_py():
        return None
    rows = pc.list_parent_indices(headers).filter(matches).cast(pa.int64())
    rows = rows if lists is None else lists.take(rows)
    frames = pc.struct_field(entries, "value").filter(matches)
    if len(rows) > 1:
        changes = pc.not_equal(rows.slice(0, len(rows) - 1), rows.slice(1))
        last = pa.concat_arrays([changes, pa.array([True])])
        rows, frames = rows.filter(last), frames.filter(last)
    there = frames.is_valid()
    rows, frames = rows.filter(there), frames.filter(there)
    return (rows, frames) if len(rows) else None


def _split(frames: pa.Array, values: pa.Array, indexed: bool) -> Split:
    """Values by what `frames` begin with; where the two are the same column, bodies follow their framing."""
    inside = frames is values
    none = pa.array([], pa.int64())
    valid = values.is_valid() if values.null_count else None
    if values.null_count == len(values):
        return Split([], none)
    first = frames[0 if valid is None else pc.index(valid, True).as_py()].as_py()
    found = _scan(first, indexed)
    if isinstance(found, _Found):
        # One framing for all is what most columns have: told by one pass over the values, without groups.
        same = pc.starts_with(frames, pattern=first[: found.size])
        if pc.all(same if valid is None or inside else same.filter(valid)).as_py():
            return Split([Framed(found.framing, None, _after(values, found.size) if inside else values)], none)
    rows = counted(len(values)) if valid is None else pc.indices_nonzero(valid).cast(pa.int64())
    groups: list[tuple[Framing, int, pa.Array]] = []
    unframed: list[pa.Array] = [none]
    _refine(frames if valid is None else frames.take(rows), rows, 1, indexed, groups, unframed)
    framed = [
        Framed(framing, at, _after(values.take(at), size) if inside else values.take(at))
        for framing, size, at in groups
    ]
    return Split(framed, pa.concat_arrays(unframed))


def _refine(
    frames: pa.Array,
    rows: pa.Array,
    size: int,
    indexed: bool,
    groups: list[tuple[Framing, int, pa.Array]],
    unframed: list[pa.Array],
) -> None:
    """Groups rows by the first `size` bytes, as many as are known to be framing, and those on by more bytes."""
    encoded = pc.binary_slice(frames, 0, size).dictionary_encode()
    of_code = _rows_of_codes(rows, encoded)
    more: dict[int, list[int]] = {}
    wrong: list[int] = []
    for code, prefix in enumerate(encoded.dictionary.to_pylist()):
        found = _scan(prefix, indexed)
        if isinstance(found, _Found):
            groups.append((found.framing, found.size, of_code[code]))
        elif isinstance(found, _More) and len(prefix) == size:
            more.setdefault(found.size, []).append(code)
        else:
            wrong.append(code)
    unframed.extend(of_code[code] for code in wrong)
    for longer, codes in more.items():
        if len(codes) < len(encoded.dictionary):
            chosen = _matching(encoded, codes)
            _refine(frames.filter(chosen), rows.filter(chosen), longer, indexed, groups, unframed)
        else:
            _refine(frames, rows, longer, indexed, groups, unframed)


def _rows_of_codes(rows: pa.Array, encoded: pa.DictionaryArray) -> list[pa.Array]:
    """The rows of each code. One sort for all of them: values that never had a framing may have as many as rows."""
    by_code = rows.take(pc.array_sort_indices(encoded.indices))
    counts = dict(zip(*(part.to_pylist() for part in pc.value_counts(encoded.indices).flatten())))
    found, start = [], 0
    for code in range(len(encoded.dictionary)):
        found.append(by_code.slice(start, counts[code]))
        start += counts[code]
    return found


def _matching(encoded: pa.DictionaryArray, codes: list[int]) -> pa.Array:
    if len(codes) == 1:
        return pc.equal(encoded.indices, codes[0])
    return pc.is_in(encoded.indices, value_set=pa.array(codes, encoded.indices.type))


def _after(values: pa.Array, size: int) -> pa.Array:
    # Without an end Arrow 26 takes the sizes to be negative.
    return pc.binary_slice(values, size, _LONGEST)


def _at(rows: pa.Array, chosen: pa.Array | None) -> pa.Array:
    return rows if chosen is None else rows.take(chosen)


def counted(count: int) -> pa.Array:
    """The rows of a column: 0, 1, 2, ..."""
    return pc.indices_nonzero(pa.repeat(pa.scalar(True), count)).cast(pa.int64())


class _Found(NamedTuple):
    framing: Framing
    size: int


class _More(NamedTuple):
    """A framing that goes on for at least `size` bytes."""

    size: int


def _scan(data: bytes, indexed: bool) -> _Found | _More | str:
    """The framing at the start of `data`; how much more of it there has to be; or what is wrong with it."""
    if not data:
        return _More(1)
    schema: int | str
    if data[0] == 0:
        if len(data) < _ID_SIZE:
            return _More(_ID_SIZE)
        size, schema = _ID_SIZE, int.from_bytes(data[1:_ID_SIZE], "big")
        if schema > _MAX_ID:
            return f"schema id {schema}: ids end at {_MAX_ID}"
    elif data[0] == 1:
        if len(data) < _GUID_SIZE:
            return _More(_GUID_SIZE)
        size, schema = _GUID_SIZE, str(uuid.UUID(bytes=data[1:_GUID_SIZE]))
    else:
        return f"begins with byte {data[0]}, not with the 0 or 1 of a schema registry's framing"
    return _scan_indexes(data, size, schema) if indexed else _Found(Framing(schema), size)


def _scan_indexes(data: bytes, size: int, schema: int | str) -> _Found | _More | str:
    indexes: list[int] = []
    count = None
    while count is None or len(indexes) < count:
        value = shift = 0
        while True:
            if size == len(data):
                # Each index that is missing takes a byte at least.
                return _More(size + 1 + (0 if count is None else count - len(indexes) - 1))
            byte = data[size]
            size += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift == 7 * _VARINT_SIZE:
                return "its message indexes are no varints"
        number = (value >> 1) ^ -(value & 1)
        if count is None:
            if not 0 <= number <= MAX_NESTING:
                return f"has {number} message indexes: there can be {MAX_NESTING}"
            count = number
        elif not 0 <= number <= _MAX_INDEX:
            return f"message index {number}: no file has such a message"
        else:
            indexes.append(number)
    return _Found(Framing(schema, tuple(indexes) or (0,)), size)


def _indexes_bytes(indexes: Sequence[int] | None) -> bytes:
    if indexes is None:
        return b""
    if tuple(indexes) == (0,):
        return b"\0"
    return b"".join(_varint(2 * number) for number in (len(indexes), *indexes))


def _varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
