"""A connection in both roles: what goes out, what comes in, and what is not let pass."""

from __future__ import annotations

from typing import Any

import pytest

from tagwire import messages
from tagwire.errors import (
    ConnectionLostError,
    DecodeError,
    EncodeError,
    Error,
    LocalProtocolError,
    ProtocolError,
    RemoteProtocolError,
    TagwireError,
    UnsupportedVersionError,
)
from tagwire.rpc import (
    CLOSED,
    NEED_DATA,
    Connection,
    Limits,
    Request,
    Response,
    UnservedRequest,
    Unsupported,
    UnsupportedApiVersions,
)

SERVED = {0: (3, 12), 3: (0, 12), 18: (0, 4)}


class Pair:
    """A client and a broker, wired back to back."""

    def __init__(self, **client: Any) -> None:
        self.client = Connection("client", client_id="pair", **client)
        self.broker = Connection("broker", served=SERVED)

    def ask(self, message: Any, version: int) -> Any:
        self.broker.receive(self.client.send(message, version))
        return self.broker.next_event()

    def respond(self, request: Any, message: Any) -> Any:
        self.client.receive(self.broker.send_response(request, message))
        return self.client.next_event()


def metadata_request(name: str = "t") -> Any:
    return messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name=name)])


def produce_request(acks: int) -> Any:
    return messages.ProduceRequest(acks=acks, timeout_ms=1000)


@pytest.mark.parametrize("version", [1, 8, 9, 12])
def test_a_request_and_its_answer_cross_the_connection(version: int) -> None:
    pair = Pair()
    request = pair.ask(metadata_request(), version)
    assert isinstance(request, Request)
    assert str(request) == f"Metadata v{version} from client 'pair'"
    assert request.decode() == metadata_request()
    response = pair.respond(request, messages.MetadataResponse(controller_id=7))
    assert response == Response(3, version, request.correlation_id, messages.MetadataResponse(controller_id=7))
    assert pair.client.next_event() is NEED_DATA
    assert pair.broker.next_event() is NEED_DATA
    assert pair.client.due == pair.broker.due == 0


def test_answers_come_in_the_order_of_pipelined_requests() -> None:
    pair = Pair()
    for name in "abc":
        pair.broker.receive(pair.client.send(metadata_request(name), 12))
    requests = [pair.broker.next_event() for _ in range(3)]
    assert [request.decode().topics[0].name for request in requests if isinstance(request, Request)] == ["a", "b", "c"]
    assert pair.broker.due == pair.client.due == 3
    with pytest.raises(LocalProtocolError, match="in the order of the requests"):
        pair.broker.send_response(requests[1], messages.MetadataResponse())
    for number, request in enumerate(requests):
        assert pair.respond(request, messages.MetadataResponse(controller_id=number)).message.controller_id == number


def test_a_request_is_answered_once() -> None:
    pair = Pair()
    request = pair.ask(metadata_request(), 12)
    pair.respond(request, messages.MetadataResponse())
    with pytest.raises(LocalProtocolError, match="one to each"):
        pair.broker.send_response(request, messages.MetadataResponse())


def test_produce_without_acks_has_no_answer() -> None:
    pair = Pair()
    request = pair.ask(produce_request(acks=0), 9)
    assert pair.client.due == 0
    assert pair.broker.send_response(request, None) == b""
    assert pair.broker.due == 0
    request = pair.ask(produce_request(acks=1), 9)
    assert pair.client.due == 1
    assert isinstance(pair.respond(request, messages.ProduceResponse()), Response)


def test_a_request_that_cannot_be_encoded_leaves_the_connection_as_it_was() -> None:
    pair = Pair()
    with pytest.raises(EncodeError):
        pair.client.send(messages.MetadataRequest(topics=7), 12)
    with pytest.raises(UnsupportedVersionError):
        pair.client.send(metadata_request(), 99)
    assert pair.client.due == 0
    assert pair.ask(metadata_request(), 12).correlation_id == 0


def test_an_answer_that_cannot_be_encoded_leaves_its_request_to_be_answered() -> None:
    pair = Pair()
    request = pair.ask(metadata_request(), 12)
    with pytest.raises(EncodeError):
        pair.broker.send_response(request, messages.MetadataResponse(brokers=None))
    assert isinstance(pair.respond(request, messages.MetadataResponse()), Response)


@pytest.mark.parametrize("given", [2_147_483_640, 2_147_483_647])
def test_after_a_reserved_correlation_id_that_is_given_the_next_is_the_lowest(given: int) -> None:
    client = Connection("client", client_id="c")
    frames = [client.send(metadata_request(), 1, correlation_id=given), client.send(metadata_request(), 1)]
    assert [int.from_bytes(frame[8:12], "big", signed=True) for frame in frames] == [given, -2_147_483_648]


def test_correlation_ids_skip_those_kept_for_sasl() -> None:
    client = Connection("client")
    frames = [client.send(metadata_request(), 1, correlation_id=2_147_483_638)]
    frames += [client.send(metadata_request(), 1) for _ in range(2)]
    ids = [int.from_bytes(frame[8:12], "big", signed=True) for frame in frames]
    assert ids == [2_147_483_638, 2_147_483_639, -2_147_483_648]


def test_apiversions_in_an_unknown_version_is_told_without_reading_its_body() -> None:
    broker = Connection("broker", served=SERVED)
    broker.receive(bytes.fromhex("00000013 0012 7fff 00000007 0003 636c69 00 deadbeefdead"))
    event = broker.next_event()
    assert isinstance(event, UnsupportedApiVersions)
    assert (event.version, event.client_id, event.correlation_id) == (32767, "cli", 7)
    entry = messages.ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=5)
    answer = messages.ApiVersionsResponse(error_code=Error.UNSUPPORTED_VERSION, api_keys=[entry])
    assert broker.send_response(event, answer).hex(" ", -4) == "00000010 00000007 00230000 00010012 00000005"


UNSERVED = [
    ("a version above", "0003 000d 00000007 0003 636c69 00", "Metadata v13 from client 'cli'"),
    ("a version below", "0000 0002 00000007 0003 636c69", "Produce v2 from client 'cli'"),
    ("a negative version", "0003 ffff 00000007 0003 636c69", "Metadata v-1 from client 'cli'"),
    ("an api not served", "0001 000c 00000007 0003 636c69 00", "Fetch v12 from client 'cli'"),
    ("an api nobody knows", "03e7 0000 00000007 0003 636c69", "API 999 v0 from client 'cli'"),
    ("a negative key", "ffff 0000 00000007 ffff", "API -1 v0 from client ''"),
]


@pytest.mark.parametrize(("name", "header", "says"), UNSERVED, ids=[row[0] for row in UNSERVED])
def test_what_is_not_served_is_told_with_its_client(name: str, header: str, says: str) -> None:
    broker = Connection("broker", served=SERVED)
    data = bytes.fromhex(header)
    broker.receive(len(data).to_bytes(4, "big") + data)
    event = broker.next_event()
    assert isinstance(event, UnservedRequest)
    assert str(event) == says
    assert broker.send_unsupported(event).hex() == "0000000400000007"


@pytest.mark.parametrize("version", [1, 12], ids=["header v0", "header v1"])
def test_an_answer_of_nothing_but_the_correlation_id_means_not_supported(version: int) -> None:
    pair = Pair()
    request = pair.ask(metadata_request(), version)
    pair.client.receive(pair.broker.send_unsupported(request))
    event = pair.client.next_event()
    assert event == Unsupported(3, version, request.correlation_id)
    assert str(event) == f"request not supported by server: the broker answered Metadata v{version} with nothing"
    assert isinstance(pair.respond(pair.ask(metadata_request(), 12), messages.MetadataResponse()), Response)


def test_a_body_that_is_no_request_is_an_error_when_it_is_decoded() -> None:
    broker = Connection("broker")
    broker.receive(bytes.fromhex("0000000e 0003 0008 00000007 ffff 7fffffff"))
    request = broker.next_event()
    assert isinstance(request, Request)
    with pytest.raises(DecodeError, match="MetadataRequest v8, topics"):
        request.decode()


def test_trailing_bytes_are_refused_unless_lenient() -> None:
    data = bytes.fromhex("0000000f 0003 0001 00000007 ffff ffffffff 00")
    for lenient in (False, True):
        broker = Connection("broker", lenient=lenient)
        broker.receive(data)
        request = broker.next_event()
        assert isinstance(request, Request)
        if lenient:
            assert request.decode() == messages.MetadataRequest(topics=None)
        else:
            with pytest.raises(DecodeError):
                request.decode()


# Requests sent by the client, the bytes that come back, the error.
HOSTILE_ANSWERS = [
    ("unsolicited", 0, "00000004 00000000", RemoteProtocolError, "unsolicited response, correlation id 0"),
    (
        "another id",
        1,
        "00000008 00000001 00000000",
        RemoteProtocolError,
        r"id 1 where Metadata v1 \(corr",
    ),
    ("no correlation id", 1, "00000003 000000", DecodeError, "ResponseHeader"),
    ("empty frame", 1, "00000000", DecodeError, "ResponseHeader"),
    ("negative size", 1, "ffffffff", RemoteProtocolError, "frame size -1"),
    ("too large", 1, "00001000", RemoteProtocolError, "frame size 4096 .* limit of 4095"),
    ("a web server", 1, b"HTTP/1.1 400 Bad Request\r\n".hex(), RemoteProtocolError, "HTTP"),
    ("array longer than the frame", 1, "00000008 00000000 7fffffff", DecodeError, "MetadataResponse v1, brokers"),
    ("cut short", 1, "00000006 00000000 0000", DecodeError, "MetadataResponse v1"),
]


@pytest.mark.parametrize(
    ("name", "sent", "data", "kind", "says"), HOSTILE_ANSWERS, ids=[row[0] for row in HOSTILE_ANSWERS]
)
def test_an_answer_that_breaks_the_protocol_ends_the_connection(
    name: str, sent: int, data: str, kind: type[TagwireError], says: str
) -> None:
    client = Connection("client", Limits(max_frame_bytes=4095))
    for _ in range(sent):
        client.send(metadata_request(), 1)
    client.receive(bytes.fromhex(data))
    for _ in range(2):
        with pytest.raises(kind, match=says):
            client.next_event()


def test_a_second_answer_to_one_request_is_unsolicited() -> None:
    pair = Pair()
    request = pair.ask(metadata_request(), 12)
    answer = pair.broker.send_response(request, messages.MetadataResponse())
    pair.client.receive(answer + answer)
    assert isinstance(pair.client.next_event(), Response)
    with pytest.raises(RemoteProtocolError, match="unsolicited response"):
        pair.client.next_event()


def test_an_answer_to_produce_without_acks_is_unsolicited() -> None:
    pair = Pair()
    request = pair.ask(produce_request(acks=0), 9)
    pair.client.receive(pair.broker.send_response(request, messages.ProduceResponse()))
    with pytest.raises(RemoteProtocolError, match="unsolicited response"):
        pair.client.next_event()


def test_the_end_of_the_stream_between_requests_is_closed() -> None:
    pair = Pair()
    pair.respond(pair.ask(metadata_request(), 12), messages.MetadataResponse())
    pair.client.receive(b"")
    pair.broker.receive(b"")
    assert pair.client.next_event() is CLOSED
    assert pair.broker.next_event() is CLOSED


def test_requests_before_the_end_of_the_stream_are_still_told() -> None:
    pair = Pair()
    pair.broker.receive(pair.client.send(metadata_request(), 12))
    pair.broker.receive(b"")
    assert isinstance(pair.broker.next_event(), Request)
    assert pair.broker.next_event() is CLOSED


def test_the_end_of_the_stream_while_an_answer_is_due_names_the_request() -> None:
    client = Connection("client")
    client.send(metadata_request(), 12)
    client.receive(b"")
    with pytest.raises(ConnectionLostError, match=r"Metadata v12 \(correlation id 0\) was still to be answered"):
        client.next_event()


def test_the_end_of_the_stream_inside_a_frame_is_an_error() -> None:
    broker = Connection("broker")
    broker.receive(b"\x00\x00\x00\x10\x00")
    broker.receive(b"")
    with pytest.raises(ConnectionLostError, match="in the middle of a frame"):
        broker.next_event()


def test_bytes_read_in_place_give_the_same_events() -> None:
    pair = Pair()
    request = pair.ask(metadata_request("x" * 200), 12)
    data = pair.broker.send_response(request, messages.MetadataResponse(cluster_id="y" * 30_000))
    events: list[Any] = []
    while data:
        space = pair.client.space()
        count = min(len(space), len(data), 1000)
        space[:count] = data[:count]
        pair.client.received(count)
        data = data[count:]
        events.append(pair.client.next_event())
    assert events[:-1] == [NEED_DATA] * (len(events) - 1)
    assert events[-1].message.cluster_id == "y" * 30_000
    pair.client.received(0)
    assert pair.client.next_event() is CLOSED


def test_misuse_on_this_side_sends_nothing_and_leaves_the_connection_as_it_was() -> None:
    pair = Pair()
    with pytest.raises(LocalProtocolError, match="sends no requests"):
        pair.broker.send(metadata_request(), 12)
    request = pair.ask(metadata_request(), 12)
    with pytest.raises(LocalProtocolError, match="correlation id 0 is still to be answered"):
        pair.client.send(metadata_request(), 12, correlation_id=0)
    assert isinstance(pair.respond(request, messages.MetadataResponse()), Response)


@pytest.mark.parametrize("data", [b"", b"\xff\xff\xff\xff"], ids=["closed by the peer", "broken by the peer"])
def test_nothing_is_sent_on_a_connection_that_has_ended(data: bytes) -> None:
    client = Connection("client")
    client.receive(data)
    if data:
        with pytest.raises(RemoteProtocolError):
            client.next_event()
    with pytest.raises(LocalProtocolError, match="the connection has ended"):
        client.send(metadata_request(), 12)


def test_the_two_kinds_of_protocol_error_are_not_each_other() -> None:
    assert issubclass(LocalProtocolError, ProtocolError)
    assert issubclass(RemoteProtocolError, ProtocolError)
    assert not issubclass(LocalProtocolError, RemoteProtocolError)
    assert not issubclass(RemoteProtocolError, LocalProtocolError)
