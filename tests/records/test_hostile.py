"""Batches with right checksums over wrong contents: each is refused by name, before anything is allocated for it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tagwire import records
from tagwire.errors import CorruptRecordError, TagwireError
from tagwire.records import Record

Reader = Callable[..., list[tuple[Any, ...]]]

GOOD = "10 00 00 00 01 04 6162 00"
"""A record without key, value `ab`, no headers: length, attributes, timestamp, offset, key, value, headers."""

INT_MAX = "fe ff ff ff 0f"
INT_MIN = "ff ff ff ff 0f"

# name, records in hexadecimal, how many the batch says there are, what must be said
HOSTILE = [
    ("no records where one is promised", "", 1, "1 records do not fit into 0 bytes"),
    ("more records than bytes", GOOD, 2, "2 records do not fit into 9 bytes"),
    ("most records", GOOD * 3, 2**31 - 1, "2147483647 records do not fit into 27 bytes"),
    ("fewer records than present", GOOD + "10 00 00 02 01 04 6162 00", 1, "record 1 at byte 70: 9 bytes are left"),
    ("a byte after the last record", GOOD + "00", 1, "record 1 at byte 70: 1 bytes are left after the last record"),
    ("record length 0", "00 00 00 00 00 00 00", 1, "record 0 at byte 61: record length 0"),
    ("record length -1", "01 00 00 00 00 00 00", 1, "record length -1"),
    ("record length greatest", INT_MAX + "00 00 00 01 01 00", 1, "record length 2147483647 does not fit"),
    ("record length one too many", "12 00 00 00 01 04 6162 00", 1, "record length 9 does not fit"),
    ("record length one too few", "0e 00 00 00 01 04 6162 00", 1, "record 0 at byte 69: a varint runs past the end"),
    (
        "record length with a byte to spare",
        "12 00 00 00 01 04 6162 00 00",
        1,
        "1 bytes are left after the record's last",
    ),
    ("a record of attributes alone", "02 00" + "00" * 6, 1, "a varint runs past the end"),
    ("a varint without an end", "80 80 80 80 80 80 80 80 80 80", 1, "record 0 at byte 61: a varint is longer"),
    ("a varint cut short", "0c 00 00 00 01 01 80", 1, "record 0 at byte 67: a varint runs past the end"),
    ("a varint with bits past 32", "10 00 00 00 81 80 80 80 10", 1, "record 0 at byte 65: a varint is longer"),
    ("a timestamp with bits past 64", "1c 00" + "80" * 9 + "02 00 01 01 00", 1, "byte 63: a varint is longer"),
    ("a timestamp of 11 bytes", "1e 00" + "80" * 10 + "01 00 01 01 00", 1, "byte 63: a varint is longer"),
    ("offset delta -1", "10 00 00 01 01 04 6162 00", 1, "offset delta -1 does not ascend"),
    ("offset delta beyond the batch", "10 00 00 02 01 04 6162 00", 1, "offset delta 1 does not ascend"),
    ("offset delta twice", GOOD + GOOD, 2, "record 1 at byte 70: offset delta 0 does not ascend"),
    ("offset deltas descending", "10 00 00 02 01 04 6162 00" + GOOD, 2, "record 1 .* offset delta 0 does not ascend"),
    ("offset delta greatest", "18 00 00" + INT_MAX + "01 04 6162 00", 1, "offset delta 2147483647"),
    ("offset delta cut short", "06 00 00 80" + "00" * 4, 1, "a varint runs past the end"),
    ("key length -2", "10 00 00 00 03 04 6162 00", 1, "record 0 at byte 65: key length -2"),
    ("key length past the record", "10 00 00 00 0a 04 6162 00", 1, "key length 5 does not fit"),
    ("key length greatest", "18 00 00 00" + INT_MAX + "01 00 00 00", 1, "key length 2147483647"),
    ("key length least", "18 00 00 00" + INT_MIN + "01 00 00 00", 1, "key length -2147483648"),
    ("key up to the end", "10 00 00 00 08 61626364", 1, "a varint runs past the end"),
    ("value length -2", "10 00 00 00 01 03 6162 00", 1, "record 0 at byte 66: value length -2"),
    ("value length past the record", "10 00 00 00 01 08 6162 00", 1, "value length 4 does not fit"),
    ("value length greatest", "18 00 00 00 01" + INT_MAX + "00 00 00", 1, "value length 2147483647"),
    ("header count -1", "10 00 00 00 01 04 6162 01", 1, "record 0 at byte 69: header count -1"),
    ("header count greatest", "18 00 00 00 01 01" + INT_MAX + "00 00", 1, "header count 2147483647"),
    ("header count one more than bytes allow", "10 00 00 00 01 01 04 00 00", 1, "header count 2"),
    ("header key null", "10 00 00 00 01 01 02 01 00", 1, "record 0 at byte 68: header key length -1"),
    ("header key past the record", "10 00 00 00 01 01 02 04 61", 1, "header key length 2"),
    ("header key up to the end", "10 00 00 00 01 01 02 02 61", 1, "a varint runs past the end"),
    ("header value -2", "12 00 00 00 01 01 02 00 03 00", 1, "record 0 at byte 69: header value length -2"),
    ("header value past the record", "12 00 00 00 01 01 02 00 04 61", 1, "header value length 2"),
    ("fewer headers than promised", "16 00 00 00 01 01 04 02 61 02 31", 1, "record length 11"),
]


@pytest.mark.parametrize(
    ("payload", "count", "error"), [case[1:] for case in HOSTILE], ids=[case[0] for case in HOSTILE]
)
def test_a_hostile_batch_is_refused_by_name(
    payload: str, count: int, error: str, seal: Callable[..., bytes], read_rows: Reader
) -> None:
    with pytest.raises(CorruptRecordError, match=error):
        read_rows(seal(bytes.fromhex(payload), count))


@pytest.mark.parametrize(
    ("payload", "count", "error"), [case[1:] for case in HOSTILE], ids=[case[0] for case in HOSTILE]
)
def test_a_hostile_batch_that_is_compressed_is_refused_too(
    payload: str, count: int, error: str, seal: Callable[..., bytes], read_rows: Reader
) -> None:
    with pytest.raises(CorruptRecordError, match="batch at offset 900"):
        read_rows(seal(records.compress("zstd", bytes.fromhex(payload)), count, base_offset=900, attributes=4))


# name, records in hexadecimal, the rows (offset, timestamp, key, value, headers) at base offset 5, base timestamp 1000
LEGAL = [
    (
        "varints longer than they need be",
        "9c 00 00 80 00 80 00 81 00 84 00 6162 80 80 00",
        [(5, 1000, None, b"ab", [])],
    ),
    ("attributes that nobody knows", "10 ff 00 00 01 04 6162 00", [(5, 1000, None, b"ab", [])]),
    ("empty key and value", "0c 00 00 00 00 00 00", [(5, 1000, b"", b"", [])]),
    ("an earlier timestamp", "0e 00 d1 0f 00 01 01 00", [(5, -1, None, None, [])]),
    (
        "a hole in the offsets",
        "0c 00 00 00 01 01 00  0c 00 00 12 01 01 00",
        [(5, 1000, None, None, []), (14, 1000, None, None, [])],
    ),
    (
        "headers repeated, empty, null",
        "1e 00 00 00 01 01 06  02 61 02 31  02 61 01  00 00",
        [(5, 1000, None, None, [("a", b"1"), ("a", None), ("", b"")])],
    ),
    ("NUL in a header key", "12 00 00 00 01 01 02 02 00 00", [(5, 1000, None, None, [("\0", b"")])]),
    (
        "an encoded surrogate is one character",
        "16 00 00 00 01 01 02 06 eda080 00",
        [(5, 1000, None, None, [("\ufffd", b"")])],
    ),
]


@pytest.mark.parametrize(("payload", "rows"), [case[1:] for case in LEGAL], ids=[case[0] for case in LEGAL])
def test_an_unusual_batch_is_read(
    payload: str, rows: list[tuple[Any, ...]], seal: Callable[..., bytes], read_rows: Reader
) -> None:
    data = seal(bytes.fromhex(payload), len(rows), base_offset=5, last_offset_delta=9)
    assert read_rows(data) == rows
    assert records.next_offset(data) == 15


@pytest.mark.parametrize(
    ("base", "delta", "timestamp"),
    [
        (0, "feffffffffffffffff01", 2**63 - 1),
        (0, "ffffffffffffffffff01", -(2**63)),
        (2**63 - 1, "00", 2**63 - 1),
        (-(2**63), "00", -(2**63)),
        (2**63 - 1, "02", -(2**63)),
    ],
)
def test_a_timestamp_is_a_wrapping_64_bit_sum(
    base: int, delta: str, timestamp: int, seal: Callable[..., bytes], read_rows: Reader
) -> None:
    body = bytes.fromhex("00" + delta + "00 01 01 00")
    assert read_rows(seal(bytes([2 * len(body)]) + body, 1, base_timestamp=base)) == [(0, timestamp, None, None, [])]


def test_the_last_offset_there_is_can_be_read(seal: Callable[..., bytes], read_rows: Reader) -> None:
    data = seal(bytes.fromhex("0c 00 00 00 00 00 00"), 1, base_offset=2**63 - 2)
    assert [row[0] for row in read_rows(data)] == [2**63 - 2]


def test_a_batch_said_to_be_compressed_but_plain_is_refused(seal: Callable[..., bytes], read_rows: Reader) -> None:
    for attributes in (1, 2, 3, 4):
        with pytest.raises(CorruptRecordError, match=f"batch at offset 7: .*{records.CODECS[attributes]}"):
            read_rows(seal(bytes.fromhex(GOOD), 1, base_offset=7, attributes=attributes))


def test_every_byte_can_be_missing(seal: Callable[..., bytes], read_rows: Reader) -> None:
    rows = [Record(b"key", b"value", [("header", b"data"), ("other", None)], 1000) for _ in range(3)]
    payload = records.write(rows)[61:]
    for end in range(len(payload)):
        with pytest.raises(CorruptRecordError):
            read_rows(seal(payload[:end], 3))


def test_a_count_is_believed_only_as_far_as_the_bytes_go(seal: Callable[..., bytes], read_rows: Reader) -> None:
    data = seal(bytes.fromhex(GOOD) * 10, 2**31 - 1)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptRecordError, match="2147483647 records"):
            read_rows(data)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
def test_a_bomb_is_stopped_at_64_times_the_batch_and_1_mib(
    codec: str, seal: Callable[..., bytes], read_rows: Reader
) -> None:
    stream = records.compress(codec, bytes(24 << 20))
    data = seal(stream, 1, base_offset=3, attributes=records.CODECS.index(codec))
    allowed = 64 * len(data) + (1 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptRecordError, match="batch at offset 3"):
            read_rows(data)
        assert tracemalloc.get_traced_memory()[1] < allowed + (1 << 20)
    finally:
        tracemalloc.stop()


def test_bombs_cannot_share_the_limit_out_between_them() -> None:
    bombs = b"".join(
        records.write([Record(None, bytes(1_000_000))], base_offset=base, compression="zstd") for base in range(100)
    )
    with pytest.raises(CorruptRecordError, match="more than"):
        records.to_arrow(bombs)


def test_time_is_linear_in_records_headers_and_batches() -> None:
    # a quadratic step anywhere would make these take minutes
    many_records = records.write([Record(None, None)] * 50_000)
    many_headers = records.write([Record(None, None, [("", None)] * 50_000)])
    many_batches = records.write([Record(None, None)]) * 5_000
    assert records.to_arrow(many_records).num_rows == 50_000
    assert len(next(next(records.read(many_records)).records()).headers) == 0
    assert records.to_arrow(many_headers).column("headers").value_lengths().to_pylist() == [50_000]
    assert records.to_arrow(many_batches).num_rows == 5_000


SEEDS = [
    records.write(
        [
            Record(b"k", b"v" * 40, [("one", b"1"), ("two", None)], 5),
            Record(None, None, [], -1),
            Record(b"", b"", [("é", b"")], 9),
        ],
        compression=codec,
    )
    for codec in records.CODECS
]


@given(
    seed=st.sampled_from(SEEDS),
    changes=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=6),
    cut=st.integers(0, 40),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_batches_are_read_or_refused_and_both_readers_agree(
    seed: bytes, changes: list[tuple[int, int]], cut: int, seal: Callable[..., bytes], readers: list[Reader]
) -> None:
    payload = bytearray(seed[61:])
    for position, value in changes:
        payload[position % len(payload)] = value
    codec = seed[22] & 7
    batch = seal(bytes(payload[: max(len(payload) - cut, 0)]), 3, attributes=codec)
    outcomes: list[object] = []
    for read in readers:
        try:
            outcomes.append(read(batch, max_decompressed=1 << 20))
        except TagwireError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


class Fault(Exception):
    """What a reading byte by byte finds, in the words of the error that must be raised."""


def byte_by_byte(payload: bytes, count: int) -> list[tuple[Any, ...]]:
    """The rows of a batch at offset 0 whose deltas of timestamps are from 1000, read after docs/record-formats.md and
    not after the kernels. Raises Fault."""
    at = index = 0

    def refuse(what: str, where: int) -> NoReturn:
        raise Fault(f"batch at offset 0, record {index} at byte {61 + where}: {what}")

    def varint(stop: int, bits: int = 32) -> int:
        nonlocal at
        begun = at
        raw = shift = 0
        while at < stop:
            byte = payload[at]
            at += 1
            raw |= (byte & 127) << shift
            shift += 7
            if raw >> bits or (byte > 127 and shift >= bits):
                refuse("a varint is longer than its type", begun)
            if byte < 128:
                return (raw >> 1) ^ -(raw & 1)
        refuse("a varint runs past the end", begun)

    def piece(stop: int, what: str, least: int = -1) -> bytes | None:
        nonlocal at
        begun = at
        size = varint(stop)
        if size < least or size > stop - at:
            refuse(f"{what} length {size} does not fit into the record", begun)
        at += max(size, 0)
        return None if size < 0 else payload[at - size : at]

    rows: list[tuple[Any, ...]] = []
    after = -1
    while index < count:
        begun = at
        size = varint(len(payload))
        if size < 1 or size > len(payload) - at:
            refuse(f"record length {size} does not fit into what is left of the batch", begun)
        stop = at + size
        at += 1
        time, delta = varint(stop, 64), varint(stop)
        key, value = piece(stop, "key"), piece(stop, "value")
        counted = at
        headers = varint(stop)
        if headers < 0 or headers > (stop - at) >> 1:
            refuse(f"header count {headers} does not fit into the record", counted)
        if not after < delta < count:
            refuse(f"offset delta {delta} does not ascend within the batch's range", begun)
        after = delta
        pairs = [(piece(stop, "header key", 0), piece(stop, "header value")) for _ in range(headers)]
        if at != stop:
            refuse(f"{stop - at} bytes are left after the record's last field", at)
        rows.append(
            (delta, 1000 + time, key, value, [(str(name or b"", "utf-8", "replace"), data) for name, data in pairs])
        )
        index += 1
    if at != len(payload):
        refuse(f"{len(payload) - at} bytes are left after the last record", at)
    return rows


def records_of(*sizes: int | None) -> bytes:
    """Records whose values and headers have each of the sizes, their keys the next one, their times the sizes' cube."""
    pieces = [None if size is None else b"v" * size for size in sizes]
    found = [
        Record(key, value, [("h" * (size or 0), value)] * (number % 3), (size or 0) ** 3)
        for number, (size, key, value) in enumerate(zip(sizes, pieces[1:] + pieces[:1], pieces))
    ]
    return records.write(found)[61:]


def test_records_of_all_sizes_are_read_as_byte_by_byte(seal: Callable[..., bytes], read_rows: Reader) -> None:
    payload = records_of(None, 0, 1, 2, 62, 63, 64, 65, 4000, 8191, 8192, 100_000, 0)
    assert read_rows(seal(payload, 13)) == byte_by_byte(payload, 13)


@pytest.mark.parametrize("value", [0, 1, 2, 3, 20, 127, 128, 129, 130, 254, 255])
def test_a_wrong_byte_among_good_records_is_met_as_byte_by_byte(
    value: int, seal: Callable[..., bytes], read_rows: Reader
) -> None:
    payload = bytearray(records_of(None, 5, 0, 16, 64, 1, 30))
    for at, right in enumerate(payload):
        payload[at] = value
        found: object
        expected: object
        try:
            expected = byte_by_byte(bytes(payload), 7)
        except Fault as fault:
            expected = str(fault)
        try:
            found = read_rows(seal(bytes(payload), 7))
        except CorruptRecordError as error:
            found = str(error)
        assert found == expected, at
        payload[at] = right
