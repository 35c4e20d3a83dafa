"""Every frame that somebody hostile may send, to a broker and to a client: an answer, or one typed error that lasts.

The rows are those of the list of adversarial inputs, "Frame". What needs a socket: tests/client/test_hostile_servers.
"""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from tagwire import messages
from tagwire.errors import ConnectionLostError, DecodeError, ProtocolError, RemoteProtocolError, TagwireError
from tagwire.rpc import NEED_DATA, Connection, Request, Response, UnservedRequest, Unsupported, UnsupportedApiVersions

SERVED = {3: (0, 13), 18: (0, 4)}

# Header of a Metadata request: v9 (flexible) and v8, correlation id 7, client id "c".
V9, V8 = "0003 0009 00000007 0001 63 00", "0003 0008 00000007 0001 63"
ALL_TOPICS_V9, ALL_TOPICS_V8 = "00 00 00 00 00", "ffffffff 00 00 00"


def frame(body: str) -> bytes:
    data = bytes.fromhex(body)
    return len(data).to_bytes(4, "big") + data


REFUSED_BY_A_BROKER: list[tuple[str, bytes, type[TagwireError]]] = [
    ("size -1", bytes.fromhex("ffffffff"), RemoteProtocolError),
    ("size 0", frame(""), DecodeError),
    *((f"size {size}", frame("00" * size), DecodeError) for size in range(1, 8)),
    ("size 2^31-1", bytes.fromhex("7fffffff"), RemoteProtocolError),
    ("size 0x80000000", bytes.fromhex("80000000"), RemoteProtocolError),
    ("TLS alert 0x15030100", bytes.fromhex("15030100"), RemoteProtocolError),
    ("HTTP", b"HTTP/1.1 200 OK\r\n", RemoteProtocolError),
    ("GET ", b"GET / HTTP/1.1\r\n", RemoteProtocolError),
    ("flexible version without the header's tag byte", frame("0003 0009 00000007 0001 63"), DecodeError),
    ("client_id length -2", frame("0003 0008 00000007 fffe" + ALL_TOPICS_V8), DecodeError),
    ("client_id length 40000", frame("0003 0008 00000007 9c40" + ALL_TOPICS_V8), DecodeError),
    ("client_id length one too many", frame("0003 0008 00000007 0002 63"), DecodeError),
    ("header tags that descend", frame("0003 0009 00000007 0001 63 02 05 00 02 00" + ALL_TOPICS_V9), DecodeError),
    ("header tag twice", frame("0003 0009 00000007 0001 63 02 05 00 05 00" + ALL_TOPICS_V9), DecodeError),
    ("more header tags than bytes", frame("0003 0009 00000007 0001 63 ffffffff0f"), DecodeError),
    ("header tag longer than the frame", frame("0003 0009 00000007 0001 63 01 05 7f 00"), DecodeError),
]


@pytest.mark.parametrize(("name", "data", "kind"), REFUSED_BY_A_BROKER, ids=[row[0] for row in REFUSED_BY_A_BROKER])
def test_a_frame_that_holds_no_request_is_a_typed_error_and_stays_one(
    name: str, data: bytes, kind: type[TagwireError]
) -> None:
    broker = Connection("broker", served=SERVED)
    broker.receive(data)
    for _ in range(2):
        with pytest.raises(kind):
            broker.next_event()
    broker.receive(frame(V8 + ALL_TOPICS_V8))
    with pytest.raises(kind):
        broker.next_event()


TOLD_BY_A_BROKER: list[tuple[str, str, type]] = [
    ("unknown key 999", "03e7 0000 00000007 ffff", UnservedRequest),
    ("unknown key -1", "ffff 0000 00000007 ffff", UnservedRequest),
    ("version -1", "0003 ffff 00000007 ffff", UnservedRequest),
    ("version 32767", "0003 7fff 00000007 ffff 00", UnservedRequest),
    ("ApiVersions -1", "0012 ffff 00000007 ffff", UnsupportedApiVersions),
    ("ApiVersions 32767 with garbage behind it", "0012 7fff 00000007 ffff 00 deadbeef", UnsupportedApiVersions),
    ("client_id length -1", "0003 0008 00000007 ffff" + ALL_TOPICS_V8, Request),
    ("request header with tags", "0003 0009 00000007 0001 63 02 05 01 aa 09 02 bbbb" + ALL_TOPICS_V9, Request),
]


@pytest.mark.parametrize(("name", "body", "kind"), TOLD_BY_A_BROKER, ids=[row[0] for row in TOLD_BY_A_BROKER])
def test_an_unusual_request_is_told_as_what_it_is(name: str, body: str, kind: type) -> None:
    broker = Connection("broker", served=SERVED)
    broker.receive(frame(body))
    event = broker.next_event()
    assert type(event) is kind
    assert event.correlation_id == 7  # type: ignore[union-attr]
    if isinstance(event, Request):
        assert event.decode().topics is None


def test_tags_of_a_request_header_are_kept() -> None:
    broker = Connection("broker", served=SERVED)
    broker.receive(frame("0003 0009 00000007 0001 63 02 05 01 aa 09 02 bbbb" + ALL_TOPICS_V9))
    event = broker.next_event()
    assert isinstance(event, Request)
    assert event.header.unknown_tags == {5: b"\xaa", 9: b"\xbb\xbb"}


@pytest.mark.parametrize("role", ["broker", "client"])
def test_a_frame_split_at_every_byte_is_one_event(role: str) -> None:
    for cut in range(1, len(frame(V9 + ALL_TOPICS_V9))):
        if role == "broker":
            connection = Connection("broker", served=SERVED)
            data = frame(V9 + ALL_TOPICS_V9)
        else:
            connection = Connection("client")
            connection.send(messages.MetadataRequest(topics=None), 1)
            data = frame("00000000" + "00000000" + "00000001" + "00000000")
        cut = min(cut, len(data) - 1)
        connection.receive(data[:cut])
        assert connection.next_event() is NEED_DATA
        connection.receive(data[cut:])
        assert isinstance(connection.next_event(), Request | Response)
        assert connection.next_event() is NEED_DATA


def test_two_frames_in_one_read_are_two_events() -> None:
    broker = Connection("broker", served=SERVED)
    broker.receive(frame(V9 + ALL_TOPICS_V9) + frame(V8 + ALL_TOPICS_V8))
    assert [getattr(broker.next_event(), "version", None) for _ in range(3)] == [9, 8, None]


def asking(*versions: int) -> Connection:
    client = Connection("client")
    for version in versions:
        client.send(messages.MetadataRequest(topics=None), version)
    return client


REFUSED_BY_A_CLIENT: list[tuple[str, tuple[int, ...], bytes, type[TagwireError], str]] = [
    ("size -1", (1,), bytes.fromhex("ffffffff"), RemoteProtocolError, "size -1"),
    ("size 0", (1,), frame(""), DecodeError, "ends after 0 bytes"),
    *((f"size {n}", (1,), frame("00" * n), DecodeError, f"ends after {n} bytes") for n in range(1, 4)),
    *((f"size {n}", (1,), frame("00" * n), DecodeError, "MetadataResponse v1, brokers") for n in range(5, 8)),
    ("size 2^31-1", (1,), bytes.fromhex("7fffffff"), RemoteProtocolError, "over the limit"),
    ("size 0x80000000", (1,), bytes.fromhex("80000000"), RemoteProtocolError, "negative"),
    ("TLS alert 0x15030100", (1,), bytes.fromhex("15030100"), RemoteProtocolError, "TLS"),
    ("HTTP", (1,), b"HTTP/1.1 400 Bad Request\r\n", RemoteProtocolError, "web server"),
    ("GET ", (1,), b"GET / HTTP/1.1\r\n", RemoteProtocolError, "web client"),
    ("frame longer than its message", (1,), frame("00000000" + "00" * 12 + "00"), DecodeError, "MetadataResponse v1"),
    ("correlation id of another", (1,), frame("00000001" + "00" * 12), RemoteProtocolError, "id 1 where Metadata v1"),
    ("correlation id of the next one", (1, 1), frame("00000001" + "00" * 12), RemoteProtocolError, "id 1 where"),
    ("negative correlation id", (1,), frame("ffffffff" + "00" * 12), RemoteProtocolError, "id -1 where"),
    ("unsolicited", (), frame("00000000" + "00" * 12), RemoteProtocolError, "unsolicited response"),
    ("flexible answer whose header tags are cut", (9,), frame("00000000 ff"), DecodeError, "ResponseHeader"),
    ("flexible answer with header tags twice", (9,), frame("00000000 02 0500 0500" + "00" * 9), DecodeError, "Header"),
]


@pytest.mark.parametrize(
    ("name", "sent", "data", "kind", "says"), REFUSED_BY_A_CLIENT, ids=[row[0] for row in REFUSED_BY_A_CLIENT]
)
def test_a_frame_that_is_no_answer_is_a_typed_error_and_stays_one(
    name: str, sent: tuple[int, ...], data: bytes, kind: type[TagwireError], says: str
) -> None:
    client = asking(*sent)
    client.receive(data)
    for _ in range(2):
        with pytest.raises(kind, match=says):
            client.next_event()
    with pytest.raises(ProtocolError, match="has ended"):
        client.send(messages.MetadataRequest(topics=None), 1)


def test_a_correlation_id_used_again_is_unsolicited() -> None:
    client = asking(1, 1)
    answer = frame("00000000" + "00" * 12)
    client.receive(answer + answer)
    assert isinstance(client.next_event(), Response)
    with pytest.raises(RemoteProtocolError, match="answered correlation id 0 where Metadata v1"):
        client.next_event()


def test_an_answer_to_produce_without_acks_is_unsolicited() -> None:
    client = Connection("client")
    client.send(messages.ProduceRequest(acks=0, timeout_ms=1), 9)
    client.receive(frame("00000000 00 01 00000000 00"))
    with pytest.raises(RemoteProtocolError, match="unsolicited response"):
        client.next_event()


@pytest.mark.parametrize("version", [1, 9])
def test_size_4_is_a_request_that_is_not_supported(version: int) -> None:
    client = asking(version)
    client.receive(frame("00000000"))
    assert client.next_event() == Unsupported(3, version, 0)


@pytest.mark.parametrize("role", ["broker", "client"])
def test_the_end_of_the_stream_inside_a_frame_is_an_error_at_every_byte(role: str) -> None:
    data = frame(V9 + ALL_TOPICS_V9) if role == "broker" else frame("00000000" + "00" * 12)
    for cut in range(1, len(data)):
        connection = Connection("broker", served=SERVED) if role == "broker" else asking(1)
        connection.receive(data[:cut])
        connection.receive(b"")
        with pytest.raises(ConnectionLostError):
            connection.next_event()


LYING_ANSWERS = [
    ("null array of a null-less field", "ffffffff"),
    ("array length -2", "fffffffe"),
    ("array length 2^31-1", "7fffffff"),
    ("array one longer than what is left", "00000005 00000000"),
    ("arrays that each claim what is left", "00000001 00000000 0001 61 00002384 ffff 00000000 7fffffff"),
]


@pytest.mark.parametrize(("name", "body"), LYING_ANSWERS, ids=[row[0] for row in LYING_ANSWERS])
def test_a_count_that_lies_allocates_nothing_by_it(name: str, body: str) -> None:
    client = asking(1)
    client.receive(frame("00000000" + body))
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError, match="MetadataResponse v1"):
            client.next_event()
        assert tracemalloc.get_traced_memory()[1] < 64 * len(body) + 2**20
    finally:
        tracemalloc.stop()


NULLS: list[tuple[str, Any, int, str]] = [
    ("Produce v9", messages.ProduceRequest(acks=1), 9, "00 00"),
    ("Fetch v12", messages.FetchRequest(), 12, "00 00000000 0000 00000000 00"),
    ("ApiVersions v3", messages.ApiVersionsRequest(), 3, "0000 00"),
    ("ApiVersions v0", messages.ApiVersionsRequest(), 0, "0000 ffffffff"),
    ("GetTelemetrySubscriptions v0", messages.request(71)(), 0, "00 00000000 0000" + "00" * 16 + "00000000 00"),
]


@pytest.mark.parametrize(("name", "request_", "version", "body"), NULLS, ids=[row[0] for row in NULLS])
def test_a_null_array_where_there_is_none_is_an_error(name: str, request_: Any, version: int, body: str) -> None:
    """What crashed other clients before they had authenticated (E.2)."""
    client = Connection("client")
    client.send(request_, version)
    client.receive(frame("00000000" + body))
    with pytest.raises(DecodeError, match="null"):
        client.next_event()
