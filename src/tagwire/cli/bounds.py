"""Where a read of a topic starts and ends, as a person says it: `earliest`, `latest`, an offset, or a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from tagwire.cli.times import FORMS, milliseconds
from tagwire.partitions import EARLIEST, LATEST, OFFSET_NAMES

if TYPE_CHECKING:
    from tagwire.client import Client, TopicPartition

_MAX_OFFSET = 2**63 - 1


@dataclass(frozen=True)
class Bound:
    """One bound of a read. Exactly one of `offset` and `timestamp` is set.

    Attributes:
        offset: an offset, or `EARLIEST` or `LATEST`.
        timestamp: milliseconds since 1970; the bound is the first record from then on.
    """

    offset: int | None = None
    timestamp: int | None = None

    @property
    def is_one_offset(self) -> bool:
        """Whether this names an offset of one partition."""
        return self.offset is not None and self.offset >= 0


def parse_bound(text: str, option: str) -> Bound:
    """The bound that `text` says.

    Raises:
        typer.BadParameter: it says none; the text names the option and what is allowed.
    """
    if text in OFFSET_NAMES:
        return Bound(offset=OFFSET_NAMES[text])
    if re.fullmatch(r"[0-9]+", text):
        if len(text) > 19 or int(text) > _MAX_OFFSET:
            raise typer.BadParameter(f"{text[:40]}: no offset is as high", param_hint=f"'{option}'")
        return Bound(offset=int(text))
    at = milliseconds(text)
    if at is None:
        raise typer.BadParameter(
            f"{text[:40]!r} is none of earliest, latest, an offset, or {FORMS}", param_hint=f"'{option}'"
        )
    return Bound(timestamp=at)


def resolve(client: Client, bound: Bound, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    """The offset the bound means in each partition; for a time after the last record, the partition's end."""
    if not partitions:
        return {}
    if bound.offset is not None and bound.offset >= 0:
        return dict.fromkeys(partitions, bound.offset)
    if bound.timestamp is None:
        assert bound.offset is not None
        return client.list_offsets(dict.fromkeys(partitions, bound.offset))
    # The ends come first: what is written between the two questions is not before that time, and must not be passed by.
    ends = client.list_offsets(dict.fromkeys(partitions, LATEST))
    found = client.list_offsets(dict.fromkeys(partitions, bound.timestamp))
    return {at: ends[at] if offset < 0 else offset for at, offset in found.items()}


@dataclass(frozen=True)
class Held:
    """What a partition holds: its first offset, and the next to be written."""

    start: int
    end: int

    def nearest(self, offset: int) -> int:
        """`offset`, or the nearer end where it lies outside."""
        return min(max(offset, self.start), self.end)


def held(client: Client, partitions: list[TopicPartition]) -> dict[TopicPartition, Held]:
    """What each partition holds now."""
    if not partitions:
        return {}
    starts = client.list_offsets(dict.fromkeys(partitions, EARLIEST))
    ends = client.list_offsets(dict.fromkeys(partitions, LATEST))
    return {at: Held(starts[at], ends[at]) for at in partitions}
