"""Reading what is committed: records of aborted transactions are left out, as a fetch response lists them."""

from __future__ import annotations

from typing import Any

import pytest

from tagwire import records
from tagwire.errors import CorruptRecordError
from tagwire.records import AbortedTransactions, Record


def data(first: int, count: int, producer: int | None = None, **options: Any) -> bytes:
    """A batch whose values are its offsets, of a transaction of `producer` if one is given."""
    found = [Record(None, b"%d" % (first + at)) for at in range(count)]
    if producer is not None:
        options.update(producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)
    return records.write(found, base_offset=first, **options)


def end(offset: int, producer: int, *, commit: bool = False) -> bytes:
    return records.write_end_transaction(
        commit=commit,
        coordinator_epoch=0,
        producer_id=producer,
        producer_epoch=0,
        timestamp=1000,
        base_offset=offset,
    )


def values(log: bytes | list[bytes], **options: Any) -> list[int]:
    return [int(value) for value in records.to_arrow(log, columns=["value"], **options).column("value").to_pylist()]


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_records_between_first_offset_and_abort_marker_are_left_out(codec: str) -> None:
    log = data(0, 2, 7, compression=codec) + data(2, 1) + data(3, 2, 7, compression=codec) + end(5, 7) + data(6, 1)
    assert values(log) == [0, 1, 2, 3, 4, 6]
    assert values(log, aborted=[]) == [0, 1, 2, 3, 4, 6]
    assert values(log, aborted=[(7, 0)]) == [2, 6]
    assert values(log, aborted=[(7, 3)]) == [0, 1, 2, 6]


def test_transactions_of_several_producers_do_not_touch_each_other() -> None:
    log = data(0, 1, 1) + data(1, 1, 2) + data(2, 1, 1) + end(3, 1) + data(4, 1, 2) + end(5, 2, commit=True)
    assert values(log, aborted=[(1, 0)]) == [1, 4]
    assert values(log, aborted=[(2, 1), (1, 0)]) == []


def test_what_a_producer_does_after_its_abort_is_read_and_each_abort_counts_by_itself() -> None:
    log = b"".join(
        (data(0, 1, 7), end(1, 7), data(2, 1, 7), end(3, 7, commit=True), data(4, 1, 7), end(5, 7), data(6, 1, 7))
    )
    assert values(log, aborted=[(7, 0), (7, 4)]) == [2, 6]
    assert values(log, aborted=[(7, 4)]) == [0, 2, 6]


def test_a_commit_marker_ends_no_aborted_transaction() -> None:
    log = data(0, 1, 7) + end(1, 7, commit=True) + data(2, 1, 7)
    assert values(log, aborted=[(7, 0)]) == []


def test_records_outside_of_transactions_are_read_whatever_their_producer() -> None:
    idempotent = data(0, 1, producer_id=7, producer_epoch=0, base_sequence=0)
    assert values(idempotent + data(1, 1, 7), aborted=[(7, 0)]) == [0]


def test_markers_before_the_first_offset_asked_for_count() -> None:
    log = data(0, 2, 7) + end(2, 7) + data(3, 2, 7) + end(5, 7, commit=True)
    assert values(log, aborted=[(7, 0)], start_offset=3) == [3, 4]
    assert values(log, aborted=[(7, 0)], start_offset=1) == [3, 4]
    assert values(log, aborted=[(7, 0)], end_offset=4) == [3]


def test_markers_are_given_where_control_records_are_asked_for() -> None:
    table = records.to_arrow(data(0, 2, 7) + end(2, 7) + data(3, 1), aborted=[(7, 0)], control=True)
    assert table.column("offset").to_pylist() == [2, 3]


def test_one_response_may_be_read_by_several_calls() -> None:
    parts = [data(0, 1, 7), data(1, 1, 7) + end(2, 7), data(3, 1, 7) + end(4, 7, commit=True)]
    assert values(parts, aborted=[(7, 0)]) == [3]
    passed = AbortedTransactions([(7, 0)])
    assert [values(part, aborted=passed) for part in parts] == [[], [], [3]]


def test_pieces_hide_what_one_table_hides_and_go_on_after_it() -> None:
    log = data(0, 3, 7) + data(3, 3) + end(6, 7) + data(7, 3, 7) + end(10, 7, commit=True)
    pieces = list(records.arrow_chunks(log, aborted=[(7, 0)], columns=["offset"], max_rows=1))
    assert [table.column("offset").to_pylist() for table, _ in pieces] == [[3, 4, 5], [7, 8, 9], []]
    assert [after for _, after in pieces] == [6, 10, 11]


def test_hidden_batches_and_markers_are_verified() -> None:
    log = bytearray(data(0, 1, 7) + end(1, 7) + data(2, 1))
    for at, offset in ((len(data(0, 1, 7)) - 1, 0), (len(data(0, 1, 7) + end(1, 7)) - 1, 1)):
        log[at] ^= 1
        with pytest.raises(CorruptRecordError, match=f"batch at offset {offset} .*checksum"):
            values(bytes(log), aborted=[(7, 0)])
        log[at] ^= 1
    assert values(bytes(log), aborted=[(7, 0)]) == [2]
