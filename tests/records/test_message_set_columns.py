"""Arrow rows to message sets and back, and messages that are read many at a time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire import records
from tagwire.errors import ConfigError, CorruptRecordError, EncodeError
from tagwire.records import Record

from .message_sets import message

DIALECT = "int-headers"
MAYBE_BYTES = st.none() | st.binary(max_size=100)
INT_KEYS = st.integers(-(1 << 31), (1 << 31) - 1)
TIMES = st.integers(-1, 1 << 50)
PLAIN = st.lists(st.builds(Record, MAYBE_BYTES, MAYBE_BYTES, timestamp=TIMES), min_size=1, max_size=12)
WITH_HEADERS = st.lists(
    st.builds(
        Record,
        MAYBE_BYTES,
        MAYBE_BYTES,
        st.dictionaries(INT_KEYS, st.binary(max_size=200), max_size=4).map(lambda found: tuple(found.items())),
        TIMES,
    ),
    min_size=1,
    max_size=12,
)
TYPES = st.sampled_from(["CreateTime", "LogAppendTime"])
MAGIC_1_CODECS = [name for name in records.CODECS if name != "zstd"]


def arrow(data: bytes, **options: Any) -> Any:
    return records.to_arrow(data, columns=("timestamp", "key", "value", "headers"), **options)


@given(found=PLAIN, magic=st.sampled_from([0, 1]), codec=st.sampled_from(MAGIC_1_CODECS), kind=TYPES)
def test_rows_become_the_message_set_that_their_records_become(
    found: list[Record], magic: int, codec: str, kind: str
) -> None:
    options: dict[str, Any] = {"magic": magic, "compression": codec, "base_offset": 7}
    if magic:
        options["timestamp_type"] = kind
    data = records.write(found, **options)
    assert records.from_arrow(arrow(records.write(found)), **options) == data


@given(found=WITH_HEADERS, codec=st.sampled_from(records.CODECS), kind=TYPES)
def test_rows_with_int_headers_go_there_and_back(found: list[Record], codec: str, kind: str) -> None:
    options: dict[str, Any] = {"dialect": DIALECT, "compression": codec, "timestamp_type": kind, "base_offset": 3}
    data = records.write(found, **options)
    assert records.from_arrow(arrow(data, dialect=DIALECT), **options) == data


@given(
    found=WITH_HEADERS,
    codec=st.sampled_from(records.CODECS),
    kind=TYPES,
    most_bytes=st.integers(62, 900),
    most_records=st.integers(1, 5),
)
def test_message_sets_are_bounded_in_bytes_and_records(
    found: list[Record], codec: str, kind: str, most_bytes: int, most_records: int
) -> None:
    options: dict[str, Any] = {"dialect": DIALECT, "timestamp_type": kind, "base_offset": 3}
    table = arrow(records.write(found, dialect=DIALECT), dialect=DIALECT)
    bounds = {"max_batch_bytes": most_bytes, "max_batch_records": most_records}
    parts = list(records.batches_from_arrow(table, compression=codec, **options, **bounds))
    row = 0
    for part in parts:
        read = [record for batch in records.read(part, DIALECT) for record in batch.records()]
        own = found[row : row + len(read)]
        assert part == records.write(own, **{**options, "base_offset": 3 + row}, compression=codec)
        assert len(read) <= most_records
        assert len(read) == 1 or len(records.write(own, **options)) <= most_bytes
        row += len(read)
    assert row == len(found)


def test_a_row_with_headers_is_refused_by_formats_without_any() -> None:
    table = arrow(records.write([Record(b"k", b"v"), Record(b"k", b"v", [("h", b"")])]))
    for magic in (0, 1):
        with pytest.raises(EncodeError, match=f"row 1: message format {magic} has no headers"):
            records.from_arrow(table, magic=magic)


def test_rows_of_later_message_sets_keep_their_number_in_errors() -> None:
    found = [Record(b"k", b"v")] * 5 + [Record(b"k", b"v", [("no number", b"")])]
    made = records.batches_from_arrow(arrow(records.write(found)), max_batch_records=2, dialect=DIALECT)
    assert [len(list(records.read(next(made), DIALECT))) for _ in range(2)] == [2, 2]
    with pytest.raises(EncodeError, match="row 5: header key 'no number' is str, not int"):
        next(made)


def test_options_that_a_message_set_has_no_room_for_are_refused() -> None:
    table = arrow(records.write([Record(b"k", b"v")]))
    with pytest.raises(ConfigError, match="a message set has no producer_id"):
        records.from_arrow(table, magic=1, producer_id=5)
    for name in ("producer_id", "producer_epoch", "base_sequence", "partition_leader_epoch"):
        with pytest.raises(ConfigError, match=f"a message set has no {name}"):  # 0 is one as well
            records.write([Record(b"k", b"v")], magic=1, **{name: 0})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="message format 1 has no compression zstd"):
        records.from_arrow(table, magic=1, compression="zstd")


@given(found=WITH_HEADERS, codec=st.sampled_from(records.CODECS))
def test_messages_read_coalesced_are_those_read_one_by_one(found: list[Record], codec: str) -> None:
    data = records.write(found, dialect=DIALECT, compression=codec) + records.write(
        found, dialect=DIALECT, base_offset=100
    )
    alone = [record for batch in records.read(data, DIALECT) for record in batch.records()]
    together = list(records.read_coalesced(data, DIALECT))
    assert [record for batch in together for record in batch.records()] == alone
    assert len(together) <= 2
    assert together[-1].next_offset == alone[-1].offset + 1


def test_batches_and_messages_may_be_mixed_where_they_are_read_coalesced() -> None:
    rows = [Record(b"k", b"%d" % number, timestamp=number) for number in range(3)]
    data = (
        records.write(rows, magic=0) + records.write(rows, base_offset=3) + records.write(rows, magic=1, base_offset=6)
    )
    batches = list(records.read_coalesced(data + b"\0" * 7))
    assert [(batch.magic, batch.count, batch.base_offset) for batch in batches] == [(0, 3, 0), (2, 3, 3), (1, 3, 6)]
    assert [record.offset for batch in batches for record in batch.records()] == list(range(9))


def test_messages_before_a_broken_one_are_given() -> None:
    data = bytearray(records.write([Record(b"k", b"v")] * 3, magic=1))
    data[-1] ^= 1
    read = records.read_coalesced(data)
    assert [(next(read).base_offset, next(read).base_offset)] == [(0, 1)]
    with pytest.raises(CorruptRecordError, match=r"entry at offset 2 at byte .*checksum"):
        next(read)
    *_, last = records.read_coalesced(data, verify=False)
    with pytest.raises(CorruptRecordError, match="checksum"):
        last.verify()


def test_a_message_at_the_greatest_offset_is_broken_where_it_is_read_with_others() -> None:
    data = message(2**63 - 3) + message(2**63 - 2) + message(2**63 - 1)
    read = records.read_coalesced(data)
    assert [next(read).last_offset, next(read).last_offset] == [2**63 - 3, 2**63 - 2]
    with pytest.raises(CorruptRecordError, match="offset 9223372036854775807 is out of range"):
        next(read)
    with pytest.raises(CorruptRecordError, match="offset 9223372036854775807 is out of range"):
        records.to_arrow(data)


def test_what_a_wrapper_may_become_is_bounded_where_it_is_read_coalesced() -> None:
    data = records.write([Record(None, bytes(5000))] * 3, magic=1, compression="gzip")
    (batch,) = records.read_coalesced(data, max_decompressed=1000)
    with pytest.raises(CorruptRecordError, match="more than 1000 bytes"):
        batch.records()


def test_messages_of_old_producers_that_all_say_offset_0_are_numbered() -> None:
    inner = b"".join(message(0, value=b"%d" % number, magic=0) for number in range(3))
    wrapper = message(0, value=records.compress("gzip", inner), magic=0, attributes=1)
    (batch,) = records.read(wrapper)
    assert [(record.offset, record.value) for record in batch.records()] == [(0, b"0"), (1, b"1"), (2, b"2")]
    assert (batch.count, batch.base_offset, batch.last_offset) == (3, 0, 2)
    mixed = b"".join(message(offset, magic=0) for offset in (0, 0, 5))
    with pytest.raises(CorruptRecordError, match="offset 5 does not ascend"):
        next(records.read(message(0, value=records.compress("gzip", mixed), magic=0, attributes=1))).records()
    numbered = message(9, value=records.compress("gzip", inner), magic=0, attributes=1)
    with pytest.raises(CorruptRecordError, match="offset 0 does not ascend"):
        next(records.read(numbered)).records()
