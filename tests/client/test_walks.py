"""The client walks through the embedded broker and cluster as it does through all others (tests/interop has those).

Threads walk through the broker and tasks through the cluster; the other two pairs are for `make nightly`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest
import uvloop

from tagwire.broker import Broker, Cluster

from .admin_walks import AdminWalks
from .consumer_walks import ConsumerWalks
from .faces import tasks
from .transaction_walks import TransactionWalks
from .walks import Kind, Walks


@pytest.fixture(scope="module")
def broker() -> Iterator[Kind]:
    with Broker(auto_create_topics=False, group_heartbeat_interval_s=0.2) as running:
        yield Kind("the embedded broker", running.bootstrap)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Kind]:
    with Cluster(3, auto_create_topics=False, group_heartbeat_interval_s=0.2) as running:
        yield Kind("the embedded cluster", running.bootstrap)


class TestEmbedded(Walks, AdminWalks, TransactionWalks, ConsumerWalks):
    @pytest.fixture
    def kind(self, broker: Kind) -> Kind:
        return broker


@pytest.mark.nightly
class TestCluster(Walks, AdminWalks, TransactionWalks, ConsumerWalks):
    @pytest.fixture
    def kind(self, cluster: Kind) -> Kind:
        return cluster


class OfTasks(Walks, AdminWalks, TransactionWalks, ConsumerWalks):
    """The same, through the faces of tasks."""

    test_two_threads_at_a_time_are_refused = None  # type: ignore[assignment]  # tests/client/test_aio_consumer.py

    @pytest.fixture
    def kind(self, of_tasks: Kind) -> Kind:
        return of_tasks


@pytest.mark.nightly
class TestEmbeddedByTasks(OfTasks):
    @pytest.fixture(scope="class")
    @classmethod
    def of_tasks(cls, broker: Kind) -> Iterator[Kind]:
        with tasks("asyncio", asyncio.new_event_loop) as face:
            yield replace(broker, face=face)


class TestClusterByTasks(OfTasks):
    @pytest.fixture(scope="class")
    @classmethod
    def of_tasks(cls, cluster: Kind) -> Iterator[Kind]:
        with tasks("uvloop", uvloop.new_event_loop) as face:
            yield replace(cluster, face=face)
