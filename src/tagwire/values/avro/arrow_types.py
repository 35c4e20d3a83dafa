"""The Arrow type that values of an Avro schema become, whose Spark type is what Spark's own `from_avro` gives.

Sources: docs/values.md; Spark's SchemaConverters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tagwire.errors import ValueSchemaError
from tagwire.extras import Needs
from tagwire.values.avro.schema_nodes import Node

with Needs("avro"):
    import pyarrow as pa

MAX_PRECISION: Final = 38
"""Of a decimal in Spark."""

MAX_LEVELS: Final = 60
"""Of lists and structs in each other; Arrow gives up at 64 where columns go from one library or process to another."""

_PRIMITIVES: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "fixed": pa.binary(),
    "enum": pa.string(),
}

_LOGICAL: Final = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("us", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
}

_COUNTED: Final = {
    **_LOGICAL,
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
}
"""The same in the units of what is written, which JSON's numbers have too."""

_NUMBERS: Final[dict[tuple[str, ...], pa.DataType]] = {("int", "long"): pa.int64(), ("double", "float"): pa.float64()}
"""What unions of two numbers become."""


def arrow_type(node: Node) -> pa.DataType:
    """What values of a schema become. Every field is nullable, since that of a bad row is null.

    Raises:
        ValueSchemaError: a decimal has more digits than Spark's can have.
    """
    return _type(node, _LOGICAL)


def counted_type(node: Node) -> pa.DataType:
    """The same with timestamps in the units that the schema counts them in. Raises as `arrow_type`."""
    return _type(node, _COUNTED)


def _type(node: Node, logical: Mapping[str, pa.DataType]) -> pa.DataType:
    if node.kind == "record":
        return pa.struct([pa.field(field.name, _type(field.node, logical)) for field in node.fields])
    if node.kind == "array":
        return pa.list_(_type(node.element, logical))
    if node.kind == "map":
        return pa.map_(pa.string(), _type(node.element, logical))
    if node.kind == "union":
        return _union_type(node, logical)
    if node.logical is not None:
        if node.logical.name == "decimal":
            if node.logical.precision > MAX_PRECISION:
                raise ValueSchemaError(f"{node} has more than the {MAX_PRECISION} digits that a decimal can have")
            return pa.decimal128(node.logical.precision, node.logical.scale)
        if node.logical.name in logical:
            return logical[node.logical.name]
    return _PRIMITIVES[node.kind]


def column_type(node: Node) -> pa.DataType:
    """The type of a whole column.

    Raises:
        ValueSchemaError: a decimal has too many digits, or types are nested deeper than Arrow hands them on.
    """
    kept = arrow_type(node)
    if _levels(kept) > MAX_LEVELS:
        raise ValueSchemaError(f"columns of {node} are nested deeper than {MAX_LEVELS} levels; a map is two")
    return kept


def _levels(kept: pa.DataType) -> int:
    if pa.types.is_map(kept):
        return 2 + _levels(kept.item_type)
    if pa.types.is_list(kept):
        return 1 + _levels(kept.value_type)
    if pa.types.is_struct(kept):
        return 1 + max((_levels(field.type) for field in kept), default=0)
    return 0


def members(union: Node) -> tuple[Node, ...]:
    """A union's types without null."""
    return tuple(branch for branch in union.branches if branch.kind != "null")


def is_struct(union: Node) -> bool:
    """Whether a union's values are a struct with a field for each of its types, as they do not fit one column."""
    return len(members(union)) > 1 and _number(union) is None


def is_number(union: Node) -> bool:
    """Whether a union's values are the numbers of two types in one column, logical types left out of account."""
    return _number(union) is not None


def counted_plainly(union: Node, branch: Node) -> Node:
    """A union's type as its column has it: one of two kinds of numbers has them as they are written, whatever one of
    them counts."""
    return replace(branch, logical=None) if branch.logical is not None and is_number(union) else branch


def member_name(union: Node, branch: Node) -> str:
    """What the field of one of its types is called in the struct of a union."""
    return f"member{members(union).index(branch)}"


def _number(union: Node) -> pa.DataType | None:
    return _NUMBERS.get(tuple(sorted(branch.kind for branch in members(union))))


def _union_type(union: Node, logical: Mapping[str, pa.DataType]) -> pa.DataType:
    types = members(union)
    if not types:
        return pa.null()
    if len(types) == 1:
        return _type(types[0], logical)
    return _number(union) or pa.struct([pa.field(f"member{i}", _type(each, logical)) for i, each in enumerate(types)])
