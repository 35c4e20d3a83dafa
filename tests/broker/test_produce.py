"""Produce over a socket: what is taken, what is refused and with which error, and what is answered."""

from __future__ import annotations

import struct
import time

import pytest
from crc32c import crc32c

from tagwire.broker.batch_checks import check_batch
from tagwire.errors import Error
from tagwire.records import Record, read, write


def sealed(batch):
    """The batch with the checksum its bytes have."""
    return bytes(batch[:17]) + struct.pack(">I", crc32c(bytes(batch[21:]))) + bytes(batch[21:])


def changed(batch, position, layout, *values):
    """The batch with one header field changed, and the checksum right."""
    data = bytearray(batch)
    struct.pack_into(layout, data, position, *values)
    return sealed(data)


@pytest.mark.parametrize("version", range(3, 13))
def test_every_version_appends_and_tells_where(wire, make, version):
    wire.create("t", 2)
    for expected in (0, 2):
        outcome = wire.produce("t", make.records(b"a", b"b"), partition=1, version=version)
        assert (outcome.error_code, outcome.base_offset, outcome.index) == (0, expected, 1)
        assert outcome.log_append_time_ms == -1
    assert outcome.log_start_offset == (0 if version >= 5 else -1)


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_was_produced_is_fetched_byte_for_byte_but_for_offset_and_epoch(wire, make, compression):
    wire.create("t")
    records = [Record(b"k", b"v" * 500, headers=[("h", b"1"), ("h", None), ("", b"")], timestamp=7), Record(None, None)]
    sent = write(records, compression=compression)
    wire.produce("t", make.records(b"first"))
    wire.produce("t", sent)
    stored = bytes(wire.fetch("t", 1).records)
    assert stored[8:12] + stored[16:] == sent[8:12] + sent[16:]
    (batch,) = read(stored)
    assert [(r.offset, r.key, r.value, list(r.headers)) for r in batch.records()] == [
        (1, b"k", b"v" * 500, [("h", b"1"), ("h", None), ("", b"")]),
        (2, None, None, []),
    ]


def test_producer_id_epoch_and_sequence_are_kept(wire):
    wire.create("t")
    wire.produce("t", write([Record(b"k", b"v")], producer_id=77, producer_epoch=3, base_sequence=12))
    (batch,) = read(wire.fetch("t", 0).records)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (77, 3, 12)


ONE = write([Record(b"k", b"v" * 30, timestamp=1000), Record(b"k", b"w", timestamp=1001)])
GZIPPED = write([Record(b"k", b"v" * 90)], compression="gzip")
HOSTILE_BATCHES = [
    ("null", None, Error.INVALID_RECORD),
    ("empty", b"", Error.INVALID_RECORD),
    ("less than a header", ONE[:60], Error.CORRUPT_MESSAGE),
    ("cut short by one", ONE[:-1], Error.CORRUPT_MESSAGE),
    ("two batches", ONE + ONE, Error.INVALID_RECORD),
    ("a byte too many", ONE + b"\0", Error.INVALID_RECORD),
    ("a changed byte", ONE[:-1] + bytes([ONE[-1] ^ 1]), Error.CORRUPT_MESSAGE),
    ("length 0", ONE[:8] + b"\0\0\0\0" + ONE[12:], Error.CORRUPT_MESSAGE),
    ("length -1", ONE[:8] + b"\xff\xff\xff\xff" + ONE[12:], Error.CORRUPT_MESSAGE),
    ("length 2^31-1", ONE[:8] + b"\x7f\xff\xff\xff" + ONE[12:], Error.CORRUPT_MESSAGE),
    ("magic 0", ONE[:16] + b"\0" + ONE[17:], Error.INVALID_RECORD),
    ("magic 1", ONE[:16] + b"\1" + ONE[17:], Error.INVALID_RECORD),
    ("magic 3", ONE[:16] + b"\3" + ONE[17:], Error.CORRUPT_MESSAGE),
    ("magic -1", ONE[:16] + b"\xff" + ONE[17:], Error.CORRUPT_MESSAGE),
    ("compression 5", changed(ONE, 21, ">h", 5), Error.CORRUPT_MESSAGE),
    ("append time", changed(ONE, 21, ">h", 8), Error.INVALID_TIMESTAMP),
    (
        "transactional without an id",
        changed(ONE, 21, ">h", 16),
        Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
    ("a producer without an epoch", changed(ONE, 43, ">q", 5), Error.INVALID_RECORD),
    ("a producer without a sequence", changed(ONE, 43, ">qh", 5, 0), Error.INVALID_RECORD),
    ("control", changed(ONE, 21, ">h", 32), Error.INVALID_RECORD),
    ("delete horizon", changed(ONE, 21, ">h", 64), Error.INVALID_RECORD),
    ("last offset delta too small", changed(ONE, 23, ">i", 0), Error.CORRUPT_MESSAGE),
    ("last offset delta too large", changed(ONE, 23, ">i", 2), Error.INVALID_RECORD),
    ("last offset delta negative", changed(ONE, 23, ">i", -1), Error.CORRUPT_MESSAGE),
    ("no records", changed(changed(ONE, 57, ">i", 0), 23, ">i", 0), Error.INVALID_RECORD),
    ("count -1", changed(ONE, 57, ">i", -1), Error.CORRUPT_MESSAGE),
    ("count 2^31-1", changed(ONE, 57, ">i", 2**31 - 1), Error.CORRUPT_MESSAGE),
    ("more records than there are", changed(changed(ONE, 57, ">i", 3), 23, ">i", 2), Error.INVALID_RECORD),
    ("fewer records than there are", changed(changed(ONE, 57, ">i", 1), 23, ">i", 0), Error.INVALID_RECORD),
    ("a record length past the end", changed(ONE, 61, ">B", 0x7E), Error.INVALID_RECORD),
    ("a negative record length", changed(ONE, 61, ">B", 0x01), Error.INVALID_RECORD),
    ("an offset delta used twice", changed(ONE, -6, ">B", 0), Error.INVALID_RECORD),
    ("compressed by name only", changed(ONE, 21, ">h", 1), Error.INVALID_RECORD),
    ("a broken stream", sealed(GZIPPED[:80] + b"\0" + GZIPPED[81:]), Error.INVALID_RECORD),
    ("a timestamp that no clock has", changed(ONE, 27, ">q", -(2**63)), Error.INVALID_TIMESTAMP),
]


@pytest.mark.parametrize(
    ("data", "error"), [case[1:] for case in HOSTILE_BATCHES], ids=[case[0] for case in HOSTILE_BATCHES]
)
def test_a_bad_batch_is_refused_and_nothing_is_written(wire, make, data, error):
    wire.create("t")
    outcome = wire.produce("t", data)
    assert Error.of(outcome.error_code) is error
    assert outcome.base_offset == -1
    assert outcome.error_message
    assert wire.produce("t", make.records(b"good")).base_offset == 0


@pytest.mark.parametrize("wrong", [-2, -1, 5, 1000, 2**62])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_the_greatest_timestamp_is_what_the_records_say_not_the_header(wire, wrong, compression):
    wire.create("t")
    sent = write([Record(b"k", b"v", timestamp=1001), Record(b"k", b"w", timestamp=1000)], compression=compression)
    assert wire.produce("t", changed(sent, 35, ">q", wrong)).error_code == 0
    stored = bytes(wire.fetch("t", 0).records)
    assert stored[16:] == sent[16:]
    assert (wire.offset_at("t", -3).offset, wire.offset_at("t", 1001).offset) == (0, 0)
    assert wire.offset_at("t", 1002).offset == -1


def test_records_from_before_1970_are_stored_and_stay_what_they_are(wire):
    wire.create("t")
    wire.create("packed", compression_type="gzip")
    for topic in ("t", "packed"):
        assert wire.produce(topic, changed(ONE, 27, ">q", -5000)).error_code == 0
        (batch,) = read(wire.fetch(topic, 0).records)
        assert (batch.max_timestamp, [record.timestamp for record in batch.records()]) == (-1, [-5000, -4999])


def test_records_too_far_from_the_brokers_clock_are_refused_and_named(wire):
    wire.create("t")
    wire.create("narrow", message_timestamp_before_max_ms="1000", message_timestamp_after_max_ms="0")
    wire.create("wide", message_timestamp_after_max_ms=str(2**63 - 1))
    wire.create("dated", message_timestamp_type="LogAppendTime")
    now = int(time.time() * 1000)
    data = write([Record(None, b"v", timestamp=at) for at in (now + 7_200_000, now, now - 60_000, -1, now + 2**40)])
    outcome = wire.produce("t", data)
    assert (outcome.error_code, outcome.base_offset) == (Error.INVALID_TIMESTAMP, -1)
    assert [error.batch_index for error in outcome.record_errors] == [0, 4]
    assert "message.timestamp.after.max.ms=3600000" in outcome.record_errors[0].batch_index_error_message
    assert outcome.error_message.startswith("record 0 has timestamp")
    outcome = wire.produce("narrow", write([Record(None, b"v", timestamp=at) for at in (-1, now - 60_000)]))
    assert outcome.error_code == Error.INVALID_TIMESTAMP
    assert [error.batch_index for error in outcome.record_errors] == [1]
    assert wire.produce("narrow", write([Record(None, b"v", timestamp=int(time.time() * 1000))])).error_code == 0
    assert wire.produce("narrow", data, version=7).error_code == Error.INVALID_TIMESTAMP
    for topic in ("wide", "dated"):
        assert wire.produce(topic, data).error_code == 0


def test_of_very_many_refused_records_only_the_first_thousand_are_named(wire):
    wire.create("t", cleanup_policy="compact")
    outcome = wire.produce("t", write([Record(None, b"") for _ in range(3000)]))
    assert outcome.error_code == Error.INVALID_RECORD
    assert [error.batch_index for error in outcome.record_errors] == list(range(1000))


def test_a_batch_that_the_broker_fails_at_is_refused_alone(wire, make, monkeypatch, caplog):
    wire.create("t")
    good, fatal = make.records(b"good"), make.records(b"fatal")

    def check(records, *rest):
        if bytes(records) == fatal:
            raise ZeroDivisionError
        return check_batch(records, *rest)

    monkeypatch.setattr("tagwire.broker.handlers.produce.check_batch", check)
    for data in (good, fatal, good):
        wire.send(make.produce("t", data), 9)
    answers = [wire.receive().responses[0].partition_responses[0] for _ in range(3)]
    assert [(answer.error_code, answer.base_offset) for answer in answers] == [(0, 0), (-1, -1), (0, 1)]
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_a_batch_that_unpacks_to_far_more_than_was_sent_is_refused(wire, make, compression):
    wire.create("t", max_message_bytes=str(10**8))
    honest = make.records(bytes(60_000_000), compression=compression)
    assert wire.produce("t", honest).error_code == 0
    bomb = make.records(bytes(70_000_000), compression=compression)
    assert wire.produce("t", bomb).error_code == Error.INVALID_RECORD


def test_zstd_needs_version_7(wire, make):
    wire.create("t")
    data = make.records(b"v", compression="zstd")
    assert wire.produce("t", data, version=6).error_code == Error.UNSUPPORTED_COMPRESSION_TYPE
    assert wire.produce("t", data, version=7).error_code == 0


def test_a_batch_over_max_message_bytes_is_too_large(wire, make):
    fits = make.records(b"v" * 500)
    wire.create("t", max_message_bytes=str(len(fits)))
    assert wire.produce("t", fits).error_code == 0
    assert wire.produce("t", make.records(b"v" * 501)).error_code == Error.MESSAGE_TOO_LARGE


def test_a_batch_over_the_segment_size_is_too_large(wire, make):
    wire.create("t", segment_bytes="1024")
    assert wire.produce("t", make.records(b"v" * 2000)).error_code == Error.RECORD_LIST_TOO_LARGE


@pytest.mark.parametrize(("topic", "partition"), [("missing", 0), ("t", 1), ("t", -1), ("../t", 0), ("", 0)])
def test_a_partition_that_does_not_exist_is_unknown(wire, make, topic, partition):
    wire.create("t")
    outcome = wire.produce(topic, make.records(b"v"), partition=partition)
    assert outcome.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


def test_a_refusal_of_the_log_tells_where_that_starts_and_one_of_the_request_does_not(wire, make):
    wire.create("t")
    keyless = wire.create("c", cleanup_policy="compact") and wire.produce("c", make.records(b"v"))
    assert (keyless.error_code, keyless.log_start_offset) == (Error.INVALID_RECORD, 0)
    late = write([Record(None, b"v")], producer_id=5, producer_epoch=0, base_sequence=0)
    early = write([Record(None, b"v")], producer_id=5, producer_epoch=0, base_sequence=7)
    assert wire.produce("t", late).error_code == 0
    unordered = wire.produce("t", early)
    assert (unordered.error_code, unordered.log_start_offset) == (Error.OUT_OF_ORDER_SEQUENCE_NUMBER, 0)
    assert wire.produce("t", ONE[:-1]).log_start_offset == -1
    assert wire.produce("missing", ONE).log_start_offset == -1
    packed = write([Record(None, b"v")], compression="zstd")
    assert wire.produce("t", packed, version=6).log_start_offset == -1


def test_transactional_records_without_a_transactional_id_refuse_the_whole_request(wire, make):
    wire.create("t")
    data = write([Record(None, b"v")], producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    request = make.produce("t", make.records(b"v"))
    request.topic_data += make.produce("missing", data).topic_data
    codes = [topic.partition_responses[0].error_code for topic in wire.ask(request, 9).responses]
    assert codes == [Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2
    assert wire.fetch("t", 0).high_watermark == 0


def test_a_batch_of_no_transaction_is_refused_for_that_before_its_records_are_looked_at(wire, make):
    wire.create("t")
    head = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    request = make.produce("t", write([Record(None, b"v", timestamp=2**62)], **head))
    request.transactional_id = "nobody"
    (outcome,) = wire.ask(request, 9).responses[0].partition_responses
    assert outcome.error_code == Error.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("acks", [2, -2, 32767])
def test_acks_are_minus_1_0_or_1(wire, make, acks):
    wire.create("t")
    assert wire.produce("t", make.records(b"v"), acks=acks).error_code == Error.INVALID_REQUIRED_ACKS
    assert wire.produce("t", make.records(b"v"), acks=1).base_offset == 0


def test_one_bad_partition_does_not_refuse_the_others(wire, make):
    wire.create("t", 2)
    request = make.produce("t", make.records(b"v"), partition=0)
    request.topic_data += make.produce("t", b"junk", partition=1).topic_data
    request.topic_data += make.produce("missing", make.records(b"v")).topic_data
    answer = wire.ask(request, 9)
    codes = [part.error_code for topic in answer.responses for part in topic.partition_responses]
    assert codes == [0, Error.CORRUPT_MESSAGE, Error.UNKNOWN_TOPIC_OR_PARTITION]


def test_acks_0_is_stored_and_not_answered(wire, make):
    wire.create("t")
    wire.produce("t", make.records(b"a"), acks=0)
    wire.produce("t", make.records(b"b"), acks=0)
    outcome = wire.produce("t", make.records(b"c"))
    assert outcome.base_offset == 2


def test_acks_0_that_is_refused_closes_the_connection(wire, make):
    wire.create("t")
    wire.produce("t", b"junk", acks=0)
    assert wire.is_closed()


def test_requests_sent_ahead_land_and_are_answered_in_their_order(wire, make):
    wire.create("t", 2)
    for number in range(100):
        wire.send(make.produce("t", make.records(b"%d" % number), partition=number % 2), 9)
        if number % 10 == 0:
            wire.send(make.produce("t", b"junk"), 9)
    outcomes = [wire.receive().responses[0].partition_responses[0] for _ in range(110)]
    assert [o.base_offset for o in outcomes if not o.error_code] == [number // 2 for number in range(100)]
    (first, *_) = read(wire.fetch("t", 7, partition=1).records)
    assert [record.value for record in first.records()] == [b"15"]


def test_a_topic_dated_by_the_broker_tells_the_time_of_appending(wire, make):
    wire.create("t", message_timestamp_type="LogAppendTime")
    outcome = wire.produce("t", make.records(b"v", timestamp=5))
    assert outcome.log_append_time_ms > 1_600_000_000_000
    (batch,) = read(wire.fetch("t", 0).records)
    assert [record.timestamp for record in batch.records()] == [outcome.log_append_time_ms]
    found = wire.offset_at("t", outcome.log_append_time_ms)
    assert (found.offset, found.timestamp) == (0, outcome.log_append_time_ms)
