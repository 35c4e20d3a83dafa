"""Random Avro schemas, values for them, and what fastavro makes of them."""

import decimal
import io
import itertools
import json
from collections.abc import Callable
from typing import Any

import fastavro
import numpy as np
from hypothesis import strategies as st

from tagwire.values.avro.arrow_types import is_struct, member_name, members
from tagwire.values.avro.schema_nodes import Node
from tagwire.values.avro.schema_parsing import parse_schema
from tagwire.values.schemas import Schema

PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]


class _Names:
    def __init__(self) -> None:
        self._numbers = itertools.count()

    def next(self, kind: str) -> str:
        return f"{kind}{next(self._numbers)}"


def _logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


@st.composite
def schemas(draw: st.DrawFn, unions: bool = True, logical: bool = True) -> Any:
    """A record whose fields have random types, three levels deep at most."""
    made = _record(draw, _Names(), 3, unions)
    return made if logical else stripped(made)


def _record(draw: st.DrawFn, names: _Names, depth: int, unions: bool) -> Any:
    fields = []
    for number in range(draw(st.integers(0 if depth < 3 else 1, 4))):
        fields.append({"name": f"f{number}", "type": _type(draw, names, depth - 1, unions)})
    return {"type": "record", "name": names.next("R"), "fields": fields}


def _type(draw: st.DrawFn, names: _Names, depth: int, unions: bool) -> Any:
    kinds = ["primitive", "primitive", "logical", "fixed", "enum", "nullable"]
    kinds += ["record", "array", "map"] * (depth > 0) + ["union"] * (unions and depth > 0)
    kind = draw(st.sampled_from(kinds))
    if kind == "nullable":
        inner = _type(draw, names, depth, unions)
        if isinstance(inner, list) or inner == "null":
            return inner
        return draw(st.permutations(["null", inner]))
    if kind == "union":
        chosen = draw(st.lists(st.sampled_from(PRIMITIVES), min_size=1, max_size=4, unique=True))
        if "bytes" in chosen and "string" in chosen:
            chosen.remove("bytes")
        return [*chosen, *([_record(draw, names, depth - 1, unions)] if draw(st.booleans()) else [])]
    return _plain(draw, names, depth, kind, unions)


def _plain(draw: st.DrawFn, names: _Names, depth: int, kind: str, unions: bool) -> Any:
    if kind == "record":
        return _record(draw, names, depth, unions)
    if kind == "array":
        return {"type": "array", "items": _type(draw, names, depth - 1, unions)}
    if kind == "map":
        return {"type": "map", "values": _type(draw, names, depth - 1, unions)}
    if kind == "fixed":
        return {"type": "fixed", "name": names.next("F"), "size": draw(st.integers(0, 20))}
    if kind == "enum":
        return {"type": "enum", "name": names.next("E"), "symbols": ["A", "B", "C"][: draw(st.integers(1, 3))]}
    if kind == "primitive":
        return draw(st.sampled_from(PRIMITIVES))
    size = draw(st.integers(4, 20))
    return draw(
        st.sampled_from(
            [
                _logical("int", "date"),
                _logical("int", "time-millis"),
                _logical("long", "time-micros"),
                _logical("long", "timestamp-millis"),
                _logical("long", "timestamp-micros"),
                _logical("long", "timestamp-nanos"),
                _logical("long", "local-timestamp-millis"),
                _logical("long", "local-timestamp-micros"),
                _logical("string", "uuid"),
                _logical("bytes", "decimal", precision=9, scale=2),
                _logical("bytes", "decimal", precision=38, scale=10),
                {**_logical("fixed", "decimal", precision=9, scale=3), "name": names.next("F"), "size": size},
                {**_logical("fixed", "duration"), "name": names.next("F"), "size": 12},
            ]
        )
    )


def stripped(schema: Any) -> Any:
    """A schema without its logical types: what its values are on the wire."""
    if isinstance(schema, dict):
        return {key: stripped(value) for key, value in schema.items() if key != "logicalType"}
    return [stripped(each) for each in schema] if isinstance(schema, list) else schema


def values(node: Node) -> st.SearchStrategy[Any]:
    """Values on the wire, as fastavro takes them for a schema without logical types; unions as pairs."""
    if node.kind == "union":
        return st.one_of([values(each).map(_pair(_tag(each))) for each in node.branches])
    if node.kind == "record":
        return st.fixed_dictionaries({field.name: values(field.node) for field in node.fields})
    if node.kind == "array":
        return st.lists(values(node.element), max_size=3)
    if node.kind == "map":
        return st.dictionaries(st.text(max_size=3), values(node.element), max_size=3)
    if node.logical is not None and node.logical.name == "decimal":
        limit = 10**node.logical.precision - 1
        size = node.size or 16
        return st.integers(-limit, limit).map(lambda value: value.to_bytes(size, "big", signed=True))
    if node.kind == "long":
        reach = 1 << (52 if node.logical is not None else 63)
        return st.integers(-reach, reach - 1)
    return {
        "null": st.none(),
        "boolean": st.booleans(),
        "int": st.integers(-(1 << 31), (1 << 31) - 1),
        "float": st.floats(width=32, allow_nan=False),
        "double": st.floats(allow_nan=False),
        "bytes": st.binary(max_size=6),
        "string": st.text(max_size=6),
        "fixed": st.binary(min_size=node.size, max_size=node.size),
        "enum": st.sampled_from(node.symbols or ("",)),
    }[node.kind]


def _tag(node: Node) -> str:
    return node.name or node.kind


def _pair(tag: str) -> Callable[[Any], tuple[str, Any]]:
    return lambda value: (tag, value)


def parsed(schema: Any) -> Node:
    return parse_schema(Schema(json.dumps(schema)))


def body(schema: Any, value: Any) -> bytes:
    """A value in Avro's encoding, by fastavro."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(stripped(schema)), value)
    return out.getvalue()


@st.composite
def mutated(draw: st.DrawFn, body: bytes) -> bytes:
    """A body that was cut, has other bytes, or more of them."""
    place = draw(st.integers(0, len(body)))
    match draw(st.sampled_from(["cut", "byte", "more", "huge", "many"])):
        case "cut":
            return body[:place]
        case "byte":
            return body[:place] + draw(st.binary(min_size=1, max_size=1)) + body[place + 1 :]
        case "more":
            return body[:place] + draw(st.binary(min_size=1, max_size=3)) + body[place:]
        case "huge":
            return body[:place] + b"\xfe\xff\xff\xff\x0f" + body[place:]
        case _:
            return body[:place] + draw(st.sampled_from([b"\x03\x02", b"\x04", b"\xff" * 9 + b"\x01"])) + body[place:]


class Refused:
    """What is there instead of a value that cannot be read."""


REFUSED = Refused()


def resolved(body: bytes, written: Any, read: Any) -> Any:
    """What fastavro reads a body as."""
    try:
        return fastavro.schemaless_reader(io.BytesIO(body), written, read)
    except Exception:
        return REFUSED


def same(node: Node, ours: Any, theirs: Any) -> bool:
    """Whether a value of a column is what fastavro read. It keeps no place in a union, and floats as doubles."""
    if node.kind == "union" and is_struct(node) and ours is not None:
        (number, inner), *more = [each for each in ours.items() if each[1] is not None]
        return not more and same(members(node)[int(number.removeprefix("member"))], inner, theirs)
    if node.kind == "union":
        return ours == theirs or any(same(each, ours, theirs) for each in members(node))
    if node.kind == "record" and ours is not None:
        return all(same(each.node, ours[each.name], theirs[each.name]) for each in node.fields)
    if node.kind == "array" and ours is not None:
        return len(ours) == len(theirs) and all(same(node.element, one, other) for one, other in zip(ours, theirs))
    if node.kind == "map" and ours is not None:
        return [key for key, _ in ours] == list(theirs) and all(
            same(node.element, item, theirs[key]) for key, item in ours
        )
    if node.kind == "float" and ours is not None:
        return bool(np.float32(theirs) == np.float32(ours))
    return bool(ours == theirs or (isinstance(theirs, float) and float(ours) == theirs))


def wire_value(node: Node, value: Any) -> Any:
    """A value on the wire as the Arrow column of its schema has it, worked out apart from the code that is tested."""
    if node.kind == "union":
        tag, inner = value
        branch = next(each for each in node.branches if _tag(each) == tag)
        made = wire_value(branch, inner)
        if branch.kind == "null" or not is_struct(node):
            return made
        return {member_name(node, branch): made}
    if node.kind == "record":
        return {field.name: wire_value(field.node, value[field.name]) for field in node.fields}
    if node.kind == "array":
        return [wire_value(node.element, each) for each in value]
    if node.kind == "map":
        return [(key, wire_value(node.element, each)) for key, each in value.items()]
    name = node.logical.name if node.logical is not None else ""
    if name == "decimal":
        assert node.logical is not None
        unscaled = int.from_bytes(value, "big", signed=True)
        return decimal.Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -node.logical.scale))
    return value * 1000 if name in ("timestamp-millis", "local-timestamp-millis") else value
