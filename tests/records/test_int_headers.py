"""The int-headers format: its bytes, its integers, what it may hold."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwire import records
from tagwire.errors import ConfigError, CorruptRecordError, EncodeError, TagwireError
from tagwire.records import Record

from .message_sets import message

DIALECT = "int-headers"
INT32 = st.integers(-(2**31), 2**31 - 1)
MAYBE_BYTES = st.none() | st.binary(max_size=100)
HEADERS = st.dictionaries(INT32 | st.integers(-200, 300), st.binary(max_size=300), max_size=6).map(
    lambda found: tuple(found.items())
)
ROWS = st.lists(
    st.builds(Record, MAYBE_BYTES, MAYBE_BYTES, HEADERS, st.integers(-1, 2**63 - 1)), min_size=1, max_size=10
)


def with_headers(headers: str, **options: Any) -> bytes:
    """A message with these header bytes, in hexadecimal, their length before them."""
    return message(0, magic=2, attributes=0x10, headers=bytes.fromhex(headers), **options)


def read(data: bytes) -> list[Record]:
    return [record for batch in records.read(data, DIALECT) for record in batch.records()]


def both_ways(data: bytes) -> list[Callable[[], object]]:
    return [lambda: read(data), lambda: records.to_arrow(data, dialect=DIALECT)]


# The bytes of the format's own description.
def test_a_message_with_headers_is_these_bytes() -> None:
    row = Record(b"k", b"v", [(0x00100010, b"\x01"), (1, b"app")], 1000)
    data = records.write([row], dialect=DIALECT, base_offset=5)
    assert data == bytes.fromhex(
        "0000000000000005 00000026 337eec85 02 10 00000000000003e8 00000001 6b 0d 02 01 03 617070 ce00100010 01 01 "
        "00000001 76"
    )
    assert read(data) == [Record(b"k", b"v", ((1, b"app"), (0x00100010, b"\x01")), 1000, 5)]


def test_a_message_without_headers_is_these_bytes() -> None:
    data = records.write([Record(None, b"v", timestamp=1000)], dialect=DIALECT)
    assert data == bytes.fromhex("0000000000000000 00000017 aae0ea03 02 00 00000000000003e8 ffffffff 00000001 76")
    assert read(data) == [Record(None, b"v", (), 1000, 0)]


@given(rows=ROWS.map(lambda rows: [row.replace(headers=()) for row in rows]))
def test_a_message_without_headers_has_the_size_of_one_of_magic_1(rows: list[Record]) -> None:
    assert len(records.write(rows, dialect=DIALECT)) == len(records.write(rows, magic=1))


# every form of integer, as a header's key, at the bounds of each size
INTEGERS = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (-1, "ff"),
    (-32, "e0"),
    (128, "cc80"),
    (255, "ccff"),
    (256, "cd0100"),
    (65535, "cdffff"),
    (65536, "ce00010000"),
    (2**31 - 1, "ce7fffffff"),
    (-33, "d0df"),
    (-128, "d080"),
    (-129, "d1ff7f"),
    (-32768, "d18000"),
    (-32769, "d2ffff7fff"),
    (-(2**31), "d280000000"),
]


@pytest.mark.parametrize(("number", "form"), INTEGERS)
def test_an_integer_is_written_in_its_shortest_form_and_read_in_it(number: int, form: str) -> None:
    data = records.write([Record(None, b"v", [(number, b"")], 1000)], dialect=DIALECT)
    assert data == with_headers(f"{len(form) // 2 + 2:02x} 01 {form} 00")
    assert read(data)[0].headers == ((number, b""),)
    (row,) = records.to_arrow(data, dialect=DIALECT).column("headers").to_pylist()
    assert row == [{"key": str(number), "value": b""}]


NOT_INTEGERS = [
    ("d10100", "not written in its shortest form"),  # 256, as a signed one
    ("cc7f", "not written in its shortest form"),
    ("cd00ff", "not written in its shortest form"),
    ("ce0000ffff", "not written in its shortest form"),
    ("d0e0", "not written in its shortest form"),
    ("d000", "not written in its shortest form"),
    ("d07f", "not written in its shortest form"),
    ("d1ff80", "not written in its shortest form"),
    ("d17fff", "not written in its shortest form"),
    ("d2ffff8000", "not written in its shortest form"),
    ("d27fffffff", "not written in its shortest form"),
    ("ce80000000", "beyond 2\\^31-1"),
    ("ceffffffff", "beyond 2\\^31-1"),
    ("cf0000000100000000", "byte cf begins no integer"),
    ("d3ffffffff00000000", "byte d3 begins no integer"),
    ("c0", "byte c0 begins no integer"),
    ("80", "byte 80 begins no integer"),
    ("a0", "byte a0 begins no integer"),
    ("cb", "byte cb begins no integer"),
    ("df", "byte df begins no integer"),
]


@pytest.mark.parametrize(("form", "error"), NOT_INTEGERS)
@pytest.mark.parametrize("place", ["length", "count", "key", "value length"])
def test_any_other_form_of_an_integer_is_refused(form: str, error: str, place: str) -> None:
    size = len(form) // 2
    headers = {
        "length": f"{form} 01 01 00",
        "count": f"{size + 2:02x} {form} 01 00",
        "key": f"{size + 2:02x} 01 {form} 00",
        "value length": f"{size + 2:02x} 01 01 {form}",
    }[place]
    for way in both_ways(with_headers(headers)):
        with pytest.raises(CorruptRecordError, match=error):
            way()


HOSTILE = [
    ("the bit set and no headers", "", "headers length"),
    ("headers of length 0", "00", "headers length 0 does not fit"),
    ("a negative length", "ff", "headers length -1 does not fit"),
    ("a length past the end", "7f 01 01 00", "headers length 127 does not fit"),
    ("a length that takes the value too", "08 01 01 00", "headers length 8 does not fit"),
    ("count 0", "01 00", "header count 0"),
    ("count -1", "03 ff 01 00", "header count -1"),
    ("a count that the bytes cannot hold", "03 02 01 00", "header count 2 does not fit"),
    ("the greatest count", "07 ce7fffffff 01 00", "header count 2147483647 does not fit"),
    ("fewer headers than bytes", "05 01 01 00 02 00", "2 bytes are left after the last header"),
    ("more headers than bytes", "05 02 01 02 6161", "an integer runs past the end"),
    ("a key twice", "05 02 01 00 01 00", "header key 1 stands again"),
    ("keys descending", "05 02 02 00 01 00", "header key 1 stands again, or after 2"),
    ("keys in the order of unsigned numbers", "05 02 01 00 ff 00", "header key -1 stands again, or after 1"),
    ("a negative value length", "03 01 01 ff", "header value length -1 does not fit"),
    ("a value past the end", "04 01 01 02 61", "header value length 2 does not fit"),
    ("a value of the greatest length", "07 01 01 ce7fffffff", "header value length 2147483647"),
    ("an integer cut short by the end", "03 01 cd 01", "an integer runs past the end"),
]


@pytest.mark.parametrize(("headers", "error"), [case[1:] for case in HOSTILE], ids=[case[0] for case in HOSTILE])
def test_hostile_headers_are_refused_by_name(headers: str, error: str) -> None:
    data = with_headers(headers)
    for way in both_ways(data) if headers else both_ways(with_headers(headers, value=None)):
        with pytest.raises(CorruptRecordError, match=error):
            way()


def test_headers_where_the_bit_is_clear_are_refused() -> None:
    for way in both_ways(message(0, magic=2, headers=bytes.fromhex("03010100"))):
        with pytest.raises(CorruptRecordError, match="value length 50397440 does not fit"):
            way()


def test_a_wrapper_has_no_headers_itself() -> None:
    inner = gzip.compress(message(0, magic=2))
    with pytest.raises(CorruptRecordError, match="a message that wraps others has headers"):
        read(message(0, None, inner, magic=2, attributes=0x11))


def test_every_byte_of_the_headers_can_be_missing() -> None:
    whole = "0b 02 01 03 617070 cc80 02 0101"
    assert read(with_headers(whole))[0].headers == ((1, b"app"), (128, b"\x01\x01"))
    body = bytes.fromhex(whole)[1:]
    for end in range(len(body)):
        for way in both_ways(with_headers(f"{end:02x} {body[:end].hex()}")):
            with pytest.raises(CorruptRecordError):
                way()


@given(rows=ROWS, codec=st.sampled_from(records.CODECS), base=st.integers(0, 2**62), appended=st.booleans())
def test_messages_with_headers_that_are_written_read_back_the_same(
    rows: list[Record], codec: str, base: int, appended: bool
) -> None:
    kind = "LogAppendTime" if appended else "CreateTime"
    data = records.write(rows, dialect=DIALECT, compression=codec, base_offset=base, timestamp_type=kind)
    latest = max(row.timestamp for row in rows)
    expected = [
        Record(row.key, row.value, tuple(sorted(row.headers)), latest if appended else row.timestamp, base + at)
        for at, row in enumerate(rows)
    ]
    assert read(data) == expected
    assert {batch.magic for batch in records.read(data, DIALECT)} == {2}
    table = records.to_arrow(data, dialect=DIALECT)
    assert table.column("offset").to_pylist() == [row.offset for row in expected]
    assert table.column("value").to_pylist() == [row.value for row in expected]
    found = [[(pair["key"], pair["value"]) for pair in pairs or ()] for pairs in table.column("headers").to_pylist()]
    assert found == [[(str(key), value) for key, value in row.headers] for row in expected]
    assert records.next_offset(data, DIALECT) == base + len(rows)


@given(
    codec=st.sampled_from(records.CODECS),
    changes=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=6),
)
@settings(max_examples=200)
def test_damaged_messages_are_read_or_refused(codec: str, changes: list[tuple[int, int]]) -> None:
    rows = [Record(b"k", b"v" * 40, [(-5, b"1"), (300, b"x" * 9)], 5), Record(None, None), Record(b"", b"", [(1, b"")])]
    data = bytearray(records.write(rows, dialect=DIALECT, compression=codec))
    for position, value in changes:
        data[position % len(data)] = value
    try:
        for batch in records.read(data, DIALECT, verify=False):
            list(batch.records(max_decompressed=1 << 16))
    except TagwireError:
        pass


def test_offsets_inside_a_wrapper_are_relative() -> None:
    inner = message(0, b"a", magic=2) + message(3, b"b", magic=2, attributes=0x10, headers=b"\x04\x01\x07\x01x")
    data = message(50, None, gzip.compress(inner), magic=2, attributes=1)
    (batch,) = records.read(data, DIALECT)
    assert (batch.base_offset, batch.last_offset, batch.count) == (47, 50, 2)
    assert [(record.offset, record.headers) for record in batch.records()] == [(47, ()), (50, ((7, b"x"),))]


def test_older_messages_may_stand_in_the_same_log() -> None:
    rows = [Record(b"k", b"v", (), 5)]
    log = records.write(rows, magic=0) + records.write(rows, magic=1, base_offset=1, compression="lz4")
    log += records.write([Record(b"k", b"v", [(1, b"x")], 5)], dialect=DIALECT, base_offset=2)
    assert [(record.offset, record.headers) for record in read(log)] == [(0, ()), (1, ()), (2, ((1, b"x"),))]


def test_magic_2_is_never_guessed() -> None:
    batch = records.write([Record(b"k", b"v", (), 5)])
    with pytest.raises(CorruptRecordError):
        read(batch)
    with pytest.raises(CorruptRecordError):
        list(records.read(records.write([Record(b"k" * 60, b"v", (), 5)], dialect=DIALECT)))


@pytest.mark.parametrize(
    ("headers", "error"),
    [
        ([("name", b"v")], "record 1: header key 'name' is str, not int"),
        ([(True, b"v")], "record 1: header key True is bool, not int"),
        ([(2**31, b"v")], "record 1: header key 2147483648 has more than 32 bits"),
        ([(-(2**31) - 1, b"v")], "more than 32 bits"),
        ([(1, b"v"), (1, b"w")], "record 1: header key 1 stands twice"),
        ([(1, None)], "record 1: the value of header 1 is null"),
        ([(1, "text")], "record 1: the value of header 1 is str"),
        ([5], "record 1: header 5 is not a .key, value. pair"),
    ],
)
def test_headers_that_cannot_be_written_are_named(headers: Any, error: str) -> None:
    with pytest.raises(EncodeError, match=error):
        records.write([Record(b"fine", b"fine", [(1, b"")]), Record(None, None, headers)], dialect=DIALECT)


def test_the_dialect_has_one_magic() -> None:
    with pytest.raises(ConfigError, match="only 2 with dialect"):
        records.write([Record(None, None)], dialect=DIALECT, magic=1)


class Names:
    """A register of one name."""

    @staticmethod
    def name_of(key: int) -> str | None:
        return {1: "client.id"}.get(key)


@pytest.mark.parametrize("codec", records.CODECS)
def test_columns_name_the_headers_that_a_register_knows(codec: str) -> None:
    rows = [Record(b"k", b"v", [(1, b"app"), (-7, b"x")], 5), Record(b"k", b"v", (), 6), Record(None, None, [(1, b"")])]
    data = records.write(rows, dialect=DIALECT, compression=codec)
    headers = records.to_arrow(data, dialect=DIALECT, register=Names(), columns=("headers",)).column(0).to_pylist()
    assert headers == [
        [{"key": "-7", "value": b"x"}, {"key": "client.id", "value": b"app"}],
        None,
        [{"key": "client.id", "value": b""}],
    ]
    (chunk, after), *_ = records.arrow_chunks(data, dialect=DIALECT, register=Names())
    assert chunk.num_rows >= 1
    assert after >= 1
    with pytest.raises(ConfigError, match="no dialect is given"):
        records.to_arrow(b"", register=Names())


@pytest.mark.parametrize("codec", records.CODECS)
def test_an_entry_is_placed_and_dated_in_a_log(codec: str) -> None:
    rows = [Record(b"a", b"1", [(1, b"x")], 5)] * (1 if codec == "none" else 3)
    entry = bytearray(records.write(rows, dialect=DIALECT, compression=codec))
    records.assign_offsets(entry, 700, 9, DIALECT)
    records.set_append_time(entry, 123_456, dialect=DIALECT)
    found = read(bytes(entry))
    assert [(record.offset, record.timestamp) for record in found] == [(700 + at, 123_456) for at in range(len(rows))]
    assert found[-1].headers == ((1, b"x"),)
    (header,) = records.batch_headers(entry, DIALECT, verify=True)
    assert (header.crc_ok, header.base_offset, header.count) == (True, 700, len(rows))


def test_an_entry_is_rewritten_with_some_of_its_records() -> None:
    rows = [Record(b"%d" % at, b"v", [(at, b"x")], at) for at in range(4)]
    (batch,) = records.read(records.write(rows, dialect=DIALECT, compression="zstd", base_offset=10), DIALECT)
    kept = read(records.rewrite(batch, list(batch.records())[2:]))
    assert [(record.offset, record.headers) for record in kept] == [(12, ((2, b"x"),)), (13, ((3, b"x"),))]
    assert records.rewrite(batch, batch.records(), compression="none") == records.write(
        rows, dialect=DIALECT, base_offset=10
    )


def test_records_that_were_read_keep_their_headers() -> None:
    (record,) = read(records.write([Record(None, b"v", [(1, b"x")], 5)], dialect=DIALECT))
    assert record.consumed
    assert record.get_header(1) == b"x"


def test_time_and_memory_are_linear_in_headers() -> None:
    # a quadratic step would make this take minutes
    many = [(key, b"") for key in range(-50_000, 50_000)]
    data = records.write([Record(None, None, many)], dialect=DIALECT, compression="zstd")
    (record,) = read(data)
    assert len(record.headers) == 100_000
    assert records.to_arrow(data, dialect=DIALECT).column("headers").value_lengths().to_pylist() == [100_000]
