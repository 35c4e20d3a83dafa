"""Arrow columns to message bytes, without an object for each message in between: the way back of `tagwire.codec.arrow`.

Columns are taken by the names of the class's fields, in any order. What is left out has its default. Numbers may be of
any width: each value has to fit its field. A uuid may be any binary of 16 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeVar
from uuid import UUID

from tagwire.codec.arrow import schema_of
from tagwire.codec.program import MessageClass, program_of
from tagwire.errors import ConfigError, EncodeError, UnsupportedVersionError
from tagwire.extras import Needs
from tagwire.kernel import message_column_writing as kernel
from tagwire.spec import Absent, Field, Struct

with Needs("arrow"):
    import pyarrow as pa
    import pyarrow.compute as pc

AnyMessage = TypeVar("AnyMessage", bound=MessageClass)

_Column = tuple[Any, ...]
"""As `kernel.Writer` takes it: (validity, start, values, width, data, inside, constant, limit)."""


def encode_many(
    cls: type[MessageClass],
    column: pa.Array | pa.ChunkedArray,
    version: int,
    *,
    errors: Literal["raise", "column"] = "raise",
) -> pa.Array:
    """A struct column as messages, one a row, binary. A null row stays null.

    Args:
        cls: the message's class.
        column: structs, whose fields are named as the attributes of the class. Those inside them alike.
        version: the version to write.
        errors: "raise": the first row that cannot be written raises. "column": the result is
            struct<value: binary, error: string>, where such a row has a null value and the text of the error.

    Raises:
        EncodeError: a row cannot be written: a value is out of range, or null where it may not be; names the row and
            the field. Whatever `errors` says: a field is not the message's, or of a type that cannot hold its values.
        UnsupportedVersionError: the message has no such version, or a field is given that this version does not have
            and that may not be left out.
        ConfigError: `column` is not of structs, or `errors` is neither of the two.
    """
    if errors not in ("raise", "column"):
        raise ConfigError(f"errors is {errors!r}; allowed: 'raise', 'column'")
    if not pa.types.is_struct(column.type):
        raise ConfigError(f"the column of messages to be is {column.type}, not a struct")
    texts: list[str | None] = [None] * len(column) if errors == "column" else []
    written, before = [], 0
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    for chunk in chunks or [pa.array([], column.type)]:  # whose fields are checked all the same
        for row, refusal, values in _encoded(cls, chunk, version):
            if refusal is None:
                written.append(values)
            elif errors == "raise":
                raise type(refusal)(f"row {before + row}: {refusal}")
            else:
                texts[before + row] = str(refusal)
        before += len(chunk)
    try:
        values = pa.concat_arrays(written) if len(written) != 1 else written[0]
    except pa.ArrowInvalid:
        raise EncodeError(f"{cls.spec.name} v{version}: the messages pass 2 GiB: write fewer rows at a time") from None
    if errors == "raise":
        return values
    fields = [pa.field("value", pa.binary()), pa.field("error", pa.string())]
    return pa.StructArray.from_arrays([values, pa.array(texts, pa.string())], fields=fields)


def object_of(cls: type[AnyMessage], row: Mapping[str, Any]) -> AnyMessage:
    """The message that a row is, one of Arrow's Python values: structs are dicts, uuids bytes.

    Raises:
        EncodeError: a field is not the message's, or not what a uuid can be.
    """
    return _object(cls, cls, cls.spec.root, row)  # type: ignore[no-any-return]


def _encoded(
    cls: type[MessageClass], chunk: pa.StructArray, version: int
) -> Iterator[tuple[int, EncodeError | UnsupportedVersionError | None, pa.Array | None]]:
    """Rows that cannot be written, and why; last of all the column, null in these rows."""
    program = program_of(cls, version)
    try:
        chunk.validate()
    except pa.ArrowInvalid as error:
        raise EncodeError(f"{cls.spec.name} v{version}: the column is broken: {error}") from None
    columns = _Columns(version).of_struct(cls.spec.root, chunk, schema_of(cls, version), f"{cls.spec.name} v{version}")
    writer = kernel.Writer(program, columns, len(chunk))
    there = chunk.is_valid()
    present = memoryview(there.cast(pa.uint8()).buffers()[1]).cast("B") if chunk.null_count else None
    bad: list[int] = []
    row = 0
    while (row := writer.write(present, row)) < len(chunk):
        yield row, _refusal(cls, chunk, row, version), None
        bad.append(row)
        writer.skip(row)
        row += 1
    data, ends = writer.taken()
    validity = None
    if chunk.null_count or bad:
        flags = there.to_pylist()
        for row in bad:
            flags[row] = False
        validity = pa.array(flags).buffers()[1]
    buffers = [validity, pa.py_buffer(ends), pa.py_buffer(data)]
    yield len(chunk), None, pa.Array.from_buffers(pa.binary(), len(chunk), buffers)


def _refusal(
    cls: type[MessageClass], chunk: pa.StructArray, row: int, version: int
) -> EncodeError | UnsupportedVersionError:
    """Why a row is not written: what encoding it as an object says."""
    try:
        object_of(cls, chunk[row].as_py()).encode(version)
    except (EncodeError, UnsupportedVersionError) as error:
        return error.with_traceback(None)
    except UnicodeDecodeError as error:
        return EncodeError(f"{cls.spec.name} v{version}: a string is not UTF-8: {error.reason} at byte {error.start}")
    return EncodeError(f"{cls.spec.name} v{version}: cannot be written")


class _Columns:
    """Arrow arrays as the kernel takes them, checked against the spec. Errors name the field."""

    def __init__(self, version: int) -> None:
        self.version = version

    def of_struct(self, struct: Struct, given: pa.StructArray, kind: pa.StructType, path: str) -> dict[str, _Column]:
        """The columns of a struct's fields, by attribute. `kind`: what the struct is to `tagwire.codec.arrow`."""
        fields = {field.attribute: field for field in struct.fields}
        names = [field.name for field in given.type]
        for name in names:
            if name not in fields or names.count(name) > 1:
                there = f"{struct.name} has {', '.join(fields)}"
                raise EncodeError(f"{path}: {'no' if name not in fields else 'more than one'} field {name}: {there}")
        found: dict[str, _Column] = {}
        if self.version not in struct.versions:  # a row that has such a struct is refused
            return found
        for name, field in fields.items():
            if name in names:
                if self.version in field.versions:
                    column = given.field(name)
                    found[name] = self.of_field(field, column, kind.field(name).type, f"{path}, {name}")
                elif not field.ignorable:
                    raise UnsupportedVersionError(f"{path}, {name}: exists only in versions {field.versions}")
            elif self.version in field.versions and not field.is_tagged(self.version):
                found[name] = self.of_default(field, kind.field(name).type, path)
        return found

    def of_default(self, field: Field, kind: pa.DataType, path: str) -> _Column:
        """A column of one row, which stands for all."""
        column = pa.array([_default(field, self.version)], kind)
        return _constant(self.of_field(field, column, kind, path))

    def of_field(self, field: Field, column: pa.Array, kind: pa.DataType, path: str) -> _Column:
        if pa.types.is_null(column.type):
            column = column.cast(kind)
        if not field.type.is_array:
            return self.of_element(field, column, kind, path)
        if not pa.types.is_list(column.type):
            if not (pa.types.is_large_list(column.type) or pa.types.is_fixed_size_list(column.type)):
                raise EncodeError(f"{path}: is {column.type}, needs a list")
            column = _cast(column, pa.list_(column.type.value_type), path)
        element = self.of_element(field, column.values, kind.value_type, f"{path}[]")
        return _validity(column), column.offset, _buffer(column, 1), 4, None, element, False, len(column.values)

    def of_element(self, field: Field, column: pa.Array, kind: pa.DataType, path: str) -> _Column:
        if pa.types.is_null(column.type):
            column = column.cast(kind)
        if pa.types.is_dictionary(column.type):
            column = _decoded(column, path)
        if field.struct is not None:
            if not pa.types.is_struct(column.type):
                raise EncodeError(f"{path}: is {column.type}, needs a struct")
            inside = self.of_struct(field.struct, column, kind, path)
            return _validity(column), column.offset, None, 0, None, inside, False, 0
        name = field.type.element
        takes, target = _TAKEN[name]
        if not takes(column.type):
            raise EncodeError(f"{path}: is {column.type}, which does not hold {name}")
        if target is not None and not (name == "uuid" and column.type == pa.binary(16)):
            column = _cast(column, target, path)
        elif pa.types.is_unsigned_integer(column.type):
            if pa.types.is_uint64(column.type) and not field.optional:
                column = pc.if_else(
                    pc.greater(column, _MOST), pa.scalar(None, pa.uint64()), column
                )  # its row is refused
            column = _cast(column, _SIGNED[column.type], path)
        if pa.types.is_boolean(column.type):
            return _validity(column), column.offset, _buffer(column, 1), 0, None, None, False, 0
        if pa.types.is_fixed_size_binary(column.type) or pa.types.is_primitive(column.type):
            width = column.type.bit_width // 8
            return _validity(column), column.offset, _buffer(column, 1), width, None, None, False, 0
        data = _buffer(column, 2)
        return _validity(column), column.offset, _buffer(column, 1), 4, data, None, False, len(data)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _is_bytes(kind: pa.DataType) -> bool:
    plain = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    return plain or pa.types.is_fixed_size_binary(kind)


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_floating(kind) or pa.types.is_integer(kind)


_INTEGER: tuple[Callable[[pa.DataType], bool], pa.DataType | None] = (pa.types.is_integer, None)
_TAKEN: dict[str, tuple[Callable[[pa.DataType], bool], pa.DataType | None]] = {
    "bool": (pa.types.is_boolean, None),
    **dict.fromkeys(("int8", "int16", "uint16", "int32", "uint32", "int64"), _INTEGER),
    "float64": (_is_number, pa.float64()),
    "uuid": (_is_bytes, pa.binary()),
    "string": (_is_text, pa.string()),
    "bytes": (_is_bytes, pa.binary()),
    "records": (_is_bytes, pa.binary()),
}
"""Which types of Arrow hold values of a type, and what they are brought to; None is as they are."""

_SIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.int64()}

_OF_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}

_MOST = pa.scalar(2**63 - 1, pa.uint64())


def _cast(column: pa.Array, kind: pa.DataType, path: str) -> pa.Array:
    if column.type == kind:
        return column
    try:
        return column.cast(kind, safe=not pa.types.is_floating(kind))
    except pa.ArrowInvalid as error:
        raise EncodeError(f"{path}: {error}") from None


def _decoded(column: pa.DictionaryArray, path: str) -> pa.Array:
    """The values of a dictionary's indices. Where it has no values, indices that are not null stand below nulls, where
    nobody looks."""
    kind = column.type.value_type
    if not len(column.dictionary):
        return pa.nulls(len(column), kind)
    if kind in _OF_VIEWS:  # which Arrow does not decode (pyarrow 26)
        values = _cast(column.dictionary, _OF_VIEWS[kind], path)
        column = pa.DictionaryArray.from_arrays(column.indices, values, safe=False)
    try:
        return column.dictionary_decode()
    except pa.ArrowIndexError as error:
        raise EncodeError(f"{path}: {error}") from None


def _validity(column: pa.Array) -> memoryview | None:
    return _buffer(column, 0) if column.null_count else None


def _buffer(column: pa.Array, index: int) -> memoryview:
    """A buffer of a column; one that Arrow left out, because there are no values, is of zeros."""
    found = column.buffers()[index]
    return memoryview(found if found else bytes(16)).cast("B")


def _constant(column: _Column) -> _Column:
    inside = column[5]
    if isinstance(inside, dict):
        inside = {name: _constant(each) for name, each in inside.items()}
    return (*column[:5], inside, True, column[7])


def _default(field: Field, version: int) -> Any:
    if field.default is Absent.EMPTY_ARRAY:
        return []
    if field.default is Absent.STRUCT:
        assert field.struct is not None
        return {each.attribute: _default(each, version) for each in field.struct.fields if version in each.versions}
    return field.default.bytes if isinstance(field.default, UUID) else field.default


def _object(cls: type[MessageClass], made: type, struct: Struct, row: Mapping[str, Any]) -> Any:
    values: dict[str, Any] = {}
    fields = {field.attribute: field for field in struct.fields}
    for name, value in row.items():
        field = fields.get(name)
        if field is None:
            raise EncodeError(f"{struct.name} has no field {name}; it has {', '.join(fields)}")
        if value is None:
            values[name] = value
        elif field.struct is None:
            values[name] = _uuids(name, value) if field.type.element == "uuid" else value
        elif field.type.is_array:
            inner = getattr(cls, field.struct.name)
            values[name] = [None if each is None else _object(cls, inner, field.struct, each) for each in value]
        else:
            values[name] = _object(cls, getattr(cls, field.struct.name), field.struct, value)
    return made(**values)


def _uuids(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_uuids(name, each) for each in value]
    if not isinstance(value, bytes) or len(value) != 16:
        raise EncodeError(f"{name} needs the 16 bytes of a uuid, not {value!r}")
    return UUID(bytes=value)
