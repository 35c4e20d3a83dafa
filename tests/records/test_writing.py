from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from tagwire import records
from tagwire.errors import ConfigError, EncodeError
from tagwire.records import Record

from .message_sets import message

LONG = st.integers(-1, 2**63 - 1)
MAYBE_BYTES = st.none() | st.binary(max_size=300)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
RECORDS = st.lists(
    st.builds(Record, MAYBE_BYTES, MAYBE_BYTES, st.lists(st.tuples(TEXT, MAYBE_BYTES), max_size=5), LONG), max_size=30
)


@given(rows=RECORDS, codec=st.sampled_from(records.CODECS), base=st.integers(0, 2**62))
def test_records_that_are_written_read_back_the_same(rows: list[Record], codec: str, base: int) -> None:
    data = records.write(rows, compression=codec, base_offset=base)
    found = [record for batch in records.read(data) for record in batch.records()]
    expected = [
        Record(row.key, row.value, row.headers, row.timestamp, base + number) for number, row in enumerate(rows)
    ]
    assert found == expected


def test_no_records_make_no_batch() -> None:
    assert records.write([], compression="zstd") == b""


def test_two_records_are_the_bytes_of_the_specification() -> None:
    assert records.write(
        [Record(b"key1", b"value1", timestamp=283843), Record(b"key2", b"value2", timestamp=1234)]
    ).hex() == (
        "000000000000000000000055ffffffff02e58cf1ff00000000000100000000000454c300000000000454c3ffffffffffffffffffffffffffff"
        "0000000220000000086b6579310c76616c7565310024"
        "00e1bf2202086b6579320c76616c75653200"
    )


def test_the_records_own_offsets_are_not_looked_at() -> None:
    row = Record(None, b"v", offset=77)
    assert records.write([row, row], base_offset=5) == records.write([Record(None, b"v")] * 2, base_offset=5)
    assert row.offset == 77


def test_the_batch_says_what_it_was_told_to() -> None:
    data = records.write(
        [Record(b"k", b"v", timestamp=5)],
        compression="gzip",
        level=9,
        timestamp_type="LogAppendTime",
        partition_leader_epoch=3,
        producer_id=1 << 40,
        producer_epoch=7,
        base_sequence=2**31 - 1,
    )
    (batch,) = records.read(data)
    assert (batch.compression, batch.timestamp_type, batch.partition_leader_epoch) == ("gzip", "LogAppendTime", 3)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (1 << 40, 7, 2**31 - 1)
    assert not batch.is_transactional
    assert not batch.is_control
    assert not batch.has_delete_horizon


@pytest.mark.parametrize("timestamps", [[-1, -1], [0, 2**63 - 1], [2**63 - 1, -1], [-1, 2**63 - 1, 0], [5, 3, 9]])
def test_timestamps_of_any_spread_survive(timestamps: list[int]) -> None:
    (batch,) = records.read(records.write(Record(None, None, timestamp=timestamp) for timestamp in timestamps))
    assert [record.timestamp for record in batch.records()] == timestamps
    assert (batch.base_timestamp, batch.max_timestamp) == (timestamps[0], max(timestamps))


@pytest.mark.parametrize("size", [0, 1, 5, 15, 16, 17, 31, 32, 33, 63, 64, 8191, 8192, 70_000, 1_100_000])
def test_fields_of_any_size_survive(size: int) -> None:
    filled = bytes(number % 251 for number in range(size))
    rows = [Record(filled, None, [("h" * size, filled)], 0, 0), Record(None, filled, [("", b"")], 0, 1)]
    (batch,) = records.read(records.write(rows))
    assert list(batch.records()) == rows


def test_header_keys_repeat_and_keep_their_order() -> None:
    headers = [("b", b"1"), ("a", None), ("b", b"1"), ("", b""), ("é€😀", b"\xff")]
    (record,) = next(records.read(records.write([Record(None, None, headers)]))).records()
    assert record.headers == tuple(headers)


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_any_bytes_like_is_written(kind: type) -> None:
    row = Record(kind(b"key"), kind(b"value"), [("h", kind(b"data"))])
    assert records.write([row]) == records.write([Record(b"key", b"value", [("h", b"data")])])


def test_bytes_with_gaps_are_written_and_those_that_are_gone_refused() -> None:
    gone = memoryview(b"gone")
    gone.release()
    assert records.write([Record(None, memoryview(b"a_b_")[::2])]) == records.write([Record(None, b"ab")])
    for row in (Record(gone, None), Record(None, gone), Record(None, None, [("k", gone)])):  # type: ignore[arg-type]
        with pytest.raises(EncodeError, match=r"record 0: .* cannot be read: operation forbidden on released"):
            records.write([row])


@pytest.mark.parametrize(
    ("row", "error"),
    [
        (Record("text", None), "record 1: key is str, not bytes or None"),  # type: ignore[arg-type]
        (Record(None, 5), "record 1: value is int, not bytes or None"),  # type: ignore[arg-type]
        (Record(None, None, [("k", "v")]), "record 1: header value is str, not bytes or None"),  # type: ignore[list-item]
        (Record(None, None, [(b"k", b"v")]), "record 1: header key is bytes, not str"),  # type: ignore[list-item]
        (Record(None, None, [(None, b"v")]), "record 1: header key is NoneType, not str"),  # type: ignore[list-item]
        (Record(None, None, ["abc"]), "record 1: header 'abc' is not a .key, value. pair"),  # type: ignore[list-item]
        (Record(None, None, [5]), "record 1: header 5 is not a .key, value. pair"),  # type: ignore[list-item]
        (Record(None, None, [("\ud800", b"v")]), "record 1: header key '.ud800' is not valid text"),
        (Record(None, None, 5), "record 1: headers are int, not .key, value. pairs"),  # type: ignore[arg-type]
        (Record(None, None, None), "record 1: headers are NoneType, not .key, value. pairs"),  # type: ignore[arg-type]
        (Record(None, None, timestamp=-2), "record 1: timestamp -2 is not -1"),
        (Record(None, None, timestamp=2**63), "record 1: timestamp 9223372036854775808"),
        (Record(None, None, timestamp="now"), "record 1: timestamp 'now'"),  # type: ignore[arg-type]
        (Record(None, None, timestamp=1.5), "record 1: timestamp 1.5"),  # type: ignore[arg-type]
        (Record(None, None, timestamp=None), "record 1: timestamp None"),  # type: ignore[arg-type]
    ],
)
def test_a_record_that_cannot_be_written_is_named(row: Record, error: str) -> None:
    with pytest.raises(EncodeError, match=error):
        records.write([Record(b"fine", b"fine"), row])


@pytest.mark.parametrize("options", [{"magic": 0}, {"magic": 1}, {"dialect": "int-headers"}])
def test_headers_that_are_none_are_refused_in_every_format(options: dict[str, Any]) -> None:
    with pytest.raises(EncodeError, match=r"record 1: headers are int, not .key, value. pairs"):
        records.write([Record(None, None), Record(None, None, 5)], **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("appended", [False, True])
@pytest.mark.parametrize("times", [(-5, 7), (7, -(2**40)), (-2, -3), (-(2**63), 2**63 - 1)])
def test_a_batch_is_rewritten_with_whatever_timestamps_it_has(times: tuple[int, int], appended: bool) -> None:
    """Others write times below -1, which `write` refuses; compaction keeps them."""
    good = records.write([Record(b"a", b"1", (), 0), Record(b"b", b"2", (), 0)])
    payload = b"".join(row(number, time, key) for number, (time, key) in enumerate(zip(times, (b"a", b"b"))))
    data = bytearray(good[:61] + payload)
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    if appended:
        records.set_append_time(data, 1000)
    else:
        data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    (batch,) = records.read(data)
    read = list(batch.records())
    assert [record.timestamp for record in read] == ([1000, 1000] if appended else list(times))
    (again,) = records.read(records.rewrite(batch, read))
    assert list(again.records()) == read
    assert [record.timestamp for record in again.decompress().records(created=True)] == list(times)
    assert again.max_timestamp == (1000 if appended else max(times))


@pytest.mark.parametrize("magic", [1, 2])
def test_a_message_is_rewritten_with_whatever_timestamp_it_has(magic: int) -> None:
    dialect = "int-headers" if magic == 2 else None
    (entry,) = records.read(message(3, b"k", magic=magic, timestamp=-77), dialect)
    for codec in ("none", "gzip"):
        (again,) = records.read(records.rewrite(entry, entry.records(), compression=codec), dialect)
        assert [(record.offset, record.timestamp) for record in again.records()] == [(3, -77)]


def row(delta: int, time: int, key: bytes) -> bytes:
    """A record of a batch: offset and time are relative to 0."""
    body = b"\0" + varint(time) + varint(delta) + varint(len(key)) + key + varint(-1) + varint(0)
    return varint(len(body)) + body


def varint(value: int) -> bytes:
    raw = (value << 1 ^ value >> 63) & (1 << 64) - 1
    out = bytearray()
    while raw > 127:
        out.append(raw & 127 | 128)
        raw >>= 7
    return bytes([*out, raw])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"compression": "brotli"}, "compression 'brotli' is unknown"),
        ({"compression": "gzip", "level": 10}, "level 10 is not in gzip's range"),
        ({"timestamp_type": "Never"}, "timestamp type 'Never' is unknown; allowed: CreateTime, LogAppendTime"),
    ],
)
@pytest.mark.parametrize("rows", [[], [Record(None, None)]], ids=["empty", "one"])
def test_a_wrong_option_is_named_even_without_records(rows: list[Record], options: dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        records.write(rows, **options)


@pytest.mark.parametrize(("base", "count"), [(-1, 1), (-5, 9), (2**63 - 1, 1), (2**63 - 2, 2), (2**63 - 5, 7)])
@pytest.mark.parametrize("options", [{}, {"compression": "gzip"}, {"magic": 1}])
def test_a_batch_is_not_written_where_no_offset_is(base: int, count: int, options: dict[str, Any]) -> None:
    """No reader would take it; message sets were refused already."""
    rows = [Record(b"k", b"v")] * count
    with pytest.raises(EncodeError, match=f"{count} offsets from {base} on are out of range"):
        records.write(rows, base_offset=base, **options)
    *_, last = records.read(records.write(rows, base_offset=2**63 - 1 - count, **options))
    assert last.next_offset <= 2**63 - 1


def test_an_option_that_there_is_none_of_is_named() -> None:
    """A misspelt one was passed over: a topic stayed uncompressed."""
    with pytest.raises(ConfigError, match=r"a batch has no option 'compresion'\. Did you mean 'compression'\?"):
        records.write([Record(b"k", b"v")], compresion="zstd")  # type: ignore[call-arg]


@pytest.mark.parametrize("horizon", [-1, 2**63])
def test_a_delete_horizon_that_is_no_time_is_refused(horizon: int) -> None:
    (batch,) = records.read(records.write([Record(b"k", None)]))
    with pytest.raises(ConfigError, match=f"delete_horizon={horizon}: allowed is"):
        records.rewrite(batch, batch.records(), delete_horizon=horizon)


def test_a_header_field_out_of_range_is_refused() -> None:
    with pytest.raises(EncodeError, match="producer_epoch"):
        records.write([Record(None, None)], producer_epoch=1 << 15)


def test_a_record_is_equal_by_what_it_holds() -> None:
    row = Record(b"k", b"v", [("h", b"1")], 5, 6)
    assert row == Record(b"k", b"v", (("h", b"1"),), 5, 6)
    for other in (Record(b"K", b"v", [("h", b"1")], 5, 6), Record(b"k", b"v", [], 5, 6), Record(b"k", b"v", (), 5, 7)):
        assert row != other
    assert row != (b"k", b"v")
    assert repr(row) == "Record(key=b'k', value=b'v', headers=[('h', b'1')], timestamp=5, offset=6)"


def test_a_batch_can_be_written_while_another_is() -> None:
    rows = [Record(b"k%d" % number, b"v" * 100) for number in range(2_000)]
    whole = records.write(rows)

    def headers() -> Iterator[tuple[str, bytes]]:
        assert records.write(rows) == whole
        yield "h", b"1"

    found = [*rows[:1_000], Record(b"odd", b"v", headers()), *rows[1_000:]]  # type: ignore[arg-type]
    expected = [*rows[:1_000], Record(b"odd", b"v", [("h", b"1")]), *rows[1_000:]]
    assert records.write(found) == records.write(expected)
    assert records.write(rows) == whole
    assert records.write(rows[:700], compression="lz4") == records.write(rows[:700], compression="lz4")
