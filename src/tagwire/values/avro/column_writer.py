"""Arrow columns as bodies of an Avro schema, a column at a time.

Source: the Avro specification, 1.11, "Binary Encoding". Columns and fields meet by name, as in Spark's `to_avro`.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tagwire.errors import ValueSchemaError
from tagwire.extras import Needs
from tagwire.values.avro.arrow_types import arrow_type, is_number, is_struct, members
from tagwire.values.avro.binary_pieces import blanked, joined, of_bytes, of_lengths, of_width, varints
from tagwire.values.avro.defaults import default_value
from tagwire.values.avro.schema_nodes import NO_DEFAULT, Field, Node
from tagwire.values.dictionaries import without_dictionary

with Needs("avro"):
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

_INT_MIN, _INT_MAX = -(1 << 31), (1 << 31) - 1

_RAW: Final = (None, "time-millis", "time-micros", "timestamp-nanos", "local-timestamp-nanos")
"""Logical types whose column is one of integers."""

_UNITS: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}

_NANOS: Final = {"millis": 1_000_000, "micros": 1_000, "nanos": 1}


@dataclass(slots=True)
class Faults:
    """What was found that cannot be written.

    Attributes:
        reasons: where and why, for whoever writes one row and asks.
    """

    reasons: list[str] = field(default_factory=list)


Pieces = tuple[list[pa.Array], Any]
"""What each row's body is made of, in order; and which rows cannot be written, or None."""

Write = Callable[[pa.Array, Any, Faults], Pieces]
"""Writes a column: the array, which of its rows are there (None: all), and where faults are told."""


def writer_of(node: Node, column: pa.DataType, path: str = "") -> Write:
    """What writes columns of one Arrow type.

    Raises:
        ValueSchemaError: the columns do not fit the schema: which, and why.
    """
    if isinstance(column, pa.BaseExtensionType):
        column = column.storage_type
    if node.kind == "union" and not pa.types.is_dictionary(column):
        return _union(node, column, path)
    if node.kind == "null" and pa.types.is_null(column):
        return lambda array, present, faults: ([], None)
    if node.kind == "record":
        return _record(node, column, path)
    if node.kind in ("array", "map"):
        return _blocks(node, column, path)
    if pa.types.is_dictionary(column):
        plain = writer_of(node, column.value_type, path)
        return lambda array, present, faults: plain(without_dictionary(array), present, faults)
    bad = _leaf(node, column)
    if bad is None:
        raise _misfit(path, f"{node} cannot be written from {column}")
    return _checked(bad, path)


def _misfit(path: str, why: str) -> ValueSchemaError:
    return ValueSchemaError(f"the columns do not fit the Avro schema{f' at {path}' if path else ''}: {why}")


Leaf = Callable[[pa.Array, Any], tuple[list[pa.Array], Any, str]]
"""Writes the values of a column that has no nulls where `present`: pieces, which of them do not fit, and why."""


def _checked(write: Leaf, path: str) -> Write:
    def checked(array: pa.Array, present: Any, faults: Faults) -> Pieces:
        bad = None
        if array.null_count:
            valid = np.asarray(array.is_valid())
            bad = ~valid if present is None else ~valid & present
            present = valid if present is None else valid & present
            if bad.any():
                faults.reasons.append(_told(path, "it is null, and the schema does not allow that"))
        pieces, unfit, why = write(array, present)
        if unfit is not None:
            if present is not None:
                unfit = unfit & present
            if unfit.any():
                faults.reasons.append(_told(path, why))
                bad = unfit if bad is None else bad | unfit
        return pieces, bad

    return checked


def _told(path: str, why: str) -> str:
    return f"at {path}: {why}" if path else why


def _leaf(node: Node, column: pa.DataType) -> Leaf | None:
    types = pa.types
    logical = node.logical.name if node.logical is not None else None
    if node.kind == "boolean" and types.is_boolean(column):
        return lambda array, present: ([of_width(_numbers(array, pa.uint8()).reshape(-1, 1), present)], None, "")
    if node.kind in ("int", "long"):
        return _integer(node, column, logical)
    if node.kind in ("float", "double") and types.is_floating(column):
        kept = pa.float32() if node.kind == "float" else pa.float64()
        if column.bit_width <= kept.bit_width:
            width = kept.bit_width // 8
            return lambda array, present: (
                [of_width(_numbers(array, kept).view(np.uint8).reshape(-1, width), present)],
                None,
                "",
            )
    if node.kind in ("bytes", "fixed") and logical == "decimal" and types.is_decimal(column):
        return _decimal(node, column)
    if node.kind in ("string", "enum") and _is_text(column):
        return _string if node.kind == "string" else _enum(node)
    if node.kind in ("bytes", "fixed") and logical != "decimal" and _is_binary(column):
        return _text if node.kind == "bytes" else _fixed(node)
    return None


def _is_text(column: pa.DataType) -> bool:
    return bool(pa.types.is_string(column) or pa.types.is_large_string(column) or pa.types.is_string_view(column))


def _is_binary(column: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_binary(column)
        or types.is_large_binary(column)
        or types.is_binary_view(column)
        or types.is_fixed_size_binary(column)
    )


def _numbers(array: pa.Array, kept: pa.DataType) -> Any:
    """The numbers of a column, anything where it is null."""
    if array.type != kept:
        array = array.cast(kept)
    if array.null_count:
        array = array.fill_null(pa.scalar(0, kept))
    return array.to_numpy(zero_copy_only=False)


def _integer(node: Node, column: pa.DataType, logical: str | None) -> Leaf | None:
    types = pa.types
    times, by = 1, 1
    if types.is_integer(column):
        if logical not in _RAW:
            return None
    elif types.is_date32(column):
        if logical != "date":
            return None
    elif types.is_timestamp(column) or types.is_time(column):
        family = "time" if types.is_time(column) else "timestamp" if column.tz else "local-timestamp"
        if logical is None or logical.rpartition("-")[0] != family:
            return None
        times, by = _UNITS[column.unit], _NANOS[logical.rpartition("-")[2]]
        times, by = (times // by, 1) if times >= by else (1, by // times)
    else:
        return None
    is_int = node.kind == "int"
    physical = pa.int32() if types.is_date32(column) or types.is_time32(column) else pa.int64()

    def write(array: pa.Array, present: Any) -> tuple[list[pa.Array], Any, str]:
        if not types.is_integer(array.type):
            array = array.view(physical)
        unfit = None
        if types.is_uint64(array.type):
            beyond = pc.greater(array, pa.scalar((1 << 63) - 1, pa.uint64())).fill_null(False)
            unfit = np.asarray(beyond)
            array = pc.if_else(beyond, pa.scalar(0, pa.uint64()), array)
        values = _numbers(array, pa.int64())
        if times > 1:
            limit = ((1 << 63) - 1) // times
            unfit = (values > limit) | (values < -limit)
            values = np.where(unfit, 0, values) * times
        elif by > 1:
            values = values // by
        if is_int:
            unfit = _either(unfit, (values < _INT_MIN) | (values > _INT_MAX))
        if unfit is not None and not unfit.any():
            unfit = None
        return [varints(values, present)], unfit, f"its number does not fit {node}"

    return write


def _decimal(node: Node, column: pa.DataType) -> Leaf | None:
    assert node.logical is not None
    precision, scale = node.logical.precision, node.logical.scale
    if column.scale > scale or precision > 38 or column.precision > 38:
        return None
    fits = column.precision - column.scale <= precision - scale
    widened = pa.decimal256(76, scale)
    # As Python's own context has it, a bound of more than 28 digits would be rounded up.
    bound = pa.scalar(decimal.Decimal(10**precision - 1).scaleb(-scale, decimal.Context(prec=76)), widened)
    kept = pa.decimal128(38, scale)
    width = node.size if node.kind == "fixed" else 16

    def write(array: pa.Array, present: Any) -> tuple[list[pa.Array], Any, str]:
        unfit = None
        if not fits:
            wide = array.cast(widened)
            beyond = pc.greater(pc.abs(wide), bound).fill_null(False)
            unfit = np.asarray(beyond)
            array = pc.if_else(beyond, pa.scalar(None, widened), wide)
        array = array.cast(kept)
        start = array.offset
        big = np.frombuffer(array.buffers()[1], np.uint8).reshape(-1, 16)[start : start + len(array), ::-1]
        if array.null_count:
            big = np.where(np.asarray(array.is_valid())[:, None], big, 0).astype(np.uint8)
        if node.kind == "fixed":
            pad = np.repeat(np.where(big[:, :1] >= 128, 255, 0).astype(np.uint8), max(0, width - 16), axis=1)
            table = np.ascontiguousarray(np.concatenate([pad, big[:, 16 - min(width, 16) :]], axis=1))
            return [of_width(table, present)], unfit, f"its number does not fit {node}"
        sign = np.where(big[:, :1] >= 128, 255, 0)
        differs = big != sign
        first = np.where(differs.any(axis=1), differs.argmax(axis=1), 15)
        first -= (first > 0) & ((big[np.arange(len(big)), first] >= 128) != (sign[:, 0] == 255))
        lengths = 16 - first
        if present is not None:
            lengths = np.where(present, lengths, 0)
        body = of_lengths(np.ascontiguousarray(big)[np.arange(16) >= (16 - lengths)[:, None]], lengths)
        return [varints(lengths.astype(np.int64), present), body], unfit, f"its number does not fit {node}"

    return write


def _text(array: pa.Array, present: Any) -> tuple[list[pa.Array], Any, str]:
    array = array.cast(pa.binary())
    lengths = _numbers(pc.binary_length(array), pa.int64())
    array = blanked(array, present)
    return [varints(lengths, present), array], None, ""


def _string(array: pa.Array, present: Any) -> tuple[list[pa.Array], Any, str]:
    pieces, _, _ = _text(array, present)
    raw = array.cast(pa.binary())
    try:
        raw.cast(pa.string())
    except pa.ArrowInvalid:
        return pieces, np.array([not _is_utf8(each) for each in raw.to_pylist()]), "its text is not UTF-8"
    return pieces, None, ""


def _is_utf8(data: bytes | None) -> bool:
    try:
        return data is None or data.decode() is not None
    except UnicodeDecodeError:
        return False


def _fixed(node: Node) -> Leaf:
    def write(array: pa.Array, present: Any) -> tuple[list[pa.Array], Any, str]:
        array = array.cast(pa.binary())
        unfit = _numbers(pc.binary_length(array), pa.int64()) != node.size
        array = blanked(array, present)
        return [array], unfit if unfit.any() else None, f"its bytes are not the {node.size} of {node}"

    return write


def _enum(node: Node) -> Leaf:
    symbols = pa.array(node.symbols, pa.string())

    def write(array: pa.Array, present: Any) -> tuple[list[pa.Array], Any, str]:
        places = pc.index_in(array.cast(pa.string()), symbols)
        unfit = np.asarray(places.is_null()) if places.null_count else None
        return [varints(_numbers(places, pa.int64()), present)], unfit, f"its text is no symbol of {node}"

    return write


def _union(node: Node, column: pa.DataType, path: str) -> Write:
    nothing = next((place for place, branch in enumerate(node.branches) if branch.kind == "null"), -1)
    if pa.types.is_null(column) and nothing >= 0:
        tag = bytes((nothing * 2,)) if nothing < 64 else varints(np.array([nothing]), None)[0].as_py()
        return lambda array, present, faults: ([of_bytes(tag, len(array), present)], None)
    if is_struct(node) and pa.types.is_struct(column) and _names_members(column):
        return _union_struct(node, column, path, nothing)
    reasons = []
    counts = pa.types.is_integer(column) and is_number(node)  # as such a column is read: without logical types
    for branch in sorted(members(node), key=lambda each: each.kind in ("int", "float")):
        try:
            write = writer_of(replace(branch, logical=None) if counts else branch, column, path)
        except ValueSchemaError as error:
            reasons.append(str(error))
            continue
        return _tagged(write, node.branches.index(branch), nothing)
    raise ValueSchemaError(reasons[0]) if len(reasons) == 1 else _misfit(path, f"{node} has no type for {column}")


def _names_members(column: pa.DataType) -> bool:
    return column.num_fields > 0 and all(re.fullmatch(r"member[0-9]+", field.name) for field in column)


def _tagged(write: Write, place: int, nothing: int) -> Write:
    """A union of which a column gives one type, or null where that is a type of it too."""

    def tagged(array: pa.Array, present: Any, faults: Faults) -> Pieces:
        tags = np.full(len(array), place, np.int64)
        inner = present
        if nothing >= 0 and array.null_count:
            valid = np.asarray(array.is_valid())
            tags[~valid] = nothing
            inner = valid if present is None else present & valid
        pieces, bad = write(array, inner, faults)
        return [varints(tags, present), *pieces], bad

    return tagged


def _union_struct(node: Node, column: pa.DataType, path: str, nothing: int) -> Write:
    """A struct with a field for each type of a union, of which at most one is not null."""
    named = {f"member{number}": branch for number, branch in enumerate(members(node))}
    writes = []
    for each in column:
        if each.name not in named:
            raise _misfit(path, f"{node} has no {each.name}")
        branch = named[each.name]
        kept = each.type.value_type if pa.types.is_dictionary(each.type) else each.type
        writes.append((node.branches.index(branch), writer_of(branch, kept, _below(path, each.name))))

    def write_union(array: pa.Array, present: Any, faults: Faults) -> Pieces:
        columns = [without_dictionary(each) for each in array.flatten()]
        valid = [np.asarray(each.is_valid()) for each in columns]
        given = np.sum(valid, axis=0)
        tags = np.full(len(array), max(nothing, 0), np.int64)
        wrong = given > 1 if nothing >= 0 else given != 1
        bad = _fault(wrong, present, faults, path, f"{given.max(initial=0)} of the types of {node} are not null")
        pieces = []
        for (place, write), each, there in zip(writes, columns, valid):
            tags[there] = place
            some, unfit = write(each, there if present is None else there & present, faults)
            pieces += some
            bad = _either(bad, unfit)
        return [varints(tags, present), *pieces], bad

    return write_union


def _record(node: Node, column: pa.DataType, path: str) -> Write:
    if not pa.types.is_struct(column):
        raise _misfit(path, f"{node} cannot be written from {column}")
    names = [each.name for each in column]
    unknown = [name for name in names if name not in {each.name for each in node.fields}]
    if unknown or len(set(names)) != len(names):
        told = f"{node} has no field {', '.join(unknown[:5])}" if unknown else "a column is there twice"
        raise _misfit(path, told)
    writes: list[tuple[int, Write]] = []
    for each in node.fields:
        here = _below(path, each.name)
        if each.name in names:
            place = names.index(each.name)
            writes.append((place, writer_of(each.node, column.field(place).type, here)))
        else:
            writes.append((-1, _missing(each, here)))

    def write_record(array: pa.Array, present: Any, faults: Faults) -> Pieces:
        bad = None
        if array.null_count:
            valid = np.asarray(array.is_valid())
            bad = _fault(~valid, present, faults, path, "it is null, and the schema does not allow that")
            present = valid if present is None else present & valid
        columns = array.flatten()
        pieces: list[pa.Array] = []
        for place, write in writes:
            some, unfit = write(columns[place] if place >= 0 else array, present, faults)
            pieces += some
            bad = _either(bad, unfit)
        return pieces, bad

    return write_record


def _missing(field: Field, path: str) -> Write:
    raw = missing_body(field, path)
    return lambda array, present, faults: ([of_bytes(raw, len(array), present)], None)


def missing_body(field: Field, path: str) -> bytes:
    """What is written of a field that there is no column for: its default, or null.

    Raises:
        ValueSchemaError: it has no default and cannot be null.
    """
    if field.default is not NO_DEFAULT:
        try:
            value = default_value(field.node, field.default)
        except ValueError as error:
            raise _misfit(path, f"there is no such column, and the default does not fit: {error}") from None
    elif field.node.kind == "null" or any(branch.kind == "null" for branch in field.node.branches):
        value = None
    else:
        raise _misfit(path, "there is no such column, and the field has no default and cannot be null")
    kept = arrow_type(field.node)
    pieces, _ = writer_of(field.node, kept, path)(pa.array([value], kept), None, Faults())
    raw: bytes = joined(pieces, 1)[0].as_py()
    return raw


def _blocks(node: Node, column: pa.DataType, path: str) -> Write:
    types = pa.types
    keys: Write | None = None
    if node.kind == "map":
        if not types.is_map(column):
            raise _misfit(path, f"{node} cannot be written from {column}")
        keys = writer_of(Node("string"), column.key_type, f"{path}[]")
        items = writer_of(node.element, column.item_type, f"{path}[]")
        kept = column
    else:
        if not (types.is_list(column) or types.is_large_list(column) or types.is_fixed_size_list(column)):
            raise _misfit(path, f"{node} cannot be written from {column}")
        items = writer_of(node.element, column.value_type, f"{path}[]")
        kept = pa.list_(column.value_type)

    def write(array: pa.Array, present: Any) -> tuple[list[pa.Array], Any, str]:
        if array.type != kept:
            array = array.cast(kept)
        array = blanked(array, present)
        if array.null_count:
            array = array.filter(array.is_valid())
        return _items(array, present)

    def _items(array: pa.Array, present: Any) -> tuple[list[pa.Array], Any, str]:
        offsets = np.asarray(array.offsets).astype(np.int64)
        counts = np.diff(offsets)
        start, length = int(offsets[0]), int(offsets[-1] - offsets[0])
        faults = Faults()
        pieces: list[pa.Array] = []
        bad = None
        if keys is not None:
            pieces, bad = keys(array.keys.slice(start, length), None, faults)
            values = array.items.slice(start, length)
        else:
            values = array.values.slice(start, length)
        some, unfit = items(values, None, faults)
        bad = _either(bad, unfit)
        flat = joined([*pieces, *some], length)
        # The items of a list lie one after the other: the list's bytes are from its first item's to its last's.
        edges = np.asarray(pa.Array.from_buffers(pa.int32(), length + 1, [None, flat.buffers()[1]]))
        edges = edges[flat.offset : flat.offset + length + 1].astype(np.int32)[offsets - start]
        lists = pa.BinaryArray.from_buffers(
            pa.binary(), len(array), [None, pa.py_buffer(np.ascontiguousarray(edges)), flat.buffers()[2]]
        )
        whole = joined(
            [varints(counts, counts > 0), lists, of_bytes(b"\0", len(array), None)],
            len(array),
        )
        wrong = None
        if bad is not None and bad.any():
            wrong = np.zeros(len(array), bool)
            wrong[np.searchsorted(offsets, np.flatnonzero(bad) + start, side="right") - 1] = True
        if present is not None:
            places = np.cumsum(present) - 1
            whole = whole.take(pa.array(places, mask=~present))
            wrong = None if wrong is None else np.where(present, wrong[np.maximum(places, 0)], False)
        return [whole], wrong, faults.reasons[0] if faults.reasons else ""

    checked = _checked(write, "")

    def write_blocks(array: pa.Array, present: Any, faults: Faults) -> Pieces:
        own = Faults()
        result = checked(array, present, own)
        faults.reasons += [why if path and f"at {path}" in why else _told(path, why) for why in own.reasons]
        return result

    return write_blocks


def _fault(wrong: Any, present: Any, faults: Faults, path: str, why: str) -> Any:
    """Which of the rows that are there are wrong, told where there are any; None where not."""
    if present is not None:
        wrong = wrong & present
    if not wrong.any():
        return None
    faults.reasons.append(_told(path, why))
    return wrong


def _either(one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else one | other


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
