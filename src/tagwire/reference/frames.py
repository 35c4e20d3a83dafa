"""The example of one version as it travels: of a request or response the whole frame, with size and header; of a record
of Kafka's own topics with what says which it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tagwire import messages
from tagwire.codec.annotate import Span, annotate
from tagwire.records.internal_topics import INTERNAL_TOPICS
from tagwire.reference.blocks import Bytes
from tagwire.reference.examples import behind, example
from tagwire.reference.subjects import Subject
from tagwire.spec import Message

CORRELATION_ID: Final = 7
CLIENT_ID: Final = "console"
_SIZE_BYTES: Final = 4


def encoded(subject: Subject, role: str, message: Message, version: int) -> Bytes:
    """The bytes of the example of one version, with what stands before a message where it travels."""
    made = example(message, version)
    anchor = f"v{version}-{role}-bytes"
    before = list(_before_record(subject, role, version))
    if before:
        front = b"".join(raw for raw, _ in before)
        data, told = front + made.data, [span for _, span in before] + behind(made.spans, len(front), "")
        return Bytes(f"{message.name} v{version} as its record has it, {len(data)} bytes", anchor, data, told)
    header = header_bytes(subject, role, message, version)
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


def _before_record(subject: Subject, role: str, version: int) -> Iterator[tuple[bytes, Span]]:
    """What stands before a message in a record of one of Kafka's own topics, as `tagwire.records.internal_topics` has
    it: the bytes, and what they mean."""
    if subject.topic not in INTERNAL_TOPICS:
        return
    if role == "key":
        yield _number(subject.api_key, "(record type)", "which key follows, and which value")
        return
    if role == "value":
        yield _number(version, "(version)", "which version of the value follows")
        return
    numbers = ((1, "(frame version)"), (subject.api_key, "(record id)"), (version, "(version)"))
    for at, (number, what) in enumerate(numbers):
        yield bytes([number]), Span(at, at + 1, what, "uvarint", str(number), "uvarint")


def _number(number: int, what: str, rule: str) -> tuple[bytes, Span]:
    raw = number.to_bytes(2, "big")
    return raw, Span(0, 2, what, "int16", str(number), f"big-endian: {rule}")


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
