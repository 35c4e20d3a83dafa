"""Readers' schemas that random writers' schemas may have become: some resolve, some do not."""

import copy
from typing import Any

from hypothesis import strategies as st

PROMOTED = {
    "int": ["long", "float", "double"],
    "long": ["float", "double"],
    "float": ["double"],
    "string": ["bytes"],
    "bytes": ["string"],
}
ADDED: list[tuple[Any, Any]] = [
    ("int", 7),
    ("string", "é"),
    (["null", "long"], None),
    (["long", "null"], -1),
    ({"type": "array", "items": "int"}, [1, 2]),
    ({"type": "map", "values": "boolean"}, {"a": True}),
    ({"type": "record", "name": "Added", "fields": [{"name": "x", "type": "double"}]}, {"x": 0.5}),
]


@st.composite
def readers(draw: st.DrawFn, writer: Any) -> Any:
    """A writer's record, changed: fields are promoted, made nullable, left out, added, renamed, moved."""
    reader = _changed(draw, copy.deepcopy(writer))
    if draw(st.booleans()):
        kind, default = draw(st.sampled_from(ADDED))
        reader["fields"].append({"name": "added", "type": kind, "default": default})
    return reader


def _changed(draw: st.DrawFn, schema: Any) -> Any:
    if isinstance(schema, str):
        choices = [schema, schema, *PROMOTED.get(schema, [])]
        return draw(st.sampled_from(choices))
    if isinstance(schema, list):
        changed = [each if isinstance(each, str) else _changed(draw, each) for each in schema]
        return draw(st.sampled_from([changed, changed[::-1], changed[-1]]))
    if schema["type"] == "record":
        kept = [each for each in schema["fields"] if draw(st.integers(0, 4))]
        fields = []
        for number, each in enumerate(draw(st.permutations(kept))):
            field = {"name": each["name"], "type": _changed(draw, each["type"])}
            if draw(st.integers(0, 4)) == 0:
                field = {"name": f"renamed{number}", "type": field["type"], "aliases": [each["name"]]}
            if not isinstance(field["type"], list) and field["type"] != "null" and draw(st.integers(0, 4)) == 0:
                field["type"] = ["null", field["type"]]
            fields.append(field)
        return {**schema, "fields": fields}
    if schema["type"] == "array":
        return {**schema, "items": _changed(draw, schema["items"])}
    if schema["type"] == "map":
        return {**schema, "values": _changed(draw, schema["values"])}
    if schema["type"] == "enum":
        symbols = draw(st.sampled_from([["A", "B", "C"], ["C", "A"], ["B"]]))
        return {**schema, "symbols": symbols, **({"default": symbols[0]} if draw(st.booleans()) else {})}
    return schema
