"""Each run of bytes that the reference shows is what stands beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tagwire import message_class
from tagwire.codec.annotate import annotate
from tagwire.records.internal_topics import INTERNAL_TOPICS, decode_key, decode_value
from tagwire.reference import Shelf
from tagwire.reference.blocks import Block, Bytes, Section
from tagwire.reference.examples import example
from tagwire.reference.frames import encoded
from tagwire.reference.subjects import Subject
from tagwire.rpc import decode_request_header
from tagwire.rpc.headers import response_body_position
from tagwire.spec import Message, catalog

VERSIONS = 874
"""Versions of all messages in the catalog: what `make` of a new release changes, on purpose."""

FRAMES = 736
"""Those of requests and responses, in the same way."""

VALUES = 72
"""Versions of the values in Kafka's own topics but tiered storage's, in the same way."""


def every_version() -> Iterator[tuple[Subject, str, Message, int]]:
    for subject in Shelf().subjects:
        for role, message in subject.messages.items():
            for version in message.valid_versions:
                yield subject, role, message, version


def blocks(found: list[Block]) -> Iterator[Block]:
    for block in found:
        yield block
        if isinstance(block, Section):
            yield from blocks(list(block.blocks))


def test_all_examples_decode_to_the_message_they_were_made_of_and_encode_to_the_same_bytes() -> None:
    count = 0
    for _, _, message, version in every_version():
        made = example(message, version)
        again = message_class(message).decode(made.data, version)
        assert again == made.message
        assert again.encode(version) == made.data
        count += 1
    assert count == VERSIONS


def test_what_stands_beside_each_run_of_bytes_covers_each_byte_once_and_is_what_annotate_says() -> None:
    count = 0
    for subject, role, message, version in every_version():
        shown = encoded(subject, role, message, version)
        at = 0
        for span in shown.spans:
            assert span.start == at
            at = span.end
        assert at == len(shown.data)
        body = example(message, version).data
        start = len(shown.data) - len(body)
        assert shown.data[start:] == body
        told = [(span.path, span.start + start) for span in annotate(message, body, version)]
        beside = [(span.path.removeprefix("body."), span.start) for span in shown.spans if span.start >= start]
        inside = [one for one in beside if re.search(r"\.(batch|message)\[0\]\.", one[0])]
        assert [one for one in beside if one not in inside] == told
        assert bool(inside) == any(span.type == "records" for span in shown.spans)
        count += 1
    assert count == VERSIONS


def test_each_frame_is_read_by_the_connections_own_code_with_the_header_it_says() -> None:
    count = 0
    for subject, role, message, version in every_version():
        if subject.kind != "api":
            continue
        frame = encoded(subject, role, message, version).data
        body = frame[4:]
        assert int.from_bytes(frame[:4], "big") == len(body)
        if role == "request":
            header, start = decode_request_header(memoryview(body))
            assert (header.api_key, header.api_version) == (subject.api_key, version)
        else:
            start = response_body_position(memoryview(body), subject.api_key, version)
        assert message_class(message).decode(body[start:], version) == example(message, version).message
        count += 1
    assert count == FRAMES


def test_each_page_shows_the_bytes_of_each_version_of_its_messages() -> None:
    shelf = Shelf()
    shown = 0
    for subject in shelf.subjects:
        found = {block.anchor for block in blocks(list(shelf.page(subject.path).blocks)) if isinstance(block, Bytes)}
        wanted = {
            f"v{version}-{role}-bytes" for role, each in subject.messages.items() for version in each.valid_versions
        }
        assert found == wanted
        shown += len(found)
    assert shown == VERSIONS


def test_every_message_of_the_catalog_is_on_one_page() -> None:
    told = [message.name for subject in Shelf().subjects for message in subject.messages.values()]
    assert sorted(told) == sorted(catalog.names())


def test_keys_and_values_of_kafkas_own_topics_are_read_by_what_reads_those_topics() -> None:
    count = 0
    for subject in Shelf().subjects:
        if subject.topic not in INTERNAL_TOPICS:
            continue
        for role, message in subject.messages.items():
            for version in message.valid_versions:
                data = encoded(subject, role, message, version).data
                made = example(message, version).data
                if role == "key":
                    read = decode_key(subject.topic, data)
                    assert read is not None
                    assert read.encode(version) == made
                    continue
                key = encoded(subject, "key", subject.messages["key"], 0).data if role == "value" else None
                found = decode_value(subject.topic, key, data)
                assert found is not None
                assert (found.message.encode(version), found.version) == (made, version)
                count += 1
    assert count == VALUES


def test_records_are_of_the_format_that_a_version_carries_and_told_field_by_field() -> None:
    for name, magics in {"ProduceRequest": {0: 0, 2: 1, 3: 2, 13: 2}, "FetchResponse": {1: 0, 3: 1, 4: 2}}.items():
        for version, magic in magics.items():
            found = example(catalog.message(name), version).spans
            (told,) = [span.value for span in found if re.search(r"\.(batch|message)\[0\]\.magic$", span.path)]
            assert told == str(magic)
