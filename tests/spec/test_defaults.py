"""What `default` may say, and what it means (docs/wire-format.md#defaults)."""

from __future__ import annotations

import json
import math
from typing import Any
from uuid import UUID

import pytest

from tagwire.errors import SpecError
from tagwire.spec import Absent, load

ABSENT = object()
KAFKA_UUID = UUID("1f728a3b-8353-44f6-825a-d1269b7bd6ec")
POINT = [{"name": "X", "type": "int32", "versions": "0+"}]


def spec(kind: str, default: Any, nullable: str | None = None, versions: str = "0+") -> str:
    field: dict[str, Any] = {"name": "A", "type": kind, "versions": versions}
    if nullable is not None:
        field["nullableVersions"] = nullable
    if default is not ABSENT:
        field["default"] = default
    if "Point" in kind:
        field["fields"] = POINT
    return json.dumps(
        {"type": "data", "name": "Foo", "validVersions": "0-2", "flexibleVersions": "none", "fields": [field]}
    )


def default_of(kind: str, default: Any, nullable: str | None = None) -> Any:
    return load(spec(kind, default, nullable)).fields[0].default


def problem(kind: str, default: Any, nullable: str | None = None, versions: str = "0+") -> str:
    with pytest.raises(SpecError) as caught:
        load(spec(kind, default, nullable, versions))
    return str(caught.value)


ZEROES = [
    ("bool", False),
    ("int8", 0),
    ("int16", 0),
    ("uint16", 0),
    ("int32", 0),
    ("uint32", 0),
    ("int64", 0),
    ("float64", 0.0),
    ("uuid", UUID(int=0)),
    ("string", ""),
    ("bytes", b""),
    ("records", None),
    ("[]int32", Absent.EMPTY_ARRAY),
    ("[]string", Absent.EMPTY_ARRAY),
    ("[]Point", Absent.EMPTY_ARRAY),
    ("Point", Absent.STRUCT),
]


@pytest.mark.parametrize(("kind", "value"), ZEROES)
def test_a_field_that_states_no_default_has_its_types_own(kind: str, value: Any) -> None:
    found = default_of(kind, ABSENT)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(("kind", "value"), ZEROES)
def test_null_without_quotes_states_no_default_even_where_null_is_legal(kind: str, value: Any) -> None:
    nullable = "0+" if kind in ("string", "bytes", "records", "Point") or kind.startswith("[]") else None
    assert default_of(kind, None, nullable) == value


@pytest.mark.parametrize("kind", ["string", "bytes", "records", "[]int32", "[]Point", "Point"])
def test_null_in_quotes_is_the_default_null(kind: str) -> None:
    assert default_of(kind, "null", "0+") is None


@pytest.mark.parametrize("kind", ["string", "bytes", "[]int32", "[]Point", "Point"])
def test_a_default_of_null_needs_every_version_to_be_nullable(kind: str) -> None:
    assert problem(kind, "null") == "<text>, A: the default is null, but only none of the versions 0+ are nullable"
    assert "but only 1+ of the versions 0+ are nullable" in problem(kind, "null", "1+")


def test_a_default_of_null_may_have_nullable_versions_beyond_its_own() -> None:
    assert load(spec("string", "null", "0+", versions="1+")).fields[0].default is None


def test_records_are_null_whatever_is_stated() -> None:
    assert default_of("records", "anything") is None


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        ("bool", "true", True),
        ("bool", "TRUE", True),
        ("bool", "False", False),
        ("bool", True, True),
        ("bool", False, False),
        ("int8", "12", 12),
        ("int8", "-128", -128),
        ("int8", 127, 127),
        ("int16", "0x7fff", 32767),
        ("uint16", "65535", 65535),
        ("uint16", "0xffff", 65535),
        ("int32", -1, -1),
        ("int32", "0x7FffFfff", 2147483647),
        ("int32", "-2147483648", -2147483648),
        ("uint32", "4294967295", 4294967295),
        ("uint32", "0xffffffff", 4294967295),
        ("int64", "0xcafcacafcacafca", 914172222550880202),
        ("int64", "9223372036854775807", 9223372036854775807),
        ("int64", -9223372036854775808, -9223372036854775808),
        ("int32", "", 0),
        ("float64", "12.34", 12.34),
        ("float64", 12.34, 12.34),
        ("float64", "-1e-3", -0.001),
        ("float64", 5, 5.0),
        ("int32", "+5", 5),
        ("int32", "-0", 0),
        ("float64", "Infinity", math.inf),
        ("float64", "-Infinity", -math.inf),
        ("float64", "1f", 1.0),
        ("float64", "2.5D", 2.5),
        ("float64", " .5 ", 0.5),
        ("uuid", "H3KKO4NTRPaCWtEmm3vW7A", KAFKA_UUID),
        ("uuid", "AAAAAAAAAAAAAAAAAAAAAA", UUID(int=0)),
        ("string", "hello world", "hello world"),
        ("string", "", ""),
        ("string", " null", " null"),
        ("string", 7, "7"),
        ("bytes", "", b""),
        ("[]string", "", Absent.EMPTY_ARRAY),
        ("Point", "", Absent.STRUCT),
    ],
)
def test_a_stated_default_means(kind: str, given: Any, value: Any) -> None:
    found = default_of(kind, given)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        ("bool", "yes", "'yes' is no bool: write true or false"),
        ("bool", 1, "'1' is no bool"),
        ("int8", "128", "128 is out of the range of int8: -128 to 127"),
        ("int8", "-129", "-129 is out of the range of int8"),
        ("int16", "32768", "32768 is out of the range of int16"),
        ("uint16", "-1", "-1 is out of the range of uint16: 0 to 65535"),
        ("uint16", "65536", "65536 is out of the range of uint16"),
        ("int32", "0xffffffff", "0xffffffff is out of the range of int32"),
        ("int32", "0X1", "'0X1' is no int32: write a decimal number or 0x and hexadecimal digits"),
        ("int32", "-0x1", "'-0x1' is no int32"),
        ("int32", "0x", "'0x' is no int32"),
        ("int32", "1.0", "'1.0' is no int32"),
        ("int32", 1.5, "'1.5' is no int32"),
        ("int32", "1_000", "'1_000' is no int32"),
        ("int32", "010", "'010' begins with 0: the classes of Kafka's generator read it as an octal number"),
        ("int64", "-08", "'-08' begins with 0"),
        ("int32", "null", "'null' is no int32"),
        ("int32", True, "'true' is no int32"),
        ("uint32", "4294967296", "4294967296 is out of the range of uint32"),
        ("int64", "0x8000000000000000", "is out of the range of int64"),
        ("float64", "one", "'one' is no float64"),
        ("float64", "1_0", "'1_0' is no float64"),
        ("float64", "inf", "'inf' is no float64"),
        ("float64", "nan", "'nan' is no float64"),
        ("float64", "\u0661", "is no float64"),
        ("uuid", "H3KKO4NTRPaCWtEmm3vW7", "is no uuid: write 22 characters of url-safe base64"),
        ("uuid", "H3KKO4NTRPaCWtEmm3vW7A!", "is no uuid"),
        ("uuid", "H3KKO4NT RPaCWtEmm3vW7A", "is no uuid"),
        ("uuid", "1f728a3b-8353-44f6-825a-d1269b7bd6ec", "is no uuid"),
        ("uuid", "null", "'null' is no uuid"),
        ("bytes", "AA==", "the default of a bytes can only be null, not 'AA=='"),
        ("[]int32", "1", "the default of a []int32 can only be null, not '1'"),
        ("[]int32", [], "the default of a []int32 can only be null, not '[]'"),
        ("Point", "{}", "the default of a Point can only be null, not '{}'"),
        ("string", "\ud800", "cannot be UTF-8"),
        ("string", ["a"], "default must be text, a number or a bool, not ['a']"),
        ("string", {"a": 1}, "default must be text, a number or a bool, not {'a': 1}"),
        ("string", "é" * 16384, "a text of 32768 bytes: the limit is 32767"),
    ],
)
def test_a_default_that_its_type_cannot_hold_is_refused(kind: str, given: Any, said: str) -> None:
    assert said in problem(kind, given)
