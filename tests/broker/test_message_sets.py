"""Produce 0-2: message sets of old producers are stored as record batches, and bad ones are refused."""

from __future__ import annotations

import struct

import pytest

from tagwire.errors import Error
from tagwire.records import Record, read, write

RECORDS = [Record(b"k%d" % n, b"v" * n, timestamp=1000 + n) for n in range(5)] + [Record(None, None, timestamp=2000)]


def stored(wire, offset=0):
    return [
        (batch.magic, batch.compression, record.offset, record.key, record.value, record.timestamp)
        for batch in read(wire.fetch("t", offset).records)
        for record in batch.records()
    ]


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4"])
def test_a_message_set_becomes_one_batch_of_its_records(wire, version, magic, compression):
    wire.create("t")
    for start in (0, 6):
        outcome = wire.produce("t", write(RECORDS, magic=magic, compression=compression), version=version)
        assert (outcome.error_code, outcome.base_offset) == (0, start)
    assert stored(wire, 6) == [
        (2, compression, 6 + n, record.key, record.value, record.timestamp if magic else -1)
        for n, record in enumerate(RECORDS)
    ]


ONE = write(RECORDS[:1], magic=1)
REFUSED = [
    ("nothing", b"", Error.INVALID_RECORD),
    ("cut short", ONE[:-1], Error.CORRUPT_MESSAGE),
    ("cut short after a whole one", ONE + ONE[:20], Error.CORRUPT_MESSAGE),
    ("a changed byte", ONE[:-1] + b"x", Error.CORRUPT_MESSAGE),
    ("a record batch", write(RECORDS), Error.INVALID_RECORD),
    ("magic 3", ONE[:16] + b"\3" + ONE[17:], Error.CORRUPT_MESSAGE),
    ("size -1", ONE[:8] + struct.pack(">i", -1) + ONE[12:], Error.CORRUPT_MESSAGE),
]


@pytest.mark.parametrize(("data", "error"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_a_bad_message_set_is_refused(wire, data, error):
    wire.create("t")
    assert Error.of(wire.produce("t", data, version=2).error_code) is error
    assert wire.produce("t", ONE, version=2).base_offset == 0


def test_messages_that_hold_nothing_count_towards_what_a_message_set_may_become(wire, monkeypatch):
    monkeypatch.setattr("tagwire.broker.message_sets.MAX_DECOMPRESSED", 600_000)
    wire.create("t")
    empty = write([Record(None, None, timestamp=1)] * 2000, magic=1, compression="gzip")
    assert wire.produce("t", empty, version=2).error_code == 0
    assert wire.produce("t", empty * 2, version=2).error_code == Error.INVALID_RECORD


def test_message_sets_are_refused_where_record_batches_are_due(wire):
    wire.create("t")
    assert wire.produce("t", ONE, version=3).error_code == Error.INVALID_RECORD


def test_the_size_that_counts_is_that_of_the_batch(wire):
    wire.create("t", max_message_bytes="500")
    many = write([Record(None, b"v" * 600, timestamp=1)], magic=1, compression="gzip")
    assert wire.produce("t", many, version=2).error_code == 0
    assert wire.produce("t", write([Record(None, b"v" * 600)], magic=1), version=2).error_code == (
        Error.MESSAGE_TOO_LARGE
    )


def test_a_message_set_is_dated_by_the_broker_where_the_topic_says_so(wire):
    wire.create("t", message_timestamp_type="LogAppendTime")
    outcome = wire.produce("t", ONE, version=2)
    assert outcome.log_append_time_ms > 1_600_000_000_000
    assert stored(wire)[0][5] == outcome.log_append_time_ms
