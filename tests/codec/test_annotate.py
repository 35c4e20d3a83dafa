"""An annotated dump covers every byte of a message, and stops where the bytes stop making sense."""

from __future__ import annotations

import pytest

from tagwire import messages
from tagwire.codec import message_class
from tagwire.codec.annotate import Span, annotate
from tagwire.errors import DecodeError, UnsupportedVersionError


def a_message() -> messages.CreateTopicsRequest:
    kind = messages.CreateTopicsRequest
    topic = kind.CreatableTopic(
        name="é",
        num_partitions=3,
        replication_factor=1,
        configs=[kind.CreatableTopicConfig(name="a", value=None)],
        unknown_tags={7: b"\x01\x02"},
    )
    return kind(topics=[topic], timeout_ms=1000)


@pytest.mark.parametrize("version", list(a_message().valid_versions))
def test_spans_follow_each_other_and_cover_every_byte(version: int) -> None:
    message = a_message()
    if not message.spec.is_flexible(version):
        message.topics[0].unknown_tags = {}
    data = message.encode(version)
    position = 0
    for span in annotate(message.spec, data, version):
        assert span.start == position
        position = span.end
    assert position == len(data)


def test_a_span_says_where_what_and_by_which_rule() -> None:
    spans = list(annotate(a_message().spec, a_message().encode(7), 7))
    assert Span(1, 4, "topics[0].name", "string", "'é'", "length plus 1 as uvarint, 0 is null") in spans
    assert any(span.path == "topics[0].(unknown tag 7)" and span.value == "0102" for span in spans)
    assert any(span.path == "topics[0].configs[0].value" and span.value == "null" for span in spans)


def test_what_made_sense_is_told_before_the_error() -> None:
    data = a_message().encode(7)
    spans = annotate(a_message().spec, data[:3], 7)
    assert next(spans).path == "topics[]"
    with pytest.raises(DecodeError, match=r"CreateTopicsRequest v7, topics\[0\].name at byte 2: needs 2 bytes"):
        list(spans)


def test_bytes_after_the_message_are_an_error() -> None:
    with pytest.raises(DecodeError, match="1 bytes follow"):
        list(annotate(a_message().spec, a_message().encode(7) + b"\0", 7))


def test_a_version_the_message_does_not_have_is_refused() -> None:
    with pytest.raises(UnsupportedVersionError, match="has no version 99"):
        list(annotate(a_message().spec, b"", 99))


TAGGED = """{"name": "Foo", "type": "data", "validVersions": "0-1", "flexibleVersions": "0+", "fields": [
    {"name": "B", "type": "bool", "versions": "1+", "taggedVersions": "1+", "tag": 0}]}"""
OPTIONAL = """{"name": "Foo", "type": "data", "validVersions": "0", "versionsWithOptional": "0+", "fields": []}"""


@pytest.mark.parametrize(
    ("spec", "version", "data", "said"),
    [
        (TAGGED, 0, "01 00 01 01", "tag 0 is not valid for version 0"),
        (TAGGED, 1, "02 05 00 05 00", "tag 5 comes after tag 5"),
        (TAGGED, 1, "02 05 00 00 01 01", "tag 0 comes after tag 5"),
        (OPTIONAL, 0, "02 0005 aa 02 0004 aa 00", "tag 4 comes after tag 5"),
        (OPTIONAL, 0, "8200 0005 aa 00", "a length in more bytes than it needs"),
    ],
)
def test_tags_that_a_reader_refuses_are_an_error_at_the_same_byte(
    spec: str, version: int, data: str, said: str
) -> None:
    kind = message_class(spec)
    with pytest.raises(DecodeError, match=said) as read:
        kind.decode(bytes.fromhex(data), version)
    with pytest.raises(DecodeError, match=said) as told:
        list(annotate(kind.spec, bytes.fromhex(data), version))
    assert told.value.offset == read.value.offset


@pytest.mark.parametrize(
    ("version", "data", "said"),
    [
        (0, "0003 61ff62", "not UTF-8"),
        (1, "04 61c328 00", "not UTF-8"),
        (0, "8000", "length -32768"),
        (1, "818002" + "61" * 32768 + "00", "a string of 32768 bytes: the limit is 32767"),
    ],
)
def test_text_that_a_reader_refuses_is_an_error_at_the_same_byte(version: int, data: str, said: str) -> None:
    """It was shown, with U+FFFD in its place, as if the message could be read."""
    kind = message_class(
        """{"name": "Foo", "type": "data", "validVersions": "0-1", "flexibleVersions": "1+", "fields": [
        {"name": "A", "type": "string", "versions": "0+"}]}"""
    )
    with pytest.raises(DecodeError, match=said) as read:
        kind.decode(bytes.fromhex(data), version)
    with pytest.raises(DecodeError, match=said) as told:
        list(annotate(kind.spec, bytes.fromhex(data), version))
    assert told.value.offset == read.value.offset


def test_a_struct_that_the_version_does_not_have_is_told_as_a_reader_tells_it() -> None:
    kind = message_class(
        """{"name": "Foo", "type": "data", "validVersions": "0-1", "flexibleVersions": "none", "fields": [
        {"name": "A", "type": "[]Point", "versions": "0+"}], "commonStructs": [
        {"name": "Point", "versions": "1+", "fields": [{"name": "X", "type": "int8", "versions": "0+"}]}]}"""
    )
    data = bytes.fromhex("00000001 05")
    with pytest.raises(UnsupportedVersionError) as read:
        kind.decode(data, 0)
    with pytest.raises(UnsupportedVersionError) as told:
        list(annotate(kind.spec, data, 0))
    assert str(told.value) == str(read.value) == "Foo v0, a[0]: the struct Point exists only in versions 1+"
    assert [span.path for span in annotate(kind.spec, data, 1)] == ["a[]", "a[0].x"]
