"""Connections: versions told and kept to, hostile bytes, order, and bounds. The broker lives on through all of it."""

from __future__ import annotations

import resource
import socket
import struct
import time
from pathlib import Path

import pytest

from tagwire import messages
from tagwire.broker import Broker
from tagwire.errors import Error
from tagwire.rpc import Unsupported

ApiVersions = messages.ApiVersionsRequest

HANDLERS = {
    0: (0, 12),
    1: (4, 16),
    2: (1, 7),
    3: (0, 12),
    8: (2, 10),
    9: (1, 10),
    10: (0, 4),
    11: (0, 9),
    12: (0, 4),
    13: (0, 5),
    14: (0, 5),
    15: (0, 6),
    16: (0, 5),
    17: (1, 1),
    18: (0, 5),
    19: (2, 7),
    20: (1, 6),
    21: (0, 2),
    22: (0, 4),
    23: (2, 4),
    24: (0, 3),
    25: (0, 4),
    26: (0, 5),
    27: (1, 1),
    28: (0, 5),
    29: (1, 3),
    30: (1, 3),
    31: (1, 3),
    32: (1, 4),
    33: (0, 2),
    34: (1, 2),
    35: (1, 4),
    36: (0, 2),
    37: (0, 3),
    42: (0, 2),
    43: (0, 2),
    44: (0, 1),
    45: (0, 1),
    46: (0, 0),
    47: (0, 0),
    48: (0, 1),
    49: (0, 1),
    50: (0, 0),
    51: (0, 0),
    60: (0, 1),
    61: (0, 0),
    65: (0, 0),
    66: (0, 1),
    68: (0, 1),
    69: (0, 1),
    74: (0, 1),
    75: (0, 0),
}


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def header(key: int, version: int, client_id: bytes = b"\x00\x04evil") -> bytes:
    return struct.pack(">hhi", key, version, 7) + client_id


def ask_versions(wire, version, name="client", software="1.0"):
    return wire.ask(ApiVersions(client_software_name=name, client_software_version=software), version)


def lives(broker, connect) -> bool:
    return ask_versions(connect(broker.bootstrap), 3).error_code == 0


@pytest.mark.parametrize("version", range(6))
def test_every_version_tells_what_is_served(wire, version):
    answer = ask_versions(wire, version)
    assert answer.error_code == 0
    assert {entry.api_key: (entry.min_version, entry.max_version) for entry in answer.api_keys} == HANDLERS


@pytest.mark.parametrize("version", [6, 99, 32767, -1])
def test_an_unknown_version_of_api_versions_is_answered_in_version_0_and_the_body_is_not_read(wire, version):
    tags = b"\0" if version >= 3 else b""
    wire.socket.sendall(frame(header(18, version) + tags + b"garbage that is no body"))
    expected = frame(struct.pack(">ihihhh", 7, 35, 1, 18, 0, 5))
    assert wire.socket.recv(100) == expected
    wire.rpc = type(wire.rpc)("client")
    assert ask_versions(wire, 4).error_code == 0


@pytest.mark.parametrize(
    ("name", "software"), [("", "1"), ("a", ""), ("-a", "1"), ("a", "1."), ("a b", "1"), ("é", "1")]
)
def test_a_client_must_say_properly_what_software_it_is(wire, name, software):
    answer = ask_versions(wire, 3, name, software)
    assert (answer.error_code, answer.api_keys) == (Error.INVALID_REQUEST, [])
    assert ask_versions(wire, 3).error_code == 0


def test_from_version_5_a_client_says_which_broker_it_means_and_is_told_when_that_is_another(wire):
    cluster_id = wire.metadata().cluster_id

    def outcome(**meant):
        answer = wire.ask(ApiVersions(client_software_name="a", client_software_version="1", **meant), 5)
        return answer.error_code, bool(answer.api_keys)

    assert outcome(cluster_id=cluster_id, node_id=1) == (0, True)
    assert outcome(cluster_id=cluster_id, node_id=2) == (Error.REBOOTSTRAP_REQUIRED, False)
    assert outcome(cluster_id="another", node_id=1) == (Error.REBOOTSTRAP_REQUIRED, False)
    assert outcome(cluster_id=cluster_id) == (Error.INVALID_REQUEST, False)
    assert outcome(node_id=1) == (Error.INVALID_REQUEST, False)


UNSERVED = [
    (0, 13),
    (0, -1),
    (1, 3),
    (1, 17),
    (1, 32767),
    (3, 13),
    (17, 0),
    (999, 0),
    (-1, 0),
]


@pytest.mark.parametrize(("key", "version"), UNSERVED)
def test_what_is_not_served_closes_the_connection(broker, wire, connect, key, version, caplog):
    wire.socket.sendall(frame(header(key, version) + b"\0" * 20))
    assert wire.is_closed()
    assert lives(broker, connect)
    assert "'evil'" in caplog.text


def test_a_broker_can_be_told_to_say_that_a_request_is_unsupported(tmp_path, connect):
    with Broker(tmp_path / "data", unsupported="empty") as broker:
        wire = connect(broker.bootstrap)
        answer = wire.ask(messages.DescribeQuorumRequest(), 1)
        assert isinstance(answer, Unsupported)
        assert ask_versions(wire, 3).error_code == 0
        wire.socket.sendall(frame(header(999, 0)))
        assert wire.socket.recv(100) == bytes.fromhex("00000004 00000007")


HOSTILE_BYTES = [
    ("size -1", b"\xff\xff\xff\xff"),
    ("size -2^31", b"\x80\0\0\0"),
    ("size 2^31-1", b"\x7f\xff\xff\xff"),
    ("size over the limit by 1", struct.pack(">i", 104857601)),
    ("a TLS client", bytes.fromhex("160301020001000001fc0303")),
    ("a TLS alert", bytes.fromhex("15030100020228")),
    ("a web client", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
    ("size 0", frame(b"")),
    *[(f"a header of {size} bytes", frame(header(3, 1)[:size])) for size in range(1, 8)],
    ("client id length -2", frame(header(3, 1, b"\xff\xfe"))),
    ("client id length 40000", frame(header(3, 1, b"\x9c\x40abc"))),
    ("a flexible header without tags", frame(header(3, 9))),
    ("no body", frame(header(3, 1))),
    ("more topics than bytes", frame(header(3, 1) + b"\x7f\xff\xff\xff" + b"\0" * 8)),
    (
        "produce: more topics than bytes",
        frame(header(0, 7) + bytes.fromhex("ffff ffff 00001000 3fffffff") + b"\0" * 17),
    ),
    ("fetch: nothing but ff", frame(header(1, 11) + b"\xff" * 50)),
    ("garbage", frame(bytes(range(256)))),
]


@pytest.mark.parametrize("data", [case[1] for case in HOSTILE_BYTES], ids=[case[0] for case in HOSTILE_BYTES])
def test_hostile_bytes_close_the_connection_and_the_broker_lives_on(broker, wire, connect, data):
    wire.socket.sendall(data)
    assert wire.is_closed()
    assert lives(broker, connect)


def test_bytes_after_a_request_are_passed_over_as_kafka_does(wire, connect, broker):
    """librdkafka asks for all topics like this, and Kafka answers."""
    wire.create("t")
    other = connect(broker.bootstrap)
    other.send(messages.ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
    assert other.receive().error_code == 0
    other.rpc.send(messages.MetadataRequest(topics=None), 12, correlation_id=7)
    other.socket.sendall(frame(header(3, 12) + b"\0" + bytes.fromhex("00000000010000")))
    assert [topic.name for topic in other.receive().topics] == ["t"]


def test_the_frame_limit_is_the_brokers_to_set(tmp_path, connect, make):
    with Broker(tmp_path / "data", max_frame_bytes=2000) as broker:
        wire = connect(broker.bootstrap)
        wire.create("t")
        assert wire.produce("t", make.records(b"v" * 1000)).error_code == 0
        wire.socket.sendall(struct.pack(">i", 2001))
        assert wire.is_closed()


def test_what_was_asked_before_hostile_bytes_is_answered_first(wire, make):
    wire.create("t")
    request = wire.rpc.send(make.produce("t", make.records(b"v")), 9)
    wire.socket.sendall(request + b"\xff\xff\xff\xff")
    assert wire.receive().responses[0].partition_responses[0].error_code == 0
    assert wire.is_closed()


def test_a_client_that_has_said_all_still_gets_its_answers(wire, make):
    wire.create("t")
    wire.send(make.produce("t", make.records(b"v")), 9)
    wire.send(messages.MetadataRequest(topics=None), 12)
    wire.socket.shutdown(socket.SHUT_WR)
    assert wire.receive().responses[0].partition_responses[0].base_offset == 0
    assert len(wire.receive().topics) == 1
    assert wire.is_closed()


def test_requests_split_anywhere_and_joined_are_the_same(wire, make):
    wire.create("t")
    stream = b"".join(wire.rpc.send(make.produce("t", make.records(b"%d" % n)), 9) for n in range(3))
    for position in range(len(stream)):
        wire.socket.sendall(stream[position : position + 1])
    assert [wire.receive().responses[0].partition_responses[0].base_offset for _ in range(3)] == [0, 1, 2]


def test_answers_come_in_the_order_of_the_requests(wire, make):
    wire.create("t")
    for number in range(20):
        wire.send(make.produce("t", make.records(b"%d" % number)), 9)
        wire.send(messages.MetadataRequest(topics=None), 12)
        wire.send(make.fetch("t", number), 12)
    for number in range(20):
        assert wire.receive().responses[0].partition_responses[0].base_offset == number
        assert wire.receive().topics[0].name == "t"
        # What was answered before is seen by what is asked next.
        assert wire.receive().responses[0].partitions[0].high_watermark >= number + 1


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def most_buffered(way):
    return int(Path(f"/proc/sys/net/ipv4/tcp_{way}").read_text().split()[2])


def requests_until_it_stalls(wire, request):
    for sent in range(1_000_000):
        try:
            wire.socket.sendall(request)
        except TimeoutError:
            return sent
    return 1_000_000


def test_a_client_that_reads_nothing_is_not_served_without_end(broker, wire, make, connect):
    wire.create("t", max_message_bytes=str(10**7))
    wire.produce("t", make.records(b"v" * 5_000_000))
    request = wire.rpc.send(make.fetch("t", 0), 12)
    before = resident_bytes()
    wire.socket.settimeout(0.3)
    sent = requests_until_it_stalls(wire, request)
    # The broker stopped reading: what was sent fits into the system's buffers between. And it has stopped answering, or
    # the answers, 5 MB each, would pile up meanwhile.
    assert sent * len(request) < sum(most_buffered(way) for way in ("rmem", "wmem")) + 1_000_000
    for _ in range(20):
        assert lives(broker, connect)
        time.sleep(0.05)
    assert resident_bytes() - before < 150_000_000


def test_many_idle_connections_and_half_requests_do_no_harm(broker, connect):
    wires = [connect(broker.bootstrap) for _ in range(200)]
    for wire in wires[::2]:
        wire.socket.sendall(b"\0\0\1")
    assert lives(broker, connect)
    assert all(ask_versions(wire, 3).error_code == 0 for wire in wires[1::2])


def test_a_connection_that_is_reset_in_the_middle_does_no_harm(broker, make, connect):
    wire = connect(broker.bootstrap)
    wire.create("t")
    for _ in range(10):
        other = connect(broker.bootstrap)
        other.send(make.fetch("t", 0, max_wait_ms=30_000), 12)
        other.send(make.produce("t", make.records(b"v" * 1000)), 9)
        other.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        other.socket.close()
    assert wire.produce("t", make.records(b"v")).error_code == 0
    assert lives(broker, connect)


def test_stopping_ends_connections_and_waiting_fetches(tmp_path, make, connect):
    broker = Broker(tmp_path / "data")
    broker.start()
    wire = connect(broker.bootstrap)
    wire.create("t")
    wire.send(make.fetch("t", 0, max_wait_ms=30_000), 12)
    broker.stop()
    assert wire.is_closed()
    broker.stop()
