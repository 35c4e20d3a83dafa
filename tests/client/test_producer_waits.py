"""Nothing that a producer could do now waits for something else to happen."""

from __future__ import annotations

from contextlib import suppress

import pytest

from tagwire.client import Client, Producer
from tagwire.errors import TagwireError, UnsupportedVersionError

from .fake_broker import SERVED, FakeCluster

SOON = 60.0


def test_every_batch_is_failed_at_once_where_none_can_be_sent() -> None:
    with FakeCluster(served={api: served for api, served in SERVED.items() if api != 22}) as cluster:
        cluster.topic("t")
        with Client(cluster.bootstrap) as client:
            producer = Producer(client, batch_bytes=100)
            deliveries = [producer.send("t", bytes(60)) for _ in range(5)]
            for delivery in deliveries:
                with pytest.raises(UnsupportedVersionError, match="InitProducerId"):
                    delivery.result(SOON)
            with suppress(TagwireError):
                producer.close()


def test_a_batch_follows_at_once_on_one_that_the_broker_could_not_read() -> None:
    with FakeCluster(served={**SERVED, 0: (3, 6)}) as cluster:
        cluster.topic("t")
        with Client(cluster.bootstrap) as client:
            producer = Producer(client, batch_bytes=100, compression="zstd")
            deliveries = [producer.send("t", bytes(60)) for _ in range(5)]
            for delivery in deliveries:
                with pytest.raises(UnsupportedVersionError, match="zstd"):
                    delivery.result(SOON)
            with suppress(TagwireError):
                producer.close()
