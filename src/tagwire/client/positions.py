"""Where a read starts and ends, as people say it, and the offsets that this means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from tagwire.client import arguments
from tagwire.client.admin.group_offsets import GroupOffsets
from tagwire.client.client import Client
from tagwire.client.config import wrong
from tagwire.client.offset_spec import AtTimestamp, OffsetName, OffsetSpec
from tagwire.errors import ConfigError
from tagwire.partitions import EARLIEST, LATEST, TopicPartition


@dataclass(frozen=True, slots=True)
class Committed:
    """Where the reader's group stands in the partition.

    Attributes:
        fallback: where to start without a committed offset: an offset, "earliest", "latest" or a time; None is an
            error.
    """

    fallback: OffsetSpec | None = EARLIEST


Position = OffsetSpec | Committed
"""An offset, "earliest" (`EARLIEST`), "latest" (`LATEST`), a time, or what a group has committed."""

Starts = (
    arguments.TopicOrPartition
    | Sequence[arguments.TopicOrPartition]
    | AbstractSet[arguments.TopicOrPartition]
    | arguments.ByTopicOrPartition[Position]
)
"""What to read, and from where on: a topic, a partition, several of either, or a position for each."""

Ends = OffsetName | AtTimestamp | datetime | arguments.ByTopicOrPartition[Position]
"""Where to stop: in all partitions, or in some."""

_EARLIEST: Final = '"earliest"'


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


def starts_of(client: Client, given: Starts, default: Position) -> dict[TopicPartition, int | AtTimestamp | Committed]:
    """The partitions to read, each with its position, from any form that a `Reader` takes.

    Args:
        default: the position of what is given without one.

    Raises:
        ConfigError: it means nothing. KafkaError: a topic does not exist.
    """
    network = client.network
    deadline = network.deadline()

    def partitions(topic: str) -> Iterable[int]:
        return network.topic(topic, deadline).partitions

    if isinstance(given, Mapping):
        return positions("starts", arguments.by_topic_or_partition("starts", given, partitions, _EARLIEST))
    return positions("starts", dict.fromkeys(arguments.topic_partitions("starts", given, partitions), default))


def ends_of(given: Ends, assigned: Iterable[TopicPartition]) -> dict[TopicPartition, int | AtTimestamp | Committed]:
    """Where the `assigned` partitions end, as far as that is said. Raises ConfigError."""
    places = list(assigned)
    if not isinstance(given, Mapping):
        if arguments.whole(given) is not None:
            raise wrong("end_offsets", given, 'a dict by partition, {("orders", 0): 100}, or "latest" for all')
        return positions("end_offsets", dict.fromkeys(places, given))

    def partitions(topic: str) -> list[int]:
        own = [at.partition for at in places if at.topic == topic]
        if not own:
            raise ConfigError(f"end_offsets: of topic {topic!r} no partition is assigned")
        return own

    found = arguments.by_topic_or_partition("end_offsets", given, partitions, "100")
    for at in found.keys() - set(places):
        raise ConfigError(f"end offset of {at}: the partition is not assigned")
    return positions("end_offsets", found)


def positions(
    option: str, given: Mapping[TopicPartition, object]
) -> dict[TopicPartition, int | AtTimestamp | Committed]:
    """Each position as one that is worked with. Raises ConfigError."""
    return {at: _position(f"{option}: {at}", position) for at, position in given.items()}


def _position(option: str, given: object) -> int | AtTimestamp | Committed:
    if not isinstance(given, Committed):
        return arguments.offset_spec(option, given, "Committed()")
    return given if given.fallback is None else Committed(arguments.offset_spec(f"{option}, fallback", given.fallback))


def resolved(
    client: Client, positions: Mapping[TopicPartition, int | AtTimestamp | Committed], isolation: str, group: str | None
) -> dict[TopicPartition, int]:
    """The offset of each position, all partitions asked about together.

    Raises:
        ConfigError: a position needs a group and `group` is None; a partition of which the group has committed
            nothing, and no fallback.
        KafkaError: naming the partition or the group.
    """
    committed = [at for at, position in positions.items() if isinstance(position, Committed)]
    wanted: dict[TopicPartition, int | AtTimestamp] = {}
    held = _committed(client, group, committed)
    for at, position in positions.items():
        if not isinstance(position, Committed):
            wanted[at] = position
        elif at in held:
            wanted[at] = held[at]
        elif position.fallback is None:
            raise ConfigError(f"partition {at}: group {group!r} has committed no offset, and no fallback is given")
        else:
            wanted[at] = arguments.offset_spec(f"fallback of {at}", position.fallback)
    found = {at: place for at, place in wanted.items() if isinstance(place, int) and place >= 0}
    times: dict[TopicPartition, int] = {
        at: max(place.milliseconds, 0) if isinstance(place, AtTimestamp) else place
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
