"""What one leader is asked about positions in its partitions: ListOffsets, and OffsetForLeaderEpoch (KIP-320).

One request is about many partitions; each gets its own result, so that none has to wait for another, or for another
leader. Whoever asks tries again, and finds the leader again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple

from tagwire import messages
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.config import ISOLATIONS
from tagwire.client.network_client import NetworkClient
from tagwire.client.offsets import NO_OFFSET, leader_epochs, list_offsets_request
from tagwire.errors import Error, KafkaError, RemoteProtocolError, TagwireError, UnsupportedVersionError
from tagwire.partitions import EARLIEST, LATEST, TopicPartition
from tagwire.rpc.version_gates import LIST_OFFSETS_LEADER_EPOCH, OFFSET_FOR_LEADER_EPOCH_CLIENTS
from tagwire.spec.api_keys import ApiKey

UNKNOWN: Final = -1


class EpochOffset(NamedTuple):
    """An offset and a leader epoch; -1 where they are not known."""

    offset: int
    leader_epoch: int = UNKNOWN


class LookedUpEpoch(NamedTuple):
    """What is asked about: where `leader_epoch` ends, of a leader since `current_leader_epoch`."""

    leader_epoch: int
    current_leader_epoch: int


LookupResult = EpochOffset | TagwireError


async def offsets_at(
    network: NetworkClient, node: int, timestamps: Mapping[TopicPartition, int], isolation: str
) -> dict[TopicPartition, LookupResult]:
    """The offset of each partition at a timestamp, -1 where no record is as late, or why there is none.

    Raises what is about the leader and not about a partition.
    """
    deadline = network.deadline()
    connection = await network.connection(node, deadline)
    version = connection.version(ApiKey.LIST_OFFSETS)
    message = list_offsets_request(timestamps, ISOLATIONS[isolation], leader_epochs(network, node, timestamps))
    response = await network.request(connection, message, deadline, version)
    results: dict[TopicPartition, LookupResult] = {}
    for topic in response.topics:
        for one in topic.partitions:
            partition = TopicPartition(topic.name, one.partition_index)
            _check_asked(partition, timestamps, results, connection, "an offset")
            if one.error_code:
                results[partition] = KafkaError(one.error_code, f"offsets of partition {partition}")
            elif one.offset < (0 if timestamps[partition] in (EARLIEST, LATEST) else NO_OFFSET):
                raise RemoteProtocolError(
                    f"{connection.broker} told offset {one.offset} of {partition}, which none can be"
                )
            else:
                epoch = one.leader_epoch if version >= LIST_OFFSETS_LEADER_EPOCH else UNKNOWN
                results[partition] = EpochOffset(one.offset, epoch)
    return _complete(results, timestamps, "offset")


async def epoch_ends_at(
    network: NetworkClient, node: int, asked: Mapping[TopicPartition, LookedUpEpoch]
) -> dict[TopicPartition, LookupResult]:
    """Where the newest epoch ends that is not newer than the one asked about, and which one that is; -1 where the
    leader knows none. Or why that is not told.

    Raises:
        UnsupportedVersionError: the broker has no OffsetForLeaderEpoch for clients. Otherwise what is about the leader
            and not about a partition.
    """
    deadline = network.deadline()
    connection = await network.connection(node, deadline)
    version = connection.version(ApiKey.OFFSET_FOR_LEADER_EPOCH)
    if version < OFFSET_FOR_LEADER_EPOCH_CLIENTS:
        raise UnsupportedVersionError(f"{connection.broker} has no OffsetForLeaderEpoch for clients")
    response = await network.request(connection, _epochs_request(asked), deadline, version)
    results: dict[TopicPartition, LookupResult] = {}
    for topic in response.topics:
        for one in topic.partitions:
            partition = TopicPartition(topic.topic, one.partition)
            _check_asked(partition, asked, results, connection, "the end of an epoch")
            if one.error_code:
                results[partition] = KafkaError(one.error_code, f"end of a leader epoch of {partition}")
            else:
                results[partition] = EpochOffset(one.end_offset, one.leader_epoch)
    return _complete(results, asked, "end of an epoch")


def _epochs_request(asked: Mapping[TopicPartition, LookedUpEpoch]) -> messages.OffsetForLeaderEpochRequest:
    kind = messages.OffsetForLeaderEpochRequest
    topics: dict[str, list[messages.OffsetForLeaderEpochRequest.OffsetForLeaderPartition]] = defaultdict(list)
    for partition, one in asked.items():
        topics[partition.topic].append(
            kind.OffsetForLeaderPartition(
                partition=partition.partition,
                current_leader_epoch=one.current_leader_epoch,
                leader_epoch=one.leader_epoch,
            )
        )
    return kind(
        replica_id=-1,
        topics=[kind.OffsetForLeaderTopic(topic=name, partitions=partitions) for name, partitions in topics.items()],
    )


def _check_asked(
    partition: TopicPartition,
    asked: Mapping[TopicPartition, object],
    results: Mapping[TopicPartition, LookupResult],
    connection: BrokerConnection,
    what: str,
) -> None:
    if partition not in asked or partition in results:
        raise RemoteProtocolError(f"{connection.broker} told {what} of {partition} twice, or not requested")


def _complete(
    results: dict[TopicPartition, LookupResult], asked: Mapping[TopicPartition, object], what: str
) -> dict[TopicPartition, LookupResult]:
    for partition in asked:
        if partition not in results:
            results[partition] = KafkaError(Error.UNKNOWN_SERVER_ERROR, f"no {what} of {partition} in the response")
    return results
