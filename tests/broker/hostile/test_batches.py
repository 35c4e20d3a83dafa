"""Batches made by hand, down to single records: what is stored is what every reader can read (E.3, record batch)."""

from __future__ import annotations

import logging
import struct

import pytest
from crc32c import crc32c

from tagwire.errors import Error
from tagwire.records import read


@pytest.fixture(autouse=True)
def no_error_in_the_log(caplog):
    yield
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


def varint(number):
    number = (number << 1) ^ (number >> 63)
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def sized(data):
    return varint(-1) if data is None else varint(len(data)) + data


KEY, VALUE, NO_HEADERS = sized(b"k"), sized(b"v"), varint(0)


def record(key=KEY, value=VALUE, headers=NO_HEADERS, *, offset=0, timestamp=0, size=None, more=b""):
    """A record; key, value and headers are given as their bytes, lengths included."""
    body = b"\0" + varint(timestamp) + varint(offset) + key + value + headers + more
    return (varint(len(body)) if size is None else varint(size)) + body


def batch(*records, count=None, last=None, attributes=0, base_offset=0, timestamps=(1000, 1000)):
    count = len(records) if count is None else count
    last = count - 1 if last is None else last
    body = struct.pack(">hiqqqhii", attributes, last, *timestamps, -1, -1, -1, count) + b"".join(records)
    return struct.pack(">qiibI", base_offset, len(body) + 9, -1, 2, crc32c(body)) + body


def headers(*pairs):
    return varint(len(pairs)) + b"".join(sized(key) + sized(value) for key, value in pairs)


REFUSED = [
    ("key length -2", record(key=varint(-2))),
    ("value length -2", record(value=varint(-2))),
    ("key past the record", record(key=varint(50) + b"k")),
    ("key of 2^31-1", record(key=varint(2**31 - 1))),
    ("headers -1", record(headers=varint(-1))),
    ("headers 2^31-1", record(headers=varint(2**31 - 1))),
    ("one header more than there is", record(headers=varint(2) + sized(b"h") + sized(b"1"))),
    ("a header key of null", record(headers=headers((None, b"1")))),
    ("a header key of -2", record(headers=varint(1) + varint(-2) + sized(b"1"))),
    ("a header value of -2", record(headers=varint(1) + sized(b"h") + varint(-2))),
    ("a header value past the record", record(headers=varint(1) + sized(b"h") + varint(99))),
    ("bytes after the headers", record(more=b"x")),
    ("a record of length 0", varint(0)),
    ("a record of length -1", record(size=-1)),
    ("a record longer than the batch", record(size=100)),
    ("a record of 2^31-1", record(size=2**31 - 1)),
    ("an offset delta below 0", record(offset=-1)),
    ("an offset delta past the last", record(offset=1)),
    ("an offset delta of 2^31-1", record(offset=2**31 - 1)),
    ("a varint of six bytes", record(key=b"\xff\xff\xff\xff\xff\x01")),
    ("no record where one should be", b""),
]


@pytest.mark.parametrize("data", [case[1] for case in REFUSED], ids=[case[0] for case in REFUSED])
@pytest.mark.parametrize("version", [3, 9])
def test_a_record_that_a_reader_would_stop_at_is_never_stored(wire, make, data, version):
    wire.create("t")
    outcome = wire.produce("t", batch(data, count=1), version=version)
    assert Error.of(outcome.error_code) is Error.INVALID_RECORD
    assert wire.produce("t", make.records(b"good")).base_offset == 0


def test_records_out_of_order_are_refused(wire):
    wire.create("t")
    assert wire.produce("t", batch(record(offset=1), record(offset=0))).error_code == Error.INVALID_RECORD
    assert wire.produce("t", batch(record(), record(offset=1, timestamp=5))).error_code == 0


@pytest.mark.parametrize("attributes", [5, 6, 7])
def test_a_compression_that_does_not_exist_is_refused(wire, attributes):
    wire.create("t")
    assert wire.produce("t", batch(record(), attributes=attributes)).error_code == Error.CORRUPT_MESSAGE


TAKEN = [
    ("null key and value", record(key=sized(None), value=sized(None)), (None, None, [])),
    ("empty key and value", record(key=sized(b""), value=sized(b"")), (b"", b"", [])),
    ("empty header key", record(headers=headers((b"", b"1"))), (b"k", b"v", [("", b"1")])),
    (
        "a header key twice, null and empty values",
        record(headers=headers((b"h", None), (b"h", b""))),
        (b"k", b"v", [("h", None), ("h", b"")]),
    ),
    ("a length in two bytes that fits one", record(key=b"\x82\0k"), (b"k", b"v", [])),
]


@pytest.mark.parametrize(("data", "expected"), [case[1:] for case in TAKEN], ids=[case[0] for case in TAKEN])
def test_what_is_unusual_but_right_is_stored_as_it_is(wire, data, expected):
    wire.create("t")
    sent = batch(data)
    assert wire.produce("t", sent).error_code == 0
    records = wire.fetch("t", 0).records
    assert bytes(records[17:]) == sent[17:]
    (found,) = [found for stored in read(records) for found in stored.records()]
    assert (found.key, found.value, list(found.headers)) == expected


def test_a_header_key_that_is_no_utf_8_keeps_its_bytes(wire):
    wire.create("t")
    sent = batch(record(headers=headers((b"\xff\xfe", b"1"))))
    assert wire.produce("t", sent).error_code == 0
    assert bytes(wire.fetch("t", 0).records[17:]) == sent[17:]


def test_a_batch_after_whose_offsets_there_is_none_is_refused(wire):
    wire.create("t")
    outcome = wire.produce("t", batch(record(), base_offset=2**63 - 1))
    assert Error.of(outcome.error_code) is Error.CORRUPT_MESSAGE
    assert wire.offset_at("t", -1).offset == 0


@pytest.mark.parametrize("base_offset", [1, 7, 2**63 - 2])
def test_a_batch_whose_offsets_do_not_begin_at_0_is_refused(wire, base_offset):
    wire.create("t")
    outcome = wire.produce("t", batch(record(), base_offset=base_offset))
    assert Error.of(outcome.error_code) is Error.INVALID_RECORD
    assert f"base offset {base_offset}" in outcome.error_message
    assert wire.offset_at("t", -1).offset == 0


def test_the_latest_timestamp_there_is_can_be_stored_and_found(wire, make):
    latest = 2**63 - 1
    wire.create("t", message_timestamp_after_max_ms=str(latest))
    assert wire.produce("t", batch(record(), timestamps=(latest, latest))).error_code == 0
    wire.produce("t", make.records(b"later"))
    assert wire.offset_at("t", latest).offset == 0
    assert wire.offset_at("t", -3).offset == 0
