"""A trace tells requests and responses by their names and fields."""

from __future__ import annotations

from tagwire import messages
from tagwire.records import Record, write
from tagwire.rpc.headers import RequestHeader, encode_request_header, encode_response_header

from .protocol import LONGEST, Protocol, told

CLIENT, BROKER = ("10.0.0.1", 50000), ("127.0.0.1", 9092)


def framed(*parts: bytes) -> bytes:
    data = b"".join(parts)
    return len(data).to_bytes(4, "big") + data


def request(api: int, version: int, number: int, body: bytes) -> bytes:
    return framed(encode_request_header(RequestHeader(api, version, number, "producer-1")), body)


def response(api: int, version: int, number: int, body: bytes) -> bytes:
    return framed(encode_response_header(api, version, number), body)


def said(*sent: tuple[bool, bytes]) -> list[str]:
    lines: list[str] = []
    protocol = Protocol(lines.append)
    for by_client, data in sent:
        ends = (CLIENT, BROKER) if by_client else (BROKER, CLIENT)
        protocol.sent("app" if by_client else "broker", "broker" if by_client else "app", ends, data)
    return lines


def test_a_request_and_its_response_are_told_by_their_fields_however_their_bytes_come() -> None:
    asked = messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    coordinator = messages.FindCoordinatorResponse.Coordinator(key="g", error_code=15)
    frame = request(10, 4, 7, asked.encode(4))
    pieces = [(True, frame[at : at + 1]) for at in range(len(frame))]
    answer = response(10, 4, 7, messages.FindCoordinatorResponse(coordinators=[coordinator]).encode(4))
    assert said(*pieces, (False, answer)) == [
        "app (producer-1) -> broker: FindCoordinator v4 #7 {coordinator_keys=[g]}",
        "app (producer-1) <- broker: FindCoordinator v4 #7 "
        "{coordinators=[{key=g error_code=COORDINATOR_NOT_AVAILABLE}]}",
    ]


def test_batches_are_told_by_their_headers() -> None:
    records = write([Record(None, b"a"), Record(None, b"b")], producer_id=5, producer_epoch=1, base_sequence=40)
    kind = messages.ProduceRequest
    topic = kind.TopicProduceData(
        name="t", partition_data=[kind.PartitionProduceData(index=0, records=records), kind.PartitionProduceData()]
    )
    assert "records=<0-1 of producer 5/1 from 40>" in told(kind(acks=-1, topic_data=[topic]), 9)


def test_a_long_message_is_cut() -> None:
    assert len(told(messages.FindCoordinatorRequest(coordinator_keys=["g" * 5000]), 4)) == LONGEST + 1


def test_an_answer_to_a_version_that_the_broker_lacks_is_one_of_version_0() -> None:
    answer = messages.ApiVersionsResponse(error_code=35).encode(0)
    lines = said(
        (True, request(18, 4, 1, messages.ApiVersionsRequest().encode(4))), (False, response(18, 4, 1, answer))
    )
    assert lines[1] == "app (producer-1) <- broker: ApiVersions v0 #1 {error_code=UNSUPPORTED_VERSION}"


def test_what_is_not_the_protocol_is_told_once() -> None:
    garbage = framed(b"\x00\x63\x00\x00")
    [line] = said((True, garbage), (True, garbage))
    assert line.startswith("app and broker are no longer understood")
