"""A cluster of any number of partitions, of which there is one broker, and no log: it tells metadata and offsets."""

from __future__ import annotations

from uuid import UUID

from tagwire import messages
from tagwire.broker import Broker
from tagwire.broker.interception import Intercepted
from tagwire.partitions import EARLIEST

PER_TOPIC = 100
RECORDS = 1_000

_Response = messages.MetadataResponse


def topic_of(number: int) -> str:
    """Their names ascend as their numbers do."""
    return f"simulated-{number:06}"


def _topics(partitions: int, nodes: int) -> list[messages.MetadataResponse.MetadataResponseTopic]:
    per_topic = min(PER_TOPIC, partitions)
    return [
        _Response.MetadataResponseTopic(
            name=topic_of(number),
            topic_id=UUID(int=(number + 1) << 64 | 7),
            partitions=[
                _Response.MetadataResponsePartition(
                    partition_index=index,
                    leader_id=index % nodes,
                    leader_epoch=1,
                    replica_nodes=[index % nodes],
                    isr_nodes=[index % nodes],
                )
                for index in range(per_topic)
            ],
        )
        for number in range(partitions // per_topic)
    ]


def simulate(broker: Broker, partitions: int, nodes: int) -> None:
    """Has a broker tell that it is `nodes` of them, all at its own address, with so many partitions."""
    host, _, port = broker.bootstrap.rpartition(":")
    topics = _topics(partitions, nodes)
    by_name = {topic.name: topic for topic in topics}
    brokers = [_Response.MetadataResponseBroker(node_id=node, host=host, port=int(port)) for node in range(nodes)]

    def metadata(call: Intercepted) -> messages.MetadataResponse:
        wanted = call.request.topics
        told = topics if wanted is None else [by_name[topic.name] for topic in wanted if topic.name in by_name]
        return _Response(cluster_id="simulated", controller_id=0, brokers=brokers, topics=told)

    def list_offsets(call: Intercepted) -> messages.ListOffsetsResponse:
        kind = messages.ListOffsetsResponse
        return kind(
            topics=[
                kind.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        kind.ListOffsetsPartitionResponse(
                            partition_index=each.partition_index, offset=0 if each.timestamp == EARLIEST else RECORDS
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in call.request.topics
            ]
        )

    broker.intercept("Metadata", metadata)
    broker.intercept("ListOffsets", list_offsets)
