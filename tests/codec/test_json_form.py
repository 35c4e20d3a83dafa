"""Kafka's JSON form of a message (docs/wire-format.md#the-json-form), except that a missing key means the default."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from tagwire import messages
from tagwire.codec import MessageObject
from tagwire.errors import DecodeError, EncodeError, UnsupportedVersionError

Build = Callable[..., type[MessageObject]]
Topic = messages.MetadataRequest.MetadataRequestTopic
SOME_UUID = UUID("1f728a3b-8353-44f6-825a-d1269b7bd6ec")
POINT = [{"name": "X", "type": "int32", "versions": "0+"}, {"name": "FromY", "type": "int32", "versions": "1+"}]

FORMS = [
    ("bool", True, True),
    ("int8", -1, -1),
    ("uint16", 65535, 65535),
    ("int64", 2**63 - 1, 2**63 - 1),
    ("float64", 1.0, 1.0),
    ("float64", math.inf, "Infinity"),
    ("float64", -math.inf, "-Infinity"),
    ("string", "é", "é"),
    ("string", None, None),
    ("uuid", SOME_UUID, "H3KKO4NTRPaCWtEmm3vW7A"),
    ("uuid", UUID(int=0), "AAAAAAAAAAAAAAAAAAAAAA"),
    ("uuid", UUID(int=2**128 - 1), "_____________________w"),
    ("bytes", b"\xfb\xff", "+/8="),
    ("bytes", b"", ""),
    ("bytes", None, None),
    ("records", b"ab", "YWI="),
    ("records", None, None),
    ("[]int32", [1, 2], [1, 2]),
    ("[]int32", None, None),
    ("[]uuid", [SOME_UUID], ["H3KKO4NTRPaCWtEmm3vW7A"]),
    ("[]bytes", [b"a"], ["YQ=="]),
]


@pytest.mark.parametrize(("kind", "value", "form"), FORMS)
def test_a_value_has_the_form(build: Build, kind: str, value: Any, form: Any) -> None:
    nullable = {"nullableVersions": "0+"} if value is None else {}
    foo = build({"name": "SomeName", "type": kind, **nullable})
    doc = foo(some_name=value).to_json(0)
    assert doc == {"someName": form}
    assert type(doc["someName"]) is type(form)
    assert foo.from_json(doc, 0) == foo(some_name=value)


def test_a_number_that_json_has_not_is_its_name_as_kafkas_tools_write_it(build: Build) -> None:
    foo = build({"name": "Some", "type": "float64"})
    assert foo(some=math.nan).to_json(0) == {"some": "NaN"}
    assert math.isnan(foo.from_json({"some": "NaN"}, 0).some)


def test_structs_are_objects_and_keys_are_names_with_a_small_first_letter(build: Build) -> None:
    foo = build({"name": "Points", "type": "[]Point", "fields": POINT}, {"name": "ISR", "type": "int8"})
    message = foo(points=[foo.Point(x=1, from_y=2), foo.Point()], isr=3)
    doc = {"points": [{"x": 1, "fromY": 2}, {"x": 0, "fromY": 0}], "iSR": 3}
    assert message.to_json(1) == doc
    assert foo.from_json(doc, 1) == message


def test_only_the_fields_of_the_version_are_there(build: Build) -> None:
    foo = build({"name": "Old", "type": "int8", "versions": "0"}, {"name": "New", "type": "int8", "versions": "1+"})
    assert (foo().to_json(0), foo().to_json(1)) == ({"old": 0}, {"new": 0})
    with pytest.raises(DecodeError, match=r"Foo\.new: no such key at version 0"):
        foo.from_json({"new": 1}, 0)


def test_a_tagged_field_at_its_default_is_left_out(simple: type[MessageObject]) -> None:
    assert "myInt16" not in simple().to_json(1)
    assert simple(my_int16=5).to_json(1)["myInt16"] == 5
    assert simple(my_bytes=None).to_json(1)["myBytes"] is None
    assert simple(my_tagged_struct=simple.TaggedStruct(struct_id="a")).to_json(2)["myTaggedStruct"] == {"structId": "a"}


def test_a_missing_key_means_the_default() -> None:
    assert messages.MetadataRequest.from_json({}, 12) == messages.MetadataRequest()
    topic = messages.MetadataRequest.MetadataRequestTopic(name="t")
    assert messages.MetadataRequest.from_json({"topics": [{"name": "t"}]}, 12).topics == [topic]


def test_bytes_like_values_are_written_like_bytes(build: Build) -> None:
    foo = build({"name": "A", "type": "bytes"}, {"name": "B", "type": "records", "nullableVersions": "0+"})
    message = foo(a=bytearray(b"ab"), b=memoryview(b"a_b_")[::2])
    assert message.to_json(0) == {"a": "YWI=", "b": "YWI="}


@pytest.mark.parametrize(
    ("kind", "item", "said"),
    [
        ("bool", 1, "needs true or false, not a number"),
        ("bool", "true", "needs true or false, not text"),
        ("int32", "1", "needs a whole number, not text"),
        ("int32", 1.0, "needs a whole number, not a number"),
        ("int32", True, "needs a whole number, not true or false"),
        ("int32", [1], "needs a whole number, not an array"),
        ("int8", 128, "is out of the range of int8: -128 to 127"),
        ("int8", -129, "is out of the range of int8: -128 to 127"),
        ("uint16", -1, "is out of the range of uint16: 0 to 65535"),
        ("uint32", 2**32, "is out of the range of uint32: 0 to 4294967295"),
        ("int64", 2**63, "is out of the range of int64: -9223372036854775808 to 9223372036854775807"),
        ("float64", "1.0", "needs a number, not text"),
        ("float64", False, "needs a number, not true or false"),
        ("float64", 10**400, "is out of the range of a float64"),
        ("string", 1, "needs text, not a number"),
        ("string", {}, "needs text, not an object"),
        ("uuid", 1, "needs base64 text, not a number"),
        ("uuid", "AAAA", "needs 22 characters of url-safe base64"),
        ("uuid", "AAAAAAAAAAAAAAAAAAAAA", "not base64: "),
        ("uuid", "!" * 22, "not base64: "),
        ("bytes", "a", "not base64: "),
        ("bytes", "a===", "not base64: "),
        ("bytes", "é", "not base64: "),
        ("bytes", [97], "needs base64 text, not an array"),
        ("records", "-_", "not base64: "),
        ("[]int32", 1, "needs an array, not a number"),
        ("[]int32", {"0": 1}, "needs an array, not an object"),
        ("Point", [1], "needs an object, not an array"),
        ("Point", "x", "needs an object, not text"),
    ],
)
def test_a_document_that_holds_the_wrong_thing_is_refused(build: Build, kind: str, item: Any, said: str) -> None:
    fields = {"fields": POINT} if "Point" in kind else {}
    with pytest.raises(DecodeError) as caught:
        build({"name": "A", "type": kind, **fields}).from_json({"a": item}, 0)
    assert str(caught.value).startswith(f"Foo.a: {said}")
    assert (caught.value.path, caught.value.offset) == ("Foo.a", None)


@pytest.mark.parametrize("kind", ["bool", "int32", "float64", "string", "uuid", "bytes", "[]int32", "Point"])
def test_null_is_refused_where_it_may_not_stand(build: Build, kind: str) -> None:
    fields = {"fields": POINT} if "Point" in kind else {}
    foo = build({"name": "A", "type": kind, **fields})
    with pytest.raises(DecodeError, match=r"Foo\.a: cannot be null"):
        foo.from_json({"a": None}, 0)
    with pytest.raises(EncodeError, match="Foo v0, a: cannot be null"):
        foo(a=None).to_json(0)


def test_records_that_kafka_writes_as_null_are_read_as_null() -> None:
    """Their default is null even where null may not be written."""
    message = messages.FetchSnapshotResponse.from_json({"topics": [{"partitions": [{"unalignedRecords": None}]}]}, 0)
    assert message.topics[0].partitions[0].unaligned_records is None


@pytest.mark.parametrize(
    ("doc", "path"),
    [
        ({"topics": [{"name": "t"}, {"name": "u", "colour": 1}]}, "MetadataRequest.topics[1].colour"),
        ({"Topics": []}, "MetadataRequest.Topics"),
        ({"allow_auto_topic_creation": True}, "MetadataRequest.allow_auto_topic_creation"),
        ({7: 1}, "MetadataRequest.7"),
    ],
)
def test_an_unknown_key_is_refused_by_its_path(doc: Any, path: str) -> None:
    with pytest.raises(DecodeError) as caught:
        messages.MetadataRequest.from_json(doc, 12)
    assert str(caught.value) == f"{path}: no such key at version 12"


@pytest.mark.parametrize("doc", [None, [], "x", 7])
def test_a_document_is_an_object(doc: Any) -> None:
    with pytest.raises(DecodeError, match="MetadataRequest: needs an object, not "):
        messages.MetadataRequest.from_json(doc, 12)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"topics": 7}, "topics: needs a list, not int"),
        ({"topics": [7]}, "topics[0]: needs a MetadataRequestTopic, not int"),
        ({"topics": [Topic(name=7)]}, "topics[0].name: type string cannot be"),
        (
            {"topics": [Topic(topic_id="x")]},
            "topics[0].topic_id: type uuid cannot",
        ),
        ({"allow_auto_topic_creation": 1}, "allow_auto_topic_creation: type bool cannot be written from int"),
    ],
)
def test_a_message_that_holds_the_wrong_thing_has_no_form(values: dict[str, Any], said: str) -> None:
    with pytest.raises(EncodeError) as caught:
        messages.MetadataRequest(**values).to_json(12)
    assert str(caught.value).startswith(f"MetadataRequest v12, {said}")


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("int8", 128, "Foo v0, a: is out of the range of int8: -128 to 127"),
        ("uint16", -1, "Foo v0, a: is out of the range of uint16: 0 to 65535"),
        ("[]int64", [0, 2**63], "Foo v0, a[1]: is out of the range of int64"),
    ],
)
def test_a_number_that_its_field_cannot_hold_has_no_form(build: Build, kind: str, value: Any, said: str) -> None:
    """It would be written, and could not be read back."""
    with pytest.raises(EncodeError) as caught:
        build({"name": "A", "type": kind})(a=value).to_json(0)
    assert str(caught.value).startswith(said)


def test_a_struct_that_the_version_does_not_have_is_neither_written_nor_read(build: Build) -> None:
    """As in its bytes, and as Kafka's converters refuse it; it could be written as JSON, and not be encoded."""
    shared = {"name": "Point", "versions": "1+", "fields": POINT}
    kind = build({"name": "A", "type": "[]Point"}, commonStructs=[shared])
    said = r"a\[0\]: the struct Point exists only in versions 1\+"
    for write in (kind.encode, kind.to_json):
        with pytest.raises(UnsupportedVersionError, match=said):
            write(kind(a=[kind.Point()]), 0)
    with pytest.raises(UnsupportedVersionError, match=said):
        kind.from_json({"a": [{"x": 1}]}, 0)
    assert kind(a=[]).to_json(0) == {"a": []}
    assert kind.from_json(kind(a=[kind.Point()]).to_json(1), 1) == kind(a=[kind.Point()])


def test_a_struct_is_at_its_default_with_a_tuple_for_an_empty_list_too(build: Build) -> None:
    """As in its bytes: what can be encoded has a form."""
    inner = [{"name": "X", "type": "[]int32", "versions": "0+"}]
    kind = build(
        {"name": "A", "type": "One", "fields": inner, "versions": "1+"},
        {"name": "B", "type": "Two", "fields": inner, "versions": "1+", "tag": 0, "taggedVersions": "1+"},
    )
    message = kind(a=kind.One(x=()), b=kind.Two(x=()))
    assert message.to_json(0) == {}
    assert message.to_json(1) == {"a": {"x": []}}
    message.b.unknown_tags[9] = b"x"
    assert message.to_json(1) == {"a": {"x": []}, "b": {"x": []}}
    del message.a.x
    with pytest.raises(EncodeError, match=r"a\.x: is not set"):
        message.to_json(1)


def test_a_default_that_is_no_number_is_a_default(build: Build) -> None:
    """As in its bytes: a message that was just made can be written in each of its versions."""
    kind = build({"name": "A", "type": "float64", "versions": "1+", "default": "NaN"})
    assert kind().encode(0) == b""
    assert kind().to_json(0) == {}
    assert kind().to_json(1) == {"a": "NaN"}


def test_a_message_with_an_attribute_deleted_has_no_form() -> None:
    message = messages.MetadataRequest()
    del message.topics
    with pytest.raises(EncodeError, match="MetadataRequest v12, topics: is not set"):
        message.to_json(12)


def test_an_error_never_shows_what_a_document_holds() -> None:
    with pytest.raises(DecodeError) as caught:
        messages.SaslAuthenticateRequest.from_json({"authBytes": ["hunter2"]}, 2)
    assert "hunter2" not in str(caught.value)
