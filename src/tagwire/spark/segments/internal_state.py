"""What coordinators know, from the files of their topics: the last value of every key, as a broker finds it on start.

Records of a transaction count once its marker says that it was committed, as coordinators have it.
"""

from __future__ import annotations

import json
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructField, StructType, TimestampType

from tagwire.errors import DecodeError, UnsupportedVersionError
from tagwire.records import Record, read
from tagwire.records.compression import MAX_DECOMPRESSED
from tagwire.records.control import control_type
from tagwire.records.internal_topics import CLUSTER_METADATA, decode_record
from tagwire.spark.segments.chunks import chunks
from tagwire.spark.segments.file_splits import PartitionLog
from tagwire.spark.segments.read import placed_error
from tagwire.spark.segments.times import microseconds

log = logging.getLogger(__name__)

_TEXT, _LONG, _INT, _TIME = StringType(), LongType(), IntegerType(), TimestampType()
_PARTITION = StructType([StructField("topic", _TEXT), StructField("partition", _INT)])

_STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
_GROUP_TYPES = {
    "GroupMetadata": "classic",
    "ConsumerGroupMetadata": "consumer",
    "ShareGroupMetadata": "share",
    "StreamsGroupMetadata": "streams",
}


class Kept(NamedTuple):
    """The last value of a key. `timestamp` in milliseconds."""

    value: bytes
    offset: int
    timestamp: int


def _schema(**columns: Any) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


SCHEMAS: Mapping[str, StructType] = {
    "offsets": _schema(
        group=_TEXT,
        topic=_TEXT,
        partition=_INT,
        offset=_LONG,
        leaderEpoch=_INT,
        metadata=_TEXT,
        committed=_TIME,
        logEndOffset=_LONG,
        lag=_LONG,
    ),
    "groups": _schema(
        group=_TEXT,
        type=_TEXT,
        state=_TEXT,
        members=_INT,
        generation=_INT,
        protocolType=_TEXT,
        protocol=_TEXT,
        leader=_TEXT,
        updated=_TIME,
        document=_TEXT,
    ),
    "transactions": _schema(
        transactionalId=_TEXT,
        producerId=_LONG,
        producerEpoch=_INT,
        state=_TEXT,
        timeoutMs=_INT,
        started=_TIME,
        updated=_TIME,
        partitions=ArrayType(_PARTITION),
        transactionVersion=_INT,
    ),
    "metadata": _schema(offset=_LONG, timestamp=_TIME, type=_TEXT, version=_INT, document=_TEXT, error=_TEXT),
}
"""The columns of each view. `document`: the messages in Kafka's JSON form, secrets left out. Times are microseconds."""

EndOf = Callable[[str, int], int | None]
"""The log end offset of a topic partition; None where it is not known."""


def rows_of(view: str, partition: PartitionLog, end_of: EndOf, *, drop: bool) -> Iterator[dict[str, Any]]:
    """The rows of a view, from one partition of the topic it is of.

    Raises:
        CorruptRecordError, DecodeError, UnsupportedVersionError: a batch, a key or a value cannot be read, unless
            `drop`. The view metadata tells of records that it cannot read in its column error instead.
        StorageError: a file cannot be read.
    """
    if view == "metadata":
        yield from _metadata(partition, drop=drop)
        return
    kept = replay(_records(partition, drop=drop))
    if view == "offsets":
        yield from committed_offsets(kept, end_of, drop=drop)
    elif view == "groups":
        yield from groups(kept, drop=drop)
    else:
        yield from transactions(kept, drop=drop)


def replay(records: Iterable[tuple[int, bool, Record]]) -> dict[bytes, Kept]:
    """The last value of every key, tombstones left out.

    The last is the one that was written last, though a transaction with an older one ends later: coordinators compare
    where both stand in the log.

    Args:
        records: (producer id where transactional, else -1; whether of a control batch; the record), in order.
    """
    kept: dict[bytes, Kept] = {}
    newest: dict[bytes, int] = {}  # offsets of what counts, tombstones too
    pending: dict[int, list[Record]] = defaultdict(list)
    for producer, control, record in records:
        if control:
            ended = pending.pop(producer, [])
            if control_type(record.key) == "COMMIT":
                for each in ended:
                    _keep(kept, newest, each)
        elif producer >= 0:
            pending[producer].append(record)
        else:
            _keep(kept, newest, record)
    return kept


def _keep(kept: dict[bytes, Kept], newest: dict[bytes, int], record: Record) -> None:
    key = record.key or b""
    if newest.get(key, -1) > record.offset:
        return
    newest[key] = record.offset
    if record.value is None:
        kept.pop(key, None)
    else:
        kept[key] = Kept(record.value, record.offset, record.timestamp)


def _records(partition: PartitionLog, *, drop: bool) -> Iterator[tuple[int, bool, Record]]:
    for file in partition.files:
        for chunk in chunks(file, 0, file.size, drop=drop):
            start = 0
            for end in chunk.ends:
                try:
                    (batch,) = read(chunk.data[start:end])
                    found = list(batch.records(max_decompressed=MAX_DECOMPRESSED))
                except (DecodeError, UnsupportedVersionError) as error:
                    wrong = placed_error(error, f"{file.path}, batch at byte {chunk.position + start}")
                    if not drop:
                        raise wrong from None
                    log.warning("left out: %s", wrong)
                else:
                    producer = batch.producer_id if batch.is_transactional else -1
                    begin = partition.start_offset
                    yield from ((producer, batch.is_control, record) for record in found if record.offset >= begin)
                start = end


class _Entry(NamedTuple):
    """One key of a coordinator's topic, decoded."""

    type: str
    key: Any
    value: Any
    kept: Kept
    document: dict[str, Any]


def _entries(topic: str, kept: Mapping[bytes, Kept], *, drop: bool) -> Iterator[_Entry]:
    for key, last in kept.items():
        found = decode_record(topic, key, last.value)
        if found.key is not None and found.value is not None and found.type is not None:
            yield _Entry(found.type, found.key.message, found.value.message, last, found.to_json())
        elif drop:
            log.warning("left out: %s, offset %d: %s", topic, last.offset, found.error)
        else:
            raise DecodeError(found.error or "holds nothing", path=f"{topic}, record at offset {last.offset}")


def committed_offsets(kept: Mapping[bytes, Kept], end_of: EndOf, *, drop: bool = False) -> Iterator[dict[str, Any]]:
    """The rows of the view offsets."""
    for entry in _entries("__consumer_offsets", kept, drop=drop):
        if not entry.type.endswith("OffsetCommit"):
            continue
        key, value = entry.key, entry.value
        end = end_of(key.topic, key.partition)
        yield {
            "group": key.group,
            "topic": key.topic,
            "partition": key.partition,
            "offset": value.offset,
            "leaderEpoch": getattr(value, "leader_epoch", -1),
            "metadata": value.metadata,
            "committed": microseconds(value.commit_timestamp),
            "logEndOffset": end,
            "lag": None if end is None or value.offset < 0 else max(0, end - value.offset),
        }


def groups(kept: Mapping[bytes, Kept], *, drop: bool = False) -> Iterator[dict[str, Any]]:
    """The rows of the view groups."""
    entries = list(_entries("__consumer_offsets", kept, drop=drop))
    members = Counter(entry.key.group_id for entry in entries if entry.type.endswith("MemberMetadata"))
    for entry in entries:
        kind = _GROUP_TYPES.get(entry.type)
        if kind is None:
            continue
        group, value = entry.key, entry.value
        classic = kind == "classic"
        count = len(value.members) if classic else members[group.group_id]
        yield {
            "group": group.group if classic else group.group_id,
            "type": kind,
            "state": "Stable" if count else "Empty",
            "members": count,
            "generation": value.generation if classic else value.epoch,
            "protocolType": value.protocol_type if classic else None,
            "protocol": value.protocol if classic else None,
            "leader": value.leader if classic else None,
            "updated": microseconds(entry.kept.timestamp),
            "document": json.dumps(entry.document["value"]),
        }


def transactions(kept: Mapping[bytes, Kept], *, drop: bool = False) -> Iterator[dict[str, Any]]:
    """The rows of the view transactions."""
    for entry in _entries("__transaction_state", kept, drop=drop):
        value = entry.value
        status = value.transaction_status
        started = value.transaction_start_timestamp_ms
        yield {
            "transactionalId": entry.key.transactional_id,
            "producerId": value.producer_id,
            "producerEpoch": value.producer_epoch,
            "state": _STATES[status] if 0 <= status < len(_STATES) else str(status),
            "timeoutMs": value.transaction_timeout_ms,
            "started": None if started < 0 else microseconds(started),
            "updated": microseconds(value.transaction_last_update_timestamp_ms),
            "partitions": [
                {"topic": each.topic, "partition": index}
                for each in value.transaction_partitions or ()
                for index in each.partition_ids
            ],
            "transactionVersion": value.client_transaction_version,
        }


def _metadata(partition: PartitionLog, *, drop: bool) -> Iterator[dict[str, Any]]:
    for _, control, record in _records(partition, drop=drop):
        if not control:
            found = decode_record(CLUSTER_METADATA, record.key, record.value)
            yield {
                "offset": record.offset,
                "timestamp": microseconds(record.timestamp),
                "type": found.type,
                "version": found.value.version if found.value else None,
                "document": json.dumps(found.to_json()["value"]) if found.value else None,
                "error": found.error,
            }
