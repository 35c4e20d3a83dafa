"""Malformed and unusual input: the right value or a typed error, in bounded memory (docs/wire-format.md#memory)."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from tagwire import kernel, messages
from tagwire.codec import MessageObject
from tagwire.errors import DecodeError, EncodeError

Build = Callable[..., type[MessageObject]]
MEBIBYTE = 1 << 20
MANY = 100_000 if kernel.compiled else 2_000
"""Elements: enough to pass the first mebibyte where machine code reads them; uncompiled, the sums are the same."""


def hex_of(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


def holds(build: Build, kind: str) -> type[MessageObject]:
    """A message of one field whose name says how it is written: `string`, `string?` nullable."""
    more: dict[str, Any] = {"nullableVersions": "0+"} if kind.endswith("?") else {}
    if "Point" in kind:
        more["fields"] = [{"name": "X", "type": "int32", "versions": "0+"}]
    return build({"name": "A", "type": kind.removesuffix("?"), **more})


# type, version (0 plain, 1 flexible), data, what strict reading says at which byte, what lenient reading gives
REFUSED = ...
PRIMITIVES = [
    ("bool", 0, "02", 0, "a bool is 0 or 1, not 2", True),
    ("bool", 1, "ff 00", 0, "a bool is 0 or 1, not 255", True),
    ("bool", 0, "", 0, "needs 1 bytes, 0 are left", REFUSED),
    ("int16", 0, "00", 0, "needs 2 bytes, 1 are left", REFUSED),
    ("int64", 0, "00" * 7, 0, "needs 8 bytes, 7 are left", REFUSED),
    ("float64", 0, "00" * 7, 0, "needs 8 bytes, 7 are left", REFUSED),
    ("uuid", 0, "00" * 15, 0, "needs 16 bytes, 15 are left", REFUSED),
    ("string", 0, "ffff", 0, "null where the field is not nullable", REFUSED),
    ("string", 0, "fffe", 0, "length -2 is negative", REFUSED),
    ("string?", 0, "fffe", 0, "length -2 is negative", None),
    ("string?", 0, "8000", 0, "length -32768 is negative", None),
    ("string", 0, "0003 6161", 2, "length 3 runs past the end (2 bytes left)", REFUSED),
    ("string", 0, "00", 0, "needs 2 bytes, 1 are left", REFUSED),
    ("string", 1, "00", 0, "null where the field is not nullable", REFUSED),
    ("string", 1, "04 6161", 1, "compact length 3 runs past the end (2 bytes left)", REFUSED),
    ("string", 1, "818002 6161", 3, "a string of 32768 bytes: the limit is 32767", REFUSED),
    ("string?", 1, "ffffffff0f 00", 5, "a string of 4294967294 bytes: the limit is 32767", None),
    ("string?", 1, "8180808008 00", 5, "a string of 2147483648 bytes: the limit is 32767", None),
    ("string?", 1, "8080808008 00", 5, "a string of 2147483647 bytes: the limit is 32767", REFUSED),
    ("string", 0, "0003 61ff62", 3, "not UTF-8", "a\ufffdb"),
    ("string", 0, "0002 c3c3", 2, "not UTF-8", "\ufffd\ufffd"),
    ("string", 1, "03 c328 00", 1, "not UTF-8", "\ufffd("),
    ("string", 0, "0003 eda080", 2, "not UTF-8", "\ufffd"),  # of half a surrogate pair Java makes one, Python three
    ("string", 0, "0006 eda080edb080", 2, "not UTF-8", "\ufffd\ufffd"),
    ("string", 1, "05 61eda062 00", 2, "not UTF-8", "a\ufffdb"),
    ("string", 0, "0002 61c3", 3, "not UTF-8", "a\ufffd"),
    ("bytes", 0, "ffffffff", 0, "null where the field is not nullable", REFUSED),
    ("bytes?", 0, "fffffffe", 0, "length -2 is negative", None),
    ("bytes", 0, "00000003 6161", 4, "length 3 runs past the end (2 bytes left)", REFUSED),
    ("bytes", 0, "7fffffff", 4, "length 2147483647 runs past the end (0 bytes left)", REFUSED),
    ("bytes", 1, "00", 0, "null where the field is not nullable", REFUSED),
    ("bytes?", 1, "ffffffff0f 00", 5, "compact length 4294967294 runs past the end (1 bytes left)", None),
    ("bytes", 1, "8180808004 00", 5, "compact length 1073741824 runs past the end (1 bytes left)", REFUSED),
    ("records?", 0, "80000000", 0, "length -2147483648 is negative", None),
    ("records", 0, "00000005 00", 4, "length 5 runs past the end (1 bytes left)", REFUSED),
]
ARRAYS = [
    ("[]int32", 0, "ffffffff", 0, "null where the field is not nullable", REFUSED),
    ("[]int32", 0, "fffffffe", 0, "count -2 is negative", REFUSED),
    ("[]int32?", 0, "fffffffe", 0, "count -2 is negative", None),
    ("[]int32?", 0, "80000000", 0, "count -2147483648 is negative", None),
    ("[]int8", 0, "00000003 0101", 4, "3 elements in 2 bytes", REFUSED),
    ("[]int32", 0, "00000002 00000001", 4, "needs 8 bytes, 4 are left", REFUSED),
    ("[]int32", 0, "7fffffff 00000000", 4, "2147483647 elements in 4 bytes", REFUSED),
    ("[]int32", 0, "00000000 00", 4, "1 bytes follow the message", []),
    ("[]int32", 1, "00", 0, "null where the field is not nullable", REFUSED),
    ("[]int32?", 1, "ffffffff0f 00", 5, "4294967294 elements in 1 bytes", None),
    ("[]int32?", 1, "8080808008 00", 5, "2147483647 elements in 1 bytes", REFUSED),
    ("[]string", 0, "00000003 ffff 00", 4, "null where the field is not nullable", REFUSED),
    ("[]string", 1, "02 00 00", 1, "null where the field is not nullable", REFUSED),
    ("[]Point", 0, "000003e8 00000001", 4, "1000 elements in 4 bytes", REFUSED),
    ("[]Point", 0, "00000002 00000001", 8, "needs 4 bytes, 0 are left", REFUSED),
    ("[]Point", 1, "03 00000001 00 00000002", 10, "ends inside a varint", REFUSED),
]


@pytest.mark.parametrize(("kind", "version", "data", "at", "said", "lenient"), PRIMITIVES + ARRAYS)
def test_what_is_malformed_is_refused_or_read_as_kafka_does(
    build: Build, kind: str, version: int, data: str, at: int, said: str, lenient: Any
) -> None:
    foo = holds(build, kind)
    raw = hex_of(data)
    with pytest.raises(DecodeError) as caught:
        foo.decode(raw, version)
    assert str(caught.value).endswith(f" at byte {at}: {said}")
    assert caught.value.offset == at
    if lenient is REFUSED:
        with pytest.raises(DecodeError):
            foo.decode(raw, version, lenient=True)
    else:
        assert foo.decode(raw, version, lenient=True) == foo(a=lenient)


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize(("kind", "size"), [("int16", 2), ("int32", 4), ("int64", 8)])
def test_a_number_cut_short_is_no_array_whatever_its_first_byte(
    build: Build, kind: str, size: int, lenient: bool
) -> None:
    """01 is an empty compact array, and the length prefix of one would be all that is left."""
    foo = build({"name": "Before", "type": "int8"}, {"name": "A", "type": kind})
    for left in range(1, size):
        for rest in (b"\1" + b"\0" * (left - 1), b"\0" * left, b"\1" * left):
            with pytest.raises(DecodeError, match=f"v1, a at byte 1: needs {size} bytes, {left} are left"):
                foo.decode(b"\7" + rest, 1, lenient=lenient)


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize(
    ("kind", "version", "data", "value"),
    [
        ("string", 0, "0003 610062", "a\0b"),
        ("string", 1, "8200 61 00", "a"),
        ("string?", 1, "8000 00", None),
        ("[]int8", 1, "8200 07 00", [7]),
        ("bytes", 1, "828000 ff 00", b"\xff"),
    ],
)
def test_what_is_unusual_and_legal_is_read(
    build: Build, kind: str, version: int, data: str, value: Any, lenient: bool
) -> None:
    foo = holds(build, kind)
    assert foo.decode(hex_of(data), version, lenient=lenient) == foo(a=value)


def test_the_array_guard_of_kafkas_simple_arrays_message(arrays: type[MessageObject]) -> None:
    """126 and 125 elements claimed in 7 and 6 bytes (SimpleArraysMessageTest)."""
    for lenient in (False, True):
        with pytest.raises(DecodeError, match="v2, goats at byte 1: 126 elements in 7 bytes"):
            arrays.decode(hex_of("7f" + "00" * 7), 2, lenient=lenient)
        with pytest.raises(DecodeError, match="v2, sheep at byte 2: 125 elements in 6 bytes"):
            arrays.decode(hex_of("01 7e" + "00" * 6), 2, lenient=lenient)


def test_the_array_guard_of_a_corrupt_produce_request() -> None:
    """Counts of 2^30 - 1 with 17 bytes left and 2^31 - 1 with 8 left (RequestContextTest)."""
    request = messages.ProduceRequest
    with pytest.raises(DecodeError, match="v7, topic_data at byte 12: 1073741823 elements in 17 bytes"):
        request.decode(hex_of("ffff 0001 00000001 3fffffff" + "00" * 17), 7)
    with pytest.raises(DecodeError, match="partition_data at byte 21: 2147483647 elements in 8 bytes"):
        request.decode(hex_of("ffff 0001 00000001 00000001 0003616263 7fffffff" + "00" * 8), 7)


# -- memory: at most 64 times the input and 1 MiB


def peak_of(action: Callable[[], object]) -> int:
    """Bytes that `action` took at its height, its result included."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    try:
        kept = action()
    except DecodeError as error:
        kept = error
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    del kept
    return peak


def stays_in_bounds(kind: type[MessageObject], data: bytes, version: int) -> None:
    kind.decode_prefix(kind().encode(version), version)  # the program is made once
    for lenient in (False, True):
        assert peak_of(lambda lenient=lenient: kind.decode(data, version, lenient=lenient)) <= 64 * len(data) + MEBIBYTE


@pytest.mark.parametrize(
    "data",
    [
        "0000 7fffffff",
        "0000 3fffffff" + "00" * 100,
        "0000 00001000" + "0012 0000 0005" * 3,
    ],
)
def test_a_count_that_cannot_be_true_takes_no_memory(data: str) -> None:
    response = messages.ApiVersionsResponse
    response.decode(response().encode(0), 0)  # the program is made once
    assert peak_of(lambda: response.decode(hex_of(data), 0)) < 64 * 1024


def test_arrays_that_each_claim_all_that_is_left_stay_in_bounds(build: Build) -> None:
    """Five levels of arrays; every count on the way is as large as the bytes allow."""
    field: dict[str, Any] = {"name": "A", "type": "[]int8", "versions": "0+"}
    for level in range(4):
        field = {"name": "A", "type": f"[]S{level}", "versions": "0+", "fields": [field]}
    foo = build(field)
    size = 4 * MANY
    data = b"".join((size - at - 4).to_bytes(4, "big") for at in range(0, size, 4))
    with pytest.raises(DecodeError):
        foo.decode(data, 0)
    stays_in_bounds(foo, data, 0)


def test_structs_of_no_bytes_at_all_are_bounded(build: Build) -> None:
    """Their fields are of other versions, so that every count is believed, over and over."""
    nothing = {
        "name": "B",
        "type": "[]None0",
        "versions": "0+",
        "fields": [{"name": "X", "type": "int32", "versions": "1+"}],
    }
    foo = build({"name": "A", "type": "[]Outer", "fields": [nothing]}, {"name": "Pad", "type": "int64"})
    count = 20_000
    data = count.to_bytes(4, "big") + b"".join((4 * (count - i - 1)).to_bytes(4, "big") for i in range(count))
    with pytest.raises(DecodeError, match="takes more than 64 times the memory of its bytes"):
        foo.decode(data, 0)
    stays_in_bounds(foo, data, 0)
    few = foo(a=[foo.Outer(b=[foo.None0()] * 4)])
    assert foo.decode(few.encode(0), 0) == few


def test_structs_of_one_byte_with_much_at_its_default_are_bounded(build: Build) -> None:
    lists = [
        {"name": f"L{i}", "type": "[]int32", "versions": "1+", "tag": i, "taggedVersions": "1+"} for i in range(20)
    ]
    foo = build({"name": "A", "type": "[]Empty", "versions": "1+", "fields": lists})
    with pytest.raises(DecodeError, match=r"Foo v1, a\[\d+\] at byte \d+: takes more than 64 times the memory of its"):
        foo.decode(hex_of("818006") + b"\0" * 98304 + b"\0", 1)
    stays_in_bounds(foo, hex_of("818006") + b"\0" * 98304 + b"\0", 1)
    some = foo(a=[foo.Empty() for _ in range(500)])
    assert foo.decode(some.encode(1), 1) == some


@pytest.mark.parametrize(
    ("message", "version", "element"),
    [
        ("StreamsGroupCurrentMemberAssignmentValue", 0, "01 01 00"),
        ("AlterClientQuotasRequest", 1, "01 01 00"),
        ("CreatePartitionsRequest", 3, "01 01 00000000 01 00"),
        ("FetchRequest", 12, "01 01 00"),
        ("MetadataResponse", 12, "0000 01" + "00" * 16 + "00 01 00000000 00"),
    ],
)
def test_the_emptiest_elements_of_the_catalog_stay_in_bounds(message: str, version: int, element: str) -> None:
    kind = getattr(messages, message)
    before = {
        "StreamsGroupCurrentMemberAssignmentValue": "00000000 00000000 00",
        "AlterClientQuotasRequest": "",
        "CreatePartitionsRequest": "",
        "FetchRequest": "00" * 17 + "00000000 00000000",
        "MetadataResponse": "00000000 01 00 00000000",
    }[message]
    count = MANY
    data = hex_of(before) + bytes([(count + 1) & 127 | 128, (count + 1) >> 7 & 127 | 128, (count + 1) >> 14])
    data += hex_of(element) * count
    stays_in_bounds(kind, data + b"\1" * 8, version)


@pytest.mark.parametrize("kind", ["[]int8", "[]bool", "[]string", "[]bytes", "[]int16", "[]uuid", "[]float64"])
def test_arrays_of_small_things_are_read_whatever_their_count(build: Build, kind: str) -> None:
    value = {
        "[]int8": [-100],
        "[]bool": [True],
        "[]string": ["", "a", "é€"],
        "[]bytes": [b"", b"a", b"ab"],
        "[]int16": [-30000],
        "[]uuid": [UUID(int=7)],
        "[]float64": [0.5],
    }[kind] * MANY
    foo = holds(build, kind)
    data = foo(a=value).encode(1)
    assert foo.decode(data, 1).a == value
    stays_in_bounds(foo, data, 1)


def test_unknown_tags_in_numbers_and_in_size_are_kept_in_bounds(build: Build) -> None:
    foo = build()
    many = foo(unknown_tags=dict.fromkeys(range(MANY), b""))
    assert foo.decode(many.encode(1), 1) == many
    stays_in_bounds(foo, many.encode(1), 1)
    large = foo(unknown_tags={0: b"x" * (2 * MEBIBYTE), 200: b"y" * (129 * 1024)})
    assert foo.decode(large.encode(1), 1) == large
    stays_in_bounds(foo, large.encode(1), 1)


def test_many_structs_with_a_tag_each_are_read() -> None:
    """160 000 of them: no work may be done twice for an element, nor for a tag."""
    response = messages.ApiVersionsResponse
    features = [response.SupportedFeatureKey(name="f", max_version=1, unknown_tags={5: b"x"})] * 160_000
    message = response(supported_features=features)
    data = message.encode(3)
    assert len(data) > 1_600_000
    read = response.decode(data, 3)
    assert len(read.supported_features) == 160_000
    assert read.supported_features[159_999] == features[0]
    assert read.encode(3) == data


def test_structs_nested_as_deep_as_a_spec_may_are_written_and_read(build: Build) -> None:
    field: dict[str, Any] = {"name": "A", "type": "int8", "versions": "0+"}
    for level in range(60):
        field = {"name": "A", "type": f"S{level}", "versions": "0+", "fields": [field]}
    foo = build(field)
    message = foo()
    innermost = message
    while not isinstance(innermost.a, int):
        innermost = innermost.a
    innermost.a = 7
    for version in (0, 1):
        assert foo.decode(message.encode(version), version) == message
    innermost.a = 700
    with pytest.raises(EncodeError, match=rf"Foo v1, {'a.' * 60}a: 700 is out of range"):
        message.encode(1)


def test_structs_nested_deeper_by_sharing_are_refused(build: Build) -> None:
    """A chain of 40 common structs, and the same chain below 50 structs of a field."""
    chain = [{"name": "C0", "versions": "0+", "fields": [{"name": "A", "type": "int8", "versions": "0+"}]}]
    for i in range(1, 40):
        field = {"name": "A", "type": f"C{i - 1}", "versions": "0+"}
        chain.append({"name": f"C{i}", "versions": "0+", "fields": [field]})
    field = {"name": "A", "type": "C39", "versions": "0+"}
    for level in range(50):
        field = {"name": "A", "type": f"S{level}", "versions": "0+", "fields": [field]}
    foo = build({"name": "First", "type": "C39"}, field, commonStructs=chain)
    with pytest.raises(EncodeError, match="structs are nested too deeply"):
        foo().encode(0)
    for lenient in (False, True):
        with pytest.raises(DecodeError, match="structs are nested too deeply"):
            foo.decode(b"\0\0", 0, lenient=lenient)
