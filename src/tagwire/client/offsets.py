"""ListOffsets: where partitions begin and end, and where a time lies in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from tagwire import messages
from tagwire.client import arguments
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.config import ISOLATIONS, isolation_of
from tagwire.client.in_flight_request import InFlightRequest
from tagwire.client.network_client import NetworkClient
from tagwire.client.retry import is_retriable
from tagwire.client.scheduling import sleep
from tagwire.client.topic_expansion import by_partition
from tagwire.errors import Error, KafkaError, RemoteProtocolError, RequestTimeoutError, TagwireError
from tagwire.partitions import EARLIEST, LATEST, TopicPartition

NO_OFFSET: Final = -1
NO_EPOCH: Final = -1

_LATEST: Final = '"latest"'


async def offsets_of(
    network: NetworkClient, given: object, isolation: str, deadline: float
) -> dict[TopicPartition, int]:
    """As `Client.list_offsets`."""
    entries = arguments.by_topic_or_partition("partitions", given, _LATEST)
    specs = await by_partition(network, entries, deadline)
    timestamps = {partition: arguments.timestamp(f"partitions: {partition}", spec) for partition, spec in specs.items()}
    return await list_offsets(network, timestamps, deadline, isolation)


async def list_offsets(
    network: NetworkClient, timestamps: Mapping[TopicPartition, int], deadline: float, isolation: str
) -> dict[TopicPartition, int]:
    """The offset of each partition at a timestamp: `EARLIEST`, `LATEST`, or milliseconds since 1970 UTC, -1 where no
    record is as late. What is about a partition whose leader has moved is sent again until the deadline.

    Raises:
        KafkaError: naming the partition. RemoteProtocolError: a leader tells an offset that none can be, or of a
            partition that was not requested.
        ConfigError: there is no such isolation. ConnectError, RequestTimeoutError, ...: a leader stays away.
    """
    left = dict(timestamps)
    found: dict[TopicPartition, int] = {}
    retry, level = network.retry(deadline), ISOLATIONS[isolation_of(isolation)]
    while True:
        failed = await _ask_leaders(network, left, found, deadline, level)
        left = {partition: timestamp for partition, timestamp in left.items() if partition not in found}
        if not left:
            return {partition: found[partition] for partition in timestamps}
        network.forget({partition.topic for partition in left})
        missing = KafkaError(Error.UNKNOWN_SERVER_ERROR, f"no offset of {next(iter(left))} in the response")
        await sleep(retry.pause_until(failed or missing))


async def list_offsets_or_end(
    network: NetworkClient, timestamps: Mapping[TopicPartition, int], deadline: float, isolation: str
) -> dict[TopicPartition, int]:
    """As `list_offsets`; the end of the partition where no record is as late."""
    found = await list_offsets(network, timestamps, deadline, isolation)
    without = [partition for partition, offset in found.items() if offset == NO_OFFSET]
    return found | await list_offsets(network, dict.fromkeys(without, LATEST), deadline, isolation)


async def _ask_leaders(
    network: NetworkClient,
    timestamps: Mapping[TopicPartition, int],
    found: dict[TopicPartition, int],
    deadline: float,
    level: int,
) -> TagwireError | None:
    """One request to each leader, all of them in flight at once. Fills `found`; returns an error that is worth a
    retry."""
    failed: TagwireError | None = None
    sent: list[tuple[BrokerConnection, dict[TopicPartition, int], InFlightRequest[messages.ListOffsetsResponse]]] = []
    for node, partitions in (await by_leader(network, timestamps, deadline)).items():
        try:
            connection = await network.connection(node, deadline)
            wanted = {partition: timestamps[partition] for partition in partitions}
            request = list_offsets_request(wanted, level, leader_epochs(network, node, wanted))
            sent.append((connection, wanted, await network.put(connection, request, deadline)))
        except TagwireError as error:
            failed = _retriable(error)
    for connection, wanted, pending in sent:
        try:
            failed = _take(await network.response(pending, deadline), wanted, found, connection.broker) or failed
        except TagwireError as error:
            failed = _retriable(error)
    return failed


async def by_leader(
    network: NetworkClient, partitions: Iterable[TopicPartition], deadline: float
) -> dict[int, list[TopicPartition]]:
    """Partitions by the node that leads them. Waits for leaders that are missing; raises as
    `NetworkClient.partition`."""
    found: dict[int, list[TopicPartition]] = defaultdict(list)
    retry = network.retry(deadline)
    for partition in partitions:
        missing: KafkaError | None = None
        while True:
            try:
                known = network.known_partition(partition) or await network.partition(partition, deadline)
                found[known.leader].append(partition)
                break
            except KafkaError as error:
                if error.error is not Error.LEADER_NOT_AVAILABLE:
                    raise
                missing = error
                await sleep(retry.pause_until(error))
            except RequestTimeoutError as error:
                raise missing or error from None  # the time was up while its leader was looked for once more
    return found


def leader_epochs(network: NetworkClient, node: int, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Since which epoch a broker leads partitions, as the metadata has it; those left out of which it has not."""
    known = {partition: network.known_partition(partition) for partition in partitions}
    return {one: found.leader_epoch for one, found in known.items() if found is not None and found.leader == node}


def list_offsets_request(
    timestamps: Mapping[TopicPartition, int], level: int, epochs: Mapping[TopicPartition, int]
) -> messages.ListOffsetsRequest:
    """The request about these partitions.

    Args:
        level: one of the values of `ISOLATIONS`.
        epochs: of their leaders, as far as they are known: who leads in another one refuses (KIP-320).
    """
    kind = messages.ListOffsetsRequest
    topics: dict[str, list[messages.ListOffsetsRequest.ListOffsetsPartition]] = defaultdict(list)
    for partition, timestamp in timestamps.items():
        topics[partition.topic].append(
            kind.ListOffsetsPartition(
                partition_index=partition.partition,
                current_leader_epoch=epochs.get(partition, NO_EPOCH),
                timestamp=timestamp,
            )
        )
    return kind(
        replica_id=-1,
        isolation_level=level,
        topics=[kind.ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
    )


def _take(
    response: messages.ListOffsetsResponse,
    wanted: Mapping[TopicPartition, int],
    found: dict[TopicPartition, int],
    broker: str,
) -> TagwireError | None:
    failed: TagwireError | None = None
    for topic in response.topics:
        for partition in topic.partitions:
            topic_partition = TopicPartition(topic.name, partition.partition_index)
            if topic_partition not in wanted or topic_partition in found:
                raise RemoteProtocolError(f"{broker} told an offset of {topic_partition} twice, or not requested")
            # Every partition has a first and a next offset; a record of some age it may have none.
            least = 0 if wanted[topic_partition] in (EARLIEST, LATEST) else NO_OFFSET
            if not partition.error_code and partition.offset < least:
                raise RemoteProtocolError(
                    f"{broker} told offset {partition.offset} of {topic_partition}, which none can be"
                )
            if partition.error_code:
                failed = _retriable(KafkaError(partition.error_code, f"offsets of partition {topic_partition}"))
            else:
                found[topic_partition] = partition.offset
    return failed


def _retriable(error: TagwireError) -> TagwireError:
    if not is_retriable(error):
        raise error
    return error
