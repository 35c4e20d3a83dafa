"""From a JSON Schema to the shape of its values.

`allOf` and what `$ref` names are taken together with what stands beside them; `oneOf` and `anyOf` count where nothing
beside them gives a type. Keywords that only restrict values (`minimum`, `pattern`, `not`, `if`, ...) are passed over.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from tagwire.errors import ValueSchemaError
from tagwire.escaping import cut
from tagwire.values.json_schema import shapes
from tagwire.values.json_schema.documents import Document, Node
from tagwire.values.json_schema.shapes import Property, Shape
from tagwire.values.schemas import is_encodable

DEEPEST: Final = 100
"""How deep a type may be nested."""

MOST: Final = 100_000
"""How many schemas within one may be looked at: references make a short text a large type."""

_SHOWN: Final = 60
_TYPES: Final = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
_CONNECT: Final = "org.apache.kafka.connect.data."
_INTEGER_BITS: Final = {"int8": 8, "int16": 16, "int32": 32}

_Given: TypeAlias = tuple[Node, Document, frozenset[int]]
"""A schema, where it stands, and by identity those that it stands in: none of these may come again below."""

_Part: TypeAlias = tuple[dict[str, Any], Document, frozenset[int]]
"""One that is to be looked at itself, and is among those that stand above what is in it."""


def shape_of(document: Document) -> Shape:
    """What the values of a schema are.

    Raises:
        ValueSchemaError: where it is recursive, nested too deep, contradicts itself, or is no schema.
    """
    try:
        return _Interpreter().shape([(document.root, document, frozenset())], "schema")
    except RecursionError:
        raise ValueSchemaError(f"schema: is nested deeper than {DEEPEST}") from None


@dataclass
class _Interpreter:
    looked_at: int = 0

    def shape(self, given: Sequence[_Given], where: str) -> Shape:
        """What a value is that has to be valid by each of `given`."""
        parts: list[_Part] = []
        for node, document, above in given:
            self._gather(node, document, where, above, parts)
        if where.count(".") + where.count("[") > DEEPEST:
            raise ValueSchemaError(f"{where[:_SHOWN]}: is nested deeper than {DEEPEST}")
        types, choices = _types(parts, where)
        if types is None:
            return self._alternatives(parts, where, choices)
        nullable, left = "null" in types, types - {"null"}
        if "number" in left:
            left = left - {"integer"}
        if len(left) != 1:
            return Shape(shapes.ANY, nullable or not left, choices=choices)
        (kind,) = left
        if kind == "object":
            found = self._object(parts, where)
        elif kind == "array":
            found = self._array(parts, where)
        else:
            found = _scalar(kind, parts, where)
        return replace(found, is_nullable=nullable, choices=choices)

    def _gather(self, node: Node, document: Document, where: str, above: frozenset[int], parts: list[_Part]) -> None:
        """Adds a schema to `parts`, with what it refers to and its `allOf`."""
        self.looked_at += 1
        if self.looked_at > MOST:
            raise ValueSchemaError(f"{where[:_SHOWN]}: the schema names more than {MOST:,} others")
        if node is True:
            return
        if node is False:
            raise ValueSchemaError(f"{where}: allows no value")
        if not isinstance(node, dict):
            raise ValueSchemaError(f"{where}: a schema is an object or a boolean, not {type(node).__name__}")
        if id(node) in above:
            raise ValueSchemaError(f"{where}: is recursive, which no column type is")
        above |= {id(node)}
        if len(above) > 4 * DEEPEST:
            raise ValueSchemaError(f"{where[:_SHOWN]}: is nested deeper than {DEEPEST}")
        for name in ("$dynamicRef", "$recursiveRef"):
            if name in node:
                raise ValueSchemaError(f"{where}: {name} is not supported: it is for schemas that are recursive")
        if "$ref" in node:
            if not isinstance(node["$ref"], str):
                raise ValueSchemaError(f"{where}: $ref is no string")
            target, holder = document.find(node["$ref"], where)
            self._gather(target, holder, where, above, parts)
            if document.is_old:
                return
        parts.append((node, document, above))
        for one in _list(node, "allOf", where):
            self._gather(one, document, where, above, parts)

    def _alternatives(self, parts: list[_Part], where: str, choices: frozenset[str] | None) -> Shape:
        """What a value is of which only `oneOf` or `anyOf` tells the type."""
        given = [(part, name) for part in parts for name in ("oneOf", "anyOf") if name in part[0]]
        if len(given) != 1:
            return Shape(shapes.ANY, True, choices=choices)
        (((holder, document, above), name),) = given
        branches = _list(holder, name, where)
        others = [one for one in branches if not _is_null(one)]
        found = [self.shape([*_without(parts, name), (one, document, above)], where) for one in others]
        if not found:
            return Shape(shapes.ANY, True)
        nullable = len(others) < len(branches) or any(one.is_nullable for one in found)
        first = found[0]
        if any(one.type != first.type or one.kind != first.kind for one in found):
            return Shape(shapes.ANY, nullable)
        if len(found) == 1:
            return replace(first, is_nullable=nullable)
        sets = [one.choices for one in found if one.choices is not None]
        together = frozenset().union(*sets) if len(sets) == len(found) else None
        return replace(first, is_nullable=nullable, choices=together)

    def _object(self, parts: list[_Part], where: str) -> Shape:
        properties: dict[str, list[_Given]] = {}
        required: set[str] = set()
        rest: list[_Given] = []
        for node, document, above in parts:
            named = node.get("properties", {})
            if not isinstance(named, dict):
                raise ValueSchemaError(f"{where}: properties is no object")
            for name, one in named.items():
                if not is_encodable(name):
                    raise ValueSchemaError(
                        f"{where}: property {cut(repr(name), _SHOWN)} has half a surrogate pair in its name"
                    )
                properties.setdefault(name, []).append((one, document, above))
            required |= {name for name in _list(node, "required", where, draft4=True) if isinstance(name, str)}
            if "additionalProperties" in node:
                rest.append((node["additionalProperties"], document, above))
        is_map = _first(parts, "connect.type") == "map" or not properties
        if is_map and rest and all(isinstance(node, dict) and node for node, _, _ in rest):
            return Shape(shapes.MAP, item=self.shape(rest, f"{where}.*"))
        if not properties:
            return Shape(shapes.ANY)
        placed = sorted(properties, key=lambda name: _index(properties[name]))
        return Shape(
            shapes.STRUCT,
            properties=tuple(
                Property(name, self.shape(properties[name], f"{where}.{name}"), name in required) for name in placed
            ),
            is_closed=any(node is False for node, _, _ in rest),
        )

    def _array(self, parts: list[_Part], where: str) -> Shape:
        items = [(node["items"], document, above) for node, document, above in parts if "items" in node]
        is_tuple = any("prefixItems" in node for node, _, _ in parts) or any(
            isinstance(one, list) for one, _, _ in items
        )
        if not items or is_tuple:
            return Shape(shapes.ANY)
        item = self.shape(items, f"{where}[]")
        names = [one.name for one in item.properties]
        if _first(parts, "connect.type") == "map" and sorted(names) == ["key", "value"]:
            key, value = sorted(item.properties, key=lambda one: one.name)
            return Shape(shapes.ENTRIES, properties=(key, value))
        return Shape(shapes.LIST, item=item)


def _without(parts: list[_Part], name: str) -> list[_Given]:
    """The parts without one keyword, and without what was gathered from them already."""
    away = (name, "$ref", "allOf")
    return [({key: one for key, one in node.items() if key not in away}, *rest) for node, *rest in parts]  # type: ignore[misc]


def _types(parts: list[_Part], where: str) -> tuple[set[str] | None, frozenset[str] | None]:
    """The types that all parts allow, None where none says; and the values that are allowed, None where any is."""
    types: set[str] | None = None
    choices: frozenset[str] | None = None
    is_told = False
    for node, _, _ in parts:
        said = node.get("type")
        if said is not None:
            named = [said] if isinstance(said, str) else _list(node, "type", where)
            if wrong := [one for one in named if not isinstance(one, str) or one not in _TYPES]:
                raise ValueSchemaError(f"{where}: type {cut(repr(wrong[0]), _SHOWN)} is none of JSON Schema's")
            types, is_told = _both(types, set(named)), True
        listed = _list(node, "enum", where) if "enum" in node else [node["const"]] if "const" in node else None
        if listed is not None:
            ours = frozenset(json.dumps(one, sort_keys=True) for one in listed)
            choices = ours if choices is None else choices & ours
    if choices is not None:
        of_choices = {_type_of(json.loads(one)) for one in choices}
        types = _both(types, of_choices) if is_told else of_choices
    if types is None:
        if any(isinstance(node.get("properties"), dict) for node, _, _ in parts):
            types = {"object"}
        elif any("items" in node or "prefixItems" in node for node, _, _ in parts):
            types = {"array"}
    if types is not None and not types:
        raise ValueSchemaError(f"{where}: allows no value: its types contradict each other")
    return types, choices


def _both(types: set[str] | None, named: set[str]) -> set[str]:
    if types is None:
        return named
    found = types & named
    if "integer" in types | named and "number" in types | named:
        found |= {"integer"} if "number" not in found else set()
    return found


def _scalar(kind: str, parts: list[_Part], where: str) -> Shape:
    connect, title = _first(parts, "connect.type"), str(_first(parts, "title") or "")
    logical = title.removeprefix(_CONNECT) if title.startswith(_CONNECT) else ""
    if logical == "Decimal" and connect == "bytes" and kind in ("number", "string"):
        return _decimal(parts, where)
    if kind == "integer":
        if logical == "Date" and connect == "int32":
            return Shape(shapes.DAYS)
        if logical == "Timestamp" and connect == "int64":
            return Shape(shapes.MILLIS)
        return Shape(shapes.INTEGER, bits=_INTEGER_BITS.get(str(connect), 64))
    if kind == "number":
        return Shape(shapes.NUMBER, bits=32 if connect == "float32" else 64)
    if kind == "string":
        form = _first(parts, "format")
        if connect == "bytes" or str(_first(parts, "contentEncoding")).lower() == "base64":
            return Shape(shapes.BYTES)
        return Shape({"date": shapes.DATE, "date-time": shapes.TIMESTAMP}.get(str(form), shapes.STRING))
    return Shape(shapes.BOOLEAN)


def _decimal(parts: list[_Part], where: str) -> Shape:
    told = _first(parts, "connect.parameters")
    told = told if isinstance(told, dict) else {}
    try:
        scale, precision = int(told.get("scale", 0)), int(told.get("connect.decimal.precision", 38))
    except (TypeError, ValueError, OverflowError):
        raise ValueSchemaError(f"{where}: connect.parameters are no numbers") from None
    if not 1 <= precision <= 38 or not 0 <= scale <= precision:
        raise ValueSchemaError(f"{where}: a decimal of {precision} digits, {scale} of them after the point, fits none")
    return Shape(shapes.DECIMAL, precision=precision, scale=scale)


def _first(parts: list[_Part], name: str) -> object:
    return next((node[name] for node, _, _ in parts if name in node), None)


def _index(given: list[_Given]) -> float:
    """Where Connect had a field; properties without stay as they stand, after the others."""
    found = next(
        (node["connect.index"] for node, _, _ in given if isinstance(node, dict) and "connect.index" in node), None
    )
    return found if isinstance(found, (int, float)) else float("inf")


def _list(node: dict[str, Any], name: str, where: str, *, draft4: bool = False) -> list[Any]:
    found = node.get(name, [])
    if not isinstance(found, list):
        if draft4:  # draft 3 had `"required": true` in the property itself; it is still met
            return []
        raise ValueSchemaError(f"{where}: {name} is no list")
    return found


def _is_null(node: Node) -> bool:
    return isinstance(node, dict) and (
        node.get("type") in ("null", ["null"]) or node.get("enum") == [None] or node.get("const", 0) is None
    )


def _type_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    return {float: "number", str: "string", list: "array", dict: "object"}[type(value)]
