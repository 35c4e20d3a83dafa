"""What a record batch says of itself beside its records: transactions, sequences, append time, compaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire import records
from tagwire.errors import ConfigError, CorruptRecordError, EncodeError
from tagwire.records import DecompressedBatch, Record

ROWS = [Record(b"k%d" % at, None if at == 2 else b"v", [("h", b"1")], 1000 + at) for at in range(5)]
PRODUCER = {"producer_id": 7, "producer_epoch": 3, "base_sequence": 0}
GREATEST = 2**31 - 1


def read_one(data: bytes) -> records.RecordBatch:
    (batch,) = records.read(data)
    return batch


def test_a_transactional_batch_says_so() -> None:
    batch = read_one(records.write(ROWS, transactional=True, **PRODUCER))
    assert (batch.is_transactional, batch.is_control) == (True, False)
    assert list(batch.records()) == list(read_one(records.write(ROWS)).records())


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"transactional": True}, "a transactional batch needs a producer_id"),
        ({"producer_id": 7}, "needs a producer_epoch"),
        ({"producer_id": 7, "producer_epoch": 0}, "needs a base_sequence"),
    ],
)
def test_a_producer_is_named_whole_or_not_at_all(options: dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        records.write(ROWS, **options)


@pytest.mark.parametrize(
    ("sequence", "count", "after"),
    [(0, 1, 1), (GREATEST, 1, 0), (GREATEST - 1, 2, 0), (GREATEST - 1, 5, 3), (0, 0, 0), (-1, 5, -1)],
)
def test_sequences_go_on_from_0_after_their_greatest(sequence: int, count: int, after: int) -> None:
    assert records.next_sequence(sequence, count) == after


def test_the_last_sequence_of_a_batch_wraps() -> None:
    batch = read_one(records.write(ROWS, producer_id=7, producer_epoch=0, base_sequence=GREATEST - 1))
    assert (batch.base_sequence, batch.last_sequence) == (GREATEST - 1, 2)
    assert read_one(records.write(ROWS)).last_sequence == -1


@pytest.mark.parametrize("codec", records.CODECS)
def test_a_batch_is_dated_without_touching_its_records(codec: str) -> None:
    data = bytearray(records.write(ROWS, compression=codec))
    before = bytes(data[61:])
    records.set_append_time(data, 99_999)
    batch = read_one(bytes(data))
    assert (batch.timestamp_type, batch.max_timestamp, batch.compression) == ("LogAppendTime", 99_999, codec)
    assert bytes(data[61:]) == before
    assert [record.timestamp for record in batch.records()] == [99_999] * 5
    assert [record.timestamp for record in batch.decompress().records(created=True)] == list(range(1000, 1005))


def test_a_batch_is_dated_through_its_header_alone() -> None:
    data = records.write(ROWS)
    whole, head = bytearray(data), bytearray(data[:61])
    records.set_append_time(whole, 5)
    records.set_append_time(head, 5, data[61:])
    assert head + data[61:] == whole


def test_only_the_batch_at_the_start_is_dated() -> None:
    log = bytearray(records.write(ROWS) + records.write(ROWS, base_offset=5))
    records.set_append_time(log, 5)
    assert [batch.timestamp_type for batch in records.read(log)] == ["LogAppendTime", "CreateTime"]


@given(
    kept=st.sets(st.integers(0, 4)),
    codec=st.sampled_from(records.CODECS),
    horizon=st.none() | st.integers(0, 2**62),
    appended=st.booleans(),
)
def test_a_compacted_batch_keeps_its_range_and_says_when_tombstones_may_go(
    kept: set[int], codec: str, horizon: int | None, appended: bool
) -> None:
    options = {"compression": codec, "base_offset": 500, "partition_leader_epoch": 8, **PRODUCER}
    kind = "LogAppendTime" if appended else "CreateTime"
    batch = read_one(records.write(ROWS, transactional=True, timestamp_type=kind, **options))
    rows = [record for record in batch.records() if record.offset - 500 in kept]
    compacted = read_one(records.rewrite(batch, rows, delete_horizon=horizon))
    assert list(compacted.records()) == rows
    assert (compacted.base_offset, compacted.last_offset) == (500, 504)
    same = ("partition_leader_epoch", "producer_id", "producer_epoch", "base_sequence", "last_sequence")
    assert [getattr(compacted, name) for name in same] == [getattr(batch, name) for name in same]
    assert (compacted.is_transactional, compacted.timestamp_type, compacted.count) == (True, kind, len(rows))
    assert compacted.delete_horizon == (horizon if rows else None)
    if not rows:
        assert (compacted.base_timestamp, compacted.max_timestamp, compacted.size) == (-1, 1004, 61)


def test_a_rewritten_batch_is_the_batch() -> None:
    data = records.write(ROWS, base_offset=40, partition_leader_epoch=2)
    batch = read_one(data)
    assert records.rewrite(batch, batch.records()) == data
    again = read_one(records.rewrite(batch, batch.records(), compression="zstd", level=1))
    assert again.compression == "zstd"
    assert records.rewrite(again, again.records(), compression="none") == data


def test_what_was_dated_keeps_the_times_of_its_records_when_it_is_rewritten() -> None:
    data = bytearray(records.write(ROWS))
    records.set_append_time(data, 99_999)
    batch = read_one(bytes(data))
    assert records.rewrite(batch, batch.records()) == data


@pytest.mark.parametrize("offsets", [[499], [505], [501, 501], [502, 501], [-1]])
def test_a_record_that_is_not_of_the_batch_is_refused(offsets: list[int]) -> None:
    batch = read_one(records.write(ROWS, base_offset=500))
    with pytest.raises(EncodeError, match="is not of the batch, or not above the one before"):
        records.rewrite(batch, [Record(None, None, offset=offset) for offset in offsets])


def test_a_horizon_after_the_records_leaves_their_times(seal: Callable[..., bytes]) -> None:
    # attributes bit 6; base timestamp 5000, deltas -4000 and -3999
    data = seal(
        bytes.fromhex("10 00 bf3e 00 02 61 01 00  10 00 bd3e 02 02 61 01 00"),
        2,
        attributes=0x40,
        base_timestamp=5000,
        max_timestamp=1001,
    )
    batch = read_one(data)
    assert (batch.has_delete_horizon, batch.delete_horizon) == (True, 5000)
    assert [record.timestamp for record in batch.records()] == [1000, 1001]


@pytest.mark.parametrize("attributes", [0, 1, 2, 3, 4])
def test_an_emptied_batch_needs_no_stream(attributes: int, seal: Callable[..., bytes]) -> None:
    data = seal(b"", 0, base_offset=5, last_offset_delta=4, base_timestamp=-1, max_timestamp=77, attributes=attributes)
    batch = read_one(data)
    assert (list(batch.records()), records.to_arrow(data).num_rows) == ([], 0)


def test_bits_that_nobody_uses_yet_are_not_looked_at(seal: Callable[..., bytes]) -> None:
    batch = read_one(seal(records.write(ROWS)[61:], 5, attributes=0x7F80))
    assert (batch.compression, batch.timestamp_type, batch.is_control, batch.is_transactional) == (
        "none",
        "CreateTime",
        False,
        False,
    )
    assert len(list(batch.records())) == 5


def test_a_compressed_batch_and_its_records_are_of_different_types() -> None:
    batch = read_one(records.write(ROWS, compression="zstd"))
    plain = batch.decompress()
    assert type(plain) is DecompressedBatch
    assert not isinstance(plain, records.RecordBatch)
    assert plain.batch is batch
    assert list(plain.records()) == list(batch.records())
    assert bytes(plain.payload) == records.write(ROWS)[61:]


def test_a_batch_is_decompressed_once() -> None:
    batch = read_one(records.write(ROWS, compression="gzip"))
    assert batch.decompress().payload is batch.decompress().payload
    with pytest.raises(CorruptRecordError, match="gzip data holds more than 3 bytes"):
        batch.decompress(3)


def test_a_batch_is_read_without_being_decompressed() -> None:
    data = bytearray(records.write(ROWS, compression="gzip"))
    data[-1] ^= 1
    (batch,) = records.read(data, verify=False)
    assert (batch.count, batch.last_offset, batch.max_timestamp) == (5, 4, 1004)
    with pytest.raises(CorruptRecordError, match="batch at offset 0: gzip data is broken"):
        batch.decompress()
