"""Records that a judge can tell from each other: each has a name, which no other of the run has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tagwire.records import Record

NAME_HEADER = "name"


def payload(name: str, *, tombstone: bool, size: int = 0) -> dict[str, Any]:
    """What `send` takes for a record of this name: its value begins with it, and a tombstone has it in a header.

    Args:
        size: of the value in bytes, at least.
    """
    if tombstone:
        return {"value": None, "headers": [(NAME_HEADER, name.encode())]}
    return {"value": name.encode().ljust(size, b" ")}


def name_of(record: Record) -> str:
    """The name of a record that was read."""
    if record.value is not None:
        return record.value.decode().rstrip(" ")
    return next((value.decode() for key, value in record.headers if key == NAME_HEADER and value), "")


def read_of(records: Iterable[Record], positions: dict[tuple[str, int], int]) -> list[dict[str, Any]]:
    """What a poll gave, as histories tell it: by partition, in the order of their first records."""
    found: dict[tuple[str, int], list[list[Any]]] = {}
    for record in records:
        found.setdefault((record.topic, record.partition), []).append([record.offset, name_of(record)])
    return [
        {"topic": topic, "partition": partition, "records": own, "position": positions.get((topic, partition))}
        for (topic, partition), own in found.items()
    ]
