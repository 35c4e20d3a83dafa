"""Fields and depth of a spec."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from growing.lines import Lines
from growing.row import Row, thousandfold
from tagwire import message_class

DEPTHS = (1, 4, 15, 60)  # 60 is the deepest that there may be
VALUES = 2_000_000


def _message(fields: list[dict[str, Any]]) -> type[Any]:
    spec = {"type": "data", "name": "Growing", "validVersions": "0", "flexibleVersions": "0+", "fields": fields}
    return message_class(json.dumps(spec))


def _field(name: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "versions": "0+", **more}


def fields(size: int, folder: Path, lines: Lines) -> None:
    """A message of so many int32 fields: its class, and reading and writing it."""
    _message([_field("First", "int32")])
    with lines.line("the class"):
        kind = _message([_field(f"Field{number}", "int32") for number in range(size)])
    message = kind(**{f"field{number}": number for number in range(size)})
    _read_and_write(message, lines, size)


def depth(size: int, folder: Path, lines: Lines) -> None:
    """A struct inside of a struct, so many times."""
    found = [_field("Value", "int32")]
    for level in range(size, 0, -1):
        found = [_field("Value", "int32"), _field(f"Inner{level}", f"Level{level}", fields=found)]
    _message([_field("First", "int32")])
    with lines.line("the class"):
        kind = _message(found)
    message = kind()
    _read_and_write(message, lines, size)


def _read_and_write(message: Any, lines: Lines, size: int) -> None:
    """Many times. The first makes the programs of the class, which is told apart."""
    kind, times = type(message), max(10, VALUES // size // 10)
    with lines.line("its first encode and decode"):
        kind.decode(message.encode(0), 0)
    with lines.line("encode") as line:
        for _ in range(times):
            data = message.encode(0)
    line.seconds, line.cpu = line.seconds / times, line.cpu / times
    with lines.line("decode") as line:
        for _ in range(times):
            found = kind.decode(data, 0)
    line.seconds, line.cpu = line.seconds / times, line.cpu / times
    assert found == message


ROWS_OF_SPECS = (
    Row("fields", "fields of a message", thousandfold(10), fields),
    Row("depth", "structs inside of one another", DEPTHS, depth),
)
