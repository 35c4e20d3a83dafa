"""Segments as kafka-dump-log prints them, from what we read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from tagwire.records import Record, RecordBatch
from tagwire.records.control import decode_control
from tagwire.records.files import Segment

CONTROL = {
    "LEADER_CHANGE": "LeaderChange",
    "SNAPSHOT_HEADER": "SnapshotHeader",
    "SNAPSHOT_FOOTER": "SnapshotFooter",
    "KRAFT_VERSION": "KRaftVersion",
    "KRAFT_VOTERS": "KRaftVoters",
}

Contents = Callable[[Record], str]
"""How the key and the value of a record are printed."""


def dumped(segment: Segment, contents: Contents) -> Iterator[str]:
    """Its batches, each with its records."""
    yield f"Dumping {segment.path}"
    yield f"Log starting offset: {segment.base_offset}"
    for position, batch in segment.batches():
        yield _batch(position, batch)
        for record in segment.records_of(position, batch):
            text = _record(batch, record)
            yield text + (_control(record) if batch.is_control else contents(record))


def as_text(record: Record) -> str:
    key = "" if record.key is None else f" key: {record.key.decode()}"
    return key + ("" if record.value is None else f" payload: {record.value.decode()}")


def canonical(line: str) -> str:
    """A line with the JSON in it spelled in one way."""
    for mark in (" payload: {", " key: {"):
        at = line.find(mark)
        if at >= 0:
            at += len(mark) - 1
            document, end = json.JSONDecoder().raw_decode(line[at:])
            line = line[:at] + json.dumps(document, sort_keys=True) + line[at + end :]
    return line


def _batch(position: int, batch: RecordBatch) -> str:
    horizon = "OptionalLong.empty" if batch.delete_horizon is None else f"OptionalLong[{batch.delete_horizon}]"
    batch.verify()
    said: dict[str, Any] = {
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "count": batch.count,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "isTransactional": str(batch.is_transactional).lower(),
        "isControl": str(batch.is_control).lower(),
        "deleteHorizonMs": horizon,
        "position": position,
        batch.timestamp_type: batch.max_timestamp,
        "size": batch.size_in_bytes,
        "magic": batch.magic,
        "compresscodec": batch.compression,
        "crc": batch.crc,
        "isvalid": "true",
    }
    return " ".join(f"{name}: {value}" for name, value in said.items())


def _record(batch: RecordBatch, record: Record) -> str:
    sequence = -1
    if batch.base_sequence >= 0:
        sequence = (batch.base_sequence + record.offset - batch.base_offset) & 0x7FFFFFFF
    said = {
        "offset": record.offset,
        batch.timestamp_type: record.timestamp,
        "keySize": -1 if record.key is None else len(record.key),
        "valueSize": -1 if record.value is None else len(record.value),
        "sequence": sequence,
        "headerKeys": "[" + ",".join(str(name) for name, _ in record.headers) + "]",
    }
    return "| " + " ".join(f"{name}: {value}" for name, value in said.items())


def _control(record: Record) -> str:
    kind, message = decode_control(record.key, record.value)
    assert message is not None
    document = message.to_json(0)
    if kind in CONTROL:
        return f" {CONTROL[kind]}: " + json.dumps(document, separators=(",", ":"))
    return f" endTxnMarker: {kind} coordinatorEpoch: {document['coordinatorEpoch']}"
