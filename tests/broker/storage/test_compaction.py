"""Compaction: what stays of a log, and what a reader sees of it then."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwire.broker.storage.log_reading import OffsetOutOfRangeError
from tagwire.broker.topic_config import TopicConfig
from tagwire.errors import Error, KafkaError
from tagwire.records.files import partitions
from tagwire.records.files.verify import verify_partition

from .compacted import CONFIG, DAY, WHERE, Compacted, batch, fill, in_transaction, marker


def test_of_each_key_the_last_record_stays_at_its_offset(kept):
    fill(kept)
    before, end = kept.records(), kept.log.end_offset
    active = int(max(kept.directory.glob("*.log")).stem)
    kept.compact()
    after = kept.records()
    last = {key: offset for offset, key, _ in before if offset < active}
    assert after == [entry for entry in before if entry[0] >= active or last[entry[1]] == entry[0]]
    assert kept.log.end_offset == end
    assert kept.log.start_offset == 0
    assert len(after) < len(before) / 2


def test_a_reader_at_any_offset_goes_on_with_the_next_record_that_is_left(kept):
    fill(kept)
    kept.compact()
    everything = kept.records()
    for offset in range(kept.log.end_offset):
        # An offset inside a batch gives the whole batch.
        assert [entry for entry in kept.records(offset) if entry[0] >= offset] == [
            entry for entry in everything if entry[0] >= offset
        ]
    with pytest.raises(OffsetOutOfRangeError):
        kept.log.read(kept.log.end_offset + 1, 100)


def test_small_segments_are_merged_up_to_the_segment_size(kept):
    fill(kept, rounds=100)
    many = len(list(kept.directory.glob("*.log")))
    kept.compact()
    sizes = {int(path.stem): path.stat().st_size for path in kept.directory.glob("*.log")}
    assert len(sizes) < 4 < many / 3
    assert min(sizes) == 0
    assert max(sizes.values()) <= CONFIG.segment_bytes
    assert {int(path.stem) for path in kept.directory.glob("*.snapshot")} < set(sizes)


def test_times_and_offsets_are_still_found_and_the_indexes_are_true(kept):
    fill(kept, rounds=60)
    kept.compact()
    present = [(record.timestamp, record.offset) for found in kept.batches() for record in found.records()]
    for timestamp in range(62):
        due = next(((t, o) for t, o in present if t >= timestamp), None)
        assert kept.log.offset_for_timestamp(timestamp) == due
    kept.reopen(clean=True)
    before = kept.records()
    indexes = {path.name: path.read_bytes() for path in kept.directory.glob("*index")}
    kept.reopen()
    assert {path.name: path.read_bytes() for path in kept.directory.glob("*index")} == indexes
    assert kept.records() == before


def test_records_without_a_key_go_and_the_segment_that_is_written_to_stays(kept):
    kept.add(batch((None, b"no key"), (b"k", b"1")))
    assert kept.dirt() is None
    kept.roll()
    kept.add(batch((b"k", b"2")))
    kept.compact()
    assert kept.records() == [(1, b"k", b"1"), (2, b"k", b"2")]
    kept.roll()
    kept.compact()
    assert kept.records() == [(2, b"k", b"2")]


def test_a_deletion_stays_for_its_time_from_the_first_compaction_on_and_then_goes(kept):
    kept.add(batch((b"k", b"1"), (b"other", b"x")))
    kept.add(batch((b"k", None)))
    kept.roll()
    kept.compact(now_ms=5000)
    assert kept.records() == [(1, b"other", b"x"), (2, b"k", None)]
    (dated,) = [found for found in kept.batches() if found.has_delete_horizon]
    assert dated.delete_horizon == 5000 + DAY
    assert [record.timestamp for record in dated.records()] == [1000]
    for now, left in [(4999 + DAY, 1), (5000 + DAY, 0)]:
        kept.add(batch((b"more", b"%d" % now)))
        kept.roll()
        kept.compact(now_ms=now)
        assert [value for _, key, value in kept.records() if key == b"k"] == [None] * left


def test_the_time_of_a_deletion_begins_with_the_pass_that_takes_what_it_deletes(kept):
    kept.add(batch((b"k", b"1")), batch(*[(b"%d" % i, b"v") for i in range(10)]))
    kept.add(batch((b"k", None)), batch((b"last", b"x")))
    kept.roll()
    kept.compact(now_ms=5000, map_bytes=11 * 200)  # no room for what follows
    assert kept.cleaned.get(*WHERE) == 11
    kept.compact(now_ms=5000 + DAY)
    assert [value for _, key, value in kept.records() if key == b"k"] == [None]  # whoever has read 1 learns of it
    kept.add(batch((b"more", b"x")))
    kept.roll()
    kept.compact(now_ms=5000 + 2 * DAY)
    assert b"k" not in [key for _, key, _ in kept.records()]


def test_the_last_offset_that_was_compacted_stays_as_an_empty_batch(kept):
    kept.add(batch((b"a", b"1")))
    kept.add(batch((None, b"goes")))
    kept.roll()
    end = kept.log.end_offset
    kept.compact()
    *_, last = kept.batches()
    assert (last.count, last.next_offset) == (0, end)
    kept.reopen()
    assert kept.log.end_offset == end


def test_a_producers_last_batch_stays_so_that_its_next_sequence_is_known(kept):
    def sent(sequence, *pairs):
        return batch(*pairs, producer_id=7, producer_epoch=0, base_sequence=sequence)

    kept.add(sent(0, (b"k", b"1")), sent(1, (b"k", b"2"), (b"j", b"2")), batch((b"k", b"3"), (b"j", b"3")))
    kept.roll()
    kept.compact()
    assert kept.records() == [(3, b"k", b"3"), (4, b"j", b"3")]
    assert [(found.base_sequence, found.count) for found in kept.batches()] == [(1, 0), (-1, 2)]
    for path in kept.directory.glob("*.snapshot"):
        path.unlink()
    kept.reopen()
    with pytest.raises(KafkaError, match=Error.OUT_OF_ORDER_SEQUENCE_NUMBER.name):
        kept.add(sent(4, (b"k", b"4")))
    assert kept.add(sent(1, (b"k", b"2"), (b"j", b"2"))) == [1]
    assert kept.add(sent(3, (b"k", b"4"))) == [5]


def test_aborted_records_go_at_once_and_replace_nothing(kept):
    kept.add(batch((b"k", b"before")))
    kept.add(in_transaction(0, (b"k", b"aborted")), in_transaction(1, (b"new", b"aborted")))
    kept.add(marker(7, commit=False))
    kept.add(in_transaction(2, (b"j", b"committed")), marker(7, commit=True))
    kept.roll()
    kept.compact()
    assert kept.records() == [(0, b"k", b"before"), (4, b"j", b"committed")]


@pytest.mark.parametrize("marker_is_compacted", [True, False])
def test_what_was_aborted_is_known_before_its_marker_comes(kept, marker_is_compacted):
    kept.add(batch((b"k", b"before")))
    kept.roll()
    kept.add(in_transaction(0, (b"k", b"aborted")))
    kept.roll()
    kept.add(marker(7, commit=False))
    if marker_is_compacted:
        kept.roll()
    kept.compact()
    assert kept.records() == [(0, b"k", b"before")]
    kept.reopen()
    assert kept.records() == [(0, b"k", b"before")]
    assert kept.log.stable_offset == kept.log.end_offset
    # The same producer's next transaction is not taken for the one that was aborted.
    kept.add(in_transaction(1, (b"k", b"after")), marker(7, commit=True))
    kept.roll()
    kept.compact()
    assert kept.newest() == {b"k": b"after"}


def test_what_follows_an_aborted_transaction_that_was_compacted_counts(kept):
    kept.add(batch((b"k", b"before")), in_transaction(0, (b"j", b"aborted")), marker(7, commit=False))
    kept.roll()
    kept.compact()
    kept.add(in_transaction(1, (b"k", b"after")), marker(7, commit=True))
    kept.roll()
    kept.compact()
    assert kept.records() == [(3, b"k", b"after")]


def test_a_marker_goes_when_its_time_is_over_and_nothing_of_its_transaction_is_left(kept):
    kept.add(in_transaction(0, (b"k", b"1")), marker(7, commit=True))
    kept.add(in_transaction(1, (b"j", b"1")), marker(7, commit=False))
    kept.add(batch((b"k", b"2"), producer_id=7, producer_epoch=0, base_sequence=2))

    def controls():
        return [found.base_offset for found in kept.batches() if found.is_control]

    now = 0
    for expected in ([1, 3], [1, 3], []):
        kept.add(batch((b"x", b"%d" % now)))
        kept.roll()
        kept.compact(now_ms=now)
        assert controls() == expected
        assert kept.log.stable_offset == kept.log.end_offset
        kept.reopen()
        assert kept.log.stable_offset == kept.log.end_offset
        now += DAY
    assert kept.newest() == {b"k": b"2", b"x": b"%d" % (now - DAY)}


def test_of_a_producer_whose_batches_are_not_numbered_the_last_transaction_alone_is_kept(kept):
    def unnumbered(*pairs):
        numbered = in_transaction(0, *pairs)
        origin = replace(numbered.origin, first_sequence=-1, last_sequence=-1)
        return replace(numbered, origin=origin)

    for number in range(20):
        kept.add(unnumbered((b"k", b"%d" % number)), marker(7, commit=True))
    for now in (0, DAY, 2 * DAY):
        kept.add(batch((b"x", b"%d" % now)))
        kept.roll()
        kept.compact(now_ms=now)
    assert [found.base_offset for found in kept.batches() if found.is_control] == [39]
    for path in kept.directory.glob("*.snapshot"):
        path.unlink()
    kept.reopen()
    assert kept.log.known_producers()[7].epoch == 0


def test_a_marker_stays_while_an_emptied_batch_of_its_transaction_does(kept):
    kept.add(in_transaction(0, (b"k", b"1")), marker(7, commit=False))
    for now in (0, DAY, 2 * DAY, 3 * DAY):
        kept.add(batch((b"x", b"%d" % now)))
        kept.roll()
        kept.compact(now_ms=now)
        for path in kept.directory.glob("*.snapshot"):
            path.unlink()
        kept.reopen()
        assert kept.log.stable_offset == kept.log.end_offset
        assert [(found.count, found.is_control) for found in kept.batches()][:2] == [(0, False), (1, True)]


def test_nothing_from_the_oldest_open_transaction_on_is_compacted(kept):
    kept.add(batch((b"k", b"1")), batch((b"k", b"2")))
    kept.add(in_transaction(0, (b"k", b"open")), batch((b"k", b"3")))
    kept.roll()
    kept.compact()
    assert kept.records() == [(1, b"k", b"2"), (2, b"k", b"open"), (3, b"k", b"3")]
    kept.add(marker(7, commit=False))
    kept.roll()
    kept.compact()
    assert kept.records() == [(3, b"k", b"3")]


def test_aborted_transactions_are_still_told_to_readers_of_what_is_left(kept):
    kept.add(in_transaction(0, (b"k", b"aborted")), marker(7, commit=False), batch((b"j", b"1")))
    kept.roll()
    kept.compact()
    aborted = kept.log.fetch(0, 1000, committed=True).aborted()
    # Its emptied batch is its producer's last.
    assert [(a.producer_id, a.first_offset) for a in aborted] == [(7, 0)]


def test_more_keys_than_memory_holds_take_several_passes(kept):
    for number in range(40):
        kept.add(batch(*[(b"key-%d" % (number % 4 * 10 + i), b"v%d" % number) for i in range(10)]))
    kept.roll()
    before = kept.newest()
    passes = 0
    while kept.dirt() is not None:
        kept.compact(map_bytes=15 * 200)
        passes += 1
        assert kept.newest() == before
    assert passes > 3
    assert len(kept.records()) == 40


def test_one_batch_of_more_keys_than_memory_holds_is_compacted_too(kept):
    for _ in range(2):
        kept.add(batch(*[(b"%d" % i, b"v") for i in range(50)]))
    kept.roll()
    while kept.dirt() is not None:
        kept.compact(map_bytes=200)
    assert [offset for offset, _, _ in kept.records()] == list(range(50, 100))


def test_the_dirty_part_is_what_was_added_since_and_its_share_is_told(kept):
    fill(kept, rounds=40)
    kept.roll()
    assert kept.dirt().ratio == 1
    kept.compact()
    assert kept.dirt() is None
    kept.add(batch((b"k1", b"new")))
    kept.roll()
    assert 0 < kept.dirt().ratio < 0.5
    assert not kept.dirt().is_overdue


def test_a_record_waits_for_the_least_lag_and_is_overdue_after_the_greatest(tmp_path):
    kept = Compacted(tmp_path, TopicConfig(cleanup_policy="compact", min_compaction_lag_ms=1000))
    kept.add(batch((b"k", b"1"), timestamp=5000))
    kept.roll()
    assert kept.dirt(now_ms=5999) is None
    assert kept.dirt(now_ms=6000) is not None
    kept.log.config = TopicConfig(cleanup_policy="compact", max_compaction_lag_ms=1000)
    written = kept.log.closed_segments()[0].began_ms()
    assert not kept.dirt(now_ms=written + 999).is_overdue
    assert kept.dirt(now_ms=written + 1000).is_overdue


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_batch_keeps_its_compression_and_unchanged_batches_their_bytes(kept, codec):
    kept.add(batch((b"a", b"1" * 50), (b"b", b"1" * 50), compression=codec), batch((b"c", b"1"), compression=codec))
    kept.add(batch((b"a", b"2")))
    kept.roll()
    untouched = bytes(kept.log.read(2, 1))
    kept.compact()
    assert next(kept.batches()).compression == codec
    assert kept.newest() == {b"a": b"2", b"b": b"1" * 50, b"c": b"1"}
    assert bytes(kept.log.read(2, 1)) == untouched


KEYS = st.sampled_from([b"a", b"b", b"c", b"longer than a digest is", None])
BATCHES = st.lists(st.tuples(KEYS, st.sampled_from([b"1", b"2", None])), min_size=1, max_size=4)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(["add", "add", "roll", "compact", "reopen"]), BATCHES), max_size=25))
def test_whatever_is_added_a_reader_ends_with_the_same_state(tmp_path_factory, steps):
    directory = tmp_path_factory.mktemp("compaction")
    kept = Compacted(directory)
    state = {}
    for number, (step, pairs) in enumerate(steps):
        if step == "add":
            kept.add(batch(*pairs, timestamp=number, compression=random.Random(number).choice(["none", "lz4"])))
            state.update(pairs)
        elif step == "roll":
            kept.roll()
        elif step == "compact":
            kept.compact(now_ms=number * DAY)
        else:
            kept.reopen(clean=number % 2 == 0)
        present = {key: value for key, value in state.items() if key is not None and value is not None}
        assert {key: value for key, value in kept.newest().items() if key is not None} == present
        offsets = [offset for offset, _, _ in kept.records()]
        assert offsets == sorted(set(offsets))
    shutil.rmtree(directory)


def test_what_is_left_is_sound_to_whoever_checks_a_log_without_the_broker(kept):
    fill(kept, rounds=60)
    kept.add(in_transaction(0, (b"k", b"aborted")), marker(7, commit=False), batch((b"k1", None)))
    kept.roll()
    kept.compact()
    kept.add(batch((b"k2", b"more")))
    kept.log.close()
    (files,) = partitions(kept.directory)
    assert list(verify_partition(files)) == []
    assert len(files.segments) > 1
