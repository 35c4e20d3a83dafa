"""Every type of the spec language as bytes, both ways, plain and compact.

Source: docs/wire-format.md#primitives, docs/wire-format.md#varints.
"""

from __future__ import annotations

import enum
import math
import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire.codec import MessageObject
from tagwire.errors import DecodeError, EncodeError

Build = Callable[..., type[MessageObject]]
PLAIN, COMPACT = 0, 1
ZERO = UUID(int=0)
SOME_UUID = UUID("1f728a3b-8353-44f6-825a-d1269b7bd6ec")
NULL = "ff" * 4


def hex_of(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


def holds(build: Build, kind: str, nullable: bool) -> type[MessageObject]:
    return build({"name": "A", "type": kind, **({"nullableVersions": "0+"} if nullable else {})})


def check(kind: type[MessageObject], value: Any, plain: str, compact: str) -> None:
    """Writes and reads `value` as the only field of a message: version 0 is plain, version 1 compact and tagless."""
    message = kind(a=value)
    for version, data in ((PLAIN, hex_of(plain)), (COMPACT, hex_of(compact) + b"\0")):
        assert message.encode(version) == data
        decoded = kind.decode(data, version)
        assert decoded == message
        assert type(decoded.a) is type(value) or isinstance(decoded.a, memoryview)


FIXED = [
    ("bool", False, "00"),
    ("bool", True, "01"),
    ("int8", 0, "00"),
    ("int8", 127, "7f"),
    ("int8", -1, "ff"),
    ("int8", -128, "80"),
    ("int16", 258, "0102"),
    ("int16", 32767, "7fff"),
    ("int16", -32768, "8000"),
    ("uint16", 0, "0000"),
    ("uint16", 33000, "80e8"),
    ("uint16", 65535, "ffff"),
    ("int32", 16909060, "01020304"),
    ("int32", 2147483647, "7fffffff"),
    ("int32", -2147483648, "80000000"),
    ("uint32", 1234567, "0012d687"),
    ("uint32", 4294967295, "ffffffff"),
    ("int64", 914172222550880202, "0cafcacafcacafca"),
    ("int64", 9223372036854775807, "7fffffffffffffff"),
    ("int64", -9223372036854775807, "8000000000000001"),
    ("int64", -9223372036854775808, "8000000000000000"),
    ("float64", 0.0, "0000000000000000"),
    ("float64", 1.0, "3ff0000000000000"),
    ("float64", -1e300, "fe37e43c8800759c"),
    ("float64", math.inf, "7ff0000000000000"),
    ("float64", -math.inf, "fff0000000000000"),
    ("uuid", ZERO, "00" * 16),
    ("uuid", SOME_UUID, "1f728a3b835344f6825ad1269b7bd6ec"),
    ("uuid", UUID(int=2**128 - 1), "ff" * 16),
]


@pytest.mark.parametrize(("kind", "value", "data"), FIXED)
def test_a_fixed_width_type_is_the_same_in_every_version(build: Build, kind: str, value: Any, data: str) -> None:
    check(holds(build, kind, False), value, data, data)


@pytest.mark.parametrize(
    ("value", "plain", "compact"),
    [
        ("", "0000", "01"),
        ("a", "0001 61", "02 61"),
        ("é", "0002 c3a9", "03 c3a9"),
        ("null", "0004 6e756c6c", "05 6e756c6c"),
        ("a\0b", "0003 610062", "04 610062"),
        ("🜁", "0004 f09f9c81", "05 f09f9c81"),
        ("x" * 126, "007e" + "78" * 126, "7f" + "78" * 126),
        ("x" * 127, "007f" + "78" * 127, "8001" + "78" * 127),
        ("x" * 32767, "7fff" + "78" * 32767, "808002" + "78" * 32767),
    ],
)
def test_a_string_is_written_and_read_as(build: Build, value: str, plain: str, compact: str) -> None:
    check(holds(build, "string", False), value, plain, compact)
    check(holds(build, "string", True), value, plain, compact)


@pytest.mark.parametrize("kind", ["bytes", "records"])
@pytest.mark.parametrize(
    ("value", "plain", "compact"),
    [
        (b"", "00000000", "01"),
        (b"\0", "00000001 00", "02 00"),
        (b"\xff" * 127, "0000007f" + "ff" * 127, "8001" + "ff" * 127),
        (b"\1" * 16383, "00003fff" + "01" * 16383, "808001" + "01" * 16383),
    ],
)
def test_bytes_are_written_and_read_as(build: Build, kind: str, value: bytes, plain: str, compact: str) -> None:
    check(holds(build, kind, False), value, plain, compact)
    check(holds(build, kind, True), value, plain, compact)


@pytest.mark.parametrize(
    ("kind", "value", "plain", "compact"),
    [
        ("[]int32", [], "00000000", "01"),
        ("[]int32", [1, -1], "00000002 00000001 ffffffff", "03 00000001 ffffffff"),
        ("[]int8", [0] * 127, "0000007f" + "00" * 127, "8001" + "00" * 127),
        ("[]bool", [True, False], "00000002 01 00", "03 01 00"),
        ("[]int16", [1], "00000001 0001", "02 0001"),
        ("[]int64", [1], "00000001 0000000000000001", "02 0000000000000001"),
        ("[]uint16", [65535], "00000001 ffff", "02 ffff"),
        ("[]uint32", [1], "00000001 00000001", "02 00000001"),
        ("[]float64", [1.0], "00000001 3ff0000000000000", "02 3ff0000000000000"),
        ("[]uuid", [ZERO, SOME_UUID], "00000002" + "00" * 16 + SOME_UUID.hex, "03" + "00" * 16 + SOME_UUID.hex),
        ("[]string", ["a", ""], "00000002 0001 61 0000", "03 02 61 01"),
        ("[]bytes", [b"a", b""], "00000002 00000001 61 00000000", "03 02 61 01"),
    ],
)
def test_an_array_is_written_and_read_as(build: Build, kind: str, value: Any, plain: str, compact: str) -> None:
    check(holds(build, kind, False), value, plain, compact)
    check(holds(build, kind, True), value, plain, compact)


@pytest.mark.parametrize(
    ("kind", "plain"), [("string", "ffff"), ("bytes", NULL), ("records", NULL), ("[]int32", NULL), ("[]string", NULL)]
)
def test_null_is_written_and_read_as(build: Build, kind: str, plain: str) -> None:
    check(holds(build, kind, True), None, plain, "00")


@pytest.mark.parametrize(
    ("kind", "plain"), [("string", "ffff"), ("bytes", NULL), ("records", NULL), ("[]int32", NULL), ("[]string", NULL)]
)
@pytest.mark.parametrize("lenient", [False, True])
def test_null_is_neither_written_nor_read_where_it_may_not_stand(
    build: Build, kind: str, plain: str, lenient: bool
) -> None:
    foo = holds(build, kind, False)
    for version, data in ((PLAIN, hex_of(plain)), (COMPACT, b"\0\0")):
        with pytest.raises(EncodeError, match=f"Foo v{version}, a: cannot be null"):
            foo(a=None).encode(version)
        with pytest.raises(DecodeError, match=f"Foo v{version}, a at byte 0: null where the field is not nullable"):
            foo.decode(data, version, lenient=lenient)


@pytest.mark.parametrize("kind", ["int32", "bool", "uuid", "float64"])
def test_a_number_is_never_null(build: Build, kind: str) -> None:
    with pytest.raises(EncodeError, match=r"Foo v0, a: needs an? .*, not NoneType"):
        holds(build, kind, False)(a=None).encode(0)


def test_nan_and_negative_zero_keep_their_bits(build: Build) -> None:
    foo = holds(build, "float64", False)
    assert foo(a=-0.0).encode(0) == hex_of("8000000000000000")
    assert math.copysign(1, foo.decode(hex_of("8000000000000000"), 0).a) == -1
    nan = foo.decode(hex_of("7ff8000000000001"), 0)
    assert math.isnan(nan.a)
    assert nan.encode(0) == hex_of("7ff8000000000001")


def test_an_array_of_one_field_structs_is_the_array_of_that_field_unless_flexible(build: Build) -> None:
    ints = holds(build, "[]int32", False)
    structs = build({"name": "A", "type": "[]One", "fields": [{"name": "I", "type": "int32", "versions": "0+"}]})
    ours = structs(a=[structs.One(i=1), structs.One(i=2)])
    assert ours.encode(PLAIN) == ints(a=[1, 2]).encode(PLAIN)
    assert ours.encode(COMPACT) == hex_of("03 00000001 00 00000002 00  00")


# -- uvarints, seen through lengths and counts

UVARINTS = [
    (0, "00"),
    (1, "01"),
    (63, "3f"),
    (64, "40"),
    (127, "7f"),
    (8191, "ff3f"),
    (8192, "8040"),
    (1048575, "ffff3f"),
    (1048576, "808040"),
]


@pytest.mark.parametrize(("number", "data"), UVARINTS)
def test_a_uvarint_is_written_and_read_as(build: Build, number: int, data: str) -> None:
    """A tag section that holds one unknown tag of `number` bytes; its size is a uvarint without a 1 added."""
    foo = build()
    expected = b"\1" + b"\5" + hex_of(data) + b"x" * number
    assert foo(unknown_tags={5: b"x" * number}).encode(1) == expected
    assert foo.decode(expected, 1).unknown_tags == {5: b"x" * number}


@pytest.mark.parametrize(
    ("tag", "data"),
    [*UVARINTS, (2147483647, "ffffffff07"), (2147483648, "8080808008"), (4294967295, "ffffffff0f")],
)
def test_a_tag_is_a_uvarint_of_32_bits(build: Build, tag: int, data: str) -> None:
    foo = build()
    expected = b"\1" + hex_of(data) + b"\1x"
    assert foo(unknown_tags={tag: b"x"}).encode(1) == expected
    assert foo.decode(expected, 1).unknown_tags == {tag: b"x"}
    assert foo.decode(expected, 1, lenient=True).unknown_tags == {tag: b"x"}


@pytest.mark.parametrize("data", ["81 00 61", "81 80 00 61", "81 80 80 80 00 61"])
def test_a_uvarint_of_more_bytes_than_it_needs_is_read(build: Build, data: str) -> None:
    """0x81 0x00 is a length of 1: an empty string; a byte follows."""
    empty = build({"name": "A", "type": "string"}, {"name": "B", "type": "int8"})
    assert empty.decode(hex_of(data) + b"\0", 1) == empty(a="", b=0x61)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("", "ends inside a varint"),
        ("80", "ends inside a varint"),
        ("ffffffff", "ends inside a varint"),
        ("ffffffffff", "a varint longer than 5 bytes"),
        ("ffffffffffff01", "a varint longer than 5 bytes"),
        ("ff" * 20, "a varint longer than 5 bytes"),
        ("8080808080 00", "a varint longer than 5 bytes"),
    ],
)
@pytest.mark.parametrize("lenient", [False, True])
def test_a_uvarint_that_does_not_end_in_5_bytes_is_refused(build: Build, data: str, said: str, lenient: bool) -> None:
    with pytest.raises(DecodeError, match=said):
        holds(build, "string", True).decode(hex_of(data), 1, lenient=lenient)


def test_bits_beyond_32_are_refused_unless_lenient(build: Build) -> None:
    foo = holds(build, "string", False)
    data = hex_of("8280808070 61 00")  # 2, and bits 32 to 34
    with pytest.raises(DecodeError, match="a varint with bits beyond 32"):
        foo.decode(data, 1)
    assert foo.decode(data, 1, lenient=True) == foo(a="a")


# -- what may be written


RANGES = [
    ("int8", -128, 127),
    ("int16", -32768, 32767),
    ("uint16", 0, 65535),
    ("int32", -(2**31), 2**31 - 1),
    ("uint32", 0, 2**32 - 1),
    ("int64", -(2**63), 2**63 - 1),
]


@pytest.mark.parametrize(("kind", "lowest", "highest"), RANGES)
@pytest.mark.parametrize("as_array", [False, True])
def test_a_number_out_of_its_range_is_refused(
    build: Build, kind: str, lowest: int, highest: int, as_array: bool
) -> None:
    foo = holds(build, f"[]{kind}" if as_array else kind, False)
    path = "a[1]" if as_array else "a"
    for value in (lowest, highest):
        assert foo.decode(foo(a=[0, value] if as_array else value).encode(0), 0).a == (
            [0, value] if as_array else value
        )
    for value in (lowest - 1, highest + 1, 2**64, -(2**64), 10**30):
        with pytest.raises(EncodeError) as caught:
            foo(a=[0, value] if as_array else value).encode(0)
        assert str(caught.value) == f"Foo v0, {path}: {value} is out of range: {lowest} to {highest}"


def test_an_int_of_thousands_of_digits_is_refused_without_spelling_it(build: Build) -> None:
    with pytest.raises(EncodeError, match="Foo v0, a: int is out of range"):
        holds(build, "int32", False)(a=10**5000).encode(0)
    with pytest.raises(EncodeError, match="Foo v0, a: int is out of the range of a float"):
        holds(build, "float64", False)(a=10**5000).encode(0)
    with pytest.raises(EncodeError, match="Foo v0, a: needs a bool, not int"):
        holds(build, "bool", False)(a=10**5000).encode(0)
    with pytest.raises(EncodeError, match="int is no tag"):
        build()(unknown_tags={10**5000: b""}).encode(1)


class Color(enum.IntEnum):
    RED = 7


class Text(str):
    __slots__ = ()


class Data(bytes):
    __slots__ = ()


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        ("int8", Color.RED, 7),
        ("int64", Color.RED, 7),
        ("float64", 3, 3.0),
        ("string", Text("é"), "é"),
        ("bytes", Data(b"a"), b"a"),
        ("bytes", bytearray(b"ab"), b"ab"),
        ("bytes", memoryview(b"abcd")[1:3], b"bc"),
        ("bytes", memoryview(b"abcd")[::2], b"ac"),
        ("bytes", memoryview(struct.pack("=2i", 1, 1)).cast("i"), struct.pack("=2i", 1, 1)),
        ("records", bytearray(b"ab"), b"ab"),
        ("records", memoryview(b"ab"), b"ab"),
        ("[]int32", (1, 2), [1, 2]),
        ("[]int32", (), []),
    ],
)
@pytest.mark.parametrize("version", [0, 1])
def test_what_stands_for_a_value_is_written_like_it(
    build: Build, kind: str, value: Any, read: Any, version: int
) -> None:
    foo = holds(build, kind, False)
    assert foo.decode(foo(a=value).encode(version), version).a == read
    assert foo(a=value).encode(version) == foo(a=read).encode(version)


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("bool", 1, "needs a bool, not 1"),
        ("bool", "true", "needs a bool, not str"),
        ("int32", True, "needs an int, not True"),
        ("int32", 1.0, "needs an int, not 1.0"),
        ("int32", "1", "needs an int, not str"),
        ("float64", "1", "needs a float, not str"),
        ("float64", True, "needs a float, not True"),
        ("uuid", str(SOME_UUID), "needs a uuid.UUID, not str"),
        ("uuid", SOME_UUID.bytes, "needs a uuid.UUID, not bytes"),
        ("string", b"a", "needs a str, not bytes"),
        ("string", 7, "needs a str, not int"),
        ("string", "a\ud800b", "cannot be UTF-8: surrogates not allowed at character 1"),
        ("string", "x" * 32768, "32768 bytes of UTF-8: the limit is 32767"),
        ("string", "é" * 16384, "32768 bytes of UTF-8: the limit is 32767"),
        ("bytes", "a", "needs bytes, not str"),
        ("bytes", [1, 2], "needs bytes, not list"),
        ("records", 7, "needs bytes, not int"),
        ("[]int32", iter([1]), "needs a list, not list_iterator"),
        ("[]int32", (i for i in (1, 2)), "needs a list, not generator"),
        ("[]int32", {1, 2}, "needs a list, not set"),
        ("[]string", "ab", "needs a list, not str"),
    ],
)
@pytest.mark.parametrize("version", [0, 1])
def test_a_value_of_the_wrong_type_is_refused(build: Build, kind: str, value: Any, said: str, version: int) -> None:
    with pytest.raises(EncodeError) as caught:
        holds(build, kind, False)(a=value).encode(version)
    assert str(caught.value) == f"Foo v{version}, a: {said}"


def test_a_view_that_was_released_is_refused(build: Build) -> None:
    view = memoryview(b"abc")
    view.release()
    for kind in ("bytes", "records"):
        with pytest.raises(EncodeError, match="Foo v0, a: cannot be read: operation forbidden on released memoryview"):
            holds(build, kind, False)(a=view).encode(0)


@given(st.integers(-(2**70), 2**70))
def test_every_int_is_written_exactly_where_it_fits(number: int) -> None:
    for kind, lowest, highest in RANGES:
        foo = INT_CLASSES[kind]
        if lowest <= number <= highest:
            data = foo(a=number).encode(0)
            assert int.from_bytes(data, "big", signed=kind.startswith("int")) == number
            assert foo.decode(data, 0).a == number
        else:
            with pytest.raises(EncodeError):
                foo(a=number).encode(0)


INT_CLASSES: dict[str, type[MessageObject]] = {}


@pytest.fixture(scope="module", autouse=True)
def _int_classes(build: Build) -> None:
    INT_CLASSES.update({kind: holds(build, kind, False) for kind, _, _ in RANGES})
