"""What the names in a data directory say: of a directory its topic and partition, of a file its kind.

Source: docs/log-files.md#names.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from tagwire.records.files.checkpoints import EPOCHS_FILE, OFFSETS_FILES
from tagwire.records.files.partition_metadata import METADATA_FILE

Kind = Literal[
    "log",
    "index",
    "timeindex",
    "txnindex",
    "producers",
    "epochs",
    "offsets",
    "topic-id",
    "snapshot",
    "leftover",
    "other",
]
"""What is in a file. snapshot: a KRaft snapshot of __cluster_metadata. leftover: what Kafka had begun to make, or to
delete, and does not read either."""

_DIGITS = 20
_MAX_OFFSET = (1 << 63) - 1
_MAX_PARTITION = (1 << 31) - 1
_OF_OFFSET = re.compile(rf"([0-9]{{{_DIGITS}}})\.(log|index|timeindex|txnindex|snapshot)")
_SNAPSHOT = re.compile(rf"(?:[0-9]{{{_DIGITS}}}-[0-9]{{10}}|bootstrap)\.checkpoint")
_LEFTOVER = re.compile(r".*\.(?:deleted|cleaned|swap|part|tmp)")
_PARTITION = re.compile(r"([a-zA-Z0-9._-]+)-([0-9]{1,10})(?:\.[0-9a-f]{32}-(delete|future|stray))?")


class PartitionName(NamedTuple):
    """Of a partition's directory. state: delete, future or stray where it is on its way out or in; else None."""

    topic: str
    partition: int
    state: str | None


def offset_name(offset: int) -> str:
    """How files are named after an offset, without their suffix."""
    return f"{offset:0{_DIGITS}d}"


def offset_of(name: str) -> int | None:
    """The offset that a file is named after; None for other names, and for 20 digits that no offset is."""
    found = _named(name)
    return int(found[1]) if found else None


def kind_of(name: str) -> Kind:
    """What a file of this name holds."""
    if found := _named(name):
        kind: Kind = "producers" if found[2] == "snapshot" else found[2]  # type: ignore[assignment]
        return kind
    if name == EPOCHS_FILE:
        return "epochs"
    if name in OFFSETS_FILES:
        return "offsets"
    if name == METADATA_FILE:
        return "topic-id"
    if _SNAPSHOT.fullmatch(name):
        return "snapshot"
    return "leftover" if _LEFTOVER.fullmatch(name) else "other"


def _named(name: str) -> re.Match[str] | None:
    found = _OF_OFFSET.fullmatch(name)
    return found if found and int(found[1]) <= _MAX_OFFSET else None


def partition_name(name: str) -> PartitionName | None:
    """The topic and partition of a directory of this name; None for one that is no partition's."""
    found = _PARTITION.fullmatch(name)
    if found is None or int(found[2]) > _MAX_PARTITION:
        return None
    return PartitionName(found[1], int(found[2]), found[3])
