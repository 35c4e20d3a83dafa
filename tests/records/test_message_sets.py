"""Message sets of magic 0 and 1: what they say, what they may not, and what is written."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwire import records
from tagwire.errors import ConfigError, CorruptRecordError, EncodeError, TagwireError, UnsupportedVersionError
from tagwire.records import MessageEntry, Record

from .message_sets import message, raw

Reader = Callable[..., list[tuple[Any, ...]]]

OLD_CODECS = ("none", "gzip", "snappy", "lz4")
MAYBE_BYTES = st.none() | st.binary(max_size=100)
ROWS = st.lists(
    st.builds(Record, MAYBE_BYTES, MAYBE_BYTES, st.just(()), st.integers(-1, 2**63 - 1)), min_size=1, max_size=20
)
TIMES = ("CreateTime", "LogAppendTime")


def wrapper(
    offset: int, inner: bytes, *, magic: int = 1, attributes: int = 1, timestamp: int = 2000, **options: Any
) -> bytes:
    """A gzip wrapper of `inner`."""
    stored = gzip.compress(inner, mtime=0)
    return message(offset, None, stored, magic=magic, attributes=attributes, timestamp=timestamp, **options)


def rows_of(data: bytes, **options: Any) -> list[tuple[int, int, bytes | None, bytes | None]]:
    return [
        (record.offset, record.timestamp, record.key, record.value)
        for batch in records.read(data, **options)
        for record in batch.records()
    ]


@given(
    rows=ROWS,
    magic=st.sampled_from([0, 1]),
    codec=st.sampled_from(OLD_CODECS),
    base=st.integers(0, 2**62),
    kind=st.sampled_from(TIMES),
)
def test_messages_that_are_written_read_back_the_same(
    rows: list[Record], magic: int, codec: str, base: int, kind: str
) -> None:
    kind = kind if magic else "CreateTime"
    data = records.write(rows, magic=magic, compression=codec, base_offset=base, timestamp_type=kind)
    latest = max(row.timestamp for row in rows)
    times = [latest if kind == "LogAppendTime" else row.timestamp if magic else -1 for row in rows]
    expected = [(base + at, time, row.key, row.value) for at, (row, time) in enumerate(zip(rows, times))]
    assert rows_of(data) == expected
    assert {batch.magic for batch in records.read(data)} == {magic}
    columns = ("offset", "timestamp", "key", "value", "timestamp_type", "headers")
    table = records.to_arrow(data, columns=columns)
    assert table.column("offset").to_pylist() == [row[0] for row in expected]
    assert table.column("timestamp").cast("int64").to_pylist() == times
    assert table.column("key").to_pylist() == [row.key for row in rows]
    assert table.column("value").to_pylist() == [row.value for row in rows]
    assert table.column("timestamp_type").to_pylist() == [(TIMES.index(kind) if magic else -1)] * len(rows)
    assert table.column("headers").null_count == len(rows)
    assert records.next_offset(data) == base + len(rows)


def test_formats_stand_mixed_in_one_log() -> None:
    rows = [Record(b"a", b"1", timestamp=5), Record(None, None, timestamp=6)]
    log = b"".join(
        records.write(rows, magic=magic, base_offset=10 * at, compression=codec)
        for at, (magic, codec) in enumerate(
            [(0, "none"), (2, "zstd"), (1, "gzip"), (2, "none"), (0, "lz4"), (1, "none")]
        )
    )
    assert [batch.magic for batch in records.read(log)] == [0, 0, 2, 1, 2, 0, 1, 1]
    offsets = [10 * at + number for at in range(6) for number in range(2)]
    assert [row[0] for row in rows_of(log)] == offsets
    columns = ("offset", "timestamp_type", "key")
    table = records.to_arrow(log, columns=columns)
    assert table.column("offset").to_pylist() == offsets
    assert table.column("timestamp_type").to_pylist() == [-1, -1, 0, 0, 0, 0, 0, 0, -1, -1, 0, 0]
    assert records.to_arrow(log, start_offset=21, end_offset=41).column("offset").to_pylist() == [21, 30, 31, 40]
    assert records.next_offset(log) == 52


def test_a_message_is_a_batch_of_one_record() -> None:
    data = message(7, b"k", b"v") + message(9, None, None, timestamp=-1)
    first, second = records.read(data)
    assert isinstance(first, MessageEntry)
    assert (first.base_offset, first.last_offset, first.next_offset, first.count) == (7, 7, 8, 1)
    assert (first.magic, first.compression, first.timestamp_type, first.max_timestamp) == (
        1,
        "none",
        "CreateTime",
        1000,
    )
    assert (first.producer_id, first.producer_epoch, first.base_sequence, first.last_sequence) == (-1, -1, -1, -1)
    assert (first.partition_leader_epoch, first.is_control, first.is_transactional) == (-1, False, False)
    assert first.size_in_bytes == len(message(7, b"k", b"v"))
    assert bytes(first.data) + bytes(second.data) == data
    assert rows_of(data) == [(7, 1000, b"k", b"v"), (9, -1, None, None)]


def test_magic_0_has_no_timestamps_whatever_its_attributes_say() -> None:
    (batch,) = records.read(message(0, magic=0, attributes=8))
    assert (batch.timestamp_type, batch.max_timestamp) == ("NoTimestampType", -1)
    assert [record.timestamp for record in batch.records()] == [-1]


def test_offsets_inside_a_wrapper_of_magic_1_are_relative_to_its_last() -> None:
    inner = message(0, b"a") + message(2, b"b") + message(5, b"c")
    assert rows_of(wrapper(105, inner)) == [(100, 1000, b"a", b"v"), (102, 1000, b"b", b"v"), (105, 1000, b"c", b"v")]
    (batch,) = records.read(wrapper(105, inner))
    assert (batch.base_offset, batch.last_offset, batch.last_offset_delta, batch.count) == (100, 105, 5, 3)


def test_a_wrapper_that_compaction_thinned_keeps_its_offsets() -> None:
    # the first two messages are gone, the last one stays the anchor
    assert [row[0] for row in rows_of(wrapper(9, message(2) + message(4)))] == [7, 9]


def test_offsets_inside_a_wrapper_of_magic_0_are_absolute() -> None:
    inner = message(40, magic=0) + message(43, magic=0)
    assert [row[0] for row in rows_of(wrapper(43, inner, magic=0))] == [40, 43]


@pytest.mark.parametrize("magic", [0, 1])
def test_old_librdkafka_leaves_0_in_the_wrapper_and_counts_inside(magic: int) -> None:
    data = wrapper(0, message(0, magic=magic) + message(1, magic=magic) + message(2, magic=magic), magic=magic)
    assert [row[0] for row in rows_of(data)] == [0, 1, 2]
    (batch,) = records.read(data)
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (0, 2, 3)
    assert records.next_offset(data) == 3


def test_append_time_of_a_wrapper_is_that_of_its_messages() -> None:
    inner = message(0, timestamp=5) + message(1, timestamp=7, attributes=8)
    assert [row[1] for row in rows_of(wrapper(1, inner, attributes=9, timestamp=99))] == [99, 99]
    assert [row[1] for row in rows_of(wrapper(1, inner, attributes=1, timestamp=99))] == [5, 7]


def test_messages_of_the_other_magic_inside_a_wrapper_are_tolerated() -> None:
    assert [row[1] for row in rows_of(wrapper(1, message(0, magic=0) + message(1, magic=1, timestamp=8)))] == [-1, 8]
    inner = message(6, magic=1, timestamp=8) + message(7, magic=0)
    assert [row[:2] for row in rows_of(wrapper(7, inner, magic=0))] == [(6, 8), (7, -1)]


def test_a_message_cut_short_inside_a_wrapper_is_left_out() -> None:
    whole, cut = message(0, b"a"), message(1, b"b")
    for end in range(len(cut)):
        assert [row[2] for row in rows_of(wrapper(0, whole + cut[:end]))] == [b"a"]


def test_a_partial_last_entry_is_left_for_the_next_read() -> None:
    first, second = message(3, b"key"), message(4, b"other")
    for end in range(len(second)):
        assert [batch.base_offset for batch in records.read(first + second[:end])] == [3]
        assert records.next_offset(first + second[:end]) == 4


HOSTILE: list[tuple[str, bytes, str]] = [
    ("a checksum that is not its own", message(5, crc=1), "entry at offset 5 at byte 0: checksum is .* says 00000001"),
    ("size 13", message(0, size=13), "length 13 is below 14"),
    ("size -1", message(0, size=-1), "length -1 is below 14"),
    ("size 14 in magic 1", raw(5, bytes.fromhex("0100 ffffffff ffffffff")), "size 14 leaves no room for .* magic 1"),
    ("magic 3", raw(5, bytes.fromhex("0300 ffffffff ffffffff") + bytes(20)), "magic 3 is not 0, 1 or 2"),
    ("a negative offset", message(-1), "offset -1 is out of range"),
    ("the greatest offset, after which there is none", message(2**63 - 1), "is out of range"),
    ("the greatest offset inside a wrapper", wrapper(0, message(2**63 - 1, magic=0), magic=0), "out of range"),
    ("compression 5", message(5, attributes=5), "compression id 5 is unknown"),
    ("zstd in magic 0", message(5, magic=0, attributes=4), "magic 0 has no compression zstd"),
    ("zstd in magic 1", message(5, attributes=4), "magic 1 has no compression zstd"),
    ("key length -2", raw(5, bytes.fromhex("0000 fffffffe ffffffff")), "message 0 at byte 18: key length -2"),
    ("key length past the end", raw(5, bytes.fromhex("0000 00000001 ffffffff")), "key length 1 does not fit"),
    ("key length greatest", raw(5, bytes.fromhex("0000 7fffffff ffffffff")), "key length 2147483647 does not fit"),
    ("value length -2", raw(5, bytes.fromhex("0000 ffffffff fffffffe")), "message 0 at byte 22: value length -2"),
    ("value length past the end", raw(5, bytes.fromhex("0000 ffffffff 00000002 61")), "value length 2 does not fit"),
    ("value length greatest", raw(5, bytes.fromhex("0000 ffffffff 7fffffff 61")), "value length 2147483647"),
    ("a byte after the value", raw(5, bytes.fromhex("0000 ffffffff 00000001 6161")), "1 bytes are left after"),
    ("a byte after a null value", raw(5, bytes.fromhex("0000 ffffffff ffffffff 61")), "1 bytes are left after"),
    ("said to be compressed but plain", message(5, attributes=1), "entry at offset 5: gzip data is cut short"),
    ("a wrapper without a value", message(5, None, None, attributes=1), "value length -1 does not fit"),
    ("a wrapper of nothing", wrapper(5, b""), "the compressed message set has no message"),
    ("a wrapper of half a message", wrapper(5, message()[:-1]), "the compressed message set has no message"),
    ("a wrapper whose key is too long", raw(5, bytes.fromhex("0001 0000000f ffffffff 00")), "key length 15"),
    ("a wrapper whose value is short", raw(5, bytes.fromhex("0001 ffffffff 00000001 6161")), "value length 1"),
    ("a wrapper inside a wrapper", wrapper(5, wrapper(0, message())), "message 0 at byte 17: a compressed message"),
    ("an inner size below 14", wrapper(5, message(size=13)), "message 0 at byte 8: message size 13 is below 14"),
    ("an inner size of -1", wrapper(5, message() + message(1, size=-1)), "message 1 .*message size -1"),
    ("an inner checksum", wrapper(5, message() + message(1, crc=7)), "message 1 at byte .*says 00000007"),
    ("an inner magic 2", wrapper(5, message(magic=2)), "magic 2 does not belong"),
    ("inner offsets twice", wrapper(5, message(1) + message(1)), "message 1 .*offset 1 does not ascend"),
    ("inner offsets descending", wrapper(5, message(1) + message(0)), "message 1 .*offset 0 does not ascend"),
    ("an inner offset below 0", wrapper(5, message(-1)), "message 0 at byte 0: offset -1"),
    ("inner offsets too far apart", wrapper(2**33, message(0) + message(2**31)), "offset 2147483648 does not ascend"),
    ("an inner offset past the wrapper's", wrapper(5, message(0) + message(6)), "last message inside has offset 6"),
    ("an absolute offset past it", wrapper(5, message(6, magic=0), magic=0), "last message inside has offset 6"),
    ("an absolute offset before it", wrapper(5, message(4, magic=0), magic=0), "last message inside has offset 4"),
    (
        "an inner timestamp that does not fit",
        wrapper(5, raw(0, bytes.fromhex("0100 ffffffff ffffffff"))),
        "message 0 at byte 18: message size 14 leaves no room for a timestamp",
    ),
]


@pytest.mark.parametrize(("data", "error"), [case[1:] for case in HOSTILE], ids=[case[0] for case in HOSTILE])
def test_a_hostile_message_set_is_refused_by_name(data: bytes, error: str, read_rows: Reader) -> None:
    with pytest.raises(CorruptRecordError, match=error):
        read_rows(data)


def test_a_wrapper_without_a_value_is_refused() -> None:
    (batch,) = records.read(message(5, None, None, attributes=1))
    for ask in (batch.decompress, batch.records, lambda: batch.count, lambda: batch.base_offset):
        with pytest.raises(CorruptRecordError, match="entry at offset 5"):
            ask()


def test_every_byte_of_a_message_can_be_missing_or_too_many(read_rows: Reader) -> None:
    body = message(0, b"key", b"value")[16:]
    for end in range(10, len(body)):
        with pytest.raises(CorruptRecordError):
            read_rows(raw(0, body[:end]))
    with pytest.raises(CorruptRecordError):
        read_rows(raw(0, body + b"\0"))


@pytest.mark.parametrize("codec", OLD_CODECS[1:])
def test_every_byte_of_a_compressed_set_can_be_missing(codec: str, read_rows: Reader) -> None:
    inner = records.compress(codec, message(0, b"key") + message(1, b"other"))
    for end in range(len(inner)):
        data = message(1, None, inner[:end], attributes=records.CODECS.index(codec))
        with pytest.raises(CorruptRecordError, match="message set entry at offset 1"):
            read_rows(data)


@given(
    seed=st.sampled_from([(codec, magic) for codec in OLD_CODECS for magic in (0, 1)]),
    changes=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=6),
)
@settings(max_examples=200)
def test_damaged_message_sets_are_read_or_refused(seed: tuple[str, int], changes: list[tuple[int, int]]) -> None:
    codec, magic = seed
    rows = [Record(b"k", b"v" * 40, timestamp=5), Record(None, None), Record(b"", b"", timestamp=9)]
    data = bytearray(records.write(rows, magic=magic, compression=codec))
    for position, value in changes:
        data[position % len(data)] = value
    try:
        for batch in records.read(data, verify=False):
            list(batch.records(max_decompressed=1 << 16))
    except TagwireError:
        pass


def test_a_wrapper_is_decompressed_once_and_only_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    data = wrapper(5, message(0) + message(1))
    damaged = data[:40] + bytes([data[40] ^ 1]) + data[41:]
    (header,) = records.batch_headers(damaged)
    assert (header.last_offset, header.size, header.compression) == (5, len(data), "gzip")
    (batch,) = records.read(data)
    assert batch.decompress().payload is batch.decompress().payload
    assert (batch.count, batch.base_offset) == (2, 4)


def test_the_limit_holds_for_a_wrapper() -> None:
    data = wrapper(0, message(value=bytes(3 << 20)))
    (batch,) = records.read(data)
    with pytest.raises(CorruptRecordError, match="entry at offset 0: gzip data holds more than 1000 bytes"):
        batch.decompress(1000)
    assert len(next(batch.records(max_decompressed=4 << 20)).value) == 3 << 20
    with pytest.raises(CorruptRecordError, match="more than 1000 bytes"):
        batch.decompress(1000)


def test_a_wrapper_that_is_allowed_to_grow_tells_of_itself() -> None:
    data = wrapper(3, b"".join(message(at, value=bytes(1 << 20)) for at in range(4)))
    (header,) = records.batch_headers(data)
    with pytest.raises(CorruptRecordError, match="more than"):
        _ = header.count
    (header,) = records.batch_headers(data, max_decompressed=1 << 23)
    assert (header.count, header.base_offset) == (4, 0)
    assert records.to_arrow(data, max_decompressed=1 << 23).num_rows == 4
    assert [chunk.num_rows for chunk, _ in records.arrow_chunks(data, max_decompressed=1 << 23)] == [4]


@pytest.mark.parametrize("data", [b"", message()[:17], message()[:-1], records.write([Record(None, None)])[:60]])
def test_only_a_whole_entry_is_placed_or_dated(data: bytes) -> None:
    for change in (lambda entry: records.assign_offsets(entry, 5, 5), lambda entry: records.set_append_time(entry, 5)):
        entry = bytearray(data)
        with pytest.raises(CorruptRecordError):
            change(entry)
        assert entry == data


def test_an_entry_is_verified_by_its_checksum_only_if_asked() -> None:
    data = message(5, crc=1)
    assert [header.crc_ok for header in records.batch_headers(message(5) + data, verify=True)] == [True, False]
    (batch,) = records.read(data, verify=False)
    assert [record.offset for record in batch.records()] == [5]
    with pytest.raises(CorruptRecordError, match="checksum"):
        batch.verify()


def test_entries_know_where_they_stand() -> None:
    data = message(5) + wrapper(7, message(0))
    assert [header.position for header in records.batch_headers(data)] == [0, len(message(5))]
    assert [batch.position for batch in records.read(data)] == [0, len(message(5))]


# name, what is written, with which options, the error and what it says
REFUSED: list[tuple[str, Record, dict[str, Any], type[TagwireError], str]] = [
    (
        "headers",
        Record(None, b"v", [("h", b"1")]),
        {"magic": 1},
        EncodeError,
        "record 0: message format 1 has no headers",
    ),
    (
        "headers",
        Record(None, b"v", [("h", b"1")]),
        {"magic": 0},
        EncodeError,
        "record 0: message format 0 has no headers",
    ),
    ("zstd", Record(None, b"v"), {"magic": 1, "compression": "zstd"}, ConfigError, "format 1 has no compression zstd"),
    ("zstd", Record(None, b"v"), {"magic": 0, "compression": "zstd"}, ConfigError, "format 0 has no compression zstd"),
    ("append time", Record(None, b"v"), {"magic": 0, "timestamp_type": "LogAppendTime"}, ConfigError, "no timestamps"),
    ("a producer", Record(None, b"v"), {"magic": 1, "producer_id": 5}, ConfigError, "has no producer_id"),
    ("a transaction", Record(None, b"v"), {"magic": 1, "transactional": True}, ConfigError, "has no transactional"),
    ("magic 3", Record(None, b"v"), {"magic": 3}, ConfigError, "magic 3 is unknown; allowed: 0, 1, 2"),
    ("text", Record("text", b"v"), {"magic": 1}, EncodeError, "record 0: key is str, not bytes or None"),  # type: ignore[arg-type]
    ("a timestamp", Record(None, b"v", (), -2), {"magic": 1}, EncodeError, "record 0: timestamp -2 is not -1"),
    ("no timestamp", Record(None, b"v", (), None), {"magic": 1}, EncodeError, "timestamp None"),  # type: ignore[arg-type]
    ("a dialect", Record(None, b"v"), {"dialect": "esperanto"}, ConfigError, "dialect 'esperanto' is unknown"),
]


@pytest.mark.parametrize(("row", "options", "kind", "error"), [case[1:] for case in REFUSED])
def test_what_a_message_set_has_no_room_for_is_refused(
    row: Record, options: dict[str, Any], kind: type[TagwireError], error: str
) -> None:
    with pytest.raises(kind, match=error):
        records.write([row], **options)


def test_a_dialect_that_does_not_exist_is_refused_by_every_reader() -> None:
    for read in (records.read, records.batch_headers):
        with pytest.raises(ConfigError, match="dialect 'x' is unknown"):
            list(read(message(), "x"))
    with pytest.raises(ConfigError, match="dialect 'x' is unknown"):
        records.to_arrow(message(), dialect="x")


def test_bytes_like_fields_are_written() -> None:
    row = Record(bytearray(b"key"), memoryview(b"value"), timestamp=5)  # type: ignore[arg-type]
    assert records.write([row], magic=1) == message(0, b"key", b"value", timestamp=5)


@pytest.mark.parametrize("codec", OLD_CODECS)
def test_an_entry_of_magic_1_is_placed_without_touching_its_checksum(codec: str) -> None:
    rows = [Record(b"a", b"1", timestamp=5)] * (1 if codec == "none" else 3)
    entry = bytearray(records.write(rows, magic=1, compression=codec))
    records.assign_offsets(entry, 9_000_000_000, 42)
    (batch,) = records.read(entry)
    assert (batch.base_offset, batch.last_offset) == (9_000_000_000, 9_000_000_000 + len(rows) - 1)
    assert [record.offset for record in batch.records()] == [9_000_000_000 + at for at in range(len(rows))]


def test_an_entry_of_magic_0_is_placed_only_if_it_wraps_nothing() -> None:
    entry = bytearray(records.write([Record(b"a", b"1")], magic=0))
    records.assign_offsets(entry, 77, 42)
    assert rows_of(bytes(entry)) == [(77, -1, b"a", b"1")]
    with pytest.raises(UnsupportedVersionError, match="cannot be moved"):
        records.assign_offsets(bytearray(records.write([Record(b"a", b"1")], magic=0, compression="gzip")), 77, 42)


@pytest.mark.parametrize("codec", OLD_CODECS)
def test_an_entry_is_dated_when_it_is_appended(codec: str) -> None:
    entry = bytearray(records.write([Record(b"a", b"1", timestamp=5)], magic=1, compression=codec))
    records.set_append_time(entry, 123_456)
    (batch,) = records.read(entry)
    assert (batch.timestamp_type, batch.max_timestamp) == ("LogAppendTime", 123_456)
    assert [record.timestamp for record in batch.records()] == [123_456]


def test_messages_without_timestamps_cannot_be_dated() -> None:
    with pytest.raises(UnsupportedVersionError, match="no timestamp"):
        records.set_append_time(bytearray(records.write([Record(b"a", b"1")], magic=0)), 5)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", OLD_CODECS[1:])
def test_a_thinned_wrapper_is_written_with_its_own_offsets(magic: int, codec: str) -> None:
    rows = [Record(b"%d" % at, b"v", timestamp=at) for at in range(5)]
    (batch,) = records.read(records.write(rows, magic=magic, compression=codec, base_offset=100))
    thinned = records.rewrite(batch, [record for record in batch.records() if record.key in (b"1", b"3", b"4")])
    assert [row[0] for row in rows_of(thinned)] == [101, 103, 104]
    plain = records.rewrite(batch, batch.records(), compression="none")
    assert plain == records.write(rows, magic=magic, base_offset=100)
    assert records.rewrite(batch, []) == b""
    with pytest.raises(ConfigError, match="zstd"):
        records.rewrite(batch, batch.records(), compression="zstd")
    with pytest.raises(ConfigError, match="no delete horizon"):
        records.rewrite(batch, batch.records(), delete_horizon=5)


def test_columns_are_the_same_however_messages_follow_one_another() -> None:
    # more than is read at once; append times that differ; offsets that a producer left at 0; a type that changes
    log = b"".join(message(at, b"k", bytes(1000), timestamp=at) for at in range(600))
    log += message(600, attributes=8, timestamp=7) + message(601, attributes=8, timestamp=7)
    log += message(602, attributes=8, timestamp=9) + message(603) + message(604, magic=0) + message(605, magic=0)
    log += message(0) + message(0) + message(1) + wrapper(9, message(0) + message(1)) + message(10) + message(12)
    columns = ("offset", "timestamp", "timestamp_type", "key")
    table = records.to_arrow(log, columns=columns)
    assert list(zip(table.column(0).to_pylist(), table.column(1).cast("int64").to_pylist())) == [
        row[:2] for row in rows_of(log)
    ]
    assert table.column("timestamp_type").to_pylist()[600:608] == [1, 1, 1, 0, -1, -1, 0, 0]
    cut = records.to_arrow(log[: -len(message(12)) - 1], start_offset=599, end_offset=603, columns=columns)
    assert cut.column("offset").to_pylist() == [599, 600, 601, 602]
    chunks = list(records.arrow_chunks(log, max_rows=100, columns=columns))
    assert sum(chunk.num_rows for chunk, _ in chunks) == table.num_rows
    assert chunks[-1][1] == 13


def test_a_broken_message_among_others_is_named(read_rows: Reader) -> None:
    log = b"".join(message(at) for at in range(5)) + message(5, crc=1) + message(6)
    with pytest.raises(CorruptRecordError, match=r"offset (5|0, message 5) at byte .*checksum"):
        read_rows(log)
    assert records.to_arrow(log, end_offset=0).num_rows == 0


def test_time_is_linear_in_messages() -> None:
    # a quadratic step would make this take minutes
    data = records.write([Record(None, None)] * 100_000, magic=1, compression="gzip")
    assert records.to_arrow(data, max_decompressed=1 << 26).num_rows == 100_000


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("base", [-1, 2**63 - 3, 2**63, 2**100])
def test_messages_are_not_written_where_no_offset_is(base: int, codec: str) -> None:
    rows = [Record(None, b"v")] * 3
    with pytest.raises(EncodeError, match=f"3 offsets from {base} on are out of range"):
        records.write(rows, magic=1, base_offset=base, compression=codec)
    data = records.write(rows, magic=1, base_offset=2**63 - 4, compression=codec)
    assert [row[0] for row in rows_of(data)] == [2**63 - 4, 2**63 - 3, 2**63 - 2]
