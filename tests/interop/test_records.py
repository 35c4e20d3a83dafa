"""Kafka reads the record batches that we write, and we read those that it writes, in every codec."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any, Final

import pytest

from tagwire import records
from tagwire.records import Record, RecordBatch

from .conftest import NEW, Count, Peers

NOW: Final = 1_700_000_000_000
OF_BATCH: Final = (
    "base_offset",
    "last_offset",
    "partition_leader_epoch",
    "magic",
    "compression",
    "timestamp_type",
    "is_transactional",
    "is_control",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "count",
    "size_in_bytes",
)
"""What both sides say of a batch, by our names."""

HEADERS: Final = [
    ("origin", b"EWR"),
    ("origin", b"JFK"),
    ("", b""),
    ("none", None),
    ("größe", bytes(range(256))),
    ("😀" * 40, b"x"),
]
CONTENTS: Final = {
    "one": [Record(b"key", b"value", timestamp=NOW)],
    "nulls": [Record(None, None, timestamp=NOW), Record(b"", b"", timestamp=NOW), Record(None, b"v", timestamp=NOW)],
    "headers": [Record(b"k", b"v", HEADERS, NOW), Record(b"k", b"v", (), NOW), Record(None, b"v", HEADERS[:1], NOW)],
    "times": [Record(None, b"v", timestamp=t) for t in (NOW, NOW - 5_000_000_000, NOW + 3, 0, NOW)],
    "no times": [Record(b"k", b"v"), Record(b"k", b"v")],
    "repetitive": [Record(b"key-%d" % (i % 7), b"the same value " * 9, HEADERS[:2], NOW + i) for i in range(500)],
    "random": [Record(None, random.Random(i).randbytes(90_000), timestamp=NOW) for i in range(3)],
}
"""Records whose offsets are given when they are written."""

OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "placed": {"base_offset": 2**40, "partition_leader_epoch": 7},
    "appended": {"timestamp_type": "LogAppendTime"},
    "idempotent": {"producer_id": 2**35, "producer_epoch": 3, "base_sequence": 2**31 - 2},
    "transactional": {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0, "transactional": True},
}


def numbered(content: Sequence[Record], base_offset: int) -> list[Record]:
    return [Record(r.key, r.value, r.headers, r.timestamp, base_offset + i) for i, r in enumerate(content)]


def described(record: Record, timestamp: int | None = None) -> dict[str, Any]:
    """A record as the Java program spells it."""
    return {
        "offset": record.offset,
        "timestamp": record.timestamp if timestamp is None else timestamp,
        "key": hexadecimal(record.key),
        "value": hexadecimal(record.value),
        "headers": [[name, hexadecimal(value)] for name, value in record.headers],
    }


def hexadecimal(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


def summary(batch: RecordBatch) -> dict[str, Any]:
    return {name: getattr(batch, name) for name in OF_BATCH}


@pytest.mark.parametrize("codec", records.CODECS)
def test_kafka_reads_what_we_write(peers: Peers, codec: str, count: Count) -> None:
    cases = [(content, options) for content in CONTENTS for options in OPTIONS]
    batches = [records.write(CONTENTS[content], compression=codec, **OPTIONS[options]) for content, options in cases]
    answers = peers(NEW).ask("Records", (f"read {batch.hex()}" for batch in batches))
    for (content, options), data, answer in zip(cases, batches, answers, strict=True):
        (batch,) = records.read(data)
        expected = numbered(CONTENTS[content], batch.base_offset)
        append_time = batch.max_timestamp if options == "appended" else None
        said = {**summary(batch), "records": [described(record, append_time) for record in expected]}
        assert not answer.startswith("!"), (content, options, answer)
        assert json.loads(answer) == [said], (content, options)
    count(f"{codec}: Kafka {NEW} read {len(batches)} batches of ours")


@pytest.mark.parametrize("codec", records.CODECS)
def test_we_read_what_kafka_writes(peers: Peers, codec: str, count: Count) -> None:
    cases = [(content, options) for content in CONTENTS for options in (*OPTIONS, "gaps")]
    batches = [asked_of_kafka(content, codec, options) for content, options in cases]
    answers = peers(NEW).ask("Records", (f"write {json.dumps(batch)}" for batch in batches))
    for case, batch, answer in zip(cases, batches, answers, strict=True):
        assert not answer.startswith("!"), (case, answer)
        data = bytes.fromhex(answer)
        (read,) = records.read(data)
        appended = batch["timestamp_type"] == "LogAppendTime"
        times = {"timestamp": batch["append_time"]} if appended else {}
        assert [described(record) for record in read.records()] == [{**r, **times} for r in batch["records"]], case
        said = {name: value for name, value in batch.items() if name in OF_BATCH}
        assert {name: value for name, value in summary(read).items() if name in said} == said, case
        columns = records.to_arrow(data, columns=("offset", "key", "value"))
        assert columns.to_pylist() == [
            {"offset": record.offset, "key": record.key, "value": record.value} for record in read.records()
        ], case
    count(f"{codec}: we read {len(batches)} batches of Kafka {NEW}")


def asked_of_kafka(content: str, codec: str, options: str) -> dict[str, Any]:
    """A batch for the Java program to write."""
    chosen = OPTIONS.get(options, {})
    base = chosen.get("base_offset", 0)
    batch = {
        "magic": 2,
        "compression": codec,
        "timestamp_type": "CreateTime",
        "base_offset": base,
        "append_time": NOW if options == "appended" else -1,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "is_transactional": False,
        "partition_leader_epoch": -1,
        **chosen,
    }
    batch["is_transactional"] = batch.pop("transactional", False)
    rows = [described(record) for record in numbered(CONTENTS[content], base)]
    if options == "gaps":
        rows = [{**row, "offset": base + 3 * i} for i, row in enumerate(rows)]
    return {**batch, "records": rows}
