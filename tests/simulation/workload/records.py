"""Records that a judge can tell from each other: each has a name, which no other of the run has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tagwire.client import OffsetAndMetadata
from tagwire.partitions import TopicPartition
from tagwire.records import Record

NAME_HEADER = "name"
MARK_HEADER = "mark"


def payload(name: str, *, tombstone: bool, size: int = 0, mark: bytes | None = None) -> dict[str, Any]:
    """What `send` takes for a record of this name: its value begins with it, and a tombstone has it in a header.

    Args:
        size: of the value in bytes, at least.
        mark: what `mark_of` gives for it; None for a record whose key and time nobody looks at.
    """
    marks = [] if mark is None else [(MARK_HEADER, mark)]
    if tombstone:
        return {"value": None, "headers": [(NAME_HEADER, name.encode()), *marks]}
    return {"value": name.encode().ljust(size, b" "), **({"headers": marks} if marks else {})}


def mark_of(key: bytes | None, timestamp: int) -> bytes:
    """What says, in a record, which key and time (ms) it has."""
    return b"%d %s" % (timestamp, b"-" if key is None else key)


def name_of(record: Record) -> str:
    """The name of a record that was read; another one, which nobody has sent, where its key or time has changed."""
    headers = dict(record.headers)
    name = (headers.get(NAME_HEADER) or b"" if record.value is None else record.value).decode().rstrip(" ")
    mark = headers.get(MARK_HEADER)
    return name if mark in (None, mark_of(record.key, record.timestamp)) else f"{name}, changed"


def read_of(records: Iterable[Record], positions: Mapping[TopicPartition, OffsetAndMetadata]) -> list[dict[str, Any]]:
    """What a poll gave, as histories tell it: by partition, in the order of their first records; with where it stands
    then, and the leader epoch of the record before that."""
    found: dict[tuple[str, int], list[list[Any]]] = {}
    for record in records:
        found.setdefault((record.topic, record.partition), []).append([record.offset, name_of(record)])
    told = []
    for at, own in found.items():
        stands = positions.get(TopicPartition(*at))
        part = {"topic": at[0], "partition": at[1], "records": own, "position": None, "epoch": None}
        if stands is not None:
            part |= {"position": stands.offset, "epoch": stands.leader_epoch}
        told.append(part)
    return told
