"""The example of one version as it travels: of a request or response the whole frame, with size and header."""

from __future__ import annotations

from typing import Any, Final

from tagwire import messages
from tagwire.codec.annotate import Span, annotate
from tagwire.reference.blocks import Bytes
from tagwire.reference.examples import behind, example
from tagwire.reference.subjects import Subject
from tagwire.spec import Message

CORRELATION_ID: Final = 7
CLIENT_ID: Final = "console"
_SIZE_BYTES: Final = 4


def encoded(subject: Subject, role: str, message: Message, version: int) -> Bytes:
    """The bytes of the example of one version: of a request or response the whole frame."""
    made = example(message, version)
    header = header_bytes(subject, role, message, version)
    anchor = f"v{version}-{role}-bytes"
    if header is None:
        return Bytes(f"{message.name} v{version}, {len(made.data)} bytes", anchor, made.data, made.spans)
    head, spans = header
    size = len(head) + len(made.data)
    data = size.to_bytes(_SIZE_BYTES, "big") + head + made.data
    told = [
        Span(0, _SIZE_BYTES, "(size)", "int32", str(size), "bytes that follow"),
        *behind(spans, _SIZE_BYTES, "header."),
        *behind(made.spans, _SIZE_BYTES + len(head), "body."),
    ]
    return Bytes(f"{message.name} v{version} as a frame, {len(data)} bytes", anchor, data, told)


def header_bytes(subject: Subject, role: str, message: Message, version: int) -> tuple[bytes, list[Span]] | None:
    """The header before a body and what its bytes mean; None for what travels under none, or under one that only a
    user's own specs have."""
    number = header_version(message, version)
    kind: Any = messages.RequestHeader if role == "request" else messages.ResponseHeader
    if number is None or number not in kind.spec.valid_versions:
        return None
    made = kind(correlation_id=CORRELATION_ID)
    if role == "request":
        made.request_api_key, made.request_api_version, made.client_id = subject.api_key, version, CLIENT_ID
    data = made.encode(number)
    return data, list(annotate(kind.spec, data, number))


def header_version(message: Message, version: int) -> int | None:
    """Under which header a version travels; None for what travels in no frame of its own."""
    return None if message.header_versions is None else message.header_version(version)
