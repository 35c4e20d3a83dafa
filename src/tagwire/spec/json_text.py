"""JSON as specs are written: with `//` and `/* */` comments and trailing commas, and nothing else beyond JSON.

Single quotes, bare names, duplicate keys, NaN and Infinity are errors, unlike in the JSON5 parsers.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import suppress
from typing import Any, NoReturn

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_STRING_OR_COMMENT = re.compile(_STRING + r"|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
# A comma that no value stands before is no trailing comma: `[,]` is left to be refused.
_TRAILING_COMMA_OR_NOT = re.compile(_STRING + r"|[\[{,:]\s*,|,(?=\s*[\]}])", re.DOTALL)


def parse_json(text: str) -> Any:
    """The value `text` spells. Raises ValueError with line and column, which comments do not shift."""
    # Most specs are plain JSON, the catalog's among them: what a spec may have beyond it costs them nothing.
    with suppress(ValueError):
        return _loads(text)
    bare = _STRING_OR_COMMENT.sub(_blank_comment, text)
    return _loads(_TRAILING_COMMA_OR_NOT.sub(lambda match: " " if match[0] == "," else match[0], bare))


def _loads(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _blank_comment(match: re.Match[str]) -> str:
    found = match[0]
    if found[0] == '"':
        return found
    if found[1] == "*" and (len(found) < 4 or not found.endswith("*/")):
        line = match.string.count("\n", 0, match.start()) + 1
        raise ValueError(f"the comment that begins in line {line} does not end")
    return re.sub(r"[^\n]", " ", found)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {repeated!r} occurs twice in one object")
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
