"""Fields that the version being written does not have (docs/wire-format.md#absent-fields)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from tagwire import messages
from tagwire.codec import MessageObject
from tagwire.errors import UnsupportedVersionError

Build = Callable[..., type[MessageObject]]
POINT = [{"name": "X", "type": "int32", "versions": "0+"}]

# type, more keys, values that are its default, values that are not
LATE = [
    ("bool", {}, [False], [True]),
    ("int32", {}, [0], [1]),
    ("int32", {"default": "-1"}, [-1], [0, 1]),
    ("float64", {}, [0.0, -0.0], [0.5]),
    ("uuid", {}, [UUID(int=0)], [UUID(int=1)]),
    ("string", {}, [""], ["a"]),
    ("string", {"nullableVersions": "1+"}, [""], [None, "a"]),
    ("string", {"nullableVersions": "1+", "default": "null"}, [None], ["", "null"]),
    ("string", {"default": "x"}, ["x"], ["", "y"]),
    ("bytes", {}, [b"", bytearray(), memoryview(b"")], [b"a"]),
    ("bytes", {"nullableVersions": "1+"}, [b""], [None, b"a"]),
    ("bytes", {"nullableVersions": "1+", "default": "null"}, [None], [b"", b"a"]),
    ("records", {}, [None], [b"", b"a"]),
    ("[]int32", {}, [[], ()], [[0]]),
    ("[]int32", {"nullableVersions": "1+"}, [[]], [None, [1]]),
    ("[]int32", {"nullableVersions": "1+", "default": "null"}, [None], [[], [1]]),
]


@pytest.mark.parametrize(("kind", "more", "defaults", "others"), LATE)
def test_a_field_that_the_version_lacks_must_be_at_its_default(
    build: Build, kind: str, more: dict[str, Any], defaults: list[Any], others: list[Any]
) -> None:
    foo = build({"name": "Late", "type": kind, "versions": "1+"} | more)
    for value in defaults:
        assert foo(late=value).encode(0) == b""
    for value in others:
        with pytest.raises(UnsupportedVersionError) as caught:
            foo(late=value).encode(0)
        assert str(caught.value) == "Foo v0, late is not at its default, and exists only in versions 1+"
        with pytest.raises(UnsupportedVersionError, match=r"Foo v0, late is not at its default, .* versions 1\+"):
            foo(late=value).to_json(0)


@pytest.mark.parametrize(("kind", "more", "defaults", "others"), LATE)
def test_an_ignorable_field_is_dropped_from_versions_that_lack_it(
    build: Build, kind: str, more: dict[str, Any], defaults: list[Any], others: list[Any]
) -> None:
    foo = build({"name": "Late", "type": kind, "versions": "1+", "ignorable": True} | more)
    for value in [*defaults, *others]:
        assert foo(late=value).encode(0) == b""
        assert foo(late=value).to_json(0) == {}


@pytest.mark.parametrize(("kind", "more", "defaults", "others"), LATE)
def test_a_field_that_the_version_lacks_is_read_as_its_default(
    build: Build, kind: str, more: dict[str, Any], defaults: list[Any], others: list[Any]
) -> None:
    foo = build({"name": "Late", "type": kind, "versions": "1+"} | more)
    read = foo.decode(b"", 0).late
    assert read == defaults[0]
    assert type(read) is type(defaults[0])


@pytest.mark.parametrize(("kind", "more", "defaults", "others"), [row for row in LATE if row[0] != "records"])
def test_a_tagged_field_is_left_out_where_it_is_at_its_default(
    build: Build, kind: str, more: dict[str, Any], defaults: list[Any], others: list[Any]
) -> None:
    foo = build({"name": "Late", "type": kind, "versions": "1+", "tag": 0, "taggedVersions": "1+"} | more)
    for value in defaults:
        assert foo(late=value).encode(1) == b"\0"
    for value in others:
        data = foo(late=value).encode(1)
        assert data[:2] == b"\1\0"
        assert foo.decode(data, 1).late == value
        with pytest.raises(UnsupportedVersionError, match="Foo v0, late is not at its default"):
            foo(late=value).encode(0)
    assert foo.decode(b"\0", 1).late == defaults[0]


def test_mutable_defaults_are_made_anew(build: Build) -> None:
    foo = build(
        {"name": "Late", "type": "[]int32", "versions": "1+"},
        {"name": "Point", "type": "Point", "versions": "1+", "fields": POINT},
        {"name": "Tagged", "type": "[]int32", "versions": "1+", "tag": 0, "taggedVersions": "1+"},
    )
    for one, other in [(foo(), foo()), (foo.decode(b"", 0), foo.decode(b"", 0))]:
        one.late.append(1)
        one.point.x = 5
        one.tagged.append(2)
        assert other == foo()


def test_what_is_in_a_struct_that_is_skipped_is_not_checked_but_the_struct_is(build: Build) -> None:
    inner = [{"name": "New", "type": "int32", "versions": "2+"}, {"name": "Old", "type": "int32", "versions": "0+"}]
    foo = build(
        {"name": "Rows", "type": "[]Row", "versions": "1+", "fields": inner},
        {"name": "One", "type": "One", "versions": "1+", "ignorable": True, "fields": inner},
    )
    assert foo(one=foo.One(new=1)).encode(0) == b""
    with pytest.raises(UnsupportedVersionError, match=r"Foo v0, rows is not at its default, .* versions 1\+"):
        foo(rows=[foo.Row()]).encode(0)
    with pytest.raises(UnsupportedVersionError, match=r"Foo v1, rows\[1\]\.new is not at its default, .* versions 2\+"):
        foo(rows=[foo.Row(), foo.Row(new=1)]).encode(1)
    with pytest.raises(UnsupportedVersionError, match=r"Foo v1, one\.new is not at its default, .* versions 2\+"):
        foo(one=foo.One(new=1)).encode(1)


def test_a_default_struct_is_compared_field_by_field(build: Build) -> None:
    deep = {"name": "Deep", "type": "Deep", "versions": "1+", "fields": POINT}
    fields = [deep, {"name": "Names", "type": "[]string", "versions": "1+"}]
    foo = build({"name": "Outer", "type": "Outer", "versions": "1+", "fields": fields})
    assert foo(outer=foo.Outer(deep=foo.Deep(x=0), names=[])).encode(0) == b""
    for outer in (foo.Outer(deep=foo.Deep(x=1)), foo.Outer(names=["a"]), foo.Outer(deep=None), None, foo.Deep()):
        with pytest.raises(UnsupportedVersionError, match="Foo v0, outer is not at its default"):
            foo(outer=outer).encode(0)


def test_an_unset_default_of_null_in_json_is_not_null() -> None:
    """Four fields of Kafka say `"default": null`, which states no default (docs/wire-format.md#defaults)."""
    for kind in (
        messages.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions,
        messages.StreamsGroupCurrentMemberAssignmentValue.TaskIds,
    ):
        assert kind().assignment_epochs == []
    assert messages.StreamsGroupMetadataValue().last_assignment_configs == []


# -- the cases of Kafka's MessageTest and SimpleExampleMessageTest


def test_forgotten_topics_need_fetch_version_7() -> None:
    request = messages.FetchRequest
    forgotten = request(forgotten_topics_data=[request.ForgottenTopic(topic="a")], session_id=0)
    with pytest.raises(UnsupportedVersionError, match="FetchRequest v5, forgotten_topics_data is not at its default"):
        forgotten.encode(5)
    assert request.decode(forgotten.encode(7), 7) == forgotten


def test_a_group_instance_id_needs_heartbeat_version_3() -> None:
    request = messages.HeartbeatRequest(group_instance_id="i")
    with pytest.raises(UnsupportedVersionError, match="HeartbeatRequest v0, group_instance_id is not at its default"):
        request.encode(0)
    assert messages.HeartbeatRequest.decode(request.encode(3), 3) == request


def test_a_retention_time_belongs_to_offset_commit_2_to_4() -> None:
    request = messages.OffsetCommitRequest(retention_time_ms=123)
    for version in (2, 3, 4):
        assert messages.OffsetCommitRequest.decode(request.encode(version), version).retention_time_ms == 123
    assert messages.OffsetCommitRequest.decode(request.encode(5), 5).retention_time_ms == -1


def test_an_ignorable_tagged_field_is_lost_at_1_and_kept_at_2(simple: type[MessageObject]) -> None:
    message = simple(tagged_long_flexible_version_subset=15)
    assert simple.decode(message.encode(1), 1).tagged_long_flexible_version_subset == 0
    assert simple.decode(message.encode(2), 2).tagged_long_flexible_version_subset == 15


def test_a_struct_field_that_is_set_cannot_be_lost(simple: type[MessageObject]) -> None:
    message = simple(my_struct=simple.MyStruct(struct_id=10))
    with pytest.raises(UnsupportedVersionError, match="SimpleExampleMessage v1, my_struct is not at its default"):
        message.encode(1)
    assert simple.decode(message.encode(2), 2) == message


@pytest.mark.parametrize("version", [-1, 14, 32767, 32768, None, "3", 3.0, True, False, [3]])
def test_a_version_that_the_message_does_not_have_is_refused(version: Any) -> None:
    request = messages.MetadataRequest
    request().encode(1)  # True is equal to 1, whose program is now there
    said = f"MetadataRequest has no version {version!r}: it has 0-13"
    calls: list[Callable[[], object]] = [
        lambda: request().encode(version),
        lambda: request.decode(b"", version),
        lambda: request.decode_prefix(b"", version),
        lambda: request().to_json(version),
        lambda: request.from_json({}, version),
    ]
    for call in calls:
        with pytest.raises(UnsupportedVersionError) as caught:
            call()
        assert str(caught.value) == said


def test_a_retired_message_has_no_version(build: Build) -> None:
    foo = build(valid="none")
    with pytest.raises(UnsupportedVersionError, match="Foo has no version 0: it has none"):
        foo().encode(0)
