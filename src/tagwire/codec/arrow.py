"""Message bytes to Arrow columns, without an object for each message in between.

A column of messages (binary in) becomes a column of structs, all fields of the version in the class's order. uint16 and
uint32 keep their sign, uuid is fixed_size_binary(16), string utf8, bytes and records binary, arrays lists. A field is
nullable where the version says so. Fields that the version lacks are left out; a tagged field that a message leaves out
has its default. Unknown tags are checked and passed over.
"""

from __future__ import annotations

from array import array
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from tagwire.codec.program import Buffer, MessageClass, program_of
from tagwire.errors import ConfigError, DecodeError, UnsupportedVersionError
from tagwire.extras import Needs
from tagwire.kernel import message_columns as kernel
from tagwire.kernel import message_reading
from tagwire.kernel.columns import Plan
from tagwire.kernel.programs import OPERATIONS, Program

with Needs("arrow"):
    import pyarrow as pa

_TYPES = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "uint16": pa.uint16(),
    "int32": pa.int32(),
    "uint32": pa.uint32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "uuid": pa.binary(16),
    "string": pa.string(),
    "bytes": pa.binary(),
    "records": pa.binary(),
}
_OF_KIND = {OPERATIONS[name]: kind for name, kind in _TYPES.items()}


class _Shape(NamedTuple):
    program: Program
    plan: Plan
    type: pa.StructType


def schema_of(message: type[MessageClass] | MessageClass, version: int) -> pa.StructType:
    """The struct type of `message`, a class or one of its objects, at `version`.

    Raises UnsupportedVersionError where the message has no such version, and SpecError where its structs unfold into
    more than 10,000 columns.
    """
    cls = message if isinstance(message, type) else type(message)
    return _shape(program_of(cls, version)).type


def to_arrow(cls: type[MessageClass], data: Buffer, version: int, *, lenient: bool = False) -> pa.StructArray:
    """The message that `data` holds, all of it, as a column of one row of type `schema_of(cls, version)`.

    Raises DecodeError, as `cls.decode` does, and UnsupportedVersionError.
    """
    shape = _shape(program_of(cls, version))
    view = memoryview(data)
    if not view.c_contiguous or view.format != "B":
        view = memoryview(view.tobytes())
    columns = kernel.Columns(shape.plan, 1)
    if not columns.read(view, array("q", (0, view.nbytes)), None, 0, lenient):
        raise _refusal(shape.program, view, lenient)
    return _taken(columns, shape.type)


def decode_many(
    cls: type[MessageClass],
    column: pa.Array | pa.ChunkedArray,
    version: int,
    *,
    errors: Literal["raise", "column"] = "raise",
    lenient: bool = False,
) -> pa.StructArray:
    """A column of messages, one a row, as columns of their fields. A null row stays null.

    Args:
        cls: the message's class.
        column: binary of any kind.
        version: the version that all rows were written at.
        errors: "raise": the first row that is no message raises. "column": the result is struct<value, error: string>,
            where such a row has a null value and the text of the error, and every other row a null error.
        lenient: read as Kafka's Java reader does.

    Raises:
        DecodeError: a row is no message: path names the row, offset is the byte within it. Or the columns pass 2 GiB.
        UnsupportedVersionError: the message has no such version.
        ConfigError: `column` is not binary, or `errors` is neither of the two.
    """
    if errors not in ("raise", "column"):
        raise ConfigError(f"errors is {errors!r}; allowed: 'raise', 'column'")
    shape = _shape(program_of(cls, version))
    refused: dict[int, str] = {}
    columns = kernel.Columns(shape.plan, len(column))
    before = 0
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        data, starts, valid = _rows(chunk)
        row = 0
        while (row := columns.read(data, starts, valid, row, lenient)) < len(chunk):
            refusal = _refusal(shape.program, data[starts[row] : starts[row + 1]], lenient)
            if errors == "raise":
                raise _of_row(refusal, before + row)
            refused[before + row] = str(refusal)
            columns.null()
            row += 1
        before += len(chunk)
    values = _taken(columns, shape.type)
    if errors == "raise":
        return values
    told = pa.nulls(len(values), pa.string())
    if refused:
        told = pa.array([refused.get(row) for row in range(len(values))], pa.string())
    fields = [pa.field("value", shape.type), pa.field("error", pa.string())]
    return pa.StructArray.from_arrays([values, told], fields=fields)


@lru_cache(maxsize=256)
def _shape(program: Program) -> _Shape:
    plan = Plan(program)
    return _Shape(program, plan, pa.struct([_field(*outline) for outline in plan.outline]))


def _field(name: str, kind: int, nullable: bool, inside: tuple[Any, ...]) -> pa.Field:
    if kind == OPERATIONS["struct"]:
        return pa.field(name, pa.struct([_field(*outline) for outline in inside]), nullable)
    if kind not in _OF_KIND:
        return pa.field(name, pa.list_(_field(*inside[0])), nullable)
    return pa.field(name, _OF_KIND[kind], nullable)


def _rows(chunk: pa.Array) -> tuple[memoryview, memoryview, memoryview | None]:
    """The rows' bytes, where each starts and the last ends, and which are there (None: all)."""
    if chunk.type not in (pa.binary(), pa.large_binary()):
        if not (pa.types.is_fixed_size_binary(chunk.type) or pa.types.is_binary_view(chunk.type)):
            raise ConfigError(f"the column of messages is {chunk.type}, not binary")
        chunk = chunk.cast(pa.large_binary())
    if not len(chunk):
        return memoryview(b""), memoryview(array("q", (0,))), None
    _, ends, data = chunk.buffers()
    number = pa.int32() if chunk.type == pa.binary() else pa.int64()
    starts = pa.Array.from_buffers(number, len(chunk) + 1, [None, ends], 0, chunk.offset).cast(pa.int64())
    valid = chunk.is_valid().cast(pa.uint8()) if chunk.null_count else None
    return (
        memoryview(b"" if data is None else data).cast("B"),
        memoryview(starts.buffers()[1]).cast("q")[starts.offset : starts.offset + len(chunk) + 1],
        None if valid is None else memoryview(valid.buffers()[1]).cast("B")[: len(chunk)],
    )


def _refusal(program: Program, data: memoryview, lenient: bool) -> DecodeError | UnsupportedVersionError:
    """Why `data` is not the message that it should be: what decoding it to an object says."""
    try:
        message_reading.decode(program, data, 0, lenient, True)
    except (DecodeError, UnsupportedVersionError) as error:
        # Its traceback would hold the frames that hold it, and with them the columns, until a collection.
        return error.with_traceback(None)
    return DecodeError(kernel.OUT_OF_PROPORTION, path=f"{program.name} v{program.version}")


def _of_row(error: DecodeError | UnsupportedVersionError, row: int) -> DecodeError | UnsupportedVersionError:
    if isinstance(error, UnsupportedVersionError):
        return UnsupportedVersionError(f"row {row}: {error}")
    return error.under(f"row {row}")


def _taken(columns: kernel.Columns, kind: pa.StructType) -> pa.StructArray:
    taken = columns.taken()
    return pa.Array._import_from_c(taken, kind) if kernel.COMPILED else _assembled(kind, *taken)


def _assembled(kind: pa.DataType, length: int, buffers: list[Any], inside: list[Any]) -> pa.Array:
    memory = [None if buffer is None else pa.py_buffer(buffer) for buffer in buffers]
    kinds = [kind.field(index).type for index in range(kind.num_fields)]
    children = [_assembled(child, *piece) for child, piece in zip(kinds, inside)]
    return pa.Array.from_buffers(kind, length, memory, children=children)
