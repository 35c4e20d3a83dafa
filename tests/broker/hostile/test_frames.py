"""Frames and request bodies as no client should send them, and some that are unusual but right.

Sizes, other protocols and cut headers are in test_connections.py; batches in test_produce.py. The broker
answers what is right, closes the connection on what is not, logs no error of its own, and goes on for everybody else.
"""

from __future__ import annotations

import logging
import struct

import pytest

from tagwire import messages
from tagwire.broker.handlers import produce
from tagwire.broker.registry import HANDLERS, MOST_BYTES
from tagwire.broker.served_apis import SERVED
from tagwire.errors import Error

ASK = messages.ApiVersionsRequest(client_software_name="a", client_software_version="1")


@pytest.fixture(autouse=True)
def unperturbed(broker, connect, caplog):
    """Another client is served before and after, and the broker's log has no error."""
    other = connect(broker.bootstrap)
    assert other.ask(ASK, 3).error_code == 0
    yield
    assert other.ask(ASK, 3).error_code == 0
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


def frame(key, version, body, *, correlation_id=7, client_id=b"\xff\xff", tags=b""):
    data = struct.pack(">hhi", key, version, correlation_id) + client_id + tags + body
    return struct.pack(">i", len(data)) + data


def string(text):
    return struct.pack(">h", len(text)) + text


def uvarint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


METADATA_ALL = {1: b"\xff\xff\xff\xff", 9: b"\0\0\0\0\0"}

LEGAL = [
    ("a null client id", frame(3, 1, METADATA_ALL[1])),
    ("an empty client id", frame(3, 1, METADATA_ALL[1], client_id=string(b""))),
    ("a client id of 32767 bytes", frame(3, 1, METADATA_ALL[1], client_id=string(b"x" * 32767))),
    ("a client id that is no UTF-8", frame(3, 1, METADATA_ALL[1], client_id=string(b"\xff\xfe"))),
    ("a client id with escapes", frame(3, 1, METADATA_ALL[1], client_id=string(b"\x1b[2J\0"))),
    ("header tags", frame(3, 9, METADATA_ALL[9], tags=b"\2\0\3abc\x63\0")),
    ("body tags that nobody knows", frame(3, 9, METADATA_ALL[9][:-1] + b"\1\5\2hi", tags=b"\0")),
    ("a non-minimal array length", frame(3, 9, b"\x80\0" + METADATA_ALL[9][1:], tags=b"\0")),
    ("bytes after the body", frame(3, 1, METADATA_ALL[1] + b"more")),
    ("correlation id -1", frame(3, 1, METADATA_ALL[1], correlation_id=-1)),
    ("the least correlation id", frame(3, 1, METADATA_ALL[1], correlation_id=-(2**31))),
]


@pytest.mark.parametrize("data", [case[1] for case in LEGAL], ids=[case[0] for case in LEGAL])
def test_what_is_unusual_but_right_is_answered(wire, data):
    wire.socket.sendall(data)
    answer = wire.socket.recv(4096)
    assert answer[4:8] == data[8:12]
    assert wire.metadata().topics == []


def test_a_correlation_id_may_be_used_again(wire):
    wire.socket.sendall(frame(3, 1, METADATA_ALL[1]) * 3)
    answers = b""
    while len(answers) < 12 or len(answers) % (4 + struct.unpack_from(">i", answers)[0]):
        answers += wire.socket.recv(4096)
    size = 4 + struct.unpack_from(">i", answers)[0]
    assert {answers[at : at + size] for at in range(0, len(answers), size)} == {answers[:size]}
    assert answers[4:8] == struct.pack(">i", 7)


def metadata_of(name, version=1):
    return frame(3, version, struct.pack(">i", 1) + string(name) + (b"" if version < 4 else b"\1"))


NAMES = [
    b"",
    b".",
    b"..",
    b"/",
    b"../../etc/passwd",
    b"a/b",
    b"a\0b",
    b"a" * 250,
    "flüge".encode(),
    b"\xff",
    b"\xed\xa0\x80",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_no_topics_is_refused_and_never_a_path(wire, tmp_path, name):
    wire.socket.sendall(metadata_of(name))
    assert struct.pack(">h", Error.INVALID_TOPIC_EXCEPTION) in wire.socket.recv(4096)
    assert not [path for path in (tmp_path / "data").iterdir() if path.is_dir()]
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


PRODUCE_T = struct.pack(">hhii", -1, 1, 1, 1) + string(b"t")

HOSTILE = [
    ("string -2", frame(3, 1, struct.pack(">ih", 1, -2))),
    ("string longer than what is left", frame(3, 1, struct.pack(">ih", 1, 4) + b"abc")),
    ("string -1 where null is not allowed", frame(12, 0, struct.pack(">hih", -1, 0, 0))),
    ("array of 2^31-1", frame(3, 1, b"\x7f\xff\xff\xff" + b"\0" * 8)),
    ("array one longer than what is left", frame(3, 1, struct.pack(">i", 9) + b"\0" * 8)),
    ("array -1 where null is not allowed", frame(15, 0, b"\xff\xff\xff\xff")),
    ("compact array of 2^32-2", frame(3, 9, b"\xff\xff\xff\xff\x0f", tags=b"\0")),
    ("array length of six bytes", frame(3, 9, b"\x80\x80\x80\x80\x80\0", tags=b"\0")),
    ("array length cut short", frame(3, 9, b"\xff", tags=b"\0")),
    ("compact string 0 where null is not allowed", frame(12, 4, b"\0" * 20, tags=b"\0")),
    ("more tags than bytes", frame(3, 9, METADATA_ALL[9][:-1] + b"\xff\xff\xff\xff\x07", tags=b"\0")),
    ("a tag longer than what is left", frame(3, 9, METADATA_ALL[9][:-1] + b"\1\5\x7fhi", tags=b"\0")),
    ("header tags that never end", frame(3, 9, b"", tags=b"\xff\xff\xff\xff\x07")),
    ("nested arrays that each claim the rest", frame(1, 4, struct.pack(">iiiib", -1, 0, 0, 99, 0) + b"\0\0\0\x08" * 8)),
    ("records past the end", frame(0, 3, PRODUCE_T + struct.pack(">iii", 1, 0, 2**31 - 1))),
    ("no bytes where a uuid should be", frame(1, 13, b"\0" * 10, tags=b"\0")),
]  # fmt: skip


@pytest.mark.parametrize("data", [case[1] for case in HOSTILE], ids=[case[0] for case in HOSTILE])
def test_a_body_that_lies_closes_the_connection(wire, data):
    wire.socket.sendall(data)
    assert wire.is_closed()


AS_KAFKA_DOES = [
    ("array -7 for null", frame(3, 1, struct.pack(">i", -7))),
    ("records -2 for null", frame(0, 3, PRODUCE_T + struct.pack(">iii", 1, 0, -2))),
    ("true is any byte but 0", frame(3, 4, b"\xff\xff\xff\xff\x02")),
    ("a negative number of tags", frame(3, 9, METADATA_ALL[9][:-1] + b"\xff\xff\xff\xff\x0f", tags=b"\0")),
]


@pytest.mark.parametrize("data", [case[1] for case in AS_KAFKA_DOES], ids=[case[0] for case in AS_KAFKA_DOES])
def test_what_kafkas_reader_lets_pass_is_answered(wire, data):
    wire.socket.sendall(data)
    assert wire.socket.recv(4096)[4:8] == data[8:12]


@pytest.mark.parametrize("key", sorted(SERVED))
def test_every_api_takes_garbage_for_what_it_is(broker, connect, key):
    lowest, highest = SERVED[key]
    for version in {lowest, highest}:
        for body in (b"", b"\0", b"\xff" * 40, b"\x7f" * 40, bytes(range(200)), b"\0" * 60):
            wire = connect(broker.bootstrap)
            wire.socket.sendall(frame(key, version, body, tags=b"\0"))
            wire.socket.shutdown(1)
            while wire.socket.recv(65536):
                pass


def test_a_megabyte_of_unknown_tags_and_many_structs_with_tags_take_linear_time(wire):
    tags = uvarint(100_000) + b"".join(uvarint(10 + number) + b"\0" for number in range(100_000))
    wire.socket.sendall(frame(3, 9, METADATA_ALL[9][:-1] + tags, tags=b"\0"))
    assert wire.socket.recv(4096)[4:8] == struct.pack(">i", 7)
    topics = (b"\2a" + b"\1\5\0") * 150_000
    wire.socket.sendall(frame(3, 9, uvarint(150_001) + topics + b"\0\0\0\0", tags=b"\0"))
    assert wire.socket.recv(4096)[4:8] == struct.pack(">i", 7)


def test_only_requests_that_carry_records_may_be_large(broker, wire, connect, make):
    wire.create("t", max_message_bytes=str(3 * MOST_BYTES))
    assert HANDLERS[produce.messages.ProduceRequest.api_key].most_bytes is None
    assert wire.produce("t", make.records(b"v" * 2 * MOST_BYTES)).error_code == 0
    wire.socket.sendall(frame(15, 0, struct.pack(">i", MOST_BYTES // 2) + b"\0\0" * (MOST_BYTES // 2)))
    assert wire.is_closed()


def test_a_request_that_is_answered_in_a_frame_of_the_wrong_api_is_none(wire):
    """What only brokers ask each other is not served."""
    wire.socket.sendall(frame(6, 0, b"\0" * 40))
    assert wire.is_closed()
