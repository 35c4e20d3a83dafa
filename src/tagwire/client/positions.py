"""Where a read starts and ends, as people say it, and the offsets that this means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tagwire.client.admin.group_offsets import GroupOffsets
from tagwire.client.client import Client
from tagwire.client.metadata import TopicPartition
from tagwire.client.offsets import EARLIEST, LATEST
from tagwire.errors import ConfigError


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record at or after a time; the end of the partition where there is none.

    Attributes:
        milliseconds: since 1970 UTC.
    """

    milliseconds: int


@dataclass(frozen=True, slots=True)
class Committed:
    """Where the reader's group stands in the partition.

    Attributes:
        fallback: where to start without a committed offset: an offset, `EARLIEST`, `LATEST` or an `AtTime`; None is
            an error.
    """

    fallback: int | AtTime | None = EARLIEST


Position = int | AtTime | Committed
"""An offset, `EARLIEST`, `LATEST`, a time, or what a group has committed."""


class Lag(NamedTuple):
    """How far a reader is behind in one partition.

    Attributes:
        end: where the partition ends: its last stable offset for readers of committed records, its high watermark for
            others.
        position: the offset after the last record given out.
        lag: how many offsets lie between them.
    """

    end: int
    position: int
    lag: int


def resolved(
    client: Client, positions: Mapping[TopicPartition, Position], isolation: str, group: str | None
) -> dict[TopicPartition, int]:
    """The offset of each position, all partitions asked about together.

    Raises:
        ConfigError: a position means nothing, or needs a group and `group` is None; a partition of which the group has
            committed nothing, and no fallback.
        KafkaError: naming the partition or the group.
    """
    for at, position in positions.items():
        if isinstance(position, int) and position < 0 and position not in (EARLIEST, LATEST):
            raise ConfigError(f"offset {position} of {at}: needs an offset, EARLIEST or LATEST")
    committed = [at for at, position in positions.items() if isinstance(position, Committed)]
    wanted: dict[TopicPartition, int | AtTime] = {}
    held = _committed(client, group, committed)
    for at, position in positions.items():
        if not isinstance(position, Committed):
            wanted[at] = position
        elif at in held:
            wanted[at] = held[at]
        elif position.fallback is None:
            raise ConfigError(f"partition {at}: group {group!r} has committed no offset, and no fallback is given")
        else:
            wanted[at] = position.fallback
    found = {at: place for at, place in wanted.items() if isinstance(place, int) and place >= 0}
    times: dict[tuple[str, int], int] = {
        at: max(place.milliseconds, 0) if isinstance(place, AtTime) else place
        for at, place in wanted.items()
        if at not in found
    }
    told = client.list_offsets(times, isolation=isolation)
    after = [at for at, offset in told.items() if offset < 0]
    told.update(client.list_offsets(dict.fromkeys(after, LATEST), isolation=isolation))
    return {at: found.get(at, told.get(at, 0)) for at in positions}


def _committed(client: Client, group: str | None, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    partitions = list(partitions)
    if not partitions:
        return {}
    if group is None:
        raise ConfigError(f"partition {partitions[0]} starts where a group stands: give the group")
    found = GroupOffsets(client).group_offsets(group, partitions)
    return {at: committed.offset for at, committed in found.items()}
