"""Each run of bytes that the reference shows is what stands beside it."""

from __future__ import annotations

from collections.abc import Iterator

from tagwire import message_class
from tagwire.codec.annotate import annotate
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


def test_all_874_examples_decode_to_the_message_they_were_made_of_and_encode_to_the_same_bytes() -> None:
    count = 0
    for _, _, message, version in every_version():
        made = example(message, version)
        again = message_class(message).decode(made.data, version)
        assert again == made.message
        assert again.encode(version) == made.data
        count += 1
    assert count == VERSIONS


def test_what_stands_beside_all_874_runs_of_bytes_covers_each_byte_once_and_is_what_annotate_says() -> None:
    count = 0
    for subject, role, message, version in every_version():
        shown = encoded(subject, role, message, version)
        at = 0
        for span in shown.spans:
            assert span.start == at
            at = span.end
        assert at == len(shown.data)
        start = len(shown.data) - len(example(message, version).data)
        told = [(span.path, span.value) for span in annotate(message, shown.data[start:], version)]
        beside = [(span.path.removeprefix("body."), span.value) for span in shown.spans if span.start >= start][
            -len(told) :
        ]
        assert beside == told
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
    assert count == 736


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
