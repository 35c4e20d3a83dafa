"""The client walks through the embedded broker and cluster as it does through all others (tests/interop has those)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tagwire.broker import Broker, Cluster

from .admin_walks import AdminWalks
from .consumer_walks import ConsumerWalks
from .transaction_walks import TransactionWalks
from .walks import Kind, Walks


@pytest.fixture(scope="module")
def broker() -> Iterator[Kind]:
    with Broker(auto_create_topics=False) as running:
        yield Kind("the embedded broker", running.bootstrap)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Kind]:
    with Cluster(3, auto_create_topics=False) as running:
        yield Kind("the embedded cluster", running.bootstrap)


class TestEmbedded(Walks, AdminWalks, TransactionWalks, ConsumerWalks):
    @pytest.fixture
    def kind(self, broker: Kind) -> Kind:
        return broker


class TestCluster(Walks, AdminWalks, TransactionWalks, ConsumerWalks):
    @pytest.fixture
    def kind(self, cluster: Kind) -> Kind:
        return cluster
