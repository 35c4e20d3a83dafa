"""Nothing that a producer could do now waits for something else to happen."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from threading import Event, Thread

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


def test_a_large_record_that_waits_for_room_is_not_kept_out_by_small_ones() -> None:
    with FakeCluster() as cluster:
        cluster.topic("t")
        with Producer(cluster.bootstrap, buffer_memory=20_000, batch_bytes=1000, linger=0, max_block=10) as producer:
            are_many, is_over = Event(), Event()

            def send_small_ones() -> None:
                for number in count():
                    if is_over.is_set():
                        break
                    producer.send("t", bytes(100))
                    if number > 200:
                        are_many.set()

            threads = [Thread(target=send_small_ones) for _ in range(4)]
            for thread in threads:
                thread.start()
            try:
                assert are_many.wait(SOON)
                for _ in range(3):
                    producer.send("t", bytes(15_000))
            finally:
                is_over.set()
                for thread in threads:
                    thread.join()
