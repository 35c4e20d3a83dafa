"""The keys of a spec's JSON objects, and the problems found on the way.

Like Kafka's parser, scalars may be spelled as text or as numbers; `null` means that the key is absent. A
wrong value is noted as a problem and read as if absent, so that one pass finds everything that is wrong in a file.
Source: docs/wire-format.md#the-spec-language.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from tagwire.escaping import cut
from tagwire.spec.versions import Versions

_WHOLE = re.compile(r"-?\d{1,20}", re.ASCII)
MAX_RANGES = 100
"""Of a map of versions. An API has had two dozen versions in fifteen years."""
MAX_RANGE_TEXT = 40
SHOWN = 60
"""Characters of a wrong value that a problem shows."""


def shown(value: object) -> str:
    """A wrong value, for a problem."""
    return cut(repr(value), SHOWN)


class Keys:
    """Typed access to keys, for one file.

    Attributes:
        file: the file's name, for the problems.
        problems: one line each: file, field path, rule.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[str] = []

    def problem(self, path: str, rule: str) -> None:
        """Notes that the field at `path` breaks `rule`."""
        where = f"{self.file}, {path}" if path else self.file
        line = f"{where}: {rule}"
        if line not in self.problems:
            self.problems.append(line)

    def unknown_keys(self, doc: dict[str, Any], known: frozenset[str], path: str) -> None:
        for key in doc:
            if key not in known:
                self.problem(path, f"unknown key {key!r}")

    def objects(self, doc: dict[str, Any], key: str, path: str) -> list[dict[str, Any]]:
        value = doc.get(key)
        items = [] if value is None else value if isinstance(value, list) else [value]
        for item in items:
            if not isinstance(item, dict):
                self.problem(path, f"{key} must hold objects, not {item!r}")
        return [item for item in items if isinstance(item, dict)]

    def text(self, doc: dict[str, Any], key: str, path: str) -> str | None:
        value = doc.get(key)
        if value is None or isinstance(value, str):
            return value
        self.problem(path, f"{key} must be text, not {value!r}")
        return None

    def integer(self, doc: dict[str, Any], key: str, path: str, absent: int) -> int:
        value = doc.get(key)
        if value is None:
            return absent
        try:
            if isinstance(value, bool) or not _WHOLE.fullmatch(str(value)):
                raise ValueError
            return int(value)
        except ValueError:
            self.problem(path, f"{key} must be a whole number, not {value!r}")
            return absent

    def boolean(self, doc: dict[str, Any], key: str, path: str, absent: bool) -> bool:
        value = doc.get(key)
        if value is None:
            return absent
        if isinstance(value, bool):
            return value
        if value in ("true", "false"):
            return bool(value == "true")
        self.problem(path, f"{key} must be true or false, not {value!r}")
        return absent

    def versions(self, doc: dict[str, Any], key: str, path: str, absent: Versions | None) -> Versions | None:
        value = doc.get(key)
        if value is None or (isinstance(value, str) and not value.strip()):
            return absent
        try:
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise ValueError(f"{value!r} is no version range")
            return Versions.parse(str(value))
        except ValueError as error:
            self.problem(path, f"{key}: {error}")
            return absent

    def version_map(self, doc: dict[str, Any], key: str, example: str) -> list[tuple[Versions, Any]] | None:
        """A message's map of version ranges to what is said of them, by ascending range; None where there is none, or
        where it is no such map. Ranges that share a version are a problem."""
        value = doc.get(key)
        if value is None:
            return None
        if not isinstance(value, dict) or not 0 < len(value) <= MAX_RANGES:
            said = f"a map of 1 to {MAX_RANGES} version ranges, such as {example}"
            given = f"{len(value)} of them" if isinstance(value, dict) else shown(value)
            self.problem("", f"{key} must be {said}, not {given}")
            return None
        found = []
        for text, said in value.items():
            try:
                if len(text) > MAX_RANGE_TEXT:
                    raise ValueError(f"{shown(text)} is no version range: write N, N-M or N+")
                versions = Versions.parse(text)
                if not versions:
                    raise ValueError(f"{text!r} holds no version")
            except ValueError as error:
                self.problem("", f"{key}: {error}")
                return None
            found.append((versions, said))
        found.sort(key=lambda entry: (entry[0].lowest, entry[0].highest))
        for (one, _), (other, _) in pairwise(found):
            if one & other:
                self.problem("", f"{key}: {one} and {other} overlap")
                return None
        return found
