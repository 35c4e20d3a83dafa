"""What the bytes of an Avro schema are to a reader of few types: another schema with the same encoding.

The encodings of an int, a long and an enum are the same, those of a map and an array of entries too, and nothing of a
logical type is seen in them. So a reader of container files that knows neither maps, enums nor decimals reads them all.

Source: the Avro specification, 1.11, "Binary Encoding".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tagwire.values.avro.body_reader import CELLS_PER_BYTE
from tagwire.values.avro.schema_nodes import Node


@dataclass(frozen=True, slots=True, eq=False)
class Wire:
    """A type as the block reader reads it.

    Attributes:
        kind: long, boolean, float, double, string, bytes, fixed, list, record, nullable (with null and another type),
            tagged (a union that always has a value, read as a record of its type's number and the value), or nothing,
            which takes no bytes and is left out.
        node: the type of the writer's schema.
        fields: of a record, in the writer's order, also those that are nothing. A map's entries are key and value; what
            is tagged has its number and its value.
        item: of a list or what is nullable.
        null_first: of what is nullable, whether null is its first type.
        checked: whether there are bytes in it that the block reader does not look at closely: the number of
            a type, a boolean.
        lists: whether there are lists in it.
        levels: how many lists and records are in each other.
    """

    kind: str
    node: Node
    fields: tuple[Wire, ...] = ()
    item: Wire | None = None
    null_first: bool = False
    checked: bool = False
    lists: bool = False
    levels: int = 0

    @property
    def inner(self) -> Wire:
        """`item`, where there is one."""
        assert self.item is not None
        return self.item


_LONG: Final = Node("long", min_bytes=1)

_STRING: Final = Node("string", min_bytes=1)

_KINDS: Final = {"int": "long", "long": "long", "enum": "long", "null": "nothing"}


def wire_type(node: Node) -> Wire | None:
    """How a block reader reads values of a type; None where it cannot, or could take memory without end."""
    if node.kind == "record":
        return _record(node, [wire_type(field.node) for field in node.fields])
    if node.kind in ("array", "map"):
        return _list(node)
    if node.kind == "union":
        return _union(node)
    kind = _KINDS.get(node.kind, node.kind)
    if kind == "fixed" and not node.size:
        kind = "nothing"
    return Wire(kind, node, checked=kind == "boolean")


def _record(node: Node, fields: list[Wire | None], kind: str = "record") -> Wire | None:
    kept = [each for each in fields if each is not None]
    if len(kept) != len(fields):
        return None
    if all(each.kind == "nothing" for each in kept):
        return Wire("nothing", node, fields=tuple(kept))
    return Wire(
        kind,
        node,
        fields=tuple(kept),
        checked=any(each.checked for each in kept),
        lists=any(each.lists for each in kept),
        levels=1 + max(each.levels for each in kept),
    )


def _list(node: Node) -> Wire | None:
    keyed = node.kind == "map"
    least = node.element.min_bytes + keyed
    if not least or node.element.cells > CELLS_PER_BYTE * least:
        return None
    item = wire_type(node.element)
    if keyed:
        item = _record(node.element, [Wire("string", _STRING), item])
    if item is None:
        return None
    return Wire("list", node, item=item, checked=item.checked, lists=True, levels=1 + item.levels)


def _union(node: Node) -> Wire | None:
    kinds = [branch.kind for branch in node.branches]
    if len(kinds) == 1 or sorted(kinds) == ["int", "long"]:
        value = wire_type(node.branches[0])
        return _record(node, [Wire("long", _LONG), value], kind="tagged")
    if len(kinds) != 2 or "null" not in kinds:
        return None
    null_first = kinds[0] == "null"
    item = wire_type(node.branches[1 if null_first else 0])
    if item is None:
        return None
    return Wire("nullable", node, item=item, null_first=null_first, checked=True, lists=item.lists, levels=item.levels)


class WireNames:
    """Schemas need names; these are ours."""

    def __init__(self) -> None:
        self._count = 0

    def schema(self, wire: Wire) -> object:
        """A type as the block reader is told it."""
        if wire.kind in ("record", "tagged", "nothing"):
            return {"type": "record", "name": self._next(), "fields": self.fields(wire)}
        if wire.kind == "fixed":
            return {"type": "fixed", "name": self._next(), "size": wire.node.size}
        if wire.kind == "list":
            return {"type": "array", "items": self.schema(wire.inner)}
        if wire.kind == "nullable":
            item = self.schema(wire.inner)
            return ["null", item] if wire.null_first else [item, "null"]
        return wire.kind

    def fields(self, wire: Wire) -> list[object]:
        """A record's fields that have bytes, by their places."""
        return [
            {"name": str(place), "type": self.schema(each)}
            for place, each in enumerate(wire.fields)
            if each.kind != "nothing"
        ]

    def _next(self) -> str:
        self._count += 1
        return f"T{self._count}"
