"""Checkpoints: text files of numbers. Line 1 is the version, 0; line 2 counts the lines that follow.

`leader-epoch-checkpoint` of a partition has lines of epoch and start offset; recovery-point-offset-checkpoint and its
like, one a data directory, lines of topic, partition and offset.

Source: docs/log-files.md#checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tagwire.errors import DecodeError
from tagwire.partitions import TopicPartition

EPOCHS_FILE = "leader-epoch-checkpoint"
OFFSETS_FILES = (
    "cleaner-offset-checkpoint",
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
)
_VERSION = "0"


class EpochStart(NamedTuple):
    """Where the batches of a leader epoch begin."""

    epoch: int
    start_offset: int


def format_epochs(epochs: Iterable[tuple[int, int]]) -> bytes:
    """A leader-epoch-checkpoint of (epoch, start offset), oldest first."""
    return _format(f"{epoch} {offset}" for epoch, offset in epochs)


def read_epochs(data: bytes) -> list[EpochStart]:
    """Leader epochs as a leader-epoch-checkpoint has them; none in an empty file. Raises DecodeError."""
    return [EpochStart(number_of(epoch), number_of(offset)) for epoch, offset in _rows(data, 2)]


def format_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """A checkpoint of an offset for each topic and partition."""
    return _format(f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items()))


def read_offsets(data: bytes) -> dict[TopicPartition, int]:
    """Offsets by topic and partition; none in an empty file. Raises DecodeError."""
    return {
        TopicPartition(topic, number_of(partition)): number_of(offset) for topic, partition, offset in _rows(data, 3)
    }


def text_of(data: bytes) -> str:
    """The text of a small file. Raises DecodeError where it is not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise DecodeError("not a text file") from None


def number_of(text: str) -> int:
    """A whole number in decimal digits. Raises DecodeError for anything else."""
    # int() would take 1_000 and digits of other scripts too, and no number in these files is past 64 bits.
    if not (text.isascii() and text.removeprefix("-").isdigit() and len(text) <= _MOST_DIGITS):
        raise DecodeError(f"{text[:40]!r} stands where a number should")
    return int(text)


_MOST_DIGITS = 20


def _format(lines: Iterable[str]) -> bytes:
    body = list(lines)
    return "\n".join([_VERSION, str(len(body)), *body, ""]).encode()


def _rows(data: bytes, columns: int) -> list[list[str]]:
    lines = text_of(data).splitlines()
    if not lines:
        return []
    rows = [line.split() for line in lines[2:]]
    if lines[0] != _VERSION or len(lines) < 2 or lines[1] != str(len(rows)):
        raise DecodeError("not a checkpoint of version 0 with as many lines as it says")
    for number, row in enumerate(rows, 3):
        if len(row) != columns:
            raise DecodeError(f"line {number} has {len(row)} columns, not {columns}")
    return rows
