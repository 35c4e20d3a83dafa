"""What is committed where the application stores offsets itself (enable.auto.offset.store=false): by the same steps
librdkafka's consumer and ours commit the same, in a group each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

import confluent_kafka
import pytest

from tagwire.broker import Broker
from tagwire.client import Admin, Consumer, NewTopic, Producer, RebalanceListener

from ..limits import wait_until

SECONDS: Final = 20
COUNT: Final = 10  # in each of two partitions
NOT_ASSIGNED: Final = (confluent_kafka.KafkaError._STATE, confluent_kafka.KafkaError._UNKNOWN_PARTITION)
NOTHING: Final[dict[int, int]] = {}


class Storer(Protocol):
    """A consumer that stores offsets of topic "flights", by partition."""

    def subscribe(self, on_revoked: Callable[[], object] | None = None) -> None: ...
    def assign(self, *partitions: int) -> None: ...
    def take(self, count: int) -> None: ...
    def store(self, partition: int, offset: int, topic: str = "flights") -> bool:
        """Whether it is taken."""

    def seek(self, partition: int, offset: int) -> None: ...
    def commit(self) -> None: ...
    def unsubscribe(self) -> None: ...
    def close(self) -> None: ...


class OfLibrdkafka:
    def __init__(self, properties: dict[str, Any]) -> None:
        self._consumer = confluent_kafka.Consumer(properties)

    def subscribe(self, on_revoked: Callable[[], object] | None = None) -> None:
        heard = {} if on_revoked is None else {"on_revoke": lambda consumer, partitions: on_revoked()}
        self._consumer.subscribe(["flights"], **heard)

    def assign(self, *partitions: int) -> None:
        self._consumer.assign([confluent_kafka.TopicPartition("flights", each) for each in partitions])

    def take(self, count: int) -> None:
        taken = 0

        def is_all() -> bool:
            nonlocal taken
            taken += len(self._consumer.consume(count - taken, 0.1))
            return taken == count

        wait_until(is_all, SECONDS)

    def store(self, partition: int, offset: int, topic: str = "flights") -> bool:
        try:
            self._consumer.store_offsets(offsets=[confluent_kafka.TopicPartition(topic, partition, offset)])
        except confluent_kafka.KafkaException as refused:
            if refused.args[0].code() not in NOT_ASSIGNED:
                raise
            return False
        return True

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(confluent_kafka.TopicPartition("flights", partition, offset))

    def commit(self) -> None:
        try:
            self._consumer.commit(asynchronous=False)
        except confluent_kafka.KafkaException as refused:
            if refused.args[0].code() != confluent_kafka.KafkaError._NO_OFFSET:  # there is nothing to commit
                raise

    def unsubscribe(self) -> None:
        self._consumer.unsubscribe()
        wait_until(lambda: self._consumer.poll(0.1) is None and not self._consumer.assignment(), SECONDS)

    def close(self) -> None:
        self._consumer.close()


class Ours:
    def __init__(self, properties: dict[str, Any]) -> None:
        self._consumer = Consumer(properties)

    def subscribe(self, on_revoked: Callable[[], object] | None = None) -> None:
        class Listener(RebalanceListener):
            def on_partitions_revoked(self, partitions: object) -> None:
                if on_revoked is not None:
                    on_revoked()

        self._consumer.subscribe("flights", Listener())

    def assign(self, *partitions: int) -> None:
        self._consumer.assign([("flights", each) for each in partitions])

    def take(self, count: int) -> None:
        assert len(self._consumer.consume(count, SECONDS)) == count

    def store(self, partition: int, offset: int, topic: str = "flights") -> bool:
        try:
            self._consumer.store_offsets({(topic, partition): offset})
        except KeyError:
            return False
        return True

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(("flights", partition), offset)

    def commit(self) -> None:
        self._consumer.commit()

    def unsubscribe(self) -> None:
        self._consumer.unsubscribe()

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker() as broker:
        with Admin(broker.bootstrap) as admin:
            admin.create_topics([NewTopic("flights", num_partitions=2)])
        with Producer(broker.bootstrap) as producer:
            for number in range(2 * COUNT):
                producer.send("flights", b"%d" % number, partition=number % 2)
        yield broker.bootstrap


Committed = Callable[[], dict[int, int]]
Steps = Callable[[Storer, Committed], list[object]]


def what_is_given_is_not_stored(consumer: Storer, committed: Committed) -> list[object]:
    consumer.subscribe()
    consumer.take(2 * COUNT)
    consumer.commit()
    return [committed()]


def stored_and_committed(consumer: Storer, committed: Committed) -> list[object]:
    consumer.subscribe()
    consumer.take(2 * COUNT)
    taken = [consumer.store(0, 4), consumer.store(1, 7)]
    consumer.commit()
    return [*taken, committed()]


def stored_before_it_is_known_where_to_begin(consumer: Storer, committed: Committed) -> list[object]:
    consumer.assign(0)
    taken = consumer.store(0, 4)
    consumer.take(COUNT)
    consumer.commit()
    return [taken, committed()]


def stored_beyond_what_was_given(consumer: Storer, committed: Committed) -> list[object]:
    consumer.subscribe()
    consumer.take(2 * COUNT)
    consumer.store(0, COUNT + 5)
    consumer.commit()
    return [committed()]


def stored_of_what_is_not_assigned(consumer: Storer, committed: Committed) -> list[object]:
    before = consumer.store(0, 4)
    consumer.assign(0)
    consumer.take(COUNT)
    return [before, consumer.store(1, 4), consumer.store(0, 4, "delays"), consumer.store(0, 4)]


def stored_of_what_is_assigned_no_more(consumer: Storer, committed: Committed) -> list[object]:
    consumer.subscribe()
    consumer.take(2 * COUNT)
    consumer.store(0, 4)
    consumer.unsubscribe()
    return [committed(), consumer.store(0, 7)]


def stored_when_partitions_go(consumer: Storer, committed: Committed) -> list[object]:
    taken: list[object] = []
    consumer.subscribe(lambda: taken.append(consumer.store(0, 6)))
    consumer.take(2 * COUNT)
    consumer.store(0, 4)
    consumer.unsubscribe()
    return [*taken, committed()]


def stored_at_last_when_it_is_closed(consumer: Storer, committed: Committed) -> list[object]:
    taken: list[object] = []
    consumer.subscribe(lambda: taken.append(consumer.store(0, 6)))
    consumer.take(2 * COUNT)
    consumer.close()
    return taken


def stored_less_after_going_back(consumer: Storer, committed: Committed) -> list[object]:
    consumer.subscribe()
    consumer.take(2 * COUNT)
    consumer.store(0, 8)
    consumer.commit()
    before = committed()
    consumer.seek(0, 2)
    consumer.take(1)
    return [before, consumer.store(0, 3)]


def stored_less_before_anything_is_committed(consumer: Storer, committed: Committed) -> list[object]:
    consumer.subscribe()
    consumer.take(2 * COUNT)
    consumer.store(0, 8)
    consumer.store(0, 3)
    consumer.commit()
    return [committed()]


def assigned_anew_beside_another(consumer: Storer, committed: Committed) -> list[object]:
    consumer.assign(0)
    consumer.take(COUNT)
    consumer.store(0, 4)
    consumer.assign(0, 1)
    return [committed()]


CASES: Final[list[tuple[Steps, list[object], dict[int, int]]]] = [
    (what_is_given_is_not_stored, [NOTHING], NOTHING),
    (stored_and_committed, [True, True, {0: 4, 1: 7}], {0: 4, 1: 7}),
    (stored_before_it_is_known_where_to_begin, [True, {0: 4}], {0: 4}),
    (stored_beyond_what_was_given, [{0: 15}], {0: 15}),
    (stored_of_what_is_not_assigned, [False, False, False, True], {0: 4}),
    (stored_of_what_is_assigned_no_more, [{0: 4}, False], {0: 4}),
    (stored_when_partitions_go, [True, {0: 6}], {0: 6}),
    (stored_at_last_when_it_is_closed, [True], {0: 6}),
    (stored_less_after_going_back, [{0: 8}, True], {0: 3}),
    (stored_less_before_anything_is_committed, [{0: 3}], {0: 3}),
    (assigned_anew_beside_another, [{0: 4}], {0: 4}),
]


@pytest.mark.parametrize("client", [OfLibrdkafka, Ours])
@pytest.mark.parametrize(("steps", "seen", "at_last"), CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_what_is_stored_is_committed_as_by_librdkafka(
    steps: Steps, seen: list[object], at_last: dict[int, int], client: type[Any], bootstrap: str
) -> None:
    """`seen`: what the steps tell; `at_last`: what is committed when the consumer is closed."""
    consumer, committed = storing(client, steps, bootstrap)
    try:
        assert steps(consumer, committed) == seen
    finally:
        consumer.close()
    assert committed() == at_last


def stored_less_without_going_back(consumer: Storer, committed: Committed) -> list[object]:
    consumer.subscribe()
    consumer.take(2 * COUNT)
    consumer.store(0, 8)
    consumer.commit()
    consumer.store(0, 3)
    consumer.commit()
    return [committed()]


@pytest.mark.parametrize(("client", "at_last"), [(OfLibrdkafka, 3), (Ours, 8)])
def test_what_is_stored_late_takes_no_offset_back_where_librdkafkas_consumer_does_at_the_end(
    client: type[Any], at_last: int, bootstrap: str
) -> None:
    """librdkafka commits the less of it when partitions go, though never before."""
    consumer, committed = storing(client, stored_less_without_going_back, bootstrap)
    try:
        assert stored_less_without_going_back(consumer, committed) == [{0: 8}]
    finally:
        consumer.close()
    assert committed() == {0: at_last}


def storing(client: type[Any], steps: Steps, bootstrap: str) -> tuple[Storer, Committed]:
    """A consumer of a group of its own, and what that has committed, by partition."""
    group = f"{steps.__name__}-{client.__name__}"

    def committed() -> dict[int, int]:
        with Admin(bootstrap) as admin:
            return {at.partition: offset.offset for at, offset in admin.group_offsets(group).items()}

    properties = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.offset.store": "false",
        "auto.commit.interval.ms": "3600000",
    }
    return client(properties), committed
