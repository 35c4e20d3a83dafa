"""The client walks through the embedded broker as it does through all others (tests/interop has those)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tagwire.broker import Broker

from .admin_walks import AdminWalks
from .consumer_walks import ConsumerWalks
from .transaction_walks import TransactionWalks
from .walks import Kind, Walks


@pytest.fixture(scope="module")
def kind() -> Iterator[Kind]:
    with Broker(auto_create_topics=False) as broker:
        yield Kind("the embedded broker", broker.bootstrap)


class TestEmbedded(Walks, AdminWalks, TransactionWalks, ConsumerWalks):
    pass
