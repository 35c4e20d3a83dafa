"""JSON as specs are written: with `//` and `/* */` comments and trailing commas, and nothing else beyond JSON.

Single quotes, bare names, duplicate keys, NaN and Infinity are errors, unlike in the JSON5 parsers.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_STRING_OR_TRAILING_COMMA = re.compile(r'"(?:[^"\\\n]|\\.)*"|,(?=\s*[\]}])')


def parse_json(text: str) -> Any:
    """The value `text` spells. Raises ValueError with line and column, which comments do not shift."""
    bare = _STRING_OR_COMMENT.sub(_blank_unless_string, text)
    bare = _STRING_OR_TRAILING_COMMA.sub(_blank_unless_string, bare)
    return json.loads(bare, object_pairs_hook=_unique, parse_constant=_refuse_constant)


def _blank_unless_string(match: re.Match[str]) -> str:
    found = match[0]
    return found if found[0] == '"' else re.sub(r"[^\n]", " ", found)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {repeated!r} occurs twice in one object")
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
