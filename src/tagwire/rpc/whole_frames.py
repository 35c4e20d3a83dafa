"""Whole frames as they pass between client and broker: size, header and body, read and annotated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tagwire.errors import ConfigError, DecodeError

if TYPE_CHECKING:
    from tagwire.codec.annotate import Span

_SIZE_BYTES = 4


@dataclass(frozen=True)
class Frame:
    """One frame among the bytes that were given.

    Attributes:
        start, header_end, end: positions of its size, of the body and behind the body.
        header_version: of the message `header`.
    """

    api: str
    version: int
    start: int
    header: Any
    header_version: int
    header_end: int
    end: int
    body: Any

    def document(self, data: bytes, *, lenient: bool) -> dict[str, Any]:
        """What it says. Raises DecodeError, with positions counted from the first byte of `data`."""
        head = self.start + _SIZE_BYTES
        with _behind(head):
            header = self.header.decode(data[head : self.header_end], self.header_version, lenient=lenient)
        with _behind(self.header_end):
            body = self.body.decode(data[self.header_end : self.end], self.version, lenient=lenient)
        return {
            "api": self.api,
            "version": self.version,
            "size": self.end - self.start - _SIZE_BYTES,
            "header": header.to_json(self.header_version),
            "message": self.body.spec.name,
            "body": body.to_json(self.version),
        }

    def spans(self, data: bytes) -> Iterator[Span]:
        """What every byte means. Raises DecodeError after the last that means something."""
        from tagwire.codec.annotate import Span, annotate

        head = self.start + _SIZE_BYTES
        yield Span(self.start, head, "(size)", "int32", str(self.end - head), "bytes that follow")
        parts = (
            ("header.", head, self.header_end, self.header.spec, self.header_version),
            ("body.", self.header_end, self.end, self.body.spec, self.version),
        )
        for name, start, end, spec, version in parts:
            with _behind(start):
                for span in annotate(spec, data[start:end], version):
                    yield replace(span, start=span.start + start, end=span.end + start, path=name + span.path)


@contextmanager
def _behind(count: int) -> Iterator[None]:
    """Errors inside tell positions in an input that begins so many bytes earlier."""
    try:
        yield
    except DecodeError as error:
        raise error.behind(count) from None


def frames(data: bytes, api: int | None, version: int | None, *, responses: bool = False) -> Iterator[Frame]:
    """The frames that follow each other in `data`.

    Args:
        api: an API key; None for requests of any. Responses do not name their request.
        version: of responses, which do not say that either; of requests None, or what all of them must have.
        responses: whether the frames are responses of `api`.

    Raises:
        ConfigError: what the frames are is not said.
        DecodeError: the bytes are no whole frames, or others than they were said to be.
    """
    if responses and (api is None or version is None):
        raise ConfigError("a response does not say which version it has: give --version")
    start = 0
    while start < len(data) or not start:
        size = int.from_bytes(data[start : start + _SIZE_BYTES], "big", signed=True)
        end = start + _SIZE_BYTES + size
        there = len(data) - start - _SIZE_BYTES
        if there < 0 or size < 0 or size > there:
            said = f"claims {size:,} bytes, {max(there, 0):,} are there" if there >= 0 else "ends inside its size"
            raise DecodeError(f"{said}; a body alone is read without --frame", path="frame", offset=start)
        if responses and api is not None and version is not None:
            yield _response(data, start, end, api, version)
        else:
            yield _request(data, start, end, api, version)
        start = end


def _request(data: bytes, start: int, end: int, api: int | None, version: int | None) -> Frame:
    from tagwire import messages
    from tagwire.rpc import api_name
    from tagwire.rpc.headers import decode_request_header, request_header_version
    from tagwire.spec.api_keys import API_NAMES

    head = start + _SIZE_BYTES
    with _behind(head):
        header, length = decode_request_header(memoryview(data)[head:end], lenient=True)
        found = f"{api_name(header.api_key)} v{header.api_version} (correlation id {header.correlation_id})"
        if header.api_key not in API_NAMES:  # nothing tells what stands behind its header
            raise DecodeError(f"no API has key {header.api_key}: these are no requests", path="RequestHeader", offset=0)
        if (api is not None and header.api_key != api) or (version is not None and header.api_version != version):
            raise DecodeError(f"the frame holds {found}, which was not requested", path="RequestHeader", offset=0)
    kind = messages.request(header.api_key)
    header_version = request_header_version(header.api_key, header.api_version)
    name = api_name(header.api_key)
    return Frame(name, header.api_version, start, messages.RequestHeader, header_version, head + length, end, kind)


def _response(data: bytes, start: int, end: int, api: int, version: int) -> Frame:
    from tagwire import messages
    from tagwire.rpc import api_name
    from tagwire.rpc.headers import response_body_position, response_correlation_id, response_header_version

    head = start + _SIZE_BYTES
    frame = memoryview(data)[head:end]
    with _behind(head):
        response_correlation_id(frame)
        length = response_body_position(frame, api, version, lenient=True)
    header_version = response_header_version(api, version)
    kind = messages.response(api)
    return Frame(api_name(api), version, start, messages.ResponseHeader, header_version, head + length, end, kind)
