"""A request and its response, as a watcher saw them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from tagwire.capture.observation import Endpoint, Place
from tagwire.errors import DecodeError
from tagwire.kernel.request_rows import Rows
from tagwire.rpc.headers import (
    CORRELATION_ID_BYTES,
    RequestHeader,
    decode_request_header,
    response_body_position,
    response_header_version,
)
from tagwire.spec.api_keys import API_NAMES


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request, and its response if there was one.

    Attributes:
        time: of the request, in microseconds since 1970 UTC; -1 if the capture has none.
        responded: of the response, -1 if there was none.
        client, broker: the ends of the connection.
        header: the request's; without its tags where bodies were not kept.
        request, response: the bodies, where they were kept whole.
        request_bytes, response_bytes: whole frames with their sizes; `response_bytes` None if there was no response.
        software_name, software_version, principal: as the connection knew them by then, "" for what it did not.
        place: where the request begins.
    """

    time: int
    client: Endpoint
    broker: Endpoint
    header: RequestHeader
    request: bytes | None
    request_bytes: int
    place: Place
    software_name: str = ""
    software_version: str = ""
    principal: str = ""
    responded: int = -1
    response: bytes | None = None
    response_bytes: int | None = None


def exchanges(rows: Rows, file: str) -> Iterator[Exchange]:
    """The rows one by one."""
    for row in range(rows.count):
        speaker = rows.speakers[rows.speaker_numbers[row]]
        header = RequestHeader(rows.apis[row], rows.versions[row], rows.correlation_ids[row], speaker.client_id)
        request = None
        if row in rows.requests:
            with suppress(DecodeError):
                header, body = decode_request_header(memoryview(rows.requests[row]), lenient=True)
                request = rows.requests[row][body:]
        yield Exchange(
            time=rows.times[row],
            client=speaker.client,
            broker=speaker.broker,
            header=header,
            request=request,
            request_bytes=rows.request_bytes[row],
            place=Place(file, rows.positions[row]),
            software_name=speaker.software_name,
            software_version=speaker.software_version,
            principal=speaker.principal,
            responded=rows.responded[row],
            response=body_of(rows, row),
            response_bytes=None if rows.response_bytes[row] < 0 else rows.response_bytes[row],
        )


def body_of(rows: Rows, row: int) -> bytes | None:
    """The body of a row's response; None where it was not kept whole, or is no response to such a request."""
    frame: bytes | None = rows.responses.get(row)
    if frame is None:
        return None
    header_version = _response_header(rows.apis[row], rows.versions[row])
    if header_version == 0:
        return frame[CORRELATION_ID_BYTES:]
    if header_version == 1 and frame[CORRELATION_ID_BYTES : CORRELATION_ID_BYTES + 1] == b"\0":  # no tags
        return frame[CORRELATION_ID_BYTES + 1 :]
    with suppress(DecodeError, KeyError):
        return frame[response_body_position(memoryview(frame), rows.apis[row], rows.versions[row], lenient=True) :]
    return None


@lru_cache(4096)
def _response_header(api: int, version: int) -> int | None:
    """The version of a response's header; None where there is no such API."""
    return response_header_version(api, version) if api in API_NAMES else None
