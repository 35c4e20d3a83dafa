"""One broker and one Spark session for all tests of this room: they take seconds to start."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING

import pytest

from ..limits import BEFORE_A_TEST_IS_STOPPED
from .renewal import RunningSpark, end_java, give_up, run_until_workers_are_in_time, was_cut_short

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tagwire.broker import Broker
    from tagwire.records import Record

# Sessions here live for seconds: compiling less halves the time that Java takes.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
BEFORE_A_TEST_IS_STOPPED.append(end_java)

Produce = Callable[[str, dict[int, Sequence["Record"]]], None]


@pytest.fixture(scope="session")
def broker(tmp_path_factory) -> Iterator[Broker]:
    from tagwire.broker import Broker

    with Broker(tmp_path_factory.mktemp("broker"), fsync="never") as running:
        yield running


@pytest.fixture(scope="session")
def _running(tmp_path_factory) -> Iterator[RunningSpark]:
    running = RunningSpark(tmp_path_factory.mktemp("spark"))
    yield running
    running.stop()


@pytest.fixture
def spark(_running) -> SparkSession:
    """A session on this machine. One for all tests, until one of them is cut short: the next has a new one."""
    return _running.session()


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    run_until_workers_are_in_time(item, nextitem)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    if call.excinfo is not None and was_cut_short(call.excinfo.value):
        give_up()  # before its fixtures end: they would wait for the answer that the test did not get
    return (yield)


@pytest.fixture(scope="session")
def _numbers():
    return count()


@pytest.fixture
def topic(broker, _numbers) -> str:
    """A new topic with two partitions."""
    from tagwire.client import Admin, NewTopic

    name = f"topic-{next(_numbers)}"
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(name, num_partitions=2, configs={"retention.ms": "-1"})])
    return name


@pytest.fixture
def produce(broker) -> Produce:
    """Appends records to the partitions of a topic."""
    from tagwire.client import Producer

    def send(topic: str, partitions: dict[int, Sequence[Record]]) -> None:
        with Producer(broker.bootstrap) as producer:
            for partition, records in partitions.items():
                for record in records:
                    producer.send(
                        topic,
                        record.value,
                        key=record.key,
                        headers=record.headers,
                        timestamp=record.timestamp,
                        partition=partition,
                    )

    return send
