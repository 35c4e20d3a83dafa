"""The key space of int header keys, registers of them, and the bridge to string keys."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire.errors import ConfigError, EncodeError, HeaderRegisterError
from tagwire.records import HeaderEntry, HeaderKeys, HeaderRegister, Record, namespace_of
from tagwire.records.header_keys import RANGES

# The sample rows of the proposal, and of its earlier key allocation.
OPEN = """space = "open"
[[entries]]
key = 2100001
name = "new.relic"
description = "links transactions"
by = "New Relic"
url = "https://example.org/new-relic"
[[entries]]
key = 2100002
name = "appdynamics"
"""
LOCAL = """space = "local"
[[entries]]
key = 0x0010FF90
name = "app.name"
by = "IG"
[[entries]]
key = 1050000
name = "charge.tag"
"""
KAFKA = """space = "kafka"
[[entries]]
key = 1
name = "client.id"
[[entries]]
key = 2
name = "cluster.id"
[[entries]]
key = 3
name = "correlation.id"
"""
OLD = """space = "local"
scheme = "old"
[[entries]]
key = -5
name = "app.name"
[[entries]]
key = -10
name = "charge.tag"
"""

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str | bytes, name: str = "headers.toml") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def problems(*paths: Path) -> list[str]:
    with pytest.raises(HeaderRegisterError) as caught:
        HeaderRegister.load(*paths)
    return [problem.replace(f"{paths[0].parent}/", "") for problem in caught.value.problems]


# The key space ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "new", "old"),
    [
        (0, "kafka", "kafka"),
        (0x10, "kafka", "kafka"),
        (255, "kafka", "kafka"),
        (256, "kafka", "open"),
        (0xFFFF, "kafka", "open"),
        (0x10000, "reserved", "open"),
        (0xFFFFF, "reserved", "open"),
        (0x100000, "local/infrastructure", "open"),
        (0x10FFFF, "local/infrastructure", "open"),
        (0x110000, "local/client", "open"),
        (0x120000, "local/stack/middleware", "open"),
        (0x130000, "local/application", "open"),
        (0x14FFFF, "local/user", "open"),
        (0x150000, "reserved", "open"),
        (0x1FFFFF, "reserved", "open"),
        (0x00220010, "open/stack/middleware", "open"),
        (0x00340010, "testing/user", "open"),
        (0x350000, "reserved", "open"),
        (0x400000, "reserved", "open"),
        (0x7FFFFFFF, "reserved", "open"),
        (-1, "reserved", "local"),
        (-128, "reserved", "local"),
        (-129, "reserved", "testing"),
        (-(1 << 31), "reserved", "testing"),
    ],
)
def test_a_key_is_in_the_space_of(key: int, new: str, old: str) -> None:
    assert namespace_of(key) == namespace_of(key, scheme="new") == new
    assert namespace_of(key, scheme="old") == old


@pytest.mark.parametrize("scheme", RANGES)
def test_every_key_of_32_bits_is_in_one_range(scheme: str) -> None:
    ends = [(found.first, found.last) for found in RANGES[scheme]]
    assert [last + 1 for _, last in ends[:-1]] == [first for first, _ in ends[1:]]
    assert (ends[0][0], ends[-1][1]) == (-(1 << 31), (1 << 31) - 1)


@pytest.mark.parametrize("key", [1 << 31, -(1 << 31) - 1, True, "1", None])
def test_what_is_no_32_bit_integer_is_in_no_space(key: Any) -> None:
    with pytest.raises(EncodeError, match="32-bit"):
        namespace_of(key)


def test_a_scheme_is_new_or_old() -> None:
    with pytest.raises(ConfigError, match="'newer' is unknown; allowed: new, old"):
        namespace_of(1, scheme="newer")
    with pytest.raises(ConfigError, match="'newer'"):
        HeaderRegister(scheme="newer")


def test_kafkas_own_keys_stand_in_code_and_in_every_register() -> None:
    named = {HeaderKeys.CLIENT_ID: "client.id", HeaderKeys.CLUSTER_ID: "cluster.id"}
    named[HeaderKeys.CORRELATION_ID] = "correlation.id"
    assert {entry.key: entry.name for entry in HeaderRegister()} == named
    assert len(HeaderRegister()) == 3


# Registers ----------------------------------------------------------------------------------------------------------


def test_the_proposals_sample_registers_load(write: Write) -> None:
    register = HeaderRegister.load(write(OPEN, "open.toml"), write(LOCAL, "local.toml"), write(KAFKA, "kafka.toml"))
    assert {entry.key: entry.name for entry in register} == {
        1: "client.id",
        2: "cluster.id",
        3: "correlation.id",
        1050000: "charge.tag",
        1114000: "app.name",
        2100001: "new.relic",
        2100002: "appdynamics",
    }
    assert (register.key_of("app.name"), register.name_of(2100001)) == (1114000, "new.relic")
    assert (register.key_of("nobody"), register.name_of(7)) == (None, None)
    entry = list(register)[5]
    assert (entry.description, entry.by, entry.url) == (
        "links transactions",
        "New Relic",
        "https://example.org/new-relic",
    )
    assert pickle.loads(pickle.dumps(register)).key_of("app.name") == 1114000


def test_a_register_of_the_old_scheme_has_its_ranges(write: Write) -> None:
    register = HeaderRegister.load(write(OLD))
    assert (register.scheme, register.key_of("app.name")) == ("old", -5)
    assert problems(write(OLD.replace("old", "new"))) == [
        "headers.toml, entries[0]: key -5 of 'app.name' is reserved",
        "headers.toml, entries[1]: key -10 of 'charge.tag' is reserved",
    ]


def entries(*rows: str, space: str = "local") -> str:
    return f'space = "{space}"\n' + "".join(f"[[entries]]\n{row}\n" for row in rows)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            entries("key = 0x100000\nname = 'a'", "key = 0x100000\nname = 'b'"),
            ["entries[1]: key 1048576 is already 'a' in headers.toml, entries[0]"],
        ),
        (
            entries("key = 0x100000\nname = 'a'", "key = 0x100001\nname = 'a'"),
            ["entries[1]: name 'a' is already key 1048576 in headers.toml, entries[0]"],
        ),
        (
            entries("key = 0x100000\nname = 'a'", "key = 0x100000\nname = 'a'"),
            [
                "entries[1]: key 1048576 is already 'a' in headers.toml, entries[0]",
                "entries[1]: name 'a' is already key 1048576 in headers.toml, entries[0]",
            ],
        ),
        (
            entries("key = 0x150000\nname = 'a'", "key = 0x10000\nname = 'b'"),
            ["entries[0]: key 1376256 of 'a' is reserved", "entries[1]: key 65536 of 'b' is reserved"],
        ),
        (entries("key = 5\nname = 'a'"), ["entries[0]: key 5 of 'a' is in the kafka space, not local"]),
        (entries("key = 0x200000\nname = 'a'"), ["entries[0]: key 2097152 of 'a' is in the open space, not local"]),
        (
            entries("key = 0x100000\nname = 'client.id'"),
            ["entries[0]: name 'client.id' is already key 1 in Kafka's own register"],
        ),
        (
            entries("key = 1\nname = 'mine'", space="kafka"),
            ["entries[0]: key 1 is already 'client.id' in Kafka's own register"],
        ),
        (entries("key = 0x100000000\nname = 'a'"), ["entries[0]: key 4294967296 is not a 32-bit integer"]),
        (entries("key = true\nname = 'a'"), ["entries[0]: key True is not a 32-bit integer"]),
        (entries("key = '5'\nname = 'a'"), ["entries[0]: key '5' is not a 32-bit integer"]),
        (entries("key = 0x100000\nname = ''"), ["entries[0]: the name is empty"]),
        (entries("key = 0x100000\nname = '7'"), ["entries[0]: name '7' reads as a key"]),
        (
            entries("name = 'a'", "key = 0x100000", "key = 0x100000\nname = 'a'\nnote = ''\nurl = 5"),
            [
                "entries[0]: key is missing",
                "entries[1]: name is missing",
                "entries[2]: unknown field 'note'",
                "entries[2]: url is not text",
            ],
        ),
    ],
)
def test_all_that_is_wrong_is_told_with_file_and_entry(write: Write, text: str, expected: list[str]) -> None:
    assert problems(write(text)) == [f"headers.toml, {problem}" for problem in expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("space = 'ours'", ["space is 'ours'; allowed: kafka, local, open, testing"]),
        ("", ["space is None; allowed: kafka, local, open, testing"]),
        (
            "space = 'open'\nscheme = ['new']\nextra = 1",
            ["unknown key 'extra'", "scheme is ['new']; allowed: new, old"],
        ),
        ("space = 'open'\nentries = 5", ["entries is not a list of tables, [[entries]]"]),
        ("space = 'open'\nentries = [5]", ["entries is not a list of tables, [[entries]]"]),
        ("space = ", ["not TOML: Invalid value (at end of document)"]),
    ],
)
def test_a_file_that_is_no_register_is_refused(write: Write, text: str, expected: list[str]) -> None:
    assert problems(write(text)) == [f"headers.toml: {problem}" for problem in expected]


def test_an_entry_whose_name_is_no_text_is_refused() -> None:
    with pytest.raises(HeaderRegisterError, match=r"^ours: name 5 is not a text"):
        HeaderRegister([HeaderEntry(0x100000, 5, source="ours")])  # type: ignore[arg-type]


def test_a_file_that_is_not_utf8_is_refused(write: Write) -> None:
    (problem,) = problems(write(b"space = 'op\xe9n'"))
    assert problem.startswith("headers.toml: not TOML: ")


def test_registers_that_contradict_each_other_are_refused_with_both_places(write: Write) -> None:
    paths = write(LOCAL, "ours.toml"), write(LOCAL.replace("app.name", "app"), "theirs.toml"), write(OLD, "old.toml")
    found = problems(*paths)
    assert "theirs.toml, entries[0]: key 1114000 is already 'app.name' in" in found[1]
    assert found[0] == "ours.toml: its scheme is new; old.toml: its scheme is old"


def test_an_entry_made_in_code_keeps_the_rules() -> None:
    with pytest.raises(HeaderRegisterError, match="mine: name '7' reads as a key"):
        HeaderRegister([HeaderEntry(7, "7", source="mine")])


def test_the_problems_of_a_register_survive_pickling() -> None:
    error = HeaderRegisterError(["one", "two"])
    copied = pickle.loads(pickle.dumps(error))
    assert (copied.problems, str(copied)) == (("one", "two"), "one\ntwo")


# The bridge ---------------------------------------------------------------------------------------------------------

REGISTER = HeaderRegister([HeaderEntry(1114000, "app.name"), HeaderEntry(-5, "odd name \u2028")])


@pytest.mark.parametrize(
    ("key", "spelled"),
    [(1, "client.id"), (1114000, "app.name"), (7, "7"), (0, "0"), (-1, "-1"), (-(1 << 31), "-2147483648")],
)
def test_an_int_key_is_spelled_by_its_name_or_as_its_number(key: int, spelled: str) -> None:
    assert REGISTER.to_strings([(key, b"v")]) == ((spelled, b"v"),)
    assert REGISTER.to_ints([(spelled, b"v")]) == ((key, b"v"),)


def test_a_registered_key_may_come_as_its_number() -> None:
    assert REGISTER.to_ints([("1114000", b"v"), (1, b"")]) == ((1114000, b"v"), (1, b""))


@pytest.mark.parametrize(
    ("headers", "error"),
    [
        ([("trace", b"")], "header 'trace' is neither in the register nor a decimal 32-bit integer"),
        ([("2147483648", b"")], "'2147483648' is neither"),
        ([("-2147483649", b"")], "'-2147483649' is neither"),
        ([("99999999999999999999", b"")], "is neither"),
        ([("007", b"")], "'007' is neither"),
        ([("-0", b"")], "'-0' is neither"),
        ([("+7", b"")], "is neither"),
        ([(" 7", b"")], "is neither"),
        ([("7\n", b"")], "is neither"),
        ([("\u0667", b"")], "is neither"),
        ([("", b"")], "'' is neither"),
        ([(1 << 31, b"")], "2147483648 is neither"),
        ([(b"7", b"")], "b'7' is neither"),
        ([("client.id", b""), ("client.id", b"")], "header 'client.id' stands there twice"),
        ([(7, b""), ("7", b"")], "header '7' stands there twice, as 7"),
        ([("app.name", b""), ("1114000", b"")], "header '1114000' stands there twice, as 'app.name'"),
        ([("7", None)], "header '7' is null"),
    ],
)
def test_headers_that_have_no_int_form_are_refused_and_the_record_is_named(
    headers: list[tuple[Any, bytes | None]], error: str
) -> None:
    with pytest.raises(EncodeError) as caught:
        REGISTER.record_to_ints(Record(None, None, headers, offset=5))
    assert str(caught.value).startswith("record at offset 5: header ")
    assert error in str(caught.value)
    with pytest.raises(EncodeError, match=r"^record 3: header "):
        REGISTER.record_to_ints(Record(None, None, headers), 3)
    with pytest.raises(EncodeError, match=r"^header "):
        REGISTER.to_ints(headers)


def test_a_record_is_bridged_without_changing_anything_else() -> None:
    record = Record(b"k", b"v", [(1114000, b"ig")], 1234, 5)
    bridged = REGISTER.record_to_strings(record)
    assert bridged == Record(b"k", b"v", [("app.name", b"ig")], 1234, 5)
    assert REGISTER.record_to_ints(bridged) == record


KEYS = st.integers(-(1 << 31), (1 << 31) - 1) | st.sampled_from([entry.key for entry in REGISTER])


@given(st.lists(st.tuples(KEYS, st.binary(max_size=4)), max_size=8, unique_by=lambda pair: pair[0]))
def test_there_and_back_is_the_same(headers: list[tuple[int, bytes]]) -> None:
    strings = REGISTER.to_strings(headers)
    assert REGISTER.to_ints(strings) == tuple(headers)
    assert REGISTER.to_strings(REGISTER.to_ints(strings)) == strings
