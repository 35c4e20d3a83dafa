"""aiokafka's record code reads what tagwire writes, and tagwire what it writes: every codec, headers included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given
from hypothesis import strategies as st

from tagwire import records
from tagwire.records import Record

MAYBE_BYTES = st.none() | st.binary(max_size=200)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
# aiokafka has no way to say -1, none, for a timestamp
RECORDS = st.lists(
    st.builds(
        Record, MAYBE_BYTES, MAYBE_BYTES, st.lists(st.tuples(TEXT, MAYBE_BYTES), max_size=4), st.integers(0, 2**62)
    ),
    min_size=1,
    max_size=15,
)


def rows_of(found: list[Record], base: int = 0) -> list[tuple[Any, ...]]:
    return [(base + at, row.timestamp, row.key, row.value, list(row.headers)) for at, row in enumerate(found)]


def read_by_aiokafka(data: bytes) -> list[tuple[Any, ...]]:
    log = MemoryRecords(data)
    rows = []
    while log.has_next():
        batch = log.next_batch()
        assert batch.validate_crc()
        rows += [(row.offset, row.timestamp, row.key, row.value, list(row.headers)) for row in batch]
    return rows


def written_by_aiokafka(found: list[Record], codec: str) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=records.CODECS.index(codec),
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 30,
    )
    for at, row in enumerate(found):
        builder.append(at, row.timestamp, row.key, row.value, list(row.headers))
    return bytes(builder.build())


@given(found=RECORDS, codec=st.sampled_from(records.CODECS), base=st.integers(0, 2**40))
def test_aiokafka_reads_what_tagwire_writes(found: list[Record], codec: str, base: int) -> None:
    data = records.write(found, compression=codec, base_offset=base)
    assert read_by_aiokafka(data) == rows_of(found, base)


@given(found=RECORDS, codec=st.sampled_from(records.CODECS))
def test_tagwire_reads_what_aiokafka_writes(found: list[Record], codec: str) -> None:
    (batch,) = records.read(written_by_aiokafka(found, codec))
    assert batch.compression == codec
    assert [(row.offset, row.timestamp, row.key, row.value, list(row.headers)) for row in batch.records()] == rows_of(
        found
    )


@given(found=RECORDS)
def test_uncompressed_bytes_are_the_same(found: list[Record]) -> None:
    assert records.write(found) == written_by_aiokafka(found, "none")


@pytest.mark.parametrize("codec", records.CODECS)
def test_a_large_batch_is_read_by_both(codec: str, read_rows: Callable[..., list[tuple[Any, ...]]]) -> None:
    found = [
        Record(b"key-%d" % number, b'{"id": %d, "carrier": "UA"}' % number * 4, [("origin", b"EWR")], 1000 + number)
        for number in range(5000)
    ]
    assert read_by_aiokafka(records.write(found, compression=codec)) == rows_of(found)
    assert read_rows(written_by_aiokafka(found, codec)) == rows_of(found)
