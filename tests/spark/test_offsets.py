"""Planning of offset ranges: limits, splits, and what is said when records are gone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire.errors import ConfigError
from tagwire.partitions import EARLIEST, LATEST
from tagwire.spark.source.offsets import (
    FEWEST_TASKS,
    SMALL,
    OffsetRange,
    backwards,
    coalesced,
    from_document,
    outside,
    plan,
    rate_limited,
    resolve,
    split,
    to_document,
    went_back,
)

A0, A1, B0 = ("a", 0), ("a", 1), ("b", 0)

partitions = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 12))
offsets = st.dictionaries(partitions, st.integers(0, 10**6), max_size=12)


@given(offsets)
def test_a_checkpoint_document_reads_back(given_offsets):
    assert from_document(json.loads(json.dumps(to_document(given_offsets)))) == given_offsets


@given(offsets)
def test_equal_offsets_have_equal_text_whatever_their_order(given_offsets):
    turned = dict(reversed(given_offsets.items()))
    assert json.dumps(to_document(turned)) == json.dumps(to_document(given_offsets))


def test_partitions_are_written_in_numeric_order():
    assert json.dumps(to_document({("t", 10): 1, ("t", 2): 5})) == '{"t": {"2": 5, "10": 1}}'


@pytest.mark.parametrize(
    "document", [[], {"t": 3}, {"t": {"x": 3}}, {"t": {"0": -1}}, {"t": {"0": "3"}}, {"offset": 7}]
)
def test_a_checkpoint_of_another_source_is_refused(document):
    with pytest.raises(ConfigError, match="checkpoint"):
        from_document(document)


def test_marks_mean_the_offsets_of_their_partition():
    earliest, latest = {A0: 5, A1: 6}, {A0: 50, A1: 60}
    assert resolve(EARLIEST, "startingOffsets", earliest, latest) == earliest
    assert resolve(LATEST, "startingOffsets", earliest, latest) == latest
    assert resolve({A0: EARLIEST, A1: LATEST}, "startingOffsets", earliest, latest) == {A0: 5, A1: 60}
    assert resolve({A0: 7, A1: 8}, "startingOffsets", earliest, latest) == {A0: 7, A1: 8}


@pytest.mark.parametrize(
    ("bound", "said"),
    [({A0: 1}, "startingOffsets: misses a-1"), ({A0: 1, A1: 1, B0: 1}, "startingOffsets: names b-0, not read here")],
)
def test_offsets_have_to_name_exactly_the_partitions_read(bound, said):
    with pytest.raises(ConfigError, match=said):
        resolve(bound, "startingOffsets", {A0: 0, A1: 0}, {A0: 9, A1: 9})


def test_offsets_the_broker_does_not_hold_are_moved_and_named():
    held, said = outside({A0: 1, A1: 99, B0: 7}, "startingOffsets", {A0: 5, A1: 0, B0: 0}, {A0: 9, A1: 9, B0: 9})
    assert held == {A0: 5, A1: 9, B0: 7}
    assert said == ["startingOffsets 1 of a-0 is outside 5..9", "startingOffsets 99 of a-1 is outside 0..9"]


def test_a_limit_is_shared_in_proportion_to_the_backlog():
    assert rate_limited({A0: 0, A1: 100}, {A0: 900, A1: 200}, {}, 100) == {A0: 90, A1: 110}


def test_a_small_backlog_is_never_starved_by_a_limit():
    assert rate_limited({A0: 0, A1: 0}, {A0: 1_000_000, A1: 1}, {}, 10) == {A0: 9, A1: 1}


def test_a_new_partition_shares_the_limit_from_its_earliest_offset():
    assert rate_limited({A0: 0}, {A0: 100, A1: 150}, {A1: 50}, 20) == {A0: 10, A1: 60}


def test_without_a_limit_a_micro_batch_ends_at_the_latest():
    assert rate_limited({A0: 0}, {A0: 100}, {}, None) == {A0: 100}


@given(offsets, st.lists(st.integers(0, 10**6), min_size=12, max_size=12), st.integers(1, 10**6))
def test_micro_batches_under_a_limit_reach_the_end_without_going_back(start, sizes, most):
    latest = {at: first + size for (at, first), size in zip(start.items(), sizes)}
    at, steps = start, 0
    while at != latest and steps < 50:
        end = rate_limited(at, latest, {}, most)
        assert all(at[p] <= end[p] <= latest[p] for p in latest)
        assert all(end[p] > at[p] for p in latest if latest[p] > at[p])
        assert sum(end[p] - at[p] for p in latest) <= most + len(latest)
        at, steps = end, steps + 1


def test_partitions_that_are_gone_or_went_back_are_named():
    assert went_back({A0: 10, A1: 10, B0: 10}, {A0: 10, A1: 4}) == [
        "b-0 is gone, its offset was 10",
        "a-1 now ends at 4, 10 was reached",
    ]


def test_a_read_that_would_run_backwards_is_named():
    assert backwards({A0: 9, A1: 3}, {A0: 5, A1: 3}) == ["a-0 would be read from 9 to 5"]


def test_a_new_partition_is_read_from_its_earliest_offset():
    ranges = [OffsetRange("a", 0, 3, 5), OffsetRange("a", 1, 0, 4)]
    assert plan({A0: 3}, {A0: 5, A1: 4}, {A0: 0, A1: 0}, {A0: 9, A1: 9}) == (ranges, [])


def test_a_new_partition_that_already_lost_records_is_named():
    assert plan({}, {A0: 9}, {A0: 7}, {A0: 9}) == ([OffsetRange("a", 0, 7, 9)], ["a-0 is new and already begins at 7"])


def test_offsets_that_aged_out_are_named_and_left_out():
    ranges, said = plan({A0: 3, A1: 3}, {A0: 9, A1: 5}, {A0: 6, A1: 8}, {A0: 9, A1: 9})
    assert ranges == [OffsetRange("a", 0, 6, 9)]
    assert said == [
        "a-0 begins at 6, offsets from 3 on were to be read",
        "a-1 begins at 8, offsets from 3 on were to be read",
    ]


def test_an_empty_range_makes_no_task():
    assert plan({A0: 5}, {A0: 5}, {A0: 0}, {A0: 9}) == ([], [])


def test_offsets_beyond_the_end_are_named_and_left_out():
    ranges, said = plan({A0: 3, B0: 0}, {A0: 9, B0: 2}, {A0: 0}, {A0: 7})
    assert ranges == [OffsetRange("a", 0, 3, 7)]
    assert said == ["b-0 is gone, its offset was 2", "a-0 ends at 7, offsets up to 9 were to be read"]


def test_ranges_are_left_whole_when_there_are_enough():
    ranges = [OffsetRange("a", 0, 0, 10), OffsetRange("a", 1, 0, 10), OffsetRange("a", 2, 4, 4)]
    assert split(ranges, 2) == ranges[:2]
    assert split(ranges, None) == ranges[:2]


def test_large_ranges_are_cut_and_small_ones_set_aside():
    assert split([OffsetRange("a", 0, 0, 2), OffsetRange("a", 1, 100, 400)], 4) == [
        OffsetRange("a", 0, 0, 2),
        OffsetRange("a", 1, 100, 200),
        OffsetRange("a", 1, 200, 300),
        OffsetRange("a", 1, 300, 400),
    ]


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**6)), max_size=8), st.integers(1, 40))
def test_cutting_keeps_every_offset_once_and_in_order(spans, least):
    ranges = [OffsetRange("t", i, start, start + size) for i, (start, size) in enumerate(spans)]
    parts = split(ranges, least)
    assert all(part.size > 0 for part in parts)
    for whole in ranges:
        mine = [part for part in parts if part.partition == whole.partition]
        edges = [whole.start, *(part.end for part in mine)]
        assert [part.start for part in mine] == edges[:-1]
        assert edges[-1] == whole.end


def small(count: int, size: int = 10) -> list[OffsetRange]:
    return [OffsetRange("t", index, 5, 5 + size) for index in range(count)]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 2 * SMALL)), max_size=200),
    st.none() | st.integers(1, 60),
    st.none() | st.integers(1, 2 * SMALL),
)
def test_tasks_of_several_ranges_keep_every_range_once_and_in_order_within_its_partition(sizes, least, most):
    ends: dict[int, int] = {}
    ranges = []
    for index, size in sizes:
        start = ends.get(index, 0)
        ranges.append(OffsetRange("t", index, start, start + size))
        ends[index] = start + size
    tasks = coalesced(ranges, least, most)
    assert sorted(each for task in tasks for each in task) == sorted(ranges)
    for task in tasks:
        for index in ends:
            pieces = [each for each in task if each.partition == index]
            assert pieces == sorted(pieces)
        assert len(task) == 1 or most is None or sum(each.size for each in task) <= most


def test_partitions_with_little_share_tasks_once_there_are_more_than_a_few():
    assert coalesced(small(FEWEST_TASKS)) == [(each,) for each in small(FEWEST_TASKS)]
    assert len(coalesced(small(100))) >= FEWEST_TASKS
    assert {len(task) for task in coalesced(small(100))} <= {1, 2, 3, 4}
    assert len(coalesced(small(10_000))) <= 500


def test_a_task_of_several_ranges_is_bounded():
    most = max(sum(each.size for each in task) for task in coalesced(small(10_000, SMALL)))
    assert most <= 10 * SMALL
    assert max(map(len, coalesced(small(10_000, 1)))) <= 25


def test_a_range_with_much_in_it_is_a_task_by_itself():
    large = OffsetRange("u", 0, 0, SMALL + 1)
    assert (large,) in coalesced([*small(200), large])


def test_many_large_ranges_do_not_leave_the_small_ones_to_more_tasks_than_they_need():
    large = [OffsetRange("u", index, 0, SMALL + 1) for index in range(100)]
    assert len(coalesced([*large, *small(40)])) <= len(large) + 2


def test_as_many_tasks_are_left_as_minpartitions_asks_for():
    assert len(coalesced(small(1_000), 400)) >= 400
    assert coalesced(small(200), 200) == [(each,) for each in small(200)]
