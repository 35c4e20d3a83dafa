"""The one walk over batches by the sizes they state, and what stops it."""

from __future__ import annotations

import pytest

from tagwire import records
from tagwire.errors import CorruptRecordError
from tagwire.records.batch_bounds import batch_bounds, check_end, damage_at, stated_size
from tagwire.records.files import tail

BATCH = bytes(records.write([records.Record(b"k", b"v", timestamp=1)]))
TWO = memoryview(BATCH + BATCH)
SIZE = len(BATCH)


@pytest.mark.parametrize("cut", range(1, SIZE))
def test_a_batch_that_is_cut_off_ends_the_walk_and_is_no_damage(cut: int) -> None:
    data = TWO[:-cut]
    assert list(batch_bounds(data)) == [(0, SIZE, 2)]
    assert damage_at(data, SIZE) is None


def test_a_batch_that_is_cut_off_is_given_to_who_asks_for_it() -> None:
    assert list(batch_bounds(TWO[:-1], whole=False)) == [(0, SIZE, 2), (SIZE, SIZE, 2)]


def test_only_batches_that_start_in_the_range_are_walked() -> None:
    assert list(batch_bounds(TWO, SIZE)) == [(SIZE, SIZE, 2)]
    assert list(batch_bounds(TWO, 0, 1)) == [(0, SIZE, 2)]


@pytest.mark.parametrize(
    ("at", "value", "byte"), [(8, b"\0\0\0\x0d", 8), (8, b"\xff\xff\xff\xff", 8), (16, b"\x03", 16), (16, b"\xff", 16)]
)
def test_memory_and_files_name_the_same_damage(at: int, value: bytes, byte: int) -> None:
    broken = bytearray(TWO)
    broken[SIZE + at : SIZE + at + len(value)] = value
    data = memoryview(broken)
    assert list(batch_bounds(data)) == [(0, SIZE, 2)]
    with pytest.raises(CorruptRecordError) as caught:
        check_end(data, SIZE)
    assert caught.value.offset == SIZE + byte
    found = tail(data, SIZE)
    assert found is not None
    assert (found.kind, found.reason) == ("damage", damage_at(data, SIZE)[0])
    with pytest.raises(CorruptRecordError, match=found.reason):
        list(records.read(data))


@pytest.mark.parametrize("there", range(12, 17))
@pytest.mark.parametrize("length", [0, -1, 13])
def test_a_size_that_no_batch_has_is_damage_as_soon_as_it_is_there(there: int, length: int) -> None:
    """As in Kafka's ByteBufferLogInputStream: more bytes cannot make it a batch, and a reader would wait for them."""
    data = memoryview(BATCH + (5).to_bytes(8, "big") + length.to_bytes(4, "big", signed=True) + bytes(4))
    data = data[: SIZE + there]
    found = records.read(data)
    next(found)
    with pytest.raises(CorruptRecordError, match=f"batch length {length} is below 14") as caught:
        next(found)
    assert caught.value.offset == SIZE + 8
    with pytest.raises(CorruptRecordError, match=f"batch length {length} is below 14"):
        list(records.read_coalesced(data))
    last = tail(data, SIZE)
    assert last is not None
    assert last.kind == "damage"
    assert damage_at(data[: SIZE + 11], SIZE) is None


def test_the_size_a_batch_states_is_known_from_its_first_12_bytes() -> None:
    assert stated_size(TWO[:12]) == SIZE
    assert stated_size(TWO[:11]) is None
