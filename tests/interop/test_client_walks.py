"""The client walks through Kafka's own brokers, release by release, and through librdkafka's mock cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer as RdProducer

from ..client.admin_walks import AdminWalks
from ..client.consumer_walks import ConsumerWalks
from ..client.faces import tasks
from ..client.transaction_walks import TransactionWalks
from ..client.walks import Kind, Walks
from .real_node import SECONDS, RealNode


class TestKafka(Walks, AdminWalks, TransactionWalks, ConsumerWalks):
    @pytest.fixture(scope="session")
    @classmethod
    def kind(cls, node: RealNode) -> Kind:
        return Kind("Kafka", node.address())


class TestKafkaByTasks(Walks, AdminWalks, TransactionWalks, ConsumerWalks):
    """The same, through the faces of tasks."""

    test_two_threads_at_a_time_are_refused = None  # type: ignore[assignment]  # tests/client/test_aio_consumer.py

    @pytest.fixture(scope="session")
    @classmethod
    def kind(cls, node: RealNode) -> Iterator[Kind]:
        with tasks("asyncio", asyncio.new_event_loop) as face:
            yield Kind("Kafka", node.address(), face=face)


class TestMock(Walks, AdminWalks):
    """Three brokers in memory, which end with the producer that they belong to."""

    @pytest.fixture(scope="class")
    @classmethod
    def kind(cls) -> Iterator[Kind]:
        owner = RdProducer({"bootstrap.servers": "127.0.0.1:1", "test.mock.num.brokers": 3, "log_level": 0})
        brokers = owner.list_topics(timeout=SECONDS).brokers.values()
        # From version 9 on its answers to Metadata have a byte too many at their end. So nobody tells the topic ids
        # that newer fetches name.
        exclude = {"Metadata": "9+", "Fetch": "13+"}
        bootstrap = ",".join(f"{at.host}:{at.port}" for at in brokers)
        yield Kind("librdkafka's mock cluster", bootstrap, exclude, finds_times=False)
        del owner
