"""Framings are found a column at a time, and say what a reader of one value at a time says."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwire.errors import DecodeError
from tagwire.values.framing import Framing, Split, header_value, prefix_of, read_framing, split_headers, split_prefixes

GUID = "5f1f4a10-7d1b-4e0a-9a55-0d6f6b4a3c21"

# One value at a time, as SchemaId of Confluent's Java serializers says it.
VALUES = st.one_of(
    st.none(),
    st.binary(max_size=8),
    st.builds(
        lambda start, indexes, body: start + indexes + body,
        st.sampled_from([b"\0\0\0\0\1", b"\0\0\0\0\2", b"\0\xff\0\0\0", b"\1" + bytes(range(16)), b"\1" + bytes(16)]),
        st.sampled_from(
            [b"", b"\0", b"\2\0", b"\2\2", b"\4\2\x80\1", b"\4\x80\x80\x80\x80\x80\1", b"\x81", b"\1", b"\xc8\1"]
        ),
        st.binary(max_size=3),
    ),
)


def rows_of(split: Split, count: int) -> list[object]:
    """Framing and body of each row; "unframed" where there is none, None for a null."""
    found: list[object] = [None] * count
    for group in split.groups:
        places = range(count) if group.rows is None else group.rows.to_pylist()
        for place, body in zip(places, group.bodies.to_pylist()):
            assert found[place] is None
            found[place] = None if body is None else (group.framing, body)
    for place in split.unframed.to_pylist():
        assert found[place] is None
        found[place] = "unframed"
    return found


def one_by_one(value: bytes | None, indexed: bool) -> object:
    if value is None:
        return None
    try:
        framing, size = read_framing(value, indexed)
    except DecodeError:
        return "unframed"
    return framing, value[size:]


@given(st.lists(VALUES, max_size=30), st.booleans(), st.integers(0, 3))
@settings(max_examples=150, deadline=None)
def test_a_column_is_split_as_its_values_are(values: list[bytes | None], indexed: bool, start: int) -> None:
    column = pa.array(values, pa.binary()).slice(start)
    expected = [one_by_one(value, indexed) for value in values[start:]]
    assert rows_of(split_prefixes(column, indexed), len(column)) == expected
    assert rows_of(split_prefixes(column.cast(pa.large_binary()), indexed), len(column)) == expected


@given(st.lists(st.tuples(VALUES, st.lists(st.tuples(st.sampled_from(["a", "h"]), VALUES), max_size=3) | st.none())))
@settings(max_examples=100, deadline=None)
def test_headers_are_read_as_those_of_one_record_are(
    records: list[tuple[bytes | None, list[tuple[str, bytes | None]] | None]],
) -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    values = pa.array([value for value, _ in records], pa.binary())
    split, others = split_headers(values, pa.array([headers for _, headers in records], kind), "h", True)
    left = set(range(len(records)) if others is None else others.to_pylist())
    found = rows_of(split, len(records))
    for at, (value, headers) in enumerate(records):
        last = [each for key, each in headers or [] if key == "h"]
        if value is None or not last or last[-1] is None:
            assert found[at] is None
            assert value is None or at in left
        else:
            framed = one_by_one(last[-1], True)
            assert found[at] == (framed if framed == "unframed" else (framed[0], value))
            assert at not in left


def test_one_framing_for_all_makes_no_groups() -> None:
    for first in (b"\0\0\0\0\7", b"\1" + bytes(16)):
        for column in (pa.array([first + b"a", None, first + b"bc", first]), pa.array([first + b"a", first])):
            (group,) = split_prefixes(column, False).groups
            assert group.rows is None
            assert group.bodies.to_pylist() == [each and each[len(first) :] for each in column.to_pylist()]


def test_what_is_written_is_what_confluent_writes() -> None:
    assert prefix_of(258) == struct.pack(">bI", 0, 258)
    assert prefix_of(1, (0,)) == b"\0\0\0\0\1\0"
    assert prefix_of(1, (0, 0)) == b"\0\0\0\0\1\4\0\0"
    assert prefix_of(1, (2, 70)) == b"\0\0\0\0\1\4\4\x8c\1"
    assert header_value(GUID) == b"\1" + bytes.fromhex(GUID.replace("-", ""))
    assert header_value(GUID, (1,)) == b"\1" + bytes.fromhex(GUID.replace("-", "")) + b"\2\2"


@pytest.mark.parametrize("indexes", [(0,), (0, 0), (1,), (3, 0, 64), (99_999,), tuple(range(64))])
def test_indexes_that_are_written_are_read(indexes: tuple[int, ...]) -> None:
    framing, size = read_framing(prefix_of(7, indexes) + b"\0body", True)
    assert (framing.schema, framing.message_indexes) == (7, indexes)
    assert size == len(prefix_of(7, indexes))
    assert read_framing(header_value(GUID, indexes), True)[0] == (GUID, indexes)


BROKEN = {
    "nothing": (b"", "takes at least 1"),
    "an id that is cut": (b"\0\0\0\0", "4 bytes, and it takes at least 5"),
    "a GUID that is cut": (b"\1" + bytes(15), "takes at least 17"),
    "another magic": (b"{}", "begins with byte 123"),
    "an id beyond all": (b"\0\xff\xff\xff\xff\0", "ids end at 2147483647"),
    "indexes that are cut": (b"\0\0\0\0\1\4\0", "takes at least 8"),
    "a count below zero": (b"\0\0\0\0\1\1", "has -1 message indexes"),
    "a count beyond all": (b"\0\0\0\0\1\xfe\xff\xff\xff\x0f", "message indexes: there can be 64"),
    "an index below zero": (b"\0\0\0\0\1\2\1", "message index -1"),
    "an index beyond all": (b"\0\0\0\0\1\2\xfe\xff\xff\xff\x0f", "no file has such a message"),
    "a varint without an end": (b"\0\0\0\0\1" + b"\x80" * 9, "no varints"),
}


@pytest.mark.parametrize(("value", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_framing_that_cannot_be_read_says_why(value: bytes, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        read_framing(value, True)
    assert split_prefixes(pa.array([value]), True).unframed.to_pylist() == [0]


def test_headers_under_a_null_are_no_headers() -> None:
    entries = pa.array([{"key": "__value_schema_id", "value": prefix_of(n)} for n in (1, 2, 3)])
    headers = pa.ListArray.from_arrays(pa.array([0, 1, 3], pa.int32()), entries, mask=pa.array([True, False]))
    split, others = split_headers(pa.array([b"a", b"b"]), headers, "__value_schema_id", False)
    assert [(each.framing.schema, each.rows.to_pylist(), each.bodies.to_pylist()) for each in split.groups] == [
        (3, [1], [b"b"])
    ]
    assert others is not None
    assert others.to_pylist() == [0]


def test_a_column_may_have_as_many_framings_as_rows() -> None:
    numbers = [number * 7 % 3000 for number in range(3000)]
    split = split_prefixes(pa.array([None, *(prefix_of(number) + b"%d" % number for number in numbers)]), False)
    assert rows_of(split, 3001) == [None, *((Framing(number), b"%d" % number) for number in numbers)]
