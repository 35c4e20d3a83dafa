"""One broker and one Spark session for all tests of this room: they take seconds to start."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tagwire.broker import Broker
    from tagwire.records import Record

# Sessions here live for seconds: compiling less halves the time that Java takes.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

Produce = Callable[[str, dict[int, Sequence["Record"]]], None]


@pytest.fixture(scope="session")
def broker(tmp_path_factory) -> Iterator[Broker]:
    from tagwire.broker import Broker

    with Broker(tmp_path_factory.mktemp("broker"), fsync="never") as running:
        yield running


@pytest.fixture(scope="session")
def spark(tmp_path_factory) -> Iterator[SparkSession]:
    from tagwire.spark.session import session

    with session(tmp_path_factory.mktemp("spark") / "spark.log") as running:
        yield running


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
