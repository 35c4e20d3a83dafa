"""Request and response headers (docs/wire-format.md#headers).

| header      | fields |
|-------------|--------|
| request v0  | int16 API key, int16 API version, int32 correlation id; ControlledShutdown v0 alone |
| request v1  | v0, nullable string client id (always with an int16 length) |
| request v2  | v1, tag section |
| response v0 | int32 correlation id |
| response v1 | v0, tag section |

Which of them stands before a message its spec says (KIP-1313), by comparing numbers: a version above every valid one
has its header all the same. An API that is not Kafka's may bring headers of its own, with versions and fields beside
these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from tagwire.codec.classes import DynamicMessage
from tagwire.errors import DecodeError
from tagwire.rpc.apis import (
    NO_APIS,
    Apis,
    request_class,
    request_header_class,
    response_class,
    response_header_class,
)
from tagwire.spec.api_keys import API_NAMES

CORRELATION_ID_BYTES: Final = 4
_CORRELATION_ID_AT: Final = 4
_NO_TAGS: Final = 0
_SHARED_FIELDS: Final = frozenset({"RequestApiKey", "RequestApiVersion", "CorrelationId", "ClientId"})


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """What stands before a request's body.

    Attributes:
        client_id: None where the client sent null.
        unknown_tags: what the header's spec does not know of its tag section: {tag: raw bytes}.
        fields: what else the header's spec has, by attribute; nothing in Kafka's headers.
    """

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None = None
    unknown_tags: dict[int, bytes] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)


def request_header_version(api: int, version: int, apis: Apis = NO_APIS) -> int:
    """Which RequestHeader stands before a request, as its spec says. Raises KeyError for a key that no API has."""
    return request_class(api, apis).spec.header_version(version)


def response_header_version(api: int, version: int, apis: Apis = NO_APIS) -> int:
    """Which ResponseHeader stands before a response, as its spec says. Raises KeyError for a key that no API has."""
    return response_class(api, apis).spec.header_version(version)


@lru_cache(4096)
def _kafkas_response_header_version(api: int, version: int) -> int:
    return response_header_version(api, version)


_Layout = tuple[type[DynamicMessage], int, tuple[str, ...]]
"""Of a request header: its class, its version, and what it has beside what every one has, by attribute."""


def _layout(api: int, version: int, apis: Apis) -> _Layout:
    """Raises KeyError for a key that no API has."""
    if api not in apis:
        return _kafkas_layout(api, version)
    return _layout_of(request_header_class(api, apis), request_header_version(api, version, apis))


@lru_cache(4096)
def _kafkas_layout(api: int, version: int) -> _Layout:
    return _layout_of(request_header_class(api), request_header_version(api, version))


@lru_cache(256)
def _layout_of(kind: type[DynamicMessage], version: int) -> _Layout:
    own = [field for field in kind.spec.fields if field.name not in _SHARED_FIELDS]
    return kind, version, tuple(field.attribute for field in own if version in field.versions)


def encode_request_header(header: RequestHeader, apis: Apis = NO_APIS) -> bytes:
    """The header's bytes. Of its `fields`, those are written that its version has room for.

    Raises KeyError for a key that no API has, EncodeError for a value that does not fit."""
    kind, version, own = _layout(header.api_key, header.api_version, apis)
    fields = {name: header.fields[name] for name in own if name in header.fields} if own else {}
    message = kind(
        request_api_key=header.api_key,
        request_api_version=header.api_version,
        correlation_id=header.correlation_id,
        client_id=header.client_id,
        unknown_tags=header.unknown_tags,
        **fields,
    )
    return message.encode(version)


def around_correlation_id(api: int, version: int, client_id: str | None) -> tuple[bytes, bytes]:
    """What stands before and after the correlation id in the header of one of Kafka's own requests, of a client that
    says nothing else in it: nothing but that id changes from request to request. Raises as `encode_request_header`."""
    header = encode_request_header(RequestHeader(api, version, 0, client_id))
    return header[:_CORRELATION_ID_AT], header[_CORRELATION_ID_AT + CORRELATION_ID_BYTES :]


def decode_request_header(
    frame: memoryview, *, lenient: bool = False, apis: Apis = NO_APIS
) -> tuple[RequestHeader, int]:
    """The header at the start of a request frame, and the position after it.

    For a key that no API has, nothing tells which header this is: the fields of v1 are read, which v2 starts with too.

    Raises:
        DecodeError: the bytes are no header.
    """
    if len(frame) < 4:
        raise DecodeError(f"the frame ends after {len(frame)} bytes", path="RequestHeader", offset=0)
    api = int.from_bytes(frame[:2], "big", signed=True)
    version = int.from_bytes(frame[2:4], "big", signed=True)
    is_known = api in API_NAMES or api in apis
    kind, header_version, own = _layout(api, version, apis) if is_known else _layout_of(request_header_class(api), 1)
    header, end = kind.decode_prefix(frame, header_version, lenient=lenient)
    fields = {name: getattr(header, name) for name in own} if own else {}
    return RequestHeader(api, version, header.correlation_id, header.client_id, header.unknown_tags, fields), end


def encode_response_header(api: int, version: int, correlation_id: int, apis: Apis = NO_APIS) -> bytes:
    """The bytes before the body of a response to (api, version). Raises KeyError for a key that no API has."""
    kind = response_header_class(api, apis)
    return kind(correlation_id=correlation_id).encode(response_header_version(api, version, apis))


def response_correlation_id(frame: memoryview) -> int:
    """The correlation id that every response starts with. Raises DecodeError where it is cut short."""
    if len(frame) < CORRELATION_ID_BYTES:
        raise DecodeError(f"the frame ends after {len(frame)} bytes", path="ResponseHeader", offset=0)
    return int.from_bytes(frame[:CORRELATION_ID_BYTES], "big", signed=True)


def response_body_position(
    frame: memoryview, api: int, version: int, *, lenient: bool = False, apis: Apis = NO_APIS
) -> int:
    """Where the body starts in the response to (api, version). Raises DecodeError; KeyError for a key that no API
    has."""
    if api not in apis:
        header_version = _kafkas_response_header_version(api, version)
        if header_version == 0:
            return CORRELATION_ID_BYTES
        if header_version == 1 and len(frame) > CORRELATION_ID_BYTES and frame[CORRELATION_ID_BYTES] == _NO_TAGS:
            return CORRELATION_ID_BYTES + 1
    else:
        header_version = response_header_version(api, version, apis)
    return response_header_class(api, apis).decode_prefix(frame, header_version, lenient=lenient)[1]
