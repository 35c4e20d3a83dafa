"""Commits that wait while the group goes on: by a made-up clock, in groups of both protocols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tagwire import messages
from tagwire.client import Committed
from tagwire.errors import CommitFailedError, Error, KafkaError
from tagwire.partitions import TopicPartition

from .fake_broker import Late
from .memory_consumers import MemoryConsumer, Room, subscribed

AT = TopicPartition("t", 0)
PROTOCOLS = ({"assignors": "cooperative-sticky"}, {"protocol": "consumer"})
both_protocols = pytest.mark.parametrize("protocol", PROTOCOLS, ids=["classic", "KIP-848"])

Told = list[tuple[dict[TopicPartition, int], Exception | None]]


def commit_later(consumer: MemoryConsumer, offsets: dict[TopicPartition, int]) -> Told:
    """Commits asynchronously; what the callback is told comes into the list."""
    told: Told = []

    def callback(found: Any, error: Exception | None) -> None:
        told.append(({partition: offset.offset for partition, offset in found.items()}, error))

    consumer.call(consumer.core.commit_async(offsets, callback))
    return told


def response(message: Any, error: Error) -> messages.OffsetCommitResponse:
    kind = messages.OffsetCommitResponse
    return kind(
        topics=[
            kind.OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    kind.OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error)
                    for each in topic.partitions
                ],
            )
            for topic in message.topics
        ]
    )


class HeldUp:
    """A commit of an offset of a consumer, which the coordinator puts off until `release`; what the consumer commits
    meanwhile waits behind it."""

    def __init__(self, room: Room, consumer: MemoryConsumer, offset: int = 1) -> None:
        self._is_over = False
        self._offset = offset
        self._room = room
        room.cluster.serve({}, {"OffsetCommit": self._commit})
        commit_later(consumer, {AT: offset})
        room.pass_time(0.1)

    def release(self) -> None:
        self._is_over = True

    def _commit(self, message: Any) -> Any:
        if message.topics[0].partitions[0].committed_offset == self._offset and not self._is_over:
            return response(message, Error.COORDINATOR_LOAD_IN_PROGRESS)
        return self._room.offsets.commit(message)


def until(consumer: MemoryConsumer, is_true: Callable[[], object]) -> None:
    for _ in range(600):
        if is_true():
            return
        consumer.poll(0.1)
    raise AssertionError("not within a minute")


def sent_offsets(room: Room) -> list[dict[int, int]]:
    return [
        {each.partition_index: each.committed_offset for topic in message.topics for each in topic.partitions}
        for message in room.cluster.requests("OffsetCommit")
    ]


@both_protocols
def test_a_commit_that_waited_while_its_member_was_lost_does_not_take_the_next_owners_offset_back(
    protocol: dict[str, Any],
) -> None:
    room = Room()
    room.fill(20)
    consumer = subscribed(room, **protocol, max_poll_interval=10.0)
    consumer.drained(10)
    held = HeldUp(room, consumer)
    told = commit_later(consumer, {AT: 2})
    room.pass_time(11.0)  # the member has left
    other = subscribed(room, **protocol)
    other.drained(10)
    other.call(other.core.commit({AT: 9}, 5.0))
    other.close()
    until(consumer, lambda: consumer.core.assignment)
    held.release()
    until(consumer, lambda: told)
    ((offsets, error),) = told
    assert offsets == {AT: 2}
    assert isinstance(error, CommitFailedError)
    assert "t-0: the consumer's membership or assignment has ended since the commit was asked for" in str(error)
    assert room.committed == {AT: 9}
    consumer.call(consumer.core.commit(None, 5.0))  # of what it has now, and was given
    assert room.committed == {AT: 20}


@both_protocols
def test_a_commit_that_waited_while_a_partition_went_to_another_member_is_not_of_that_partition(
    protocol: dict[str, Any],
) -> None:
    room = Room(2)
    consumer = subscribed(room, **protocol)
    until(consumer, lambda: len(consumer.core.assignment) == 2)
    held = HeldUp(room, consumer)
    both = {TopicPartition("t", 0): 5, TopicPartition("t", 1): 5}
    told = commit_later(consumer, both)
    other = subscribed(room, **protocol)
    while not other.core.assignment:
        consumer.poll(0.1)
        other.poll(0.1)
    (taken,) = other.core.assignment
    (kept,) = consumer.core.assignment
    told_of_kept = commit_later(consumer, {kept: 6})
    room.offsets.committed["g"] = {taken: 9}
    held.release()
    until(consumer, lambda: told_of_kept)
    assert [type(error) for _, error in told] == [CommitFailedError]
    assert str(taken) in str(told[0][1])
    assert str(kept) not in str(told[0][1])
    assert told_of_kept == [({kept: 6}, None)]  # the member has gone on, and this partition is its own all along
    assert room.committed == {taken: 9, kept: 6}


@both_protocols
def test_an_automatic_commit_that_waited_leaves_out_what_was_lost(protocol: dict[str, Any]) -> None:
    room = Room()
    room.fill(20)
    consumer = subscribed(
        room, **protocol, auto_commit=True, auto_commit_interval=1.0, max_poll_interval=10.0, max_poll_records=10
    )
    consumer.drained(10)
    held = HeldUp(room, consumer)
    consumer.poll()
    room.pass_time(11.0)
    other = subscribed(room, **protocol)
    other.drained(20)
    other.call(other.core.commit({AT: 15}, 5.0))
    other.close()
    until(consumer, lambda: consumer.core.assignment)
    held.release()
    until(consumer, lambda: room.committed != {AT: 15})
    assert room.committed == {AT: 20}  # of what it was given now
    assert {0: 10} not in sent_offsets(room)


@both_protocols
def test_an_automatic_commit_does_not_take_back_what_the_application_commits_itself(protocol: dict[str, Any]) -> None:
    room = Room()
    room.fill(20)
    consumer = subscribed(room, **protocol, auto_commit=True, auto_commit_interval=1.0, max_poll_records=10)
    consumer.drained(20)  # and done with 10
    held = HeldUp(room, consumer, offset=20)
    room.pass_time(3.0)  # an automatic one is due meanwhile
    held.release()
    room.pass_time(5.0)  # and more of them
    assert {0: 10} not in sent_offsets(room)
    assert room.committed == {AT: 20}


@both_protocols
def test_who_goes_back_has_less_committed_by_itself_than_before(protocol: dict[str, Any]) -> None:
    room = Room()
    room.fill(20)
    consumer = subscribed(room, **protocol, auto_commit=True, auto_commit_interval=1.0, max_poll_records=10)
    consumer.drained(20)
    consumer.call(consumer.core.commit({AT: 20}, 5.0))
    consumer.call(consumer.core.seek(AT, 3))
    room.pass_time(3.0)
    assert room.committed == {AT: 3}


@both_protocols
@pytest.mark.parametrize("is_automatic", [False, True], ids=["asked for", "automatic"])
def test_what_was_sent_before_somebody_went_back_does_not_count_as_committed_after_it(
    protocol: dict[str, Any], is_automatic: bool
) -> None:
    room = Room()
    room.fill(20)
    consumer = subscribed(room, **protocol, auto_commit=True, auto_commit_interval=1.0)
    consumer.drained(20)
    room.cluster.script("OffsetCommit", Late(2.0))
    if is_automatic:
        consumer.poll()
    else:
        commit_later(consumer, {AT: 20})
    while {0: 20} not in sent_offsets(room):
        room.pass_time(0.1)
    consumer.call(consumer.core.seek(AT, 3))
    assert [record.offset for record in consumer.drained(17)] == list(range(3, 20))  # and done with none of them
    room.pass_time(5.0)
    assert room.committed == {AT: 3}


def test_a_commit_that_is_to_be_repeated_in_the_next_epoch_is_not_once_its_member_was_lost() -> None:
    room = Room()
    room.fill(20)
    consumer = subscribed(room, protocol="consumer", max_poll_interval=10.0)
    consumer.drained(10)
    room.cluster.script("OffsetCommit", *[lambda message: response(message, Error.STALE_MEMBER_EPOCH)] * 40)
    told = commit_later(consumer, {AT: 2})
    room.pass_time(9.0)  # pauses between two attempts are of a second by now
    count = len(sent_offsets(room))
    while len(sent_offsets(room)) == count:
        room.pass_time(0.01)
    membership = consumer.core.work._membership
    assert membership is not None
    room.groups.consumer_groups.clear()  # nobody knows the member any more
    before = membership.incarnation
    until(consumer, lambda: membership.incarnation is not before and membership.holds_partitions)
    until(consumer, lambda: told)
    assert isinstance(told[0][1], CommitFailedError)
    assert room.committed == {}


@both_protocols
def test_what_is_committed_by_hand_of_partitions_that_nobody_has_is_committed_while_the_membership_lasts(
    protocol: dict[str, Any],
) -> None:
    room = Room()
    consumer = subscribed(room, **protocol)
    until(consumer, lambda: consumer.core.assignment)
    consumer.call(consumer.core.commit({("t", 7): 3}, 5.0))
    assert room.committed == {TopicPartition("t", 7): 3}


def test_commits_of_who_assigns_by_hand_are_done_whatever_it_has_by_then() -> None:
    room = Room(2)
    consumer = room.consumer()
    consumer.call(consumer.core.assign([("t", 0), ("t", 1)]))
    held = HeldUp(room, consumer)
    told = commit_later(consumer, {("t", 1): 4})  # type: ignore[dict-item]
    consumer.call(consumer.core.assign([("t", 0)]))
    held.release()
    until(consumer, lambda: told)
    assert room.committed == {AT: 1, TopicPartition("t", 1): 4}
    assert told == [({TopicPartition("t", 1): 4}, None)]


@both_protocols
def test_who_leaves_waits_for_the_commits_that_were_asked_for(protocol: dict[str, Any]) -> None:
    room = Room()
    consumer = subscribed(room, **protocol)
    until(consumer, lambda: consumer.core.assignment)
    held = HeldUp(room, consumer)
    room.driver.after(5.0, held.release)
    told = commit_later(consumer, {AT: 2})
    consumer.close()
    assert told == [({AT: 2}, None)]
    assert room.committed == {AT: 2}
    assert {message.member_id != "" for message in room.cluster.requests("OffsetCommit")} == {True}


def test_a_commit_that_waits_longer_than_its_consumer_is_a_member_is_not_sent_as_nobodys() -> None:
    """Of a group without members the coordinator takes offsets from everybody."""
    room = Room()
    consumer = subscribed(room, **PROTOCOLS[0])
    until(consumer, lambda: consumer.core.assignment)
    held = HeldUp(room, consumer)
    commit_later(consumer, {AT: 2})
    consumer.call(consumer.core.close(1.0, leaves=None))
    room.offsets.committed["g"] = {AT: 9}
    held.release()
    room.pass_time(5.0)
    assert {0: 2} not in sent_offsets(room)


@both_protocols
def test_a_member_that_was_lost_is_still_the_one_that_offsets_of_a_transaction_are_sent_for(
    protocol: dict[str, Any],
) -> None:
    room = Room()
    consumer = subscribed(room, **protocol, max_poll_interval=10.0)
    until(consumer, lambda: consumer.core.assignment)
    member = consumer.core.group_metadata()
    assert member.generation > 0
    room.pass_time(11.0)
    assert consumer.core.group_metadata() == member  # which the coordinator refuses
    until(consumer, lambda: consumer.core.work.is_member)
    assert consumer.core.group_metadata() != member


def by_hand(room: Room, **options: Any) -> MemoryConsumer:
    consumer = room.consumer(**options)
    consumer.call(consumer.core.assign([AT]))
    return consumer


def test_what_is_committed_is_told_after_what_was_asked_to_be_committed_before() -> None:
    room = Room()
    consumer = by_hand(room)
    commit_later(consumer, {AT: 5})
    found = consumer.call(consumer.core.committed([AT], 5.0))
    assert {partition: offset.offset for partition, offset in found.items()} == {AT: 5}


@pytest.mark.parametrize("protocol", [None, *PROTOCOLS], ids=["by hand", "classic", "KIP-848"])
def test_who_gets_a_partition_back_begins_where_its_commit_that_is_on_its_way_goes(
    protocol: dict[str, Any] | None,
) -> None:
    room = Room()
    room.fill(20)
    consumer = by_hand(room) if protocol is None else subscribed(room, **protocol)
    consumer.drained(20)
    room.cluster.script("OffsetCommit", *[lambda message: response(message, Error.COORDINATOR_LOAD_IN_PROGRESS)] * 3)
    told = commit_later(consumer, {AT: 20})
    if protocol is None:
        consumer.call(consumer.core.assign([]))
        consumer.call(consumer.core.assign([AT]))
    else:
        consumer.call(consumer.core.unsubscribe())
        consumer.call(consumer.core.subscribe("t", None, None))
    room.fill(1)
    assert [record.offset for record in consumer.drained(1)] == [20]
    assert told == [({AT: 20}, None)]


def test_who_goes_back_to_what_is_committed_waits_for_what_is_on_its_way() -> None:
    room = Room()
    room.fill(20)
    consumer = by_hand(room)
    consumer.drained(20)
    room.cluster.script("OffsetCommit", *[lambda message: response(message, Error.COORDINATOR_LOAD_IN_PROGRESS)] * 3)
    commit_later(consumer, {AT: 5})
    consumer.call(consumer.core.seek(AT, Committed()))
    assert consumer.drained(15)[0].offset == 5


def test_a_commit_that_goes_on_failing_keeps_only_its_own_partitions_from_beginning() -> None:
    room = Room(2)
    room.fill(1, partition=1)
    consumer = by_hand(room)
    held = HeldUp(room, consumer)
    began = room.driver.now()
    consumer.call(consumer.core.assign([("t", 1)]))
    consumer.drained(1)
    assert room.driver.now() < began + 1
    held.release()


@both_protocols
def test_commits_of_a_topic_that_is_gone_keep_nobody_waiting_and_one_that_brokers_do_not_know_yet_is_waited_for(
    protocol: dict[str, Any],
) -> None:
    room = Room()
    room.fill(3)
    consumer = subscribed(room, **protocol, auto_commit=True, auto_commit_interval=100)
    consumer.drained(3)
    began, until_known, asked = room.driver.now(), room.driver.now() + 1, [0.0]

    def commit(message: Any) -> Any:
        asked.append(room.driver.now())
        if room.driver.now() < until_known:
            return response(message, Error.UNKNOWN_TOPIC_OR_PARTITION)
        return room.offsets.commit(message)

    room.cluster.serve({}, {"OffsetCommit": commit})
    consumer.call(consumer.core.commit({AT: 2}, None))
    assert room.committed == {AT: 2}
    assert asked[-1] - began < 2.5

    until_known = float("inf")
    with pytest.raises(KafkaError, match="partition t-0") as refused:
        consumer.call(consumer.core.commit({AT: 3}, None))
    assert refused.value.error is Error.UNKNOWN_TOPIC_OR_PARTITION
    began = room.driver.now()
    consumer.call(consumer.core.unsubscribe())  # commits by itself before it gives the partition up
    assert asked[-1] - began < 4
