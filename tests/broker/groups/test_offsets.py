"""Which of a group's offsets counts, where several were written."""

from __future__ import annotations

from tagwire.broker.groups.offsets import GroupOffsets, OffsetAndMetadata
from tagwire.partitions import TopicPartition

HERE, THERE = TopicPartition("t", 0), TopicPartition("t", 1)


def at(offset: int) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset, -1, "", 0)


def told(offsets: GroupOffsets) -> dict[TopicPartition, int]:
    return {partition: found.offset for partition, found in offsets}


def test_a_commit_that_was_written_after_a_transactions_holds_when_that_commits() -> None:
    offsets = GroupOffsets()
    offsets.prepare(1, {HERE: at(10), THERE: at(10)})
    offsets.commit({HERE: at(20)})
    assert offsets.is_unstable(HERE)
    offsets.end_transaction(1, committed=True)
    assert told(offsets) == {HERE: 20, THERE: 10}
    assert not offsets.is_unstable(HERE)


def test_a_commit_that_was_written_before_a_transactions_does_not() -> None:
    offsets = GroupOffsets()
    offsets.prepare(1, {HERE: at(10)})
    offsets.commit({HERE: at(20)})
    offsets.prepare(1, {HERE: at(15)})
    offsets.end_transaction(1, committed=True)
    assert told(offsets) == {HERE: 15}


def test_of_two_transactions_that_commit_the_one_that_was_written_last_holds() -> None:
    for order in ((1, 2), (2, 1)):
        offsets = GroupOffsets()
        offsets.prepare(1, {HERE: at(10)})
        offsets.prepare(2, {HERE: at(20)})
        for producer_id in order:
            offsets.end_transaction(producer_id, committed=True)
        assert told(offsets) == {HERE: 20}


def test_what_was_aborted_takes_the_place_of_nothing() -> None:
    offsets = GroupOffsets()
    offsets.prepare(1, {HERE: at(10)})
    offsets.prepare(2, {HERE: at(20)})
    offsets.end_transaction(2, committed=False)
    offsets.end_transaction(1, committed=True)
    assert told(offsets) == {HERE: 10}


def test_nothing_is_held_of_what_has_ended_or_is_deleted() -> None:
    offsets = GroupOffsets()
    offsets.prepare(1, {HERE: at(10)})
    offsets.commit({HERE: at(20)})
    offsets.end_transaction(1, committed=True)
    offsets.prepare(2, {HERE: at(30)})
    offsets.delete([HERE])
    assert (told(offsets), offsets.held_bytes, bool(offsets)) == ({}, 0, False)
    offsets.end_transaction(2, committed=True)
    assert (told(offsets), offsets.held_bytes) == ({}, 0)
