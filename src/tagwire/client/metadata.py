"""What a cluster says about itself: brokers, topics, partitions and who leads them."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from tagwire import messages
from tagwire.errors import Error, RemoteProtocolError
from tagwire.rpc.addresses import address_text

NO_NODE: Final = -1
NO_TOPIC_ID: Final = UUID(int=0)
SHORTEST_REFRESH_INTERVAL: Final = 0.1
"""Seconds between two looks at metadata whatever the settings say. Source: retry.backoff.ms of Kafka's Metadata."""


@dataclass(frozen=True, slots=True)
class Node:
    """A broker at the address it advertises.

    Attributes:
        rack: its `broker.rack`, None where it has none.
    """

    id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        return f"broker {self.id} at {address_text((self.host, self.port))}"


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """A partition, its leader and its replicas.

    Attributes:
        leader: node id, -1 where there is none at the moment.
        leader_epoch: -1 where the broker does not tell.
        error: `Error.NONE`, or why the partition cannot be used now.
    """

    index: int
    leader: int
    leader_epoch: int = -1
    error: Error = Error.NONE
    replicas: tuple[int, ...] = ()
    in_sync: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic.

    Attributes:
        error: `Error.NONE` for one that exists.
        partitions: by their index.
        topic_id: all zeros where the broker does not tell (before Kafka 2.8).
    """

    name: str
    error: Error = Error.NONE
    is_internal: bool = False
    partitions: dict[int, PartitionMetadata] = field(default_factory=dict)
    topic_id: UUID = NO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """What one Metadata response says.

    Attributes:
        cluster_id: None where the broker does not tell.
        controller_id: the node that takes changes of topics, -1 where none is known.
        brokers: by node id.
        topics: the requested ones, by name; all of them where none was named.
    """

    cluster_id: str | None
    controller_id: int
    brokers: dict[int, Node]
    topics: dict[str, TopicMetadata]


_ToldBroker = (
    messages.MetadataResponse.MetadataResponseBroker
    | messages.FetchResponse.NodeEndpoint
    | messages.ProduceResponse.NodeEndpoint
)


def metadata_request(topics: Iterable[str] | None, *, allow_auto_create: bool = False) -> messages.MetadataRequest:
    """The request about these topics, None for all. Those of a set are sorted: the same request each time."""
    kind = messages.MetadataRequest
    named = None
    if topics is not None:
        names: Iterable[str] = sorted(topics) if isinstance(topics, Set) else dict.fromkeys(topics)
        named = [kind.MetadataRequestTopic(name=name) for name in names]
    return kind(topics=named, allow_auto_topic_creation=allow_auto_create)


def cluster_metadata(response: messages.MetadataResponse) -> ClusterMetadata:
    """What a MetadataResponse says. Topics without a name, which only responses by topic id have, are left out.

    Raises RemoteProtocolError: a broker, topic or partition is told of twice, or under a number that none has.
    """
    each_once((node.node_id for node in response.brokers), "broker")
    each_once((topic.name for topic in response.topics if topic.name is not None), "topic")
    return ClusterMetadata(
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        brokers={node.id: node for node in nodes_of(response.brokers)},
        topics={topic.name: _topic(topic.name, topic) for topic in response.topics if topic.name is not None},
    )


def each_once(found: Iterable[int | str], what: str) -> None:
    """Raises RemoteProtocolError where a response tells of something twice, or under a negative number."""
    known: set[int | str] = set()
    for one in found:
        if one in known or (isinstance(one, int) and one < 0):
            problem = "told twice" if one in known else "which none can be"
            raise RemoteProtocolError(f"the response tells of {what} {one!r}, {problem}")
        known.add(one)


def nodes_of(entries: Iterable[_ToldBroker]) -> list[Node]:
    """The brokers that a list in a response tells of, whichever response it is."""
    return [Node(entry.node_id, entry.host, entry.port, entry.rack or None) for entry in entries]


def _topic(name: str, topic: messages.MetadataResponse.MetadataResponseTopic) -> TopicMetadata:
    each_once((partition.partition_index for partition in topic.partitions), f"topic {name!r}, partition")
    partitions = {
        partition.partition_index: PartitionMetadata(
            partition.partition_index,
            partition.leader_id,
            partition.leader_epoch,
            Error.of(partition.error_code),
            tuple(partition.replica_nodes),
            tuple(partition.isr_nodes),
        )
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
    }
    return TopicMetadata(name, Error.of(topic.error_code), topic.is_internal, partitions, topic.topic_id)
