"""Where a read starts and ends, as callers say it, and the offsets that this means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from tagwire.client import arguments
from tagwire.client.admin.core import AdminCore
from tagwire.client.network_client import NetworkClient
from tagwire.client.offset_spec import AtTimestamp, OffsetName, OffsetSpec
from tagwire.client.offsets import list_offsets_or_end
from tagwire.client.property_values import wrong
from tagwire.client.topic_expansion import by_partition, partitions_of
from tagwire.errors import ConfigError
from tagwire.partitions import EARLIEST, TopicPartition


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

StartOffsets = (
    arguments.TopicOrPartition
    | Sequence[arguments.TopicOrPartition]
    | AbstractSet[arguments.TopicOrPartition]
    | arguments.ByTopicOrPartition[Position]
)
"""What to read, and from where on: a topic, a partition, several of either, or a position for each."""

EndOffsets = OffsetName | AtTimestamp | datetime | arguments.ByTopicOrPartition[Position]
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


async def start_offsets(
    network: NetworkClient, given: StartOffsets, default: Position
) -> dict[TopicPartition, int | AtTimestamp | Committed]:
    """The partitions to read, each with its position, from any form that a `Reader` takes.

    Args:
        default: the position of what is given without one.

    Raises:
        ConfigError: it means nothing. KafkaError: a topic does not exist.
    """
    deadline = network.deadline()
    found: Mapping[TopicPartition, object]
    if isinstance(given, Mapping):
        entries = arguments.by_topic_or_partition("starts", given, _EARLIEST)
        found = await by_partition(network, entries, deadline)
    else:
        named = arguments.topics_or_partitions("starts", given)
        found = dict.fromkeys(await partitions_of(network, named, deadline), default)
    return _positions("starts", found)


def end_offsets(
    given: EndOffsets, assigned: Iterable[TopicPartition]
) -> dict[TopicPartition, int | AtTimestamp | Committed]:
    """Where the `assigned` partitions end, as far as that is said. Raises ConfigError."""
    partitions = list(assigned)
    if not isinstance(given, Mapping):
        if arguments.whole(given) is not None:
            raise wrong("end_offsets", given, 'a dict by partition, {("orders", 0): 100}, or "latest" for all')
        return _positions("end_offsets", dict.fromkeys(partitions, given))
    entries = arguments.by_topic_or_partition("end_offsets", given, "100")
    topics: dict[str, list[int]] = {key: [] for key, _ in entries if not isinstance(key, TopicPartition)}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    for topic, own in topics.items():
        if not own:
            raise ConfigError(f"end_offsets: of topic {topic!r} no partition is assigned")
    found = arguments.expanded(entries, topics)
    for partition in found.keys() - set(partitions):
        raise ConfigError(f"end offset of {partition}: the partition is not assigned")
    return _positions("end_offsets", found)


def position_of(option: str, given: object) -> int | AtTimestamp | Committed:
    """A position in the one form that is worked with. Raises ConfigError."""
    if not isinstance(given, Committed):
        return arguments.offset_spec(option, given, "Committed()")
    if given.fallback is None:
        return given
    return Committed(arguments.offset_spec(f"{option}, fallback", given.fallback))


def _positions(
    option: str, given: Mapping[TopicPartition, object]
) -> dict[TopicPartition, int | AtTimestamp | Committed]:
    return {partition: position_of(f"{option}: {partition}", position) for partition, position in given.items()}


async def resolved(
    network: NetworkClient,
    positions: Mapping[TopicPartition, int | AtTimestamp | Committed],
    isolation: str,
    group: str | None,
) -> dict[TopicPartition, int]:
    """The offset of each position; the requests are about all partitions together.

    Raises:
        ConfigError: a position needs a group and `group` is None; a partition of which the group has committed
            nothing, and no fallback.
        KafkaError: naming the partition or the group.
    """
    committed = [partition for partition, position in positions.items() if isinstance(position, Committed)]
    specs: dict[TopicPartition, int | AtTimestamp] = {}
    known = await _committed(network, isolation, group, committed)
    for partition, position in positions.items():
        if not isinstance(position, Committed):
            specs[partition] = position
        elif partition in known:
            specs[partition] = known[partition]
        elif position.fallback is None:
            raise ConfigError(
                f"partition {partition}: group {group!r} has committed no offset, and no fallback is given"
            )
        else:
            specs[partition] = arguments.offset_spec(f"fallback of {partition}", position.fallback)
    found = {partition: spec for partition, spec in specs.items() if isinstance(spec, int) and spec >= 0}
    timestamps: dict[TopicPartition, int] = {
        partition: max(spec.milliseconds, 0) if isinstance(spec, AtTimestamp) else spec
        for partition, spec in specs.items()
        if partition not in found
    }
    listed = await list_offsets_or_end(network, timestamps, network.deadline(), isolation)
    return {partition: found.get(partition, listed.get(partition, 0)) for partition in positions}


async def _committed(
    network: NetworkClient, isolation: str, group: str | None, partitions: list[TopicPartition]
) -> dict[TopicPartition, int]:
    if not partitions:
        return {}
    if group is None:
        raise ConfigError(f"partition {partitions[0]} starts where a group stands: give the group")
    found = await AdminCore(network, isolation).group_offsets(group, partitions)
    return {partition: committed.offset for partition, committed in found.items()}
