"""How much Python a record costs that comes alone, counted in calls: what is done for each bounds how soon it is there.

A count does not depend on how fast or how busy a machine is. Each bound is about a quarter above what was counted when
it was set (docs/performance.md, "From `send` to `poll`").
"""

from __future__ import annotations

import statistics
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from tagwire.broker import Broker
from tagwire.client import Admin, Consumer, Producer, Reader

RECORDS = 25
WARM_UP = 5
SECONDS = 30.0


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(fsync="never") as running:
        yield running


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    name = str(request.node.name)
    with Admin(broker.bootstrap) as admin:
        admin.create_topics(name)
    return name


@pytest.fixture
def made() -> Iterator[Counter[str]]:
    """How many Python functions each thread has called, by its name; of this thread while `counted`."""
    found: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            found[threading.current_thread().name] += 1

    threading.setprofile(note)
    try:
        yield found
    finally:
        threading.setprofile(None)


def counted(work: Callable[[], object]) -> int:
    """How many Python functions `work` calls in this thread."""
    found = 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal found
        found += event == "call"

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def usual(each: Callable[[], int]) -> float:
    """What `each` gives when it is done over and over: now and then a heartbeat, say, stands beside it."""
    return statistics.median([each() for _ in range(WARM_UP + RECORDS)][WARM_UP:])


def test_the_producers_thread_makes_no_more_calls_for_a_record_than_it_did(
    broker: Broker, topic: str, made: Counter[str]
) -> None:
    with Producer(broker.bootstrap) as producer:

        def each() -> int:
            before = made["tagwire-producer"]
            producer.send(topic, b"value").result(SECONDS)
            return made["tagwire-producer"] - before

        assert 0 < usual(each) <= 250


def test_the_consumers_thread_makes_no_more_calls_for_a_record_than_it_did(
    broker: Broker, topic: str, made: Counter[str]
) -> None:
    with Producer(broker.bootstrap) as producer, Consumer(broker.bootstrap, group=topic) as consumer:
        await_partitions(consumer, topic)

        def each() -> int:
            before = made["tagwire-consumer"]
            producer.send(topic, b"value")
            assert len(consumer.poll(SECONDS)) == 1
            return made["tagwire-consumer"] - before

        assert 0 < usual(each) <= 200


def test_two_polls_of_which_one_gives_a_record_make_no_more_calls_than_they_did(broker: Broker, topic: str) -> None:
    with Producer(broker.bootstrap) as producer, Consumer(broker.bootstrap, group=topic) as consumer:
        await_partitions(consumer, topic)

        def each() -> int:
            found = counted(lambda: consumer.poll())
            producer.send(topic, b"value")
            return found + counted(lambda: consumer.poll(SECONDS))

        assert 0 < usual(each) <= 160


def test_a_reader_makes_no_more_calls_for_a_record_than_it_did(broker: Broker, topic: str) -> None:
    with (
        Producer(broker.bootstrap) as producer,
        Reader(broker.bootstrap, {topic: "earliest"}, stop_at_end=False) as reader,
    ):
        records = reader.records()

        def each() -> int:
            producer.send(topic, b"value").result(SECONDS)
            return counted(lambda: next(records))

        assert 0 < usual(each) <= 245


def await_partitions(consumer: Consumer, topic: str) -> None:
    consumer.subscribe(topic)
    while not consumer.lag():
        consumer.poll(0.1)
