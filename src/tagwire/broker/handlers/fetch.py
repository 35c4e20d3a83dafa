"""Fetch (key 1): read batches from partitions, waiting a while for them if need be.

Versions 4-16; from version 13 topics are named by their ids. Whole batches are returned as they are stored, from the
one that holds the offset asked for; the very first one even if it is larger than every limit, so that a reader never
gets stuck. Readers of committed records get nothing from the oldest open transaction on, and are told which
transactions were aborted. With less than `min_bytes` at hand the answer waits for more, at most `max_wait_ms`; an error
is answered at once. Sessions are not kept: each answer is full, with session id 0, which a client takes as "no
session". Of a topic that keeps a record dialect, a client that speaks it gets what is stored, any other record batches
made of it. Source: facts/kafka_protocol.md 3.1, facts/brokers.md B.4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from tagwire import messages
from tagwire.broker.dialects import to_record_batches
from tagwire.broker.partition import Partition
from tagwire.broker.served import Call, handles
from tagwire.broker.storage.log import OffsetOutOfRangeError
from tagwire.errors import CorruptRecordError, Error, KafkaError, StorageError
from tagwire.rpc.dialects import dialect_of, say_dialect
from tagwire.rpc.since import FETCH_TOPIC_IDS

Response = messages.FetchResponse

MAX_RESPONSE_BYTES = 57_671_680
"""The most records one answer holds, whatever the client asks for: 55 MiB, Kafka's own fetch.max.bytes."""

MAX_WAIT_MS = 60_000
"""The longest an answer waits for records, whatever the client asks for: a client that is gone is found out by then."""

READ_COMMITTED = 1
NO_SESSION_EPOCHS = (0, -1)

Asked = tuple[Partition | None, Any]


@handles(messages.FetchRequest, versions="4-16", waits=True)
async def fetch(call: Call) -> Any:
    request = call.request
    if request.session_id != 0:
        return Response(error_code=Error.FETCH_SESSION_ID_NOT_FOUND)
    if request.session_epoch not in NO_SESSION_EPOCHS:
        return Response(error_code=Error.INVALID_FETCH_SESSION_EPOCH)
    asked = [
        (_partition(call, topic, wanted.partition), wanted) for topic in request.topics for wanted in topic.partitions
    ]
    answers = iter(await _answers(call, asked))
    return Response(
        responses=[
            Response.FetchableTopicResponse(
                topic=topic.topic, topic_id=topic.topic_id, partitions=[next(answers) for _ in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _partition(call: Call, topic: Any, index: int) -> Partition | None:
    if call.version < FETCH_TOPIC_IDS:
        return call.broker.topics.partition(topic.topic, index)
    found = call.broker.topics.by_id(topic.topic_id)
    return found.partitions[index] if found and 0 <= index < len(found.partitions) else None


async def _answers(call: Call, asked: Sequence[Asked]) -> list[Any]:
    partitions = [partition for partition, _ in asked if partition is not None]
    more = asyncio.Event()
    for partition in partitions:
        partition.watch(more)
    try:
        before = _published(partitions)
        answers = await _read(call, asked)
        missing = call.request.min_bytes - sum(len(answer.records) for answer in answers)
        if missing <= 0 or any(answer.error_code for answer in answers):
            return answers
        with suppress(TimeoutError):
            async with asyncio.timeout(min(call.request.max_wait_ms, MAX_WAIT_MS) / 1000):
                while _published(partitions) - before < missing and not any(p.deleted for p in partitions):
                    await more.wait()
                    more.clear()
        return await _read(call, asked)
    finally:
        for partition in partitions:
            partition.unwatch(more)


def _published(partitions: Sequence[Partition]) -> int:
    return sum(partition.log.published_bytes for partition in partitions)


async def _read(call: Call, asked: Sequence[Asked]) -> list[Any]:
    if any(partition and partition.log.end_offset > wanted.fetch_offset for partition, wanted in asked):
        return await asyncio.get_running_loop().run_in_executor(call.broker.disk, _read_all, call, asked)
    return _read_all(call, asked)  # nothing there: no file is touched


def _read_all(call: Call, asked: Sequence[Asked]) -> list[Any]:
    left = min(call.request.max_bytes, MAX_RESPONSE_BYTES, call.session.answer_bytes())
    nothing_yet = True
    answers = []
    for partition, wanted in asked:
        answer = _read_one(call, partition, wanted, left, nothing_yet)
        answers.append(answer)
        left -= len(answer.records)
        nothing_yet = nothing_yet and not answer.records
    return answers


def _read_one(call: Call, partition: Partition | None, wanted: Any, left: int, whole_first: bool) -> Any:
    try:
        if partition is None or partition.deleted:
            by_id = call.version >= FETCH_TOPIC_IDS
            raise KafkaError(Error.UNKNOWN_TOPIC_ID if by_id else Error.UNKNOWN_TOPIC_OR_PARTITION)
        log = partition.log
        log.check_leader_epoch(wanted.current_leader_epoch)
        committed = call.request.isolation_level == READ_COMMITTED
        start, end, stable = log.start_offset, log.end_offset, log.stable_offset
        most = min(wanted.partition_max_bytes, left)
        records = log.read(wanted.fetch_offset, most, whole_first=whole_first, committed=committed)
        aborted = log.aborted(wanted.fetch_offset, records) if committed else None
        as_kept = dialect_of(call.request) == log.dialect
        if log.dialect is not None and not as_kept:
            epoch = log.epochs.at(wanted.fetch_offset)
            records = memoryview(to_record_batches(records, log.dialect, epoch, call.broker.settings.register))
    except KafkaError as error:
        return _refusal(wanted, error.error)
    except OffsetOutOfRangeError:
        return _refusal(wanted, Error.OFFSET_OUT_OF_RANGE)
    except StorageError:
        return _refusal(wanted, Error.KAFKA_STORAGE_ERROR)
    except CorruptRecordError:
        return _refusal(wanted, Error.CORRUPT_MESSAGE)
    answer = Response.PartitionData(
        partition_index=wanted.partition,
        high_watermark=end,
        last_stable_offset=stable,
        log_start_offset=start,
        aborted_transactions=None
        if aborted is None
        else [
            Response.AbortedTransaction(producer_id=transaction.producer_id, first_offset=transaction.first_offset)
            for transaction in aborted
        ],
        records=records,
    )
    say_dialect(answer, log.dialect if as_kept else None, messages.FetchRequest.api_key, call.version)
    return answer


def _refusal(wanted: Any, error: Error) -> Any:
    return Response.PartitionData(
        partition_index=wanted.partition,
        error_code=error,
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )
