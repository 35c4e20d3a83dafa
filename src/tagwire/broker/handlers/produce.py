"""Produce (key 0): append record batches to partitions.

Versions 0-12. One batch per partition, magic 2, from offset 0 on; its bytes are stored unchanged but for base offset
and leader epoch. Versions 0-2 carry message sets of magic 0 and 1, which are stored as one batch of the same records.
With acks=1 and acks=all the response follows when the batch is as safe as the broker's `fsync` promises. acks=0 has no
response at all, so a refusal closes the connection: nothing else would tell the client. To a batch of an idempotent
producer that is in the log already the response is the offset it got then. Where a topic keeps a record dialect, a
producer that speaks it says so and is taken at its word; what any other sends is bridged, or refused (see
`broker.dialects`). From version 8 it is told which records a batch is refused for, from version 10 who leads a
partition that this broker does not. From version 12 a batch of a transaction adds its partition to that. Source:
KIP-98, KIP-467, KIP-890, KIP-951.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from tagwire import messages
from tagwire.broker.batch_checks import check_batch, has_transactional, transactional_header
from tagwire.broker.dialects import check_for_dialect
from tagwire.broker.group_commit import MakeBatch
from tagwire.broker.node_endpoints import node_endpoints
from tagwire.broker.partition import Partition
from tagwire.broker.record_refusals import RecordsRefusedError
from tagwire.broker.registry import Call, handles
from tagwire.broker.session import HangUp
from tagwire.broker.storage.batch import Appended
from tagwire.broker.transactions.transaction import told_by_leader, told_of_transaction
from tagwire.errors import Error, KafkaError, StorageError
from tagwire.partitions import TopicPartition
from tagwire.rpc.dialects import dialect_of
from tagwire.rpc.version_gates import (
    PRODUCE_CURRENT_LEADER,
    PRODUCE_TRANSACTION_ABORTABLE,
    PRODUCE_TRANSACTION_V2,
)

Request = messages.ProduceRequest
Response = messages.ProduceResponse

Outcome = Appended | KafkaError

Appending = asyncio.Future[Appended]

Begun = Appending | tuple[asyncio.Task[list[Appending]], int] | KafkaError
"""A batch whose append was begun; one that is the so-manieth of those that are when their partitions are added to a
transaction; one that is refused."""

STARTLESS = frozenset(
    {
        Error.CORRUPT_MESSAGE,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.MESSAGE_TOO_LARGE,
        Error.RECORD_LIST_TOO_LARGE,
        Error.KAFKA_STORAGE_ERROR,
        Error.UNSUPPORTED_COMPRESSION_TYPE,
    }
)
"""Refusals of a log that do not tell where it starts, as Kafka's ReplicaManager has them."""


class UntriedError(KafkaError):
    """A batch is refused before its log is asked: nothing is told of that."""


@handles(Request, versions="0-12", overlaps=True, most_bytes=None)
async def produce(call: Call[Request]) -> Response | None:
    request = call.request
    data = [(topic.name, partition) for topic in request.topic_data for partition in topic.partition_data]
    refusal = _refusal_of_all(request)
    # All are begun before the first is waited for: requests of one connection land in their order, and share a sync.
    begun = _begin(call, [refusal or _prepare(call, topic, partition) for topic, partition in data])
    outcomes = {id(partition): await _settled(outcome) for (_, partition), outcome in zip(data, begun)}
    if request.acks == 0:
        for (topic, partition), outcome in zip(data, outcomes.values()):
            if isinstance(outcome, KafkaError):
                raise HangUp(f"Produce with acks=0 to {topic}-{partition.index} was refused: {outcome}")
        return None
    leaders: set[int] = set()
    return Response(
        responses=[
            Response.TopicProduceResponse(
                name=topic.name,
                partition_responses=[
                    _result(call, topic.name, partition.index, outcomes[id(partition)], leaders)
                    for partition in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ],
        node_endpoints=node_endpoints(call.broker.image, call.session, leaders, Response.NodeEndpoint),
    )


def _refusal_of_all(request: Request) -> KafkaError | None:
    """Why nothing of a request is taken: it has records of a transaction, and says no transactional id."""
    if request.transactional_id is not None or not has_transactional(request):
        return None
    return UntriedError(Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "records of a transaction need a transactional id")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A batch that is about to be appended.

    Attributes:
        append: begins that. producer: the id and epoch of whose transaction of version 2 it is; None for others.
    """

    where: TopicPartition
    append: Callable[[], Appending]
    producer: tuple[int, int] | None


def _begin(call: Call[Request], batches: list[Prepared | KafkaError]) -> list[Begun]:
    """Begins the appends. Partitions of one producer are added to its transaction together."""
    begun: dict[int, Begun] = {}
    in_transactions: dict[tuple[int, int], dict[int, Prepared]] = defaultdict(dict)
    for number, batch in enumerate(batches):
        if isinstance(batch, KafkaError):
            begun[number] = batch
        elif batch.producer is None:
            begun[number] = batch.append()
        else:
            in_transactions[batch.producer][number] = batch
    for producer, own in in_transactions.items():
        appending = call.broker.transactions.add_and_append(
            call.request.transactional_id or "",
            *producer,
            [batch.where for batch in own.values()],
            partial(_append_all, own.values()),
        )
        for at, number in enumerate(own):
            begun[number] = (appending, at) if isinstance(appending, asyncio.Task) else appending[at]
    return [begun[number] for number in range(len(batches))]


def _append_all(batches: Iterable[Prepared]) -> list[Appending]:
    return [batch.append() for batch in batches]


def _prepare(call: Call[Request], topic: str, data: Request.PartitionProduceData) -> Prepared | KafkaError:
    request, topics = call.request, call.broker.topics
    if request.acks not in (-1, 0, 1):
        return UntriedError(Error.INVALID_REQUIRED_ACKS, f"acks={request.acks} is not -1, 0 or 1")
    found = topics.get(topic)
    if found is None or not 0 <= data.index < len(found.partitions):
        return UntriedError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {data.index} of topic {topic}")
    if found.is_internal:
        return UntriedError(Error.INVALID_TOPIC_EXCEPTION, f"topic {topic} is the broker's own")
    partition = found.partitions[data.index]
    elsewhere = _led_elsewhere(partition, call.broker.node_id)
    if elsewhere is not None:
        return elsewhere
    where = TopicPartition(topic, data.index)
    records = None if data.records is None else memoryview(data.records)

    def check_transaction(producer_id: int, epoch: int) -> None:
        try:
            call.broker.transactions.check_batch(request.transactional_id, producer_id, epoch, where)
        except KafkaError as refusal:
            error = told_of_transaction(told_by_leader(refusal), call.version, PRODUCE_TRANSACTION_ABORTABLE)
            raise UntriedError(error, refusal.message) from None

    check = partial(check_batch, records, call.version, found.config, check_transaction)
    spoken = dialect_of(request)
    if spoken is not None or found.config.dialect is not None:
        check = partial(check_for_dialect, records, spoken, check, found.config, call.broker.settings.register)
    header = None if call.version < PRODUCE_TRANSACTION_V2 or spoken is not None else transactional_header(records)
    producer = None if header is None else (header.producer_id, header.producer_epoch)
    return Prepared(where, partial(_append, partition, call.broker.node_id, check), producer)


def _led_elsewhere(partition: Partition, node_id: int) -> UntriedError | None:
    """Why a node takes no batch of a partition that it does not lead."""
    if partition.leadership.leader == node_id:
        return None
    return UntriedError(Error.NOT_LEADER_OR_FOLLOWER, f"node {node_id} does not lead it")


def _append(partition: Partition, node_id: int, make: MakeBatch) -> Appending:
    """Begins an append. Adding the partition to a transaction may have taken a while: who leads it is looked at again,
    as Kafka's Partition.appendRecordsToLeader does, and once more when its turn comes."""
    elsewhere = _led_elsewhere(partition, node_id)
    if elsewhere is None:
        return partition.append(make, by_leader=True)
    refused: Appending = asyncio.get_running_loop().create_future()
    refused.set_exception(elsewhere)
    refused.exception()  # it is not logged where the client has gone
    return refused


async def _settled(begun: Begun) -> Outcome:
    if isinstance(begun, KafkaError):
        return begun
    if isinstance(begun, tuple):
        adding, at = begun
        try:
            begun = (await asyncio.shield(adding))[at]
        except KafkaError as refusal:
            told = told_by_leader(refusal)
            return UntriedError(told.error, told.message)
    try:
        return await begun
    except KafkaError as refusal:
        return refusal
    except StorageError as error:
        return KafkaError(Error.KAFKA_STORAGE_ERROR, str(error))


def _result(
    call: Call[Request], topic: str, index: int, outcome: Outcome, leaders: set[int]
) -> Response.PartitionProduceResponse:
    """What became of a partition's batch; who leads it instead is told, and is one of `leaders` then."""
    partition = call.broker.topics.partition(topic, index)
    if isinstance(outcome, KafkaError):
        result = Response.PartitionProduceResponse(
            index=index,
            error_code=outcome.code,
            base_offset=-1,
            error_message=outcome.message or None,
            record_errors=[
                Response.BatchIndexAndErrorMessage(batch_index=number, batch_index_error_message=problem)
                for number, problem in outcome.problems.items()
            ]
            if isinstance(outcome, RecordsRefusedError)
            else [],
        )
        if partition is not None and not isinstance(outcome, UntriedError) and outcome.error not in STARTLESS:
            result.log_start_offset = partition.log.start_offset
        is_led_by_another = outcome.error is Error.NOT_LEADER_OR_FOLLOWER
        if is_led_by_another and partition is not None and call.version >= PRODUCE_CURRENT_LEADER:
            leadership = partition.leadership
            leaders.add(leadership.leader)
            result.current_leader = Response.LeaderIdAndEpoch(
                leader_id=leadership.leader, leader_epoch=leadership.epoch
            )
        return result
    return Response.PartitionProduceResponse(
        index=index,
        base_offset=outcome.base_offset,
        log_append_time_ms=outcome.append_time_ms,
        log_start_offset=partition.log.start_offset if partition else -1,
    )
