"""Tag sections, and nullable structs in them and in their position.

Source: docs/wire-format.md#primitives, docs/wire-format.md#tagged-fields.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from tagwire import messages
from tagwire.codec import MessageObject
from tagwire.errors import DecodeError, EncodeError, UnsupportedVersionError

Build = Callable[..., type[MessageObject]]
POINT = [{"name": "X", "type": "int32", "versions": "0+"}]

# SimpleExampleMessage v1 up to its tag section, everything at its default.
SIMPLE_V1 = "00000000000000000000000000000000 01 01 0000007b0000007b00 0000007b0000007b00 80e8 0012d687"


def hex_of(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", "").replace("|", ""))


@pytest.mark.parametrize(
    ("values", "section"),
    [
        ({}, "00"),
        ({"my_tagged_int_array": [1, 2, 3]}, "01 00 0d 04 000000010000000200000003"),
        ({"my_nullable_string": ""}, "01 01 01 01"),
        ({"my_nullable_string": "ab"}, "01 01 03 03 6162"),
        ({"my_int16": 5}, "01 02 02 0005"),
        ({"my_float64": 1.0}, "01 03 08 3ff0000000000000"),
        ({"my_string": "z"}, "01 04 02 02 7a"),
        ({"my_bytes": None}, "01 05 01 00"),
        ({"my_bytes": b"\1\2"}, "01 05 03 03 0102"),
        ({"tagged_uuid": UUID(int=0)}, "01 06 10 00000000000000000000000000000000"),
        ({"tagged_long": 0}, "01 07 08 0000000000000000"),
        ({"my_string": "x" * 127}, "01 04 8101 8001" + "78" * 127),
        ({"my_string": "x" * 1024}, "01 04 8208 8108" + "78" * 1024),
        ({"tagged_long": 0, "my_int16": 5, "my_bytes": None}, "03 02 02 0005 05 01 00 07 08 0000000000000000"),
        ({"unknown_tags": {10: b"abc"}}, "01 0a 03 616263"),
        ({"unknown_tags": {300: b"", 20: b"\1"}}, "02 14 01 01 ac02 00"),
        ({"tagged_long": 0, "unknown_tags": {4294967295: b"x"}}, "02 07 08 0000000000000000 ffffffff0f 01 78"),
    ],
)
def test_a_tag_section_is_written_and_read_as(
    simple: type[MessageObject], values: dict[str, Any], section: str
) -> None:
    data = hex_of(SIMPLE_V1 + section)
    assert simple(**values).encode(1) == data
    assert simple.decode(data, 1) == simple(**values)
    assert simple.decode(data, 1, lenient=True) == simple(**values)


def test_a_tagged_struct_is_as_long_as_its_bytes(simple: type[MessageObject]) -> None:
    empty = simple().encode(2)
    assert empty.endswith(b"\0")
    message = simple(my_tagged_struct=simple.TaggedStruct(struct_id="abc"))
    assert message.encode(2) == empty[:-1] + hex_of("01 08 05 04616263 00")
    assert simple.decode(message.encode(2), 2) == message


def test_every_struct_of_a_flexible_version_ends_in_a_tag_section_of_its_own(simple: type[MessageObject]) -> None:
    message = simple(my_struct=simple.MyStruct(struct_id=1, array_in_struct=[simple.StructArray(array_field_id=2)]))
    message.my_struct.array_in_struct[0].unknown_tags[9] = b"\7"
    message.my_struct.unknown_tags[1] = b""
    struct = hex_of("00000001 02 00000002 01 09 01 07 | 01 01 00")
    assert struct in message.encode(2)
    assert simple.decode(message.encode(2), 2) == message


def test_the_value_of_a_tag_is_flexible_down_to_its_elements(build: Build) -> None:
    foo = build({"name": "A", "type": "[]string", "tag": 0, "versions": "1+", "taggedVersions": "1+"})
    assert foo(a=["b", ""]).encode(1) == hex_of("01 00 04 03 0262 01")


def test_a_known_tag_may_spell_its_default_out(simple: type[MessageObject]) -> None:
    message = simple.decode(hex_of(SIMPLE_V1 + "01 02 02 007b"), 1)
    assert message == simple()
    assert message.encode(1) == hex_of(SIMPLE_V1 + "00")


def test_unknown_tags_of_every_place_are_kept_and_written_again() -> None:
    """Between known tags, after them, and in structs that stand in tags."""
    response = messages.ApiVersionsResponse
    feature = hex_of("02 61 0000 0001") + hex_of("01 05 02 beef")
    body = hex_of("0000 01 00000000") + hex_of("03 00") + bytes([len(feature) + 1]) + b"\2" + feature
    body += hex_of("01 08 0000000000000007 | 40 01 2a")
    message = response.decode(body, 3)
    assert message.finalized_features_epoch == 7
    assert message.unknown_tags == {64: b"*"}
    assert message.supported_features[0].unknown_tags == {5: b"\xbe\xef"}
    assert message.encode(3) == body


@pytest.mark.parametrize(
    ("section", "at", "said"),
    [
        ("", 0, "ends inside a varint"),
        ("ff", 1, "ends inside a varint"),
        ("01", 1, "1 tagged fields in 0 bytes"),
        ("02 02 02", 1, "2 tagged fields in 2 bytes"),
        ("8080808008", 5, "2147483648 tagged fields in 0 bytes"),
        ("ffffffff0f", 5, "4294967295 tagged fields in 0 bytes"),
        ("01 13 02 aa", 3, "tag 19 claims 2 bytes, 1 are left"),
        ("01 13 ffffffff0f", 7, "tag 19 claims 4294967295 bytes, 0 are left"),
        ("01 13 c0843d aa", 5, "tag 19 claims 1000000 bytes, 1 are left"),
        ("02 13 00 13 00", 3, "tag 19 comes after tag 19"),
        ("02 13 00 12 00", 3, "tag 18 comes after tag 19"),
        ("02 02 02 0005 02 02 0006", 5, "tag 2 comes after tag 2"),
        ("02 04 02 027a 02 02 0005", 5, "tag 2 comes after tag 4"),
        ("01 00 00", 3, "ends inside a varint"),
    ],
)
def test_a_broken_tag_section_is_refused_where_it_breaks(
    simple: type[MessageObject], section: str, at: int, said: str
) -> None:
    with pytest.raises(DecodeError) as caught:
        simple.decode(hex_of(SIMPLE_V1 + section), 1)
    assert str(caught.value).endswith(f" at byte {len(hex_of(SIMPLE_V1)) + at}: {said}")


@pytest.mark.parametrize(
    ("section", "field", "at", "said"),
    [
        ("01 02 03 0005", "my_int16", 3, "claims 3 bytes, 2 are left"),
        ("01 02 03 0005 ff", "my_int16", 5, "claims 3 bytes, its value takes 2"),
        ("01 02 01 0005", "my_int16", 5, "claims 1 bytes, its value takes 2"),
        ("01 02 01 00", "my_int16", 3, "needs 2 bytes, 1 are left"),
        ("01 04 04 027a ffff", "my_string", 5, "claims 4 bytes, its value takes 2"),
        ("01 04 01 00", "my_string", 3, "null where the field is not nullable"),
        ("01 00 01 00", "my_tagged_int_array", 3, "null where the field is not nullable"),
        ("01 00 03 04 0000", "my_tagged_int_array", 4, "3 elements in 2 bytes"),
    ],
)
def test_a_known_tag_that_does_not_fill_its_size_is_refused(
    simple: type[MessageObject], section: str, field: str, at: int, said: str
) -> None:
    with pytest.raises(DecodeError) as caught:
        simple.decode(hex_of(SIMPLE_V1 + section), 1)
    offset = len(hex_of(SIMPLE_V1)) + at
    assert str(caught.value) == f"SimpleExampleMessage v1, {field} at byte {offset}: {said}"


@pytest.mark.parametrize(
    ("section", "values"),
    [
        ("02 13 00 13 01 61", {"unknown_tags": {19: b"a"}}),
        ("02 13 00 12 00", {"unknown_tags": {18: b"", 19: b""}}),
        ("02 02 02 0005 02 02 0006", {"my_int16": 6}),
        ("02 04 02 027a 02 02 0005", {"my_string": "z", "my_int16": 5}),
        ("01 02 ff01 0005", {"my_int16": 5}),
        ("01 02 00 0005", {"my_int16": 5}),
        ("02 02 63 0005 13 01 61", {"my_int16": 5, "unknown_tags": {19: b"a"}}),
        ("01 02 02 0005 ffff", {"my_int16": 5}),
        ("ffffffff0f 02 02 0005", {}),
    ],
)
def test_kafka_takes_tags_in_any_order_and_believes_no_size(
    simple: type[MessageObject], section: str, values: dict[str, Any]
) -> None:
    assert simple.decode(hex_of(SIMPLE_V1 + section), 1, lenient=True) == simple(**values)


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("section", ["01 08 00", "01 09 08 000000000000000f"])
def test_a_tag_that_is_declared_for_other_versions_is_refused(
    simple: type[MessageObject], section: str, lenient: bool
) -> None:
    with pytest.raises(DecodeError, match=r"at byte 43: tag [89] is not valid for version 1") as caught:
        simple.decode(hex_of(SIMPLE_V1 + section), 1, lenient=lenient)
    assert "SimpleExampleMessage v1 at" in str(caught.value)


def test_a_field_that_is_not_yet_tagged_stands_in_its_position(build: Build) -> None:
    foo = build({"name": "A", "type": "int8", "tag": 0, "taggedVersions": "2+"})
    assert [foo(a=7).encode(version).hex() for version in (0, 1, 2)] == ["07", "0700", "01000107"]
    for version in (0, 1, 2):
        assert foo.decode(foo(a=7).encode(version), version) == foo(a=7)
    with pytest.raises(DecodeError, match="tag 0 is not valid for version 1"):
        foo.decode(hex_of("07 01 00 01 07"), 1)


# -- unknown tags


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        ({2: b""}, "unknown tag 2 collides with a declared one"),
        ({20: b"", 7: b""}, "unknown tag 7 collides with a declared one"),
        ({9: b""}, "unknown tag 9 collides with a declared one"),  # declared from version 2 on
        ({-1: b""}, "-1 is no tag: unknown_tags maps ints from 0 to 4294967295 to bytes"),
        ({2**32: b""}, "4294967296 is no tag"),
        ({"20": b""}, "str is no tag"),
        ({20: "a"}, "needs bytes, not str"),
        ({20: None}, "needs bytes, not NoneType"),
    ],
)
def test_unknown_tags_that_cannot_be_written_are_refused(
    simple: type[MessageObject], tags: dict[Any, Any], said: str
) -> None:
    with pytest.raises(EncodeError) as caught:
        simple(unknown_tags=tags).encode(1)
    assert str(caught.value).startswith(f"SimpleExampleMessage v1: {said}")


def test_unknown_tags_follow_the_declared_ones(build: Build) -> None:
    """The data of Kafka's RawTaggedFieldWriterTest: 2 and 5 after 0 and 1, of which 1 exists from version 2 on."""
    late = {"name": "B", "type": "int8", "tag": 1, "versions": "2+", "taggedVersions": "2+"}
    foo = build({"name": "A", "type": "int8", "tag": 0, "versions": "1+", "taggedVersions": "1+"}, late)
    unknown = {2: b"\1\2\3", 5: b"\4\5"}
    raw = "02 03 010203 05 02 0405"
    for values, version, data in [
        ({}, 1, f"02 {raw}"),
        ({"a": 9}, 1, f"03 00 01 09 {raw}"),
        ({"b": 8}, 2, f"03 01 01 08 {raw}"),
        ({"a": 9, "b": 8}, 2, f"04 00 01 09 01 01 08 {raw}"),
    ]:
        message = foo(**values, unknown_tags=unknown)
        assert message.encode(version) == hex_of(data)
        assert foo.decode(hex_of(data), version) == message


def test_unknown_tags_need_a_flexible_version() -> None:
    """Kafka's MessageTest: tag 1000 on CreateTopics is written at version 6, refused at 0."""
    request = messages.CreateTopicsRequest(unknown_tags={1000: b"\1\2\3"})
    assert messages.CreateTopicsRequest.decode(request.encode(6), 6) == request
    with pytest.raises(UnsupportedVersionError, match=r"CreateTopicsRequest v0: tagged fields \[1000\] cannot be"):
        request.encode(0)
    topic = messages.CreateTopicsRequest.CreatableTopic(name="t", unknown_tags={"odd": b"", 3: b""})
    with pytest.raises(UnsupportedVersionError, match=r"v0, topics\[0\]: tagged fields \['odd', 3\] cannot"):
        messages.CreateTopicsRequest(topics=[topic]).encode(0)


def test_no_unknown_tags_are_the_same_as_an_empty_dict(simple: type[MessageObject]) -> None:
    looked_at = simple()
    assert looked_at.unknown_tags == {}
    assert looked_at == simple() == simple(unknown_tags={})
    assert looked_at.encode(0) == simple().encode(0)


def test_unknown_tags_may_be_set_and_are_not_shared(simple: type[MessageObject]) -> None:
    tags = {20: b"a"}
    message = simple(unknown_tags=tags)
    message.unknown_tags[21] = bytearray(b"b")
    assert tags == {20: b"a"}
    assert simple.decode(message.encode(1), 1).unknown_tags == {20: b"a", 21: b"b"}
    message.unknown_tags = {30: memoryview(b"c")}  # type: ignore[dict-item]
    assert simple.decode(message.encode(1), 1).unknown_tags == {30: b"c"}
    message.unknown_tags = None  # type: ignore[assignment]
    assert message == simple()


# -- nullable structs


def set_all(kind: type[MessageObject]) -> MessageObject:
    return kind(
        nullable_struct=kind.MyStruct(my_string="1", my_int=1),
        nullable_struct2=kind.MyStruct2(my_string="2", my_int=2),
        nullable_struct3=kind.MyStruct3(my_string="3", my_int=3),
        nullable_struct4=kind.MyStruct4(my_string="4", my_int=4),
    )


SET = "01 0231 00000001 00 | 01 0232 00000002 00 | 02 | 00 08 01 0233 00000003 00 | 01 08 01 0234 00000004 00"


@pytest.mark.parametrize("version", [1, 2])
def test_nullable_structs_are_written_and_read_as(nullable_structs: type[MessageObject], version: int) -> None:
    nothing = nullable_structs(nullable_struct2=None, nullable_struct4=None)
    for message, data in [
        (set_all(nullable_structs), SET),
        (nothing, "ff ff 01 01 01 00"),
        (nullable_structs(), "ff 01 01 00000000 00 00"),
    ]:
        assert message.encode(version) == hex_of(data)
        assert nullable_structs.decode(hex_of(data), version) == message
        assert nullable_structs.decode(hex_of(data), version, lenient=True) == message


def test_a_nullable_struct_has_its_prefix_only_where_it_is_nullable(nullable_structs: type[MessageObject]) -> None:
    """Version 0: the first is nullable, the second is not; the others do not exist."""
    message = nullable_structs(nullable_struct=nullable_structs.MyStruct(my_string="1", my_int=1))
    data = hex_of("01 0001 31 00000001 | 0000 00000000")
    assert message.encode(0) == data
    assert nullable_structs.decode(data, 0) == message
    assert nullable_structs().encode(0) == hex_of("ff | 0000 00000000")


def test_a_struct_that_is_not_nullable_cannot_be_null(nullable_structs: type[MessageObject]) -> None:
    with pytest.raises(EncodeError, match=r"v0, nullable_struct2: needs a NullableStructMessage\.MyStruct2, not None"):
        nullable_structs(nullable_struct2=None).encode(0)


def test_a_struct_that_the_version_lacks_must_be_at_its_default(nullable_structs: type[MessageObject]) -> None:
    with pytest.raises(UnsupportedVersionError, match=r"v0, nullable_struct3 is not at its default, .* versions 1\+"):
        nullable_structs(nullable_struct3=nullable_structs.MyStruct3()).encode(0)
    with pytest.raises(UnsupportedVersionError, match=r"v0, nullable_struct4 is not at its default, .* versions 1\+"):
        nullable_structs(nullable_struct4=None).encode(0)


@pytest.mark.parametrize("prefix", ["00", "02", "7f", "80", "fe"])
def test_a_positional_prefix_other_than_ff_and_01_is_refused_unless_lenient(
    nullable_structs: type[MessageObject], prefix: str
) -> None:
    is_null = int(prefix, 16) >= 0x80
    rest = "" if is_null else "01 00000005 00"
    data = hex_of(f"{prefix} {rest} 01 01 00000000 00 00")
    number = int.from_bytes(hex_of(prefix), "big", signed=True)
    with pytest.raises(DecodeError) as caught:
        nullable_structs.decode(data, 1)
    assert str(caught.value) == (
        f"NullableStructMessage v1, nullable_struct at byte 0: a nullable struct's prefix is -1 or 1, not {number}"
    )
    read = nullable_structs.decode(data, 1, lenient=True)
    assert read.nullable_struct == (None if is_null else nullable_structs.MyStruct(my_int=5))


@pytest.mark.parametrize(
    ("value", "null"),
    [
        ("00", True),
        ("01 01 00000005 00", False),
        ("02 01 00000005 00", False),
        ("7f 01 00000005 00", False),
        ("8000", True),
        ("8100 01 00000005 00", False),
        ("8001 01 00000005 00", False),
        ("ff01 01 00000005 00", False),
        ("8080808008", True),
        ("ffffffff0f", True),
    ],
)
def test_a_tagged_prefix_other_than_one_byte_0_or_1_is_refused_unless_lenient(
    nullable_structs: type[MessageObject], value: str, null: bool
) -> None:
    tag = bytes([len(hex_of(value))]) + hex_of(value)
    data = hex_of("ff ff 01 00") + tag
    struct = None if null else nullable_structs.MyStruct3(my_int=5)
    expected = nullable_structs(nullable_struct2=None, nullable_struct3=struct)
    assert nullable_structs.decode(data, 1, lenient=True) == expected
    if value.split()[0] in ("00", "01"):
        assert nullable_structs.decode(data, 1) == expected
        return
    with pytest.raises(DecodeError, match="nullable_struct3 at byte 5: a nullable struct's prefix is one byte, 0 or 1"):
        nullable_structs.decode(data, 1)


@pytest.mark.parametrize("lenient", [False, True])
def test_a_missing_prefix_is_refused(nullable_structs: type[MessageObject], lenient: bool) -> None:
    with pytest.raises(DecodeError, match="v1, nullable_struct at byte 0: needs 1 bytes, 0 are left"):
        nullable_structs.decode(b"", 1, lenient=lenient)
    with pytest.raises(DecodeError, match="v1, nullable_struct3 at byte 5: ends inside a varint"):
        nullable_structs.decode(hex_of("ff ff 01 00 00"), 1, lenient=lenient)


def test_a_written_null_stands_only_where_the_default_is_not_null() -> None:
    """ConsumerGroupMemberMetadataValue.ClassicMemberMetadata says `"default": null`: a struct of defaults."""
    kind = messages.ConsumerGroupMemberMetadataValue
    assert kind(classic_member_metadata=None).encode(0).endswith(hex_of("01 00 01 00"))
    assert kind(classic_member_metadata=kind.ClassicMemberMetadata()).encode(0).endswith(hex_of("ffffffff 01 00"))
    assert kind().classic_member_metadata == kind.ClassicMemberMetadata()


def test_a_default_struct_with_unknown_tags_is_not_at_its_default(simple: type[MessageObject]) -> None:
    message = simple(my_tagged_struct=simple.TaggedStruct(unknown_tags={1: b""}))
    assert message.encode(2).endswith(hex_of("01 08 04 01 01 01 00"))
    with pytest.raises(UnsupportedVersionError, match="my_tagged_struct is not at its default"):
        message.encode(1)


def test_a_struct_at_a_version_that_it_lacks_is_neither_written_nor_read(build: Build) -> None:
    point = {"name": "Point", "versions": "1+", "fields": POINT}
    foo = build({"name": "A", "type": "[]Point"}, commonStructs=[point], flexible="none")
    assert foo.decode(foo().encode(0), 0) == foo()
    assert foo.decode(foo(a=[foo.Point(x=3)]).encode(1), 1).a[0].x == 3
    with pytest.raises(UnsupportedVersionError, match=r"Foo v0, a\[0\]: the struct Point exists only in versions 1\+"):
        foo(a=[foo.Point()]).encode(0)
    with pytest.raises(UnsupportedVersionError, match=r"Foo v0, a\[0\]: the struct Point exists only in versions 1\+"):
        foo.decode(hex_of("00000001 00000003"), 0)
