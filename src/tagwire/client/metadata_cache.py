"""The cached metadata of a cluster, updated by responses; without the connections."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tagwire.client.metadata import NO_NODE, NO_TOPIC_ID, ClusterMetadata, Node, PartitionMetadata, TopicMetadata
from tagwire.partitions import TopicPartition


class MetadataCache:
    """Brokers, and topics with their leaders.

    A broker that lags behind may tell of an older leader than is known: a response with a lower leader epoch does not
    replace what is known of a partition, as long as the topic is the same one, which only its id tells. Nor does one
    that lacks a partition: topics get more of them, and never fewer.

    Attributes:
        cluster_id: None while it is not known.
        controller: node id, -1 where none is known.
        nodes: by id.
    """

    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self.controller = NO_NODE
        self.nodes: dict[int, Node] = {}
        self._topics: dict[str, TopicMetadata] = {}
        self._stale: set[str] = set()

    def update(self, cluster: ClusterMetadata) -> None:
        """Takes a response to Metadata."""
        self.cluster_id = cluster.cluster_id
        self.controller = cluster.controller_id
        self.nodes = cluster.brokers
        for name, topic in cluster.topics.items():
            self._topics[name] = _newest(self._topics.get(name), topic)
            self._stale.discard(name)

    def topic(self, name: str) -> TopicMetadata | None:
        """A topic that can be used; None where there is none, or it is stale."""
        found = None if name in self._stale else self._topics.get(name)
        return None if found is None or found.error or not found.partitions else found

    def mark_stale(self, topics: Iterable[str]) -> None:
        """Has the metadata of these topics refreshed before it is used again."""
        self._stale.update(topics)

    def update_leader(self, partition: TopicPartition, leader: int, epoch: int, nodes: Iterable[Node] = ()) -> bool:
        """Takes what a refusal tells of a partition's new leader (KIP-951). A topic that is stale remains so: what is
        told is of this partition alone.

        Returns:
            Whether that is news, and the leader a broker whose address is known.
        """
        self.nodes = {**self.nodes, **{node.id: node for node in nodes if node.id > NO_NODE}}
        topic = self._topics.get(partition.topic)
        known = topic.partitions.get(partition.partition) if topic is not None else None
        if topic is None or known is None or epoch <= known.leader_epoch or leader not in self.nodes:
            return False
        moved = replace(known, leader=leader, leader_epoch=epoch)
        self._topics[partition.topic] = replace(topic, partitions={**topic.partitions, partition.partition: moved})
        return True


def _newest(known: TopicMetadata | None, told: TopicMetadata) -> TopicMetadata:
    if known is None or known.topic_id != told.topic_id or told.topic_id == NO_TOPIC_ID:
        return told

    def newest(partition: PartitionMetadata) -> PartitionMetadata:
        before = known.partitions.get(partition.index)
        return partition if before is None or partition.leader_epoch >= before.leader_epoch else before

    partitions = known.partitions | {index: newest(partition) for index, partition in told.partitions.items()}
    return replace(told, partitions=dict(sorted(partitions.items())))
