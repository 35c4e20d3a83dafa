"""A batch that is encoded already becomes a producer's: as if it had been written so."""

from __future__ import annotations

import pytest

from tagwire import records
from tagwire.errors import CorruptRecordError
from tagwire.records import CODECS, Record

ROWS = [Record(b"k", b"v" * 50, [("h", b"1")], 5), Record(None, None, [], 7)]
OWN = {"producer_id": 2**40, "producer_epoch": 3, "base_sequence": 2**31 - 1}


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("compression", CODECS)
def test_a_batch_that_is_claimed_is_what_its_producer_would_have_written(compression: str, transactional: bool) -> None:
    batch = bytearray(records.write(ROWS, compression=compression))
    records.set_producer(batch, *OWN.values(), transactional=transactional)
    assert batch == records.write(ROWS, compression=compression, transactional=transactional, **OWN)  # type: ignore[arg-type]


def test_a_batch_can_be_claimed_by_another() -> None:
    batch = bytearray(records.write(ROWS, transactional=True, **OWN))  # type: ignore[arg-type]
    records.set_producer(batch, 9, 0, 0, transactional=False)
    (found,) = records.read(bytes(batch))
    assert (found.producer_id, found.producer_epoch, found.base_sequence, found.is_transactional) == (9, 0, 0, False)
    assert list(found.records()) == list(next(records.read(records.write(ROWS))).records())


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (records.write(ROWS[1:], magic=1), "magic 1 has no producer"),
        (records.write(ROWS)[:60], "do not hold"),
        (b"", "do not hold"),
    ],
    ids=["message set", "too short", "nothing"],
)
def test_what_is_no_record_batch_is_refused_and_left_alone(data: bytes, says: str) -> None:
    batch = bytearray(data)
    with pytest.raises(CorruptRecordError, match=says):
        records.set_producer(batch, 9, 0, 0, transactional=False)
    assert batch == data
