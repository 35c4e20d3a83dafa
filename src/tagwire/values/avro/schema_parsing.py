"""Avro schemas from their text: names, namespaces, aliases, references, logical types, and bounds.

Source: the Avro specification, 1.11, "Schema Declaration", "Names", "Logical Types".
"""

from __future__ import annotations

import json
import math
import re
from typing import Final

from tagwire.errors import ValueSchemaError
from tagwire.values.avro.schema_nodes import MAX_DEPTH, MAX_NODES, NO_DEFAULT, PRIMITIVES, Field, Logical, Node
from tagwire.values.schemas import AVRO, Schema, is_encodable

_NAME: Final = re.compile(r"[^\W\d]\w*")

_MAX_SIZE: Final = 1 << 31

_MIN_BYTES: Final = {"null": 0, "float": 4, "double": 8}

_LOGICAL: Final = {
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "timestamp-nanos": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
    "local-timestamp-nanos": "long",
}


def parse_schema(schema: Schema) -> Node:
    """The tree of a schema and of those that it refers to.

    Raises:
        ValueSchemaError: it is no Avro schema, is recursive, or too deep or large; says where and why.
    """
    if schema.schema_type != AVRO:
        raise ValueSchemaError(f"a schema of type {schema.schema_type} is not Avro's")
    parser = _Parser()
    parser.read_references(schema, 0)
    return parser.node(_json(schema.text), "", "", 0)


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueSchemaError(f"the Avro schema is nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        raise ValueSchemaError(f"the Avro schema is not JSON: {error}") from None


class _Parser:
    """What was named so far, in the order of the text."""

    def __init__(self) -> None:
        self._named: dict[str, Node | None] = {}
        self._referred: set[str] = set()
        self._seen = 0

    def read_references(self, schema: Schema, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise ValueSchemaError(f"the schema's references are nested deeper than {MAX_DEPTH} levels")
        for name, referred in schema.references:
            if referred.text in self._referred:
                continue
            self._referred.add(referred.text)
            self.read_references(referred, depth + 1)
            try:
                self.node(_json(referred.text), "", "", 0)
            except ValueSchemaError as error:
                raise ValueSchemaError(f"in the schema that it refers to as {name}: {error}") from None

    def node(self, given: object, namespace: str, path: str, depth: int) -> Node:
        """The node of a schema in JSON. `namespace` is the one around it, `path` where it stands."""
        if depth > MAX_DEPTH:
            raise _wrong(path, f"types are nested deeper than {MAX_DEPTH} levels")
        self._seen += 1
        if self._seen > MAX_NODES:
            raise _too_many(path)
        if isinstance(given, str):
            return _primitive(given, None) if given in PRIMITIVES else self._use(given, namespace, path, depth)
        if isinstance(given, list):
            return self._union(given, namespace, path, depth)
        if not isinstance(given, dict):
            raise _wrong(path, f"{_short(given)} is no schema")
        if "type" not in given:
            raise _wrong(path, f"{_short(given)} has no type")
        kind = given["type"]
        if not isinstance(kind, str):
            return self.node(kind, namespace, path, depth + 1)
        if kind in PRIMITIVES:
            return _primitive(kind, _logical(given, kind, 0))
        if kind in ("array", "map"):
            key = "items" if kind == "array" else "values"
            if key not in given:
                raise _wrong(path, f"the {kind} has no {key}")
            items = self.node(given[key], namespace, f"{path}[]", depth + 1)
            return _bounded(
                Node(kind, items=items, depth=items.depth + 1, nodes=items.nodes + 1, min_bytes=1, cells=1), path
            )
        if kind in ("record", "error", "enum", "fixed"):
            return self._define(kind, given, namespace, path, depth)
        return self._use(kind, namespace, path, depth)

    def _use(self, name: str, namespace: str, path: str, depth: int) -> Node:
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full not in self._named and "." not in name:
            full = name
        if full not in self._named:
            raise _wrong(path, f"no type named {name[:200]!r} is defined before it is used")
        node = self._named[full]
        if node is None:
            raise _wrong(path, f"record {full} contains itself; values of recursive schemas have no column type")
        if depth + node.depth > MAX_DEPTH:
            raise _wrong(path, f"types are nested deeper than {MAX_DEPTH} levels")
        return node

    def _union(self, given: list[object], namespace: str, path: str, depth: int) -> Node:
        branches = []
        taken = set()
        for each in given:
            branch = self.node(each, namespace, path, depth + 1)
            if branch.kind == "union":
                raise _wrong(path, "a union stands immediately in a union")
            if (branch.name or branch.kind) in taken:
                raise _wrong(path, f"the union has {branch.name or branch.kind} twice")
            taken.add(branch.name or branch.kind)
            branches.append(branch)
        if not branches:
            raise _wrong(path, "the union has no types")
        return _bounded(
            Node(
                "union",
                branches=tuple(branches),
                depth=1 + max(branch.depth for branch in branches),
                nodes=1 + sum(branch.nodes for branch in branches),
                min_bytes=1 + min(branch.min_bytes for branch in branches),
                cells=1 + sum(branch.cells for branch in branches),
            ),
            path,
        )

    def _define(self, kind: str, given: dict[str, object], namespace: str, path: str, depth: int) -> Node:
        kind = "record" if kind == "error" else kind
        full, inner = _full_name(given, namespace, path)
        if full in self._named:
            raise _wrong(path, f"{full} is defined twice")
        aliases = tuple(
            alias if "." in alias or not inner else f"{inner}.{alias}"
            for alias in _strings(given.get("aliases", []), path, "aliases")
        )
        node: Node
        if kind == "enum":
            symbols = tuple(_strings(given.get("symbols"), path, "symbols"))
            if len(set(symbols)) != len(symbols):
                raise _wrong(path, f"enum {full} has a symbol twice")
            if not all(map(is_encodable, symbols)):
                raise _wrong(path, f"enum {full} has a symbol with half a surrogate pair")
            default = NO_DEFAULT if given.get("default") is None else given["default"]
            if default is not NO_DEFAULT and default not in symbols:
                raise _wrong(path, f"the default {_short(default)} of enum {full} is none of its symbols")
            node = Node("enum", name=full, aliases=aliases, symbols=symbols, default=default, min_bytes=1)
        elif kind == "fixed":
            size = given.get("size")
            if type(size) is not int or not 0 <= size < _MAX_SIZE:
                raise _wrong(path, f"fixed {full} has the size {_short(size)}")
            node = Node(
                "fixed", name=full, aliases=aliases, size=size, min_bytes=size, logical=_logical(given, "fixed", size)
            )
        else:
            self._named[full] = None
            fields = self._fields(given.get("fields"), full, inner, path, depth)
            node = Node(
                "record",
                name=full,
                aliases=aliases,
                fields=fields,
                depth=1 + max((field.node.depth for field in fields), default=0),
                nodes=1 + sum(field.node.nodes for field in fields),
                min_bytes=min(_MAX_SIZE, sum(field.node.min_bytes for field in fields)),
                cells=1 + sum(field.node.cells for field in fields),
            )
        self._named[full] = _bounded(node, path)
        return node

    def _fields(self, given: object, record: str, namespace: str, path: str, depth: int) -> tuple[Field, ...]:
        if not isinstance(given, list):
            raise _wrong(path, f"record {record} has no list of fields")
        fields = []
        taken = set()
        for each in given:
            if not isinstance(each, dict) or not isinstance(each.get("name"), str) or "type" not in each:
                raise _wrong(path, f"a field of record {record} has no name or no type: {_short(each)}")
            name = each["name"]
            if not _NAME.fullmatch(name):
                raise _wrong(path, f"a field of record {record} has the name {name[:200]!r}")
            if name in taken:
                raise _wrong(path, f"record {record} has the field {name} twice")
            taken.add(name)
            here = f"{path}.{name}" if path else name
            node = self.node(each["type"], namespace, here, depth + 1)
            aliases = tuple(_strings(each.get("aliases", []), here, "aliases"))
            fields.append(Field(name, node, each.get("default", NO_DEFAULT), aliases))
        return tuple(fields)


def _full_name(given: dict[str, object], namespace: str, path: str) -> tuple[str, str]:
    """The full name of a named type, and the namespace inside it."""
    name, own = given.get("name"), given.get("namespace")
    own = namespace if own is None else own  # null is as if it were not there, as Java has it
    if not isinstance(name, str) or not isinstance(own, str):
        raise _wrong(path, f"a type has the name {_short(name)}, the namespace {_short(own)}")
    if "." in name:
        own, _, name = name.rpartition(".")
    if not _NAME.fullmatch(name) or not all(map(_NAME.fullmatch, own.split(".") if own else ())):
        raise _wrong(path, f"a type has the name {name[:200]!r}, the namespace {own[:200]!r}")
    if not own and name in PRIMITIVES:
        raise _wrong(path, f"{name} is a primitive type, and cannot be defined")
    return (f"{own}.{name}" if own else name), own


def _strings(given: object, path: str, what: str) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise _wrong(path, f"{what} are no list of strings: {_short(given)}")
    return given


def _primitive(kind: str, logical: Logical | None) -> Node:
    return Node(kind, logical, min_bytes=_MIN_BYTES.get(kind, 1))


def _logical(given: dict[str, object], kind: str, size: int) -> Logical | None:
    """A logical type that is unknown, or not valid for its type, is as if it were not there, as Avro has it."""
    name = given.get("logicalType")
    if not isinstance(name, str):
        return None
    if name == "decimal" and kind in ("bytes", "fixed"):
        precision, scale = given.get("precision"), given.get("scale", 0)
        if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision or precision < 1:
            return None
        if kind == "fixed" and precision > math.floor(math.log10(2) * (8 * size - 1)):
            return None
        return Logical(name, precision, scale)
    if (name == "uuid" and (kind == "string" or size == 16)) or (name == "duration" and size == 12):
        return Logical(name)
    return Logical(name) if _LOGICAL.get(name) == kind else None


def _bounded(node: Node, path: str) -> Node:
    if node.nodes > MAX_NODES:
        raise _too_many(path)
    if node.depth > MAX_DEPTH:
        raise _wrong(path, f"types are nested deeper than {MAX_DEPTH} levels")
    return node


def _too_many(path: str) -> ValueSchemaError:
    return _wrong(path, f"the schema has more than {MAX_NODES} types, each use of a named one counted")


def _wrong(path: str, why: str) -> ValueSchemaError:
    return ValueSchemaError(f"the Avro schema cannot be understood{f' at {path[:500]}' if path else ''}: {why}")


def _short(given: object) -> str:
    shown = repr(given) if not isinstance(given, (dict, list)) else f"a {type(given).__name__} of {len(given)}"
    return shown if len(shown) <= 200 else f"{shown[:200]}…"
