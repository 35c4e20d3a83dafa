from __future__ import annotations

from collections.abc import Callable

import pytest

from tagwire import records
from tagwire.errors import CorruptRecordError, EncodeError
from tagwire.records import Record

ROWS = [Record(b"k%d" % number, b"value %d" % number, timestamp=1000 + number) for number in range(3)]
FIRST = records.write(ROWS, base_offset=10)
SECOND = records.write(ROWS, base_offset=20, compression="zstd")
LOG = FIRST + SECOND


def test_batches_stand_one_after_another() -> None:
    batches = list(records.read(LOG))
    assert [(batch.base_offset, batch.last_offset, batch.next_offset) for batch in batches] == [
        (10, 12, 13),
        (20, 22, 23),
    ]
    assert b"".join(bytes(batch.data) for batch in batches) == LOG
    assert [record.offset for batch in batches for record in batch.records()] == [10, 11, 12, 20, 21, 22]


def test_a_partial_last_batch_is_left_for_the_next_read() -> None:
    for end in range(len(FIRST), len(LOG)):
        assert [batch.base_offset for batch in records.read(LOG[:end])] == [10]
        assert records.next_offset(LOG[:end]) == 13
        assert records.to_arrow(LOG[:end]).num_rows == 3
    assert list(records.read(FIRST[:-1])) == []


@pytest.mark.parametrize("data", [b"", FIRST[:16], FIRST[:17], FIRST[:-1]])
def test_without_a_complete_batch_there_is_no_next_offset(data: bytes) -> None:
    assert records.next_offset(data) is None


def test_the_next_offset_is_after_the_batch_even_when_its_last_records_are_gone(seal: Callable[..., bytes]) -> None:
    assert records.next_offset(FIRST + seal(b"", 0, base_offset=20, last_offset_delta=9)) == 30


def test_headers_tell_where_each_batch_stands() -> None:
    first, second = records.batch_headers(LOG)
    assert (first.position, first.size) == (0, len(FIRST))
    assert (second.position, second.size) == (len(FIRST), len(SECOND))
    assert (second.count, second.max_timestamp, second.magic, second.compression) == (3, 1002, 2, "zstd")
    assert first.crc_ok is None


def test_headers_are_read_without_looking_at_the_records() -> None:
    damaged = bytearray(LOG)
    damaged[80] ^= 1
    assert [header.base_offset for header in records.batch_headers(damaged)] == [10, 20]
    assert [header.crc_ok for header in records.batch_headers(damaged, verify=True)] == [False, True]


def test_reading_unverified_is_possible_and_verify_tells_afterwards() -> None:
    damaged = bytearray(FIRST)
    damaged[-2] ^= 1
    (batch,) = records.read(damaged, verify=False)
    assert [record.key for record in batch.records()] == [b"k0", b"k1", b"k2"]
    with pytest.raises(CorruptRecordError, match="batch at offset 10 at byte 0: checksum is"):
        batch.verify()


@pytest.mark.parametrize("kind", [bytearray, lambda data: memoryview(bytearray(data))], ids=["bytearray", "memoryview"])
def test_a_batch_is_placed_in_a_log_without_touching_its_checksum(kind: Callable[[bytes], bytearray]) -> None:
    batch = kind(records.write(ROWS, producer_id=7, producer_epoch=1, base_sequence=5))
    records.assign_offsets(batch, 9_000_000_000, 42)
    (placed,) = records.read(batch)
    assert (placed.base_offset, placed.last_offset, placed.partition_leader_epoch) == (9_000_000_000, 9_000_000_002, 42)
    assert (placed.producer_id, placed.producer_epoch, placed.base_sequence) == (7, 1, 5)
    assert list(placed.records())[2] == Record(b"k2", b"value 2", (), 1002, 9_000_000_002)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda batch: records.assign_offsets(batch, -1, 0), "offsets -1 to 1 are out of range"),
        (lambda batch: records.assign_offsets(batch, 2**63 - 3, 0), "offsets 9223372036854775805 to"),
        (lambda batch: records.assign_offsets(batch, 2**63, 0), "offsets 9223372036854775808 to"),
        (lambda batch: records.assign_offsets(batch, 5, 2**31), "a batch header cannot hold 2147483648"),
        (lambda batch: records.set_append_time(batch, 2**63), "a batch header cannot hold 9223372036854775808"),
        (lambda batch: records.set_max_timestamp(batch, 2**63), "a batch header cannot hold 9223372036854775808"),
        (lambda batch: records.set_producer(batch, 1, 2**15, 0, transactional=True), "cannot hold 1, 32768, 0"),
    ],
)
def test_a_header_is_as_it_was_where_a_number_has_no_room_in_it(change: Callable[[bytearray], None], said: str) -> None:
    """It was struct.error, behind which the batch was changed in part."""
    batch = bytearray(records.write(ROWS))
    with pytest.raises(EncodeError, match=said):
        change(batch)
    assert batch == records.write(ROWS)
    records.assign_offsets(batch, 2**63 - 4, 0)
    assert next(records.read(batch)).last_offset == 2**63 - 2


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_message_set_is_as_it_was_where_there_is_no_such_offset_or_time(codec: str) -> None:
    rows = ROWS if codec == "gzip" else ROWS[:1]
    made = records.write(rows, magic=1, compression=codec)
    batch = bytearray(made)
    with pytest.raises(EncodeError, match="are out of range"):
        records.assign_offsets(batch, 2**63 - 1 - (len(rows) - 1), 0)
    with pytest.raises(EncodeError, match="a batch header cannot hold"):
        records.set_append_time(batch, 2**63)
    assert batch == made


def test_any_contiguous_bytes_are_read() -> None:
    for data in (bytearray(LOG), memoryview(LOG), memoryview(b"x" + LOG)[1:]):
        assert [batch.base_offset for batch in records.read(data)] == [10, 20]


def test_append_time_is_the_timestamp_of_every_record() -> None:
    data = records.write(ROWS, timestamp_type="LogAppendTime")
    (batch,) = records.read(data)
    assert batch.timestamp_type == "LogAppendTime"
    assert [record.timestamp for record in batch.records()] == [1002] * 3


def test_a_batch_that_compaction_emptied_is_legal(seal: Callable[..., bytes]) -> None:
    emptied = seal(b"", 0, base_offset=5, last_offset_delta=4, base_timestamp=-1, max_timestamp=77)
    (batch,) = records.read(emptied)
    assert (batch.count, batch.last_offset, batch.max_timestamp, list(batch.records())) == (0, 9, 77, [])


def test_an_error_about_a_batch_names_it() -> None:
    (batch,) = records.read(FIRST)
    assert repr(batch) == f"<RecordBatch offsets 10-12, 3 records, none, {len(FIRST)} bytes>"


# name, position, bytes, what must be said; length counts from byte 12, 14 is the least of any format, 49 of a batch
CONTRADICTIONS = [
    ("length least", 8, "80000000", "batch length -2147483648 is below 14"),
    ("length -1", 8, "ffffffff", "batch length -1 is below 14"),
    ("length 0", 8, "00000000", "batch length 0"),
    ("length 13", 8, "0000000d", "batch length 13"),
    ("length 48", 8, "00000030", "batch length 48 leaves no room"),
    ("magic 3", 16, "03", "magic 3 is not 0, 1 or 2"),
    ("magic -1", 16, "ff", "magic 255"),
    ("base offset -1", 0, "ffffffffffffffff", "offsets -1"),
    ("base offset and delta past 2^63", 0, "7fffffffffffffff", "offsets 9223372036854775807"),
    ("last offset delta -1", 23, "ffffffff", "offsets 10 . -1"),
    ("last offset delta below the count", 23, "00000001", "3 records do not fit into 2 offsets"),
    ("count -1", 57, "ffffffff", "-1 records"),
    ("count greatest", 57, "7fffffff", "2147483647 records do not fit into 3 offsets"),
    ("compression 5", 21, "0005", "compression id 5"),
    ("compression 6", 21, "0006", "compression id 6"),
    ("compression 7", 21, "0007", "compression id 7"),
]


@pytest.mark.parametrize(
    ("position", "value", "error"), [case[1:] for case in CONTRADICTIONS], ids=[case[0] for case in CONTRADICTIONS]
)
def test_a_header_that_contradicts_itself_is_refused(position: int, value: str, error: str) -> None:
    data = bytearray(FIRST)
    data[position : position + len(value) // 2] = bytes.fromhex(value)
    for read in (records.batch_headers, records.read):
        with pytest.raises(CorruptRecordError, match=error):
            list(read(bytes(data)))


def test_a_batch_longer_than_the_bytes_is_a_partial_one() -> None:
    for length in (len(FIRST) - 12 + 1, 0x7FFFFFFF):
        data = FIRST[:8] + length.to_bytes(4, "big") + FIRST[12:]
        assert list(records.batch_headers(data)) == []


def test_batches_before_a_broken_one_are_given_first() -> None:
    reader = records.read(FIRST + b"\0" * 17)
    assert next(reader).base_offset == 10
    with pytest.raises(CorruptRecordError, match=f"at byte {len(FIRST) + 8}: batch length 0"):
        next(reader)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_batch_that_says_it_is_an_old_message_is_refused(magic: int) -> None:
    data = FIRST[:16] + bytes([magic]) + FIRST[17:]
    with pytest.raises(CorruptRecordError, match="message set entry at offset 10"):
        list(records.read(data))
    with pytest.raises(CorruptRecordError, match="message set entry at offset 10"):
        records.to_arrow(data)
