"""`Record`: made and read ones, their headers, and what a record that was read still does when its bytes are gone."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire import records
from tagwire.errors import CorruptRecordError, EncodeError, ReadOnlyError
from tagwire.records import MalformedKey, Record

HEADERS = (("origin", b"EWR"), ("trace", None), ("origin", b""))
MADE = Record(b"k", b"v", HEADERS, 1234)


def reread(data: bytes | bytearray) -> list[Record]:
    return [record for batch in records.read(data) for record in batch.records()]


def read_one(*headers: tuple[str, bytes | None]) -> Record:
    (record,) = reread(records.write([Record(b"k", b"v", headers, 1234)], base_offset=7))
    return record


def test_a_record_that_was_read_has_what_was_written() -> None:
    record = read_one(*HEADERS)
    assert isinstance(record, Record)
    assert (record.key, record.value, record.timestamp, record.offset) == (b"k", b"v", 1234, 7)
    assert record.headers == HEADERS
    assert record.raw_headers == ((b"origin", b"EWR"), (b"trace", None), (b"origin", b""))
    assert (record.consumed, record.topic, record.partition) == (True, None, -1)


def test_headers_are_the_same_whenever_they_are_asked_for() -> None:
    rows = [Record(None, None, [(f"h{index}", b"%d" % index)] * (index % 20)) for index in range(60)]
    data = records.write(rows)
    kept = reread(data)
    assert [record.headers for record in reversed(kept)] == [tuple(row.headers) for row in reversed(rows)]
    assert [record.headers for record in reread(data)] == [tuple(row.headers) for row in rows]


def test_a_header_key_like_the_record_befores_but_for_its_bytes_is_told_apart() -> None:
    names = ["alpha", "alphb", "beta", "alpha", "", "beta", "béta", "alpha"]
    rows = [Record(None, None, [(name, b"1"), (name, b"2")]) for name in names]
    assert [record.headers[1][0] for record in reread(records.write(rows))] == names


def test_headers_stay_what_they_were_when_a_mutable_buffer_changes() -> None:
    data = bytearray(records.write([MADE]))
    kept = reread(data)
    data[:] = bytes(len(data))
    del data[10:]
    assert kept[0].headers == HEADERS


@pytest.mark.parametrize("codec", records.CODECS)
def test_headers_are_read_from_compressed_batches(codec: str) -> None:
    assert [record.headers for record in reread(records.write([MADE] * 3, compression=codec))] == [HEADERS] * 3


def test_a_broken_header_is_told_before_the_first_record_is_given(seal: Callable[..., bytes]) -> None:
    good, bad = "0c 00 00 00 01 01 00", "10 00 00 02 01 01 02 04 61"
    (batch,) = records.read(seal(bytes.fromhex(good + bad), 2))
    with pytest.raises(CorruptRecordError, match="record 1 at byte 75: header key length 2"):
        batch.records()


def test_a_record_that_was_read_keeps_its_headers() -> None:
    record = read_one(*HEADERS)
    with pytest.raises(ReadOnlyError, match=r"'origin' of the record at offset 7: .*replace\(\)"):
        record.set_header("origin", b"LGA")
    assert record.headers == HEADERS


@pytest.mark.parametrize("record", [MADE, read_one()], ids=["made", "read"])
@pytest.mark.parametrize("name", ["key", "value", "timestamp", "offset", "headers"])
def test_the_fields_of_a_record_do_not_change(record: Record, name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(record, name, getattr(record, name))


def test_replace_makes_a_record_that_takes_headers() -> None:
    record = read_one(*HEADERS)
    copied = record.replace(value=None, timestamp=5)
    assert copied == Record(b"k", None, HEADERS, 5, 7)
    assert not copied.consumed
    copied.set_header("trace", b"1")
    assert copied.headers == (("origin", b"EWR"), ("trace", b"1"), ("origin", b""))
    assert record.headers == HEADERS


@pytest.mark.parametrize(
    ("key", "headers"),
    [
        ("origin", (("origin", b"new"), ("trace", None))),
        ("trace", (("origin", b"EWR"), ("trace", b"new"), ("origin", b""))),
        ("other", (*HEADERS, ("other", b"new"))),
        (7, (*HEADERS, (7, b"new"))),
    ],
)
def test_a_header_that_is_set_stands_once_where_it_first_stood(
    key: str | int, headers: tuple[tuple[str, bytes | None], ...]
) -> None:
    given_headers = list(HEADERS)
    record = Record(None, None, given_headers)
    record.set_header(key, b"new")
    assert record.headers == headers
    assert record.get_header(key) == b"new"
    assert given_headers == list(HEADERS)


@pytest.mark.parametrize(("key", "value"), [("origin", b""), ("trace", None), ("absent", None), (1, None)])
def test_the_last_header_of_a_key_is_the_one_that_is_got(key: str | int, value: bytes | None) -> None:
    assert Record(None, None, HEADERS).get_header(key) == value
    assert read_one(*HEADERS).get_header(key) == value


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        (1 << 31, b"", "2147483648 is neither text nor a 32-bit integer"),
        (-(1 << 31) - 1, b"", "neither text nor"),
        (True, b"", "True is neither"),
        (b"k", b"", "b'k' is neither"),
        (None, b"", "None is neither"),
        ("k", "v", "value of header 'k' is str, not bytes or None"),
        ("k", 1, "value of header 'k' is int"),
    ],
)
def test_a_header_that_could_not_be_written_is_not_set(key: object, value: object, error: str) -> None:
    record = Record(None, None)
    with pytest.raises(EncodeError, match=error):
        record.set_header(key, value)  # type: ignore[arg-type]
    assert record.headers == ()


@pytest.mark.parametrize("record", [MADE, read_one(*HEADERS)], ids=["made", "read"])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda record: pickle.loads(pickle.dumps(record))])
def test_a_copy_is_the_same_record(record: Record, copied: Callable[[Record], Record]) -> None:
    other = copied(record)
    assert other == record
    assert other is not record
    assert (other.consumed, repr(other), other.raw_headers) == (record.consumed, repr(record), record.raw_headers)


def test_records_are_compared_by_what_they_hold() -> None:
    assert read_one(*HEADERS) == Record(b"k", b"v", list(HEADERS), 1234, 7)
    for other in (MADE, read_one(), read_one(*HEADERS[:2]), "a record"):
        assert read_one(*HEADERS) != other
    with pytest.raises(TypeError):
        hash(MADE)


def test_a_record_says_what_it_is() -> None:
    shown = f"Record(key=b'k', value=b'v', headers={HEADERS!r}, timestamp=1234, offset=-1)"
    assert repr(MADE) == shown
    assert repr(read_one(*HEADERS)) == shown.replace("offset=-1", "offset=7")


def with_raw_key(seal: Callable[..., bytes], key: bytes) -> Record:
    """A record whose header key is `key`, sealed by hand."""
    body = bytes([0, 0, 0, 1, 1, 2, 2 * len(key), *key, 2]) + b"v"
    (record,) = reread(seal(bytes([2 * len(body)]) + body, 1, base_timestamp=0))
    return record


@pytest.mark.parametrize("key", [b"\xe9t\xe9", b"\xff", b"\xed\xa0\x80", b"a\xc3"])
def test_a_header_key_that_is_not_utf8_is_written_back_unchanged(seal: Callable[..., bytes], key: bytes) -> None:
    record = with_raw_key(seal, key)
    ((name, value),) = record.headers
    assert "\ufffd" in name
    assert (value, record.get_header(name), record.raw_headers) == (b"v", b"v", ((key, b"v"),))
    for again in (record, record.replace(), pickle.loads(pickle.dumps(record)), Record(None, None, record.headers)):
        (written,) = reread(records.write([again]))
        assert written.raw_headers == ((key, b"v"),)


def test_a_malformed_key_is_text_that_keeps_its_bytes() -> None:
    key = MalformedKey(b"caf\xe9")
    assert key == "caf\ufffd"
    assert (key.raw, pickle.loads(pickle.dumps(key)).raw) == (b"caf\xe9", b"caf\xe9")


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
PAIRS = st.lists(st.tuples(TEXT, st.none() | st.binary(max_size=6)), max_size=5)


@given(st.lists(PAIRS, max_size=12), st.randoms())
def test_headers_do_not_depend_on_the_order_in_which_they_are_asked_for(
    headers: list[list[tuple[str, bytes | None]]], random: object
) -> None:
    kept = list(enumerate(reread(records.write([Record(None, None, pairs) for pairs in headers]))))
    random.shuffle(kept)  # type: ignore[attr-defined]
    for index, record in kept:
        assert list(record.headers) == headers[index]
