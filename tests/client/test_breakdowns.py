"""What is told where the work of a consumer or a producer goes wrong as none should: why, by every call."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tagwire.client import Consumer, Producer
from tagwire.client.aio import AsyncConsumer, AsyncProducer
from tagwire.client.consuming.consumer_work import ConsumerWork
from tagwire.client.fetching import Fetcher
from tagwire.client.producing.sender import Sender
from tagwire.errors import TagwireError

from .fake_broker import FakeCluster
from .test_aio_client import Main, run  # noqa: F401

CONSUMER = "the consumer broke down: ZeroDivisionError: by nought"
PRODUCER = "the producer broke down: ZeroDivisionError: by nought"


def break_down(*_: object) -> None:
    raise ZeroDivisionError("by nought")


async def break_down_beside(*_: object) -> None:
    raise ZeroDivisionError("by nought")


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as one:
        one.topic("t")
        yield one


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fetcher, "step", break_down)
    monkeypatch.setattr(Sender, "until", break_down)


@pytest.mark.usefixtures("broken")
def test_every_call_of_a_consumer_that_broke_down_says_why(cluster: FakeCluster) -> None:
    with Consumer(cluster.bootstrap) as consumer:
        with pytest.raises(TagwireError, match=CONSUMER):
            consumer.assign("t")
        with pytest.raises(TagwireError, match=CONSUMER):
            consumer.end_offsets("t")


@pytest.mark.usefixtures("broken")
def test_every_call_of_a_producer_that_broke_down_says_why(cluster: FakeCluster) -> None:
    producer = Producer(cluster.bootstrap)
    for _ in range(2):
        with pytest.raises(TagwireError, match=PRODUCER):
            producer.send("t", b"v")
    with pytest.raises(TagwireError, match=PRODUCER):
        producer.identity()
    producer.close()


@pytest.mark.usefixtures("broken")
def test_every_call_of_the_faces_of_tasks_says_why(cluster: FakeCluster, run: Main) -> None:  # noqa: F811
    async def main() -> None:
        async with AsyncConsumer(cluster.bootstrap) as consumer:
            for _ in range(2):
                with pytest.raises(TagwireError, match=CONSUMER):
                    await consumer.assign("t")
        producer = AsyncProducer(cluster.bootstrap)
        for _ in range(2):
            with pytest.raises(TagwireError, match=PRODUCER):
                await producer.send("t", b"v")
        await producer.close()

    run(main)


def test_every_poll_says_why_where_a_part_of_a_consumers_work_broke_down(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ConsumerWork, "_find", break_down_beside)
    with Consumer(cluster.bootstrap) as consumer:
        consumer.assign("t")
        for _ in range(2):
            with pytest.raises(TagwireError, match=CONSUMER):
                consumer.poll(10)
