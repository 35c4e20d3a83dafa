"""The index files beside a segment, byte for byte, and what is looked up in them."""

from __future__ import annotations

import pytest

from tagwire.broker.storage.files import Files
from tagwire.broker.storage.index import OffsetIndex, TimeIndex


@pytest.fixture
def path(tmp_path):
    return tmp_path / "index"


@pytest.fixture
def offsets():
    index = OffsetIndex(45)
    for offset, position in [(55, 100), (65, 200), (75, 300)]:
        index.add(offset, position)
    return index


@pytest.fixture
def times():
    index = TimeIndex(45)
    for timestamp, offset in [(10, 55), (20, 65), (30, 75), (40, 85)]:
        index.add(timestamp, offset)
    return index


@pytest.mark.parametrize(
    ("offset", "entry"),
    [(45, (45, 0)), (54, (45, 0)), (55, (55, 100)), (64, (55, 100)), (65, (65, 200)), (10**10, (75, 300))],
)
def test_an_offset_is_found_at_the_entry_before_it(offsets, offset, entry):
    assert offsets.lookup(offset) == entry


@pytest.mark.parametrize(
    ("position", "entry"), [(0, (45, 0)), (99, (45, 0)), (100, (55, 100)), (299, (65, 200)), (10**10, (75, 300))]
)
def test_a_position_is_led_back_to_a_batch_start(offsets, position, entry):
    assert offsets.batch_start_at_most(position) == entry


@pytest.mark.parametrize(
    ("timestamp", "entry"),
    [(-1, (-1, 45)), (9, (-1, 45)), (10, (10, 55)), (25, (20, 65)), (30, (30, 75)), (2**62, (40, 85))],
)
def test_a_timestamp_is_found_at_the_entry_before_it(times, timestamp, entry):
    assert times.lookup(timestamp) == entry


def test_only_newer_timestamps_are_noted(times):
    times.add(40, 95)
    times.add(39, 96)
    assert (len(times), times.last) == (4, (40, 85))
    assert TimeIndex(45).last == (-1, 45)


def test_entries_are_relative_to_the_segment_and_big_endian(offsets, times, path):
    offsets.save(Files(), path, sync=True)
    assert path.read_bytes().hex(" ", 4) == "0000000a 00000064 00000014 000000c8 0000001e 0000012c"
    times.save(Files(), path, sync=True)
    assert path.read_bytes()[:24].hex(" ", -12) == "000000000000000a0000000a 000000000000001400000014"


def test_saving_again_adds_what_is_new(offsets, path):
    offsets.save(Files(), path, sync=False)
    first = path.read_bytes()
    offsets.save(Files(), path, sync=False)
    assert path.read_bytes() == first
    offsets.add(80, 400)
    offsets.save(Files(), path, sync=False)
    assert path.read_bytes() == first + bytes.fromhex("00000023 00000190")
    assert OffsetIndex.load(Files(), path, 45, 1000).lookup(80) == (80, 400)


@pytest.mark.parametrize(
    "tail",
    [bytes(8), bytes(800), bytes.fromhex("0000001e 00000190"), bytes.fromhex("0000001f 0000012c"), b"\xff" * 8, b"abc"],
)
def test_an_offset_index_is_read_up_to_the_first_entry_that_does_not_increase(offsets, path, tail):
    offsets.save(Files(), path, sync=False)
    path.write_bytes(path.read_bytes() + tail)
    assert len(OffsetIndex.load(Files(), path, 45, 1000)) == 3


def test_an_entry_past_the_end_of_the_segment_is_not_read(offsets, path):
    offsets.save(Files(), path, sync=False)
    assert len(OffsetIndex.load(Files(), path, 45, 300)) == 2


@pytest.mark.parametrize(
    "tail", [bytes(12), bytes(1200), bytes.fromhex("0000000000000029 00000001"), b"\xff" * 12, b"abc"]
)
def test_a_time_index_is_read_up_to_the_first_entry_that_does_not_increase(times, path, tail):
    times.save(Files(), path, sync=False)
    path.write_bytes(path.read_bytes() + tail)
    loaded = TimeIndex.load(Files(), path, 45, 1000)
    assert (len(loaded), loaded.last) == (4, (40, 85))
