"""Request and response headers, byte by byte."""

from __future__ import annotations

import pytest

from tagwire.errors import DecodeError, EncodeError
from tagwire.rpc import (
    RequestHeader,
    decode_request_header,
    encode_request_header,
    encode_response_header,
    request_header_version,
    response_header_version,
)

# API key, version, request header, response header (docs/wire-format.md#headers; ApiMessageTypeTest)
HEADER_VERSIONS = [
    (0, 0, 1, 0),
    (0, 8, 1, 0),
    (0, 9, 2, 1),
    (1, 11, 1, 0),
    (1, 12, 2, 1),
    (7, 0, 0, 0),
    (7, 1, 1, 0),
    (7, 3, 2, 1),
    (17, 1, 1, 0),
    (18, 0, 1, 0),
    (18, 2, 1, 0),
    (18, 3, 2, 0),
    (18, 99, 2, 0),
    (18, 32767, 2, 0),
    (18, -1, 1, 0),
    (19, 4, 1, 0),
    (19, 5, 2, 1),
    (3, 32767, 2, 1),
    (45, 0, 2, 1),
    (47, 0, 1, 0),
]


@pytest.mark.parametrize(("api", "version", "request_header", "response_header"), HEADER_VERSIONS)
def test_header_versions_follow_the_flexible_versions_by_number(
    api: int, version: int, request_header: int, response_header: int
) -> None:
    assert request_header_version(api, version) == request_header
    assert response_header_version(api, version) == response_header


@pytest.mark.parametrize("api", [-1, 95, 999])
def test_a_key_that_no_api_has_has_no_header_version(api: int) -> None:
    with pytest.raises(KeyError):
        request_header_version(api, 0)
    with pytest.raises(KeyError):
        response_header_version(api, 0)


REQUEST_HEADERS = [
    ("v1", RequestHeader(3, 1, 8, "cli"), "0003 0001 00000008 0003 636c69"),
    ("v1, null client id", RequestHeader(3, 1, 8, None), "0003 0001 00000008 ffff"),
    ("v1, empty client id", RequestHeader(3, 1, 8, ""), "0003 0001 00000008 0000"),
    ("v2 keeps the int16 length", RequestHeader(3, 9, 8, "cli"), "0003 0009 00000008 0003 636c69 00"),
    ("v2 with a tag", RequestHeader(3, 9, 7, "", {5: b"\1\2\3"}), "0003 0009 00000007 0000 01 05 03 010203"),
    ("negative correlation id", RequestHeader(3, 9, -2, None), "0003 0009 fffffffe ffff 00"),
    ("v0, which knows no client id", RequestHeader(7, 0, 8, ""), "0007 0000 00000008"),
]


@pytest.mark.parametrize(("name", "header", "data"), REQUEST_HEADERS, ids=[row[0] for row in REQUEST_HEADERS])
def test_a_request_header_is_written_and_read_as(name: str, header: RequestHeader, data: str) -> None:
    raw = bytes.fromhex(data)
    assert encode_request_header(header) == raw
    assert decode_request_header(memoryview(raw + b"body")) == (header, len(raw))


@pytest.mark.parametrize(
    ("api", "version", "size"), [(10, 2, 10), (10, 3, 11)], ids=["FindCoordinator header v1", "v2"]
)
def test_an_empty_client_id_makes_headers_of_known_size(api: int, version: int, size: int) -> None:
    assert len(encode_request_header(RequestHeader(api, version, 1, ""))) == size


def test_the_header_of_an_unknown_api_still_tells_who_sent_it() -> None:
    header, _ = decode_request_header(memoryview(bytes.fromhex("03e7 0002 00000009 0003 636c69 00")))
    assert header == RequestHeader(999, 2, 9, "cli")


def test_a_client_id_too_long_for_its_length_is_refused() -> None:
    with pytest.raises(EncodeError, match="client_id"):
        encode_request_header(RequestHeader(3, 9, 1, "x" * 40_000))


HOSTILE_HEADERS = [
    ("nothing", ""),
    ("one byte", "00"),
    ("seven bytes", "00030009000000"),
    ("no client id length", "0003000900000007"),
    ("client id past the end", "0003 0001 00000007 0004 636c69"),
    ("client id length -2", "0003 0001 00000007 fffe"),
    ("client id of 40000", "0003 0001 00000007 9c40"),
    ("client id that is no UTF-8", "0003 0001 00000007 0002 c328"),
    ("v2 without its tag section", "0003 0009 00000007 0003 636c69"),
    ("more tags than bytes", "0003 0009 00000007 0000 ffffffff0f"),
    ("tag past the end", "0003 0009 00000007 0000 01 05 0a 01"),
    ("tags out of order", "0003 0009 00000007 0000 02 09 00 05 00"),
    ("tag count of six bytes", "0003 0009 00000007 0000 808080808000"),
]


@pytest.mark.parametrize(("name", "data"), HOSTILE_HEADERS, ids=[row[0] for row in HOSTILE_HEADERS])
def test_bytes_that_are_no_request_header_are_refused(name: str, data: str) -> None:
    with pytest.raises(DecodeError, match="RequestHeader"):
        decode_request_header(memoryview(bytes.fromhex(data)))


def test_a_response_header_is_written_as() -> None:
    assert encode_response_header(3, 8, 7).hex() == "00000007"
    assert encode_response_header(3, 9, 7).hex() == "0000000700"
    assert encode_response_header(18, 4, 7).hex() == "00000007"
