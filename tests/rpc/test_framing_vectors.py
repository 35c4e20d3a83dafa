"""Frames that Kafka's own code wrote, and what its header parser said (tests/vectors/framing.jsonl.gz)."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tagwire import messages
from tagwire.errors import TagwireError
from tagwire.rpc import (
    NEED_DATA,
    Connection,
    Request,
    Response,
    UnsupportedApiVersions,
    api_name,
    decode_request_header,
    encode_request_header,
    encode_response_header,
    request_header_version,
)

VECTORS = Path(__file__).parents[1] / "vectors" / "framing.jsonl.gz"


def lines(prefix: str) -> list[Any]:
    with gzip.open(VECTORS, "rt") as file:
        rows = [json.loads(line) for line in file]
    return [pytest.param(row, id=row["name"]) for row in rows if row["name"].startswith(prefix)]


def parts(name: str) -> tuple[str, int, int]:
    """API, version and header version of `request/Metadata-all/v12/hdr2`."""
    match = re.fullmatch(r"\w+/(\w+)[^/]*/v(\d+)/hdr(\d)", name)
    assert match is not None
    return match[1], int(match[2]), int(match[3])


@pytest.mark.parametrize("row", lines("request/"))
def test_a_request_frame_of_kafka_is_read_and_written_again(row: dict[str, str]) -> None:
    api, version, header_version = parts(row["name"])
    framed = bytes.fromhex(row["framed"])
    broker = Connection("broker")
    broker.receive(framed)
    request = broker.next_event()
    assert isinstance(request, Request)
    assert (api_name(request.api_key), request.version) == (api, version)
    assert request_header_version(request.api_key, version) == header_version
    assert request.client_id == ("" if "nullClientId" in row["name"] else "cli")
    assert encode_request_header(request.header) + request.decode().encode(version) == framed[4:]

    client = Connection("client", client_id=request.header.client_id)
    assert client.send(request.decode(), version, correlation_id=request.correlation_id) == framed


@pytest.mark.parametrize("row", lines("response/"))
def test_a_response_frame_of_kafka_is_read_and_written_again(row: dict[str, str]) -> None:
    api, version, header_version = parts(row["name"])
    asked = 99 if "req v99" in row["name"] else version
    framed = bytes.fromhex(row["framed"])
    request_class = getattr(messages, f"{api}Request")
    assert header_version == 0
    number = int.from_bytes(framed[4:8], "big")

    client = Connection("client")
    client.send(request_class(), min(asked, request_class.valid_versions.highest), correlation_id=number)
    client.receive(framed)
    response = client.next_event()
    assert isinstance(response, Response)
    assert (response.version, response.correlation_id) == (version, number)
    assert encode_response_header(response.api_key, version, number) + response.message.encode(version) == framed[4:]

    broker = Connection("broker", served={request_class.api_key: (0, version)})
    header = encode_request_header(decode_request_header(memoryview(asking(request_class.api_key, asked, number)))[0])
    body = request_class().encode(version) if asked == version else b"\xff\xff garbage"
    broker.receive((len(header) + len(body)).to_bytes(4, "big") + header + body)
    request = broker.next_event()
    assert isinstance(request, Request if asked == version else UnsupportedApiVersions)
    assert broker.send_response(request, response.message) == framed
    assert broker.next_event() is NEED_DATA


def asking(api: int, version: int, number: int) -> bytes:
    tags = b"\0" if request_header_version(api, version) == 2 else b""
    return api.to_bytes(2, "big") + version.to_bytes(2, "big") + number.to_bytes(4, "big") + b"\xff\xff" + tags


@pytest.mark.parametrize("lenient", [False, True], ids=["strict", "lenient"])
@pytest.mark.parametrize("row", lines("headerparse/"))
def test_a_request_header_reads_as_kafka_reads_it(row: dict[str, str], lenient: bool) -> None:
    data = memoryview(bytes.fromhex(row["name"].removeprefix("headerparse/")))
    expected = re.match(
        r"OK RequestHeader\(apiKey=(\w+), apiVersion=(-?\d+), clientId=(\w*), correlationId=(\d+), headerVersion=(\d)",
        row["result"],
    )
    if expected is None:
        with pytest.raises(TagwireError):
            decode_request_header(data, lenient=lenient)
        return
    header, _ = decode_request_header(data, lenient=lenient)
    key_name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", api_name(header.api_key)).upper()
    found = (key_name, header.api_version, header.client_id, header.correlation_id)
    assert found == (expected[1], int(expected[2]), expected[3], int(expected[4]))
    assert request_header_version(header.api_key, header.api_version) == int(expected[5])
