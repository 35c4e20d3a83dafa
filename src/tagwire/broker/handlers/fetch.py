"""Fetch (key 1): read batches from partitions, waiting a while for them if need be.

Versions 4-16; from version 13 topics are named by their ids. Whole batches are returned as they are stored, from the
one that holds the requested offset; the very first one even if it is larger than every limit, so that a reader never
gets stuck. Readers of committed records get nothing from the oldest open transaction on, and are told which
transactions were aborted. Who is over its quota gets nothing, and is told how long to wait. With less than
`min_bytes` at hand it waits for more, at most `max_wait_ms`; an error is told at once, and a request for no partition
does not wait. From version 7 a request may be one of a session, whose responses tell only what has changed (see
`broker.fetch_sessions`). Of a topic that keeps a record dialect, a client that speaks it gets what is stored, any other
record batches made of it. From version 11 any replica serves, and the leader sends a reader that is in another rack to
a replica there; from version 16 who is asked in vain tells who leads. From version 12 a reader may say of which epoch
its last record was, and is told at once where the log is not the one that it has read. Before version 10 nothing is
read of a topic whose compression.type is zstd.
Source: KIP-110, KIP-227, KIP-392, KIP-516, KIP-595, KIP-951; Kafka's ReplicaManager and Partition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import groupby, repeat

from tagwire import messages
from tagwire.broker.authorization.access import Access
from tagwire.broker.authorization.acls import Operation, ResourceType
from tagwire.broker.dialects import to_record_batches
from tagwire.broker.fetch_sessions import FetchPartition
from tagwire.broker.leadership import NO_LEADER, Leadership
from tagwire.broker.node_endpoints import node_endpoints
from tagwire.broker.partition import Partition
from tagwire.broker.registry import Call, handles
from tagwire.broker.storage.log import PartitionLog
from tagwire.broker.storage.log_reading import Fetched, OffsetOutOfRangeError, VisibleEnd
from tagwire.errors import CorruptRecordError, Error, KafkaError, StorageError
from tagwire.rpc.dialects import dialect_of, say_dialect
from tagwire.rpc.version_gates import (
    FETCH_CURRENT_LEADER,
    FETCH_FROM_FOLLOWER,
    FETCH_STORAGE_ERROR,
    FETCH_TOPIC_IDS,
    FETCH_ZSTD,
)
from tagwire.spec.api_keys import ApiKey

Request = messages.FetchRequest
Response = messages.FetchResponse

MAX_RESPONSE_BYTES = 57_671_680
"""The most records one response holds, whatever the client requests: 55 MiB, Kafka's own fetch.max.bytes."""

MAX_WAIT_MS = 60_000
"""The longest a response waits for records, whatever the client requests: a client that is gone is noticed by then."""

READ_COMMITTED = 1

MOST_AT_ONCE, MOST_PARTITIONS_AT_ONCE = 65_536, 16
"""How many bytes of records that have just been written, of how many partitions, the event loop reads itself, rather
than a disk thread."""

NO_REPLICA = -1
NO_OFFSET = -1

TELLS_LEADER = frozenset({Error.NOT_LEADER_OR_FOLLOWER, Error.FENCED_LEADER_EPOCH})
"""Along with what the current leader is told (KIP-951)."""

Found = Partition | Error
"""A partition, or why there is none."""

Requested = tuple[FetchPartition, Found]

Ends = Sequence[VisibleEnd | None]
"""Where the logs of partitions that are requested ended; None where there is no log."""


@handles(Request, versions="4-16", waits=True)
async def fetch(call: Call[Request]) -> Response:
    try:
        context = call.broker.fetch_sessions.begin(call.request, call.version)
        requested = [(wanted, _find(call, wanted)) for wanted in context.partitions]
        results = await _results(call, requested)
        size = sum(len(result.records or b"") for result in results)
        if wait_ms := call.broker.throttles.fetched(call, size):
            # The session has not gone on: what was read is read again, when the client may.
            return Response(throttle_time_ms=wait_ms, session_id=context.session_id)
        session_id, told = context.respond(results)
    except KafkaError as error:
        return Response(error_code=error.code)
    leaders = {result.current_leader.leader_id for _, result in told} - {NO_LEADER}
    return Response(
        node_endpoints=node_endpoints(call.broker.image, call.session, leaders, Response.NodeEndpoint),
        session_id=session_id,
        responses=[
            Response.FetchableTopicResponse(
                topic=topic, topic_id=topic_id, partitions=[result for _, result in partitions]
            )
            for (topic, topic_id), partitions in groupby(told, lambda one: (one[0].topic, one[0].topic_id))
        ],
    )


def _find(call: Call[Request], wanted: FetchPartition) -> Found:
    found = _named(call, wanted)
    authorizer = call.broker.authorizer
    if (
        authorizer is None
        or found is Error.UNKNOWN_TOPIC_ID
        or _may_read(call, Access(authorizer, call.session), wanted)
    ):
        return found
    return Error.TOPIC_AUTHORIZATION_FAILED


def _may_read(call: Call[Request], access: Access, wanted: FetchPartition) -> bool:
    """Whether a partition may be read: asked with each request, though a session has had it before."""
    if max(call.request.replica_id, call.request.replica_state.replica_id) >= 0:
        return access.may_to_cluster(Operation.CLUSTER_ACTION)
    return access.may(Operation.READ, ResourceType.TOPIC, wanted.topic)


def _named(call: Call[Request], wanted: FetchPartition) -> Found:
    topics = call.broker.topics
    if call.version < FETCH_TOPIC_IDS:
        return topics.partition(wanted.topic, wanted.index) or Error.UNKNOWN_TOPIC_OR_PARTITION
    topic = topics.by_id(wanted.topic_id)
    if topic is not None:
        wanted.topic = topic.name
        return topics.partition(topic.name, wanted.index) or Error.UNKNOWN_TOPIC_OR_PARTITION
    if not wanted.topic:
        return Error.UNKNOWN_TOPIC_ID
    # A session had it: it was deleted since then, and perhaps made anew.
    made_anew = topics.partition(wanted.topic, wanted.index) is not None
    return Error.INCONSISTENT_TOPIC_ID if made_anew else Error.UNKNOWN_TOPIC_OR_PARTITION


async def _results(call: Call[Request], requested: Sequence[Requested]) -> list[Response.PartitionData]:
    partitions = [partition for _, partition in requested if isinstance(partition, Partition)]
    more = asyncio.Event()
    for partition in partitions:
        partition.watch(more)
    began = [found.log.visible_end if isinstance(found, Partition) else None for _, found in requested]
    written: Sequence[Fetched] | None = None
    now = asyncio.get_running_loop().time
    ends = now() + min(call.request.max_wait_ms, MAX_WAIT_MS) / 1000
    is_late = False
    try:
        while True:
            before, led = _published(partitions), [partition.leadership for partition in partitions]
            hidden = _hidden(partitions) if call.request.isolation_level == READ_COMMITTED else {}
            results = await _read(call, requested, written)
            bounds = call.request.max_bytes, call.broker.throttles.most_fetched(call)
            least = min(call.request.min_bytes, *bounds, MAX_RESPONSE_BYTES)
            missing = least - sum(len(result.records or b"") for result in results)
            told = not requested or missing <= 0 or any(_is_told_at_once(result) for result in results)
            if told or is_late or now() >= ends:
                return results
            try:
                async with asyncio.timeout_at(ends):
                    while not (
                        _published(partitions) - before >= missing or _is_shown(hidden) or _is_over(partitions, led)
                    ):
                        await more.wait()
                        more.clear()
            except TimeoutError:  # which a loop's clock may tell a little before it shows that time
                is_late = True
            if _is_over(partitions, led):
                return await _read(call, requested)
            # It is looked at again: of what was published meanwhile, the read before may have had a part.
            written = _just_written(call, requested, began)
    finally:
        for partition in partitions:
            partition.unwatch(more)


def _is_told_at_once(result: Response.PartitionData) -> bool:
    return (
        result.error_code != Error.NONE
        or result.preferred_read_replica != NO_REPLICA
        or result.diverging_epoch.end_offset != NO_OFFSET
    )


def _is_over(partitions: Sequence[Partition], led: Sequence[Leadership]) -> bool:
    """Whether waiting is of no use: a topic was deleted, a leader has moved, or a log went offline."""
    return any(
        partition.log.is_offline or partition.deleted or partition.leadership is not was
        for partition, was in zip(partitions, led)
    )


def _hidden(partitions: Sequence[Partition]) -> Mapping[Partition, int]:
    """The partitions that end for readers of committed records before what is open, and where."""
    ends = {partition: partition.log.stable_offset for partition in partitions}
    return {partition: end for partition, end in ends.items() if end < partition.log.end_offset}


def _is_shown(hidden: Mapping[Partition, int]) -> bool:
    """Whether more of what was hidden can be read: the marker that shows it may be much smaller."""
    return any(partition.log.stable_offset > end for partition, end in hidden.items())


def _published(partitions: Sequence[Partition]) -> int:
    return sum(partition.log.published_bytes for partition in partitions)


async def _read(
    call: Call[Request], requested: Sequence[Requested], written: Sequence[Fetched] | None = None
) -> list[Response.PartitionData]:
    most = call.broker.throttles.most_fetched(call)  # meters are the event loop's
    if written is None and any(
        isinstance(found, Partition) and found.log.end_offset > wanted.fetch_offset for wanted, found in requested
    ):
        return await asyncio.get_running_loop().run_in_executor(call.broker.disk, _read_all, call, requested, most)
    return _read_all(call, requested, most, written)  # no file is touched


def _just_written(call: Call[Request], requested: Sequence[Requested], began: Ends) -> list[Fetched] | None:
    """What was written since the logs ended where these reads begin; None where there is much of it, or it takes the
    disk. A record that somebody waits for is at hand, and two changes of threads would take longer than the rest."""
    left = min(call.request.max_bytes, call.broker.throttles.most_fetched(call), call.session.response_bytes())
    left = min(left, MOST_AT_ONCE)
    committed = call.request.isolation_level == READ_COMMITTED
    changed = sum(isinstance(one, Partition) and one.log.visible_end != end for (_, one), end in zip(requested, began))
    if changed > MOST_PARTITIONS_AT_ONCE or call.request.rack_id:  # a rack may have another replica told instead
        return None
    written = []
    for (wanted, found), end in zip(requested, began):
        if not isinstance(found, Partition) or end is None or wanted.fetch_offset != end.offset:
            return None
        fetched = found.log.fetch_since(end, min(wanted.max_bytes, left), committed=committed)
        if fetched is None:
            return None
        written.append(fetched)
        left -= len(fetched.records)
    return written


def _read_all(
    call: Call[Request], requested: Sequence[Requested], most: int, written: Sequence[Fetched] | None = None
) -> list[Response.PartitionData]:
    left = min(call.request.max_bytes, most, MAX_RESPONSE_BYTES, call.session.response_bytes())
    nothing_yet = True
    results = []
    for (wanted, found), fetched in zip(requested, repeat(None) if written is None else written):
        result = _read_one(call, found, wanted, left, nothing_yet, fetched)
        results.append(result)
        left -= len(result.records or b"")
        nothing_yet = nothing_yet and not result.records
    return results


def _read_one(
    call: Call[Request],
    partition: Found,
    wanted: FetchPartition,
    left: int,
    whole_first: bool,
    fetched: Fetched | None = None,
) -> Response.PartitionData:
    """What is read of a partition.

    Args:
        left: how many bytes the response has room for. whole_first: whether the first batch may be larger.
        fetched: what was read already.
    """
    try:
        if isinstance(partition, Error):
            raise KafkaError(partition)
        if partition.deleted:
            raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION)
        log = partition.log
        log.check_online()
        leadership = partition.leadership
        if call.version >= FETCH_FROM_FOLLOWER:
            leadership.check_replica(call.broker.node_id, wanted.leader_epoch)
        else:
            leadership.check_leader(call.broker.node_id, wanted.leader_epoch)
        if call.version < FETCH_ZSTD and log.config.compression_type == "zstd":
            raise KafkaError(Error.UNSUPPORTED_COMPRESSION_TYPE)
        nearer = _nearer(call, leadership)
        if wanted.last_epoch >= 0 and nearer == NO_REPLICA:
            diverging = log.divergence(wanted.fetch_offset, wanted.last_epoch)
            if diverging is not None:
                return _diverging(wanted, log, *diverging)
        committed = call.request.isolation_level == READ_COMMITTED
        most = min(wanted.max_bytes, left) if nearer == NO_REPLICA else 0
        whole_first = whole_first and nearer == NO_REPLICA
        if fetched is None:
            fetched = log.fetch(wanted.fetch_offset, most, whole_first=whole_first, committed=committed)
        records, view = fetched.records, fetched.view
        aborted = fetched.aborted() if committed else None
        as_kept = dialect_of(call.request) == log.dialect
        if log.dialect is not None and not as_kept:
            epoch = log.epochs.at(wanted.fetch_offset)
            records = memoryview(to_record_batches(records, log.dialect, epoch, call.broker.settings.register))
    except KafkaError as error:
        refusal = _refusal(wanted, error.error)
        if call.version >= FETCH_CURRENT_LEADER and error.error in TELLS_LEADER and isinstance(partition, Partition):
            leadership = partition.leadership
            refusal.current_leader = Response.LeaderIdAndEpoch(
                leader_id=leadership.leader, leader_epoch=leadership.epoch
            )
        return refusal
    except OffsetOutOfRangeError:
        return _refusal(wanted, Error.OFFSET_OUT_OF_RANGE)
    except StorageError:
        knows = call.version >= FETCH_STORAGE_ERROR  # who does not would give up
        return _refusal(wanted, Error.KAFKA_STORAGE_ERROR if knows else Error.NOT_LEADER_OR_FOLLOWER)
    except CorruptRecordError:
        return _refusal(wanted, Error.CORRUPT_MESSAGE)
    result = Response.PartitionData(
        partition_index=wanted.index,
        high_watermark=view.end.offset,
        last_stable_offset=view.stable,
        log_start_offset=view.start,
        preferred_read_replica=nearer,
        aborted_transactions=None
        if aborted is None
        else [
            Response.AbortedTransaction(producer_id=transaction.producer_id, first_offset=transaction.first_offset)
            for transaction in aborted
        ],
        records=records,
    )
    say_dialect(result, log.dialect if as_kept else None, ApiKey.FETCH, call.version)
    return result


def _nearer(call: Call[Request], leadership: Leadership) -> int:
    """The replica that the leader sends a reader to, which is in a rack of its own."""
    rack = call.request.rack_id
    if not rack or leadership.leader != call.broker.node_id:
        return NO_REPLICA
    found = call.broker.image.nearest(leadership, rack)
    return NO_REPLICA if found is None else found


def _diverging(wanted: FetchPartition, log: PartitionLog, epoch: int, end_offset: int) -> Response.PartitionData:
    """That the log is another one than the reader has read, from the end of an epoch on."""
    return Response.PartitionData(
        partition_index=wanted.index,
        high_watermark=log.end_offset,
        last_stable_offset=log.stable_offset,
        log_start_offset=log.start_offset,
        diverging_epoch=Response.EpochEndOffset(epoch=epoch, end_offset=end_offset),
        aborted_transactions=None,
        records=b"",
    )


def _refusal(wanted: FetchPartition, error: Error) -> Response.PartitionData:
    return Response.PartitionData(
        partition_index=wanted.index,
        error_code=error,
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )
