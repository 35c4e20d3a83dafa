"""A spec as text, in the style of the catalog: one key to a line, one field to a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

LINE: Final = 120
_STEP: Final = "  "


def spec_text(document: Mapping[str, Any]) -> str:
    """The JSON of a message's spec; `tagwire.spec.parse` reads the same message from it."""
    lines = ["{"]
    for number, (key, value) in enumerate(document.items()):
        comma = "," if number < len(document) - 1 else ""
        if _holds_objects(value):
            lines += [f"{_STEP}{_json(key)}: [", *_objects(value, _STEP * 2), f"{_STEP}]{comma}"]
        elif isinstance(value, dict) and value:
            entries = [f"{_STEP * 2}{_json(name)}: {_json(said)}" for name, said in value.items()]
            lines += [f"{_STEP}{_json(key)}: {{", *",\n".join(entries).split("\n"), f"{_STEP}}}{comma}"]
        else:
            lines.append(f"{_STEP}{_json(key)}: {_json(value)}{comma}")
    return "\n".join([*lines, "}", ""])


def _objects(objects: list[dict[str, Any]], indent: str) -> Iterator[str]:
    for number, one in enumerate(objects):
        *lines, last = _object(one, indent)
        yield from lines
        yield last + ("," if number < len(objects) - 1 else "")


def _object(one: Mapping[str, Any], indent: str) -> list[str]:
    """An object's lines: what is short on the first, lists of objects below."""
    lines = [indent + "{"]
    for number, (key, value) in enumerate(one.items()):
        before = "" if not number else ","
        if _holds_objects(value):
            lines[-1] += f"{before} {_json(key)}: ["
            lines += [*_objects(value, indent + _STEP), f"{indent}]"]
            continue
        said = f" {_json(key)}: {_json(value)}"
        lines[-1] += before
        if len(lines[-1]) + len(said) > LINE - 3 and number:
            lines.append(indent + _STEP[1:] + said)
        else:
            lines[-1] += said
    lines[-1] += "}" if lines[-1].endswith("]") else " }"
    return lines


def _holds_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)  # half a surrogate pair is no UTF-8
