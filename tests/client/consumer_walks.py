"""What a consumer in a group does with any broker: the same tests for all of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from inspect import isawaitable
from typing import Any

import pytest

from tagwire.client import (
    Consumer,
    NewTopic,
    OffsetAndMetadata,
    RebalanceListener,
    TopicPartition,
)
from tagwire.errors import CommitFailedError, ConsumerStateError, NoOffsetError, WakeupError
from tagwire.records import Record

from .walks import NOW, SECONDS, Kind, Walk, until

# Seconds of one poll: long enough for anything that is under way, and it ends with the first record.
A_WHILE = 1.0


class Heard(RebalanceListener):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, list[TopicPartition]]] = []

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.told.append(("assigned", list(partitions)))

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.told.append(("revoked", list(partitions)))

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self.told.append(("lost", list(partitions)))

    def all(self, kind: str) -> set[TopicPartition]:
        return {partition for told, partitions in self.told if told == kind for partition in partitions}


def member(walk: Walk, group: str, protocol: str = "classic", **options: Any) -> Consumer:
    if protocol == "classic":
        options = {"heartbeat_interval": 0.2, **options}
    elif not walk.client.features().finalized.get("group.version"):
        pytest.skip(f"{walk.kind.name} has not switched on the protocol of KIP-848")
    return walk.consumer(group=group, **{"protocol": protocol, "offset_reset": "earliest", **options})


def drained(consumer: Consumer, count: int, found: list[Record] | None = None) -> list[Record]:
    """The next so many records."""
    found = [] if found is None else found
    deadline = time.monotonic() + SECONDS
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} records of {count}"
        found += consumer.poll(A_WHILE)
    return found


def values(records: Sequence[Record]) -> list[int]:
    return [int(record.value or b"-1") for record in records]


def polled_until(done: Callable[[], bool], *consumers: Consumer, found: list[Record] | None = None) -> list[Record]:
    """What these are given until something holds, after what was found before."""
    found = [] if found is None else found

    def poll() -> bool:
        for consumer in consumers:
            found.extend(consumer.poll(0.05))
        return done()

    until(poll)
    return found


class ConsumerWalks:
    """Groups, positions, commits and batches. A module with a broker gives the fixture `kind`."""

    @pytest.fixture
    def walk(self, kind: Kind) -> Iterator[Walk]:
        with kind.client() as client:
            yield Walk(kind, client)

    @pytest.fixture(params=["classic", "consumer"])
    def protocol(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    def test_a_member_alone_reads_all_of_its_topics_and_goes_on_after_its_commit(
        self, walk: Walk, protocol: str
    ) -> None:
        first, second, group = walk.topic(2), walk.topic(), walk.name()
        walk.fill(first, 10)
        walk.fill(first, 10, partition=1)
        walk.fill(second, 10)
        with member(walk, group, protocol, auto_commit=False) as consumer:
            consumer.subscribe([first, second])
            found = drained(consumer, 30)
            assert sorted(values(found)) == sorted([*range(10)] * 3)
            assert {(record.topic, record.partition) for record in found} == {(first, 0), (first, 1), (second, 0)}
            assert consumer.assignment() == {*map(TopicPartition._make, [(first, 0), (first, 1), (second, 0)])}
            consumer.commit()
            assert consumer.committed()[TopicPartition(first, 1)].offset == 10
        walk.fill(second, 5)
        with member(walk, group, protocol) as consumer:
            consumer.subscribe([first, second])
            assert values(drained(consumer, 5)) == [*range(5)]

    def test_records_are_read_one_by_one_as_lists_and_as_batches(self, walk: Walk) -> None:
        walk.fill(topic := walk.topic(), 1200)
        with member(walk, walk.name(), max_poll_records=100) as consumer:
            consumer.subscribe(topic)
            one_by_one = [record for record, _ in zip(consumer, range(150))]
            assert values(one_by_one) == [*range(150)]
            assert consumer.position((topic, 0)) == 151  # zip took one more
            listed = consumer.consume(849, SECONDS)
            assert values(listed) == [*range(151, 1000)]
            assert len(consumer.poll(A_WHILE)) == 100
            batch = consumer.poll_batch(SECONDS)
            assert batch is not None
            assert batch.column("value").to_pylist() == [b"%d" % number for number in range(1100, 1200)]
            assert consumer.position((topic, 0)) == 1200
            assert consumer.poll_batch(0) is None
            walk.fill(topic, 5)
            assert values(drained(consumer, 5)) == [*range(5)]

    def test_two_members_share_the_partitions_and_the_one_that_stays_gets_all(self, walk: Walk, protocol: str) -> None:
        topic, group, heard = walk.topic(4), walk.name(), Heard()
        for partition in range(4):
            walk.fill(topic, 10, partition)
        with member(walk, group, protocol) as first:
            first.subscribe(topic, heard)
            found = drained(first, 40)
            with member(walk, group, protocol) as second:
                second.subscribe(topic)
                polled_until(
                    lambda: len(second.assignment()) == len(first.assignment()) == 2, first, second, found=found
                )
                for partition in range(4):
                    walk.fill(topic, 10, partition)
                polled_until(lambda: len(found) >= 80, first, second, found=found)
            polled_until(lambda: len(first.assignment()) == 4, first, found=found)
        assert sorted(values(found)) == sorted([*range(10)] * 8)
        assert heard.all("assigned") == {TopicPartition(topic, index) for index in range(4)}
        assert len(heard.all("revoked")) == 4  # the last ones by close

    def test_cooperative_members_keep_what_nobody_else_gets(self, walk: Walk) -> None:
        topic, group, heard = walk.topic(4), walk.name(), Heard()
        options = {"assignors": "cooperative-sticky"}
        with member(walk, group, **options) as first, member(walk, group, **options) as second:
            first.subscribe(topic, heard)
            polled_until(lambda: len(first.assignment()) == 4, first)
            second.subscribe(topic)
            polled_until(lambda: len(second.assignment()) == len(first.assignment()) == 2, first, second)
            assert heard.told[0] == ("assigned", [TopicPartition(topic, index) for index in range(4)])
            assert len(heard.all("revoked")) == 2

    def test_a_pattern_takes_in_topics_that_come_later(self, walk: Walk, protocol: str) -> None:
        prefix = walk.name()
        walk.admin.create_topics([NewTopic(f"{prefix}-a")])
        with member(walk, walk.name(), protocol, metadata_max_age=0.2) as consumer:
            consumer.subscribe(pattern=f"{prefix}-.*")
            polled_until(lambda: len(consumer.assignment()) == 1, consumer)
            walk.admin.create_topics([NewTopic(f"{prefix}-b")])
            polled_until(lambda: len(consumer.assignment()) == 2, consumer)

    def test_partitions_that_a_topic_gets_are_assigned(self, walk: Walk, protocol: str) -> None:
        topic = walk.topic()
        with member(walk, walk.name(), protocol, metadata_max_age=0.2) as consumer:
            consumer.subscribe(topic)
            polled_until(lambda: len(consumer.assignment()) == 1, consumer)
            walk.admin.create_partitions({topic: 3})
            polled_until(lambda: len(consumer.assignment()) == 3, consumer)

    def test_partitions_assigned_by_hand_need_no_group(self, walk: Walk) -> None:
        walk.fill(topic := walk.topic(2), 10)
        walk.fill(topic, 10, partition=1)
        with walk.consumer(offset_reset="earliest") as consumer:
            consumer.assign([(topic, 0)])
            assert values(drained(consumer, 10)) == [*range(10)]
            consumer.assign({(topic, 0): 8, (topic, 1): "earliest"})
            assert len(drained(consumer, 12)) == 12
            with pytest.raises(ConsumerStateError, match="without a group"):
                consumer.commit()
            with pytest.raises(ConsumerStateError, match="without a group cannot subscribe"):
                consumer.subscribe(topic)

    def test_a_group_without_members_is_committed_to_by_who_assigns_by_hand(self, walk: Walk) -> None:
        walk.fill(topic := walk.topic(), 10)
        group = walk.name()
        with member(walk, group, auto_commit=False) as consumer:
            consumer.assign(topic)
            drained(consumer, 10)
            consumer.commit({(topic, 0): OffsetAndMetadata(7, metadata="so far")})
            assert consumer.committed((topic, 0))[TopicPartition(topic, 0)].metadata == "so far"
        with member(walk, group) as consumer:
            consumer.assign(topic)
            assert values(drained(consumer, 3)) == [7, 8, 9]

    def test_positions_are_sought_paused_and_resumed(self, walk: Walk) -> None:
        walk.fill(topic := walk.topic(2), 10)
        walk.fill(topic, 10, partition=1)
        with member(walk, walk.name()) as consumer:
            consumer.subscribe(topic)
            drained(consumer, 20)
            consumer.pause((topic, 0))
            assert consumer.paused() == {TopicPartition(topic, 0)}
            consumer.seek_to_beginning()
            assert {record.partition for record in drained(consumer, 10)} == {1}
            assert consumer.poll(0.1) == []
            consumer.resume((topic, 0))
            assert values(drained(consumer, 10)) == [*range(10)]
            consumer.seek((topic, 0), 9)
            assert values(drained(consumer, 1)) == [9]
            consumer.seek_to_end((topic, 0))
            assert consumer.position((topic, 0)) == 10
            with pytest.raises(KeyError):
                consumer.seek(("no-such-topic", 0), 1)
            assert {lag.lag for lag in consumer.lag().values()} == {0}

    def test_the_partitions_of_a_topic_are_told_before_any_is_assigned(self, walk: Walk) -> None:
        topic = walk.topic(3)
        with member(walk, walk.name()) as consumer:
            assert sorted(consumer.partitions_for(topic)) == [0, 1, 2]
            assert consumer.assignment() == frozenset()

    def test_offsets_are_told_by_time_and_by_end(self, walk: Walk) -> None:
        walk.fill(topic := walk.topic(), 10)
        with member(walk, walk.name()) as consumer:
            assert consumer.beginning_offsets((topic, 0)) == {(topic, 0): 0}
            assert consumer.end_offsets((topic, 0)) == {(topic, 0): 10}
            if walk.kind.finds_times:
                assert consumer.offsets_for_times({(topic, 0): NOW + 4}) == {(topic, 0): 4}

    def test_only_what_was_given_before_the_last_poll_is_committed_automatically(self, walk: Walk) -> None:
        walk.fill(topic := walk.topic(), 30)
        group, at = walk.name(), TopicPartition(topic, 0)
        with member(walk, group, max_poll_records=10, auto_commit_interval=0.05) as consumer:
            consumer.subscribe(topic)
            assert values(drained(consumer, 10)) == [*range(10)]
            time.sleep(0.3)
            assert walk.admin.group_offsets(group).get(at, OffsetAndMetadata(0)).offset == 0
            assert values(drained(consumer, 10)) == [*range(10, 20)]
            until(lambda: _is(walk, group, at, 10))
        assert walk.admin.group_offsets(group)[at].offset == 20  # what was given counts at the end

    def test_commits_beside_call_back_in_their_order(self, walk: Walk) -> None:
        walk.fill(topic := walk.topic(), 10)
        told: list[tuple[int, object]] = []
        with member(walk, walk.name(), auto_commit=False) as consumer:
            consumer.subscribe(topic)
            drained(consumer, 10)
            for offset in (3, 5, 4):
                consumer.commit_async(
                    {(topic, 0): offset}, lambda offsets, error: told.append((offsets[topic, 0].offset, error))
                )
            polled_until(lambda: len(told) == 3, consumer)
            assert told == [(3, None), (5, None), (4, None)]
            assert consumer.committed()[TopicPartition(topic, 0)].offset == 4

    def test_nobody_begins_where_nothing_says_where(self, walk: Walk) -> None:
        walk.fill(topic := walk.topic(), 10)
        with member(walk, walk.name(), offset_reset="none") as consumer:
            consumer.subscribe(topic)
            with pytest.raises(NoOffsetError, match=f"nothing says where to begin in {topic}-0"):
                drained(consumer, 1)
            consumer.seek((topic, 0), 8)
            assert values(drained(consumer, 2)) == [8, 9]

    def test_who_does_not_poll_loses_its_partitions_and_gets_them_back_with_the_next_poll(
        self, walk: Walk, protocol: str
    ) -> None:
        walk.fill(topic := walk.topic(), 10)
        heard, group = Heard(), walk.name()
        with member(walk, group, protocol, max_poll_interval=0.5, max_poll_records=4, auto_commit=False) as consumer:
            consumer.subscribe(topic, heard)
            assert values(drained(consumer, 4)) == [0, 1, 2, 3]
            consumer.commit()
            until(lambda: not walk.admin.describe_groups([group])[group].members)
            with pytest.raises(CommitFailedError, match=r"raise max\.poll\.interval\.ms"):
                consumer.commit()
            assert values(drained(consumer, 4)) == [4, 5, 6, 7]
        kinds = [kind for kind, partitions in heard.told if partitions]
        assert kinds == ["assigned", "lost", "assigned", "revoked"]

    def test_what_a_listener_raises_is_raised_from_poll_and_the_rebalance_goes_on(self, walk: Walk) -> None:
        walk.fill(topic := walk.topic(), 10)

        class Refusing(RebalanceListener):
            def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
                raise ZeroDivisionError

        with member(walk, walk.name()) as consumer:
            consumer.subscribe(topic, Refusing())
            with pytest.raises(ZeroDivisionError):
                drained(consumer, 10)
            assert values(drained(consumer, 10)) == [*range(10)]

    def test_a_listener_seeks_before_anything_is_fetched(self, walk: Walk, protocol: str) -> None:
        walk.fill(topic := walk.topic(), 10)

        class Seeking(RebalanceListener):
            def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> object:
                return consumer.seek(partitions[0], 6) if partitions else None  # a consumer of tasks awaits it

        with member(walk, walk.name(), protocol) as consumer:
            consumer.subscribe(topic, Seeking())
            assert values(drained(consumer, 4)) == [6, 7, 8, 9]

    def test_a_listener_is_told_where_what_it_is_given_begins(self, walk: Walk, protocol: str) -> None:
        walk.fill(topic := walk.topic(), 10)
        group, told = walk.name(), []

        class Asking(RebalanceListener):
            def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> object:
                found = [consumer.position(one, SECONDS) for one in partitions]
                told.extend(one for one in found if not isawaitable(one))
                return self.note(filter(isawaitable, found))  # a consumer of tasks awaits it

            async def note(self, found: Iterable[Any]) -> None:
                told.extend([await one for one in found])

        with member(walk, group, protocol, auto_commit=False) as consumer:
            consumer.subscribe(topic, Asking())
            assert values(drained(consumer, 10)) == [*range(10)]
            consumer.commit({(topic, 0): 4})
        with member(walk, group, protocol) as consumer:
            consumer.subscribe(topic, Asking())
            assert values(drained(consumer, 6)) == [*range(4, 10)]
        assert told == [0, 4]

    def test_what_a_listener_seeks_is_gathered_from_there(self, walk: Walk) -> None:
        walk.fill(topic := walk.topic(), 10)

        class Seeking(RebalanceListener):
            def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> object:
                return consumer.seek(partitions[0], 6)

        with member(walk, walk.name()) as consumer:
            consumer.subscribe(topic, Seeking())
            assert values(consumer.consume(4, SECONDS)) == [6, 7, 8, 9]

    def test_a_static_member_comes_back_to_its_partitions_without_a_rebalance(self, walk: Walk) -> None:
        topic, group, heard = walk.topic(2), walk.name(), Heard()
        with member(walk, group, instance_id="two") as second:
            first = member(walk, group, instance_id="one")
            first.subscribe(topic)
            second.subscribe(topic)
            polled_until(lambda: len(second.assignment()) == len(first.assignment()) == 1, first, second)
            kept = first.assignment()
            first.close()
            second.unsubscribe()
            second.subscribe(topic, heard)
            polled_until(lambda: len(second.assignment()) == 1, second)
            with member(walk, group, instance_id="one") as again:
                again.subscribe(topic)
                polled_until(lambda: again.assignment() == kept, again, second)
        assert len(kept) == 1

    def test_a_static_member_leaves_its_group_for_good_where_it_is_told_to(self, walk: Walk) -> None:
        topic, group = walk.topic(), walk.name()
        for leave, members in ((None, 1), (True, 0)):
            consumer = member(walk, group, instance_id="one")
            consumer.subscribe(topic)
            polled_until(lambda: len(consumer.assignment()) == 1, consumer)  # noqa: B023
            consumer.close(leave=leave)
            assert len(walk.admin.describe_groups([group])[group].members) == members

    @pytest.mark.parametrize("protocol", ["classic", "consumer"])
    def test_a_static_member_that_comes_back_with_topics_has_no_pattern_any_more(
        self, walk: Walk, protocol: str
    ) -> None:
        topic, other, group = walk.topic(), walk.topic(), walk.name()
        first = member(walk, group, protocol, instance_id="one")
        first.subscribe(pattern=f"{topic}|{other}")
        polled_until(lambda: len(first.assignment()) == 2, first)
        first.close()
        with member(walk, group, protocol, instance_id="one") as again:
            again.subscribe(topic)
            polled_until(lambda: again.assignment() == {(topic, 0)}, again)

    @pytest.mark.parametrize("leave", [None, False])
    @pytest.mark.parametrize("protocol", ["classic", "consumer"])
    def test_a_static_member_that_has_not_left_may_be_started_again_at_once(
        self, walk: Walk, protocol: str, leave: bool | None
    ) -> None:
        topic, group = walk.topic(), walk.name()
        for _ in range(2):
            consumer = member(walk, group, protocol, instance_id="one")
            consumer.subscribe(topic)
            polled_until(lambda: len(consumer.assignment()) == 1, consumer)  # noqa: B023
            consumer.close(leave=leave)

    def test_a_consumer_measures_what_it_does(self, walk: Walk) -> None:
        walk.fill(topic := walk.topic(), 10)
        with member(walk, walk.name()) as consumer:
            consumer.subscribe(topic)
            drained(consumer, 10)
            consumer.commit()
            found = consumer.metrics()
        assert found["consumer-coordinator-metrics"]["assigned-partitions"] == 1
        assert found["consumer-coordinator-metrics"]["commit-total"] == 1
        assert found["consumer-fetch-manager-metrics"]["records-consumed-total"] == 10
        assert found["consumer-metrics"]["commit-sync-time-ns-total"]

    def test_a_waiting_consumer_is_woken_by_another_thread(self, walk: Walk) -> None:
        with member(walk, walk.name()) as consumer:
            consumer.subscribe(walk.topic())
            thread = threading.Timer(0.2, consumer.wakeup)
            thread.start()
            with pytest.raises(WakeupError):
                consumer.poll(SECONDS)
            thread.join()
            assert consumer.poll(0) == []

    def test_two_threads_at_a_time_are_refused(self, walk: Walk) -> None:
        with member(walk, walk.name()) as consumer:
            consumer.subscribe(walk.topic())
            began = threading.Event()

            class Told(RebalanceListener):
                def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
                    began.set()
                    time.sleep(0.3)

            consumer.subscribe(walk.topic(), Told())
            thread = threading.Thread(target=lambda: consumer.poll(A_WHILE))
            thread.start()
            assert began.wait(SECONDS)
            with pytest.raises(ConsumerStateError, match="two threads or tasks at a time"):
                consumer.poll(0)
            with pytest.raises(ConsumerStateError, match="another thread or task uses the consumer"):
                consumer.close()
            thread.join()
            assert consumer.poll(0) == []

    def test_what_is_read_and_sent_on_in_transactions_is_there_once(self, walk: Walk, protocol: str) -> None:
        walk.needs("InitProducerId", "TxnOffsetCommit")
        source, target, group = walk.topic(), walk.topic(), walk.name()
        walk.fill(source, 40)
        seen = 0
        with walk.producer(transactional_id=walk.name()) as producer:
            producer.init_transactions()
            for is_committed in (True, False, True, True, True):
                with member(
                    walk, group, auto_commit=False, max_poll_records=10, isolation="read_committed"
                ) as consumer:
                    consumer.subscribe(source)
                    records = drained(consumer, 10)
                    producer.begin_transaction()
                    for record in records:
                        producer.send(target, record.value)
                    producer.send_offsets(consumer.positions(), consumer.group_metadata())
                    if is_committed:
                        producer.commit_transaction()
                        seen += len(records)
                    else:
                        producer.abort_transaction()
        assert seen == 40
        with walk.consumer(isolation="read_committed", offset_reset="earliest") as consumer:
            consumer.assign(target)
            assert values(drained(consumer, 40)) == [*range(40)]
            assert consumer.poll(0.2) == []


def _is(walk: Walk, group: str, partition: TopicPartition, offset: int) -> bool:
    found = walk.admin.group_offsets(group).get(partition)
    return found is not None and found.offset == offset
