"""What callers say of topics, said of each of their partitions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from tagwire.client.arguments import expanded
from tagwire.client.network_client import NetworkClient
from tagwire.partitions import TopicPartition

ValueT = TypeVar("ValueT")


async def by_partition(
    network: NetworkClient, entries: Iterable[tuple[str | TopicPartition, ValueT]], deadline: float
) -> dict[TopicPartition, ValueT]:
    """The entries with each topic as all of its partitions. Raises as `NetworkClient.topic`."""
    listed = list(entries)
    topics = dict.fromkeys(key for key, _ in listed if not isinstance(key, TopicPartition))
    return expanded(listed, {name: (await network.topic(name, deadline)).partitions for name in topics})


async def partitions_of(
    network: NetworkClient, named: Iterable[str | TopicPartition], deadline: float
) -> list[TopicPartition]:
    """The partitions that are named, and all of the topics that are. Raises as `NetworkClient.topic`."""
    return list(await by_partition(network, ((each, None) for each in named), deadline))
