"""Defaults of a reader's fields: from the JSON of a schema to what Arrow makes a column of.

Source: the Avro specification, 1.11, "field default values".
"""

from __future__ import annotations

import decimal
from typing import Final

from tagwire.values.avro.arrow_types import MAX_PRECISION, counted_plainly, is_struct, member_name
from tagwire.values.avro.conversions import from_unscaled, stored_time
from tagwire.values.avro.schema_nodes import NO_DEFAULT, Node

_INTEGERS: Final = {"int": 1 << 31, "long": 1 << 63}


def default_value(node: Node, given: object) -> object:
    """The value of a default, as `pa.array` takes it.

    Raises:
        ValueError: it is no value of the type; says why.
    """
    if node.kind == "union":
        return _of_union(node, given)
    if node.kind == "null" and given is None:
        return None
    if node.kind == "boolean" and isinstance(given, bool):
        return given
    if node.kind in _INTEGERS and type(given) is int and -_INTEGERS[node.kind] <= given < _INTEGERS[node.kind]:
        return stored_time(node, node, given)
    if node.kind in ("float", "double") and isinstance(given, (int, float)) and not isinstance(given, bool):
        return _floating(node, given)
    if node.kind in ("bytes", "fixed") and isinstance(given, str):
        return _bytes(node, given)
    if node.kind == "string" and isinstance(given, str):
        given.encode()
        return given
    if node.kind == "enum" and given in node.symbols:
        return given
    if node.kind == "array" and isinstance(given, list):
        return [default_value(node.element, each) for each in given]
    if node.kind == "map" and isinstance(given, dict):
        for key in given:
            key.encode()
        return [(key, default_value(node.element, each)) for key, each in given.items()]
    if node.kind == "record" and isinstance(given, dict):
        return _record(node, given)
    shown = repr(given)
    raise ValueError(f"{shown if len(shown) < 100 else shown[:100] + '…'} is no {node}")


def _of_union(node: Node, given: object) -> object:
    """By the specification a default is of the union's first type; others are taken too, as Avro 1.12 has it."""
    for branch in node.branches:
        try:
            value = default_value(counted_plainly(node, branch), given)
        except ValueError:
            continue
        return {member_name(node, branch): value} if is_struct(node) and branch.kind != "null" else value
    raise ValueError(f"{str(given)[:100]!r} is of no type of the {node}")


def _floating(node: Node, given: float) -> float:
    try:
        return float(given)
    except OverflowError:
        raise ValueError(
            f"a number of {given.bit_length() if isinstance(given, int) else 0} bits is no {node}"
        ) from None


def _bytes(node: Node, given: str) -> bytes | decimal.Decimal:
    raw = given.encode("latin-1")
    if node.kind == "fixed" and len(raw) != node.size:
        raise ValueError(f"it has {len(raw)} bytes, and {node} has {node.size}")
    if node.logical is None or node.logical.name != "decimal" or node.logical.precision > MAX_PRECISION:
        return raw  # of what has no column it is enough that it is bytes
    return from_unscaled(node.logical, raw)


def _record(node: Node, given: dict[str, object]) -> dict[str, object]:
    value = {}
    for field in node.fields:
        default = given.get(field.name, field.default)
        if default is NO_DEFAULT:
            raise ValueError(f"it has no {field.name}, which has no default either")
        value[field.name] = default_value(field.node, default)
    return value
