"""Sessions of the embedded broker that end every second, under clients that are busy: in threads, and in a loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tagwire.broker import Broker
from tagwire.client import Consumer, Producer
from tagwire.client.aio import AsyncConsumer, AsyncProducer

SESSION_S = 1.2
PATIENCE = 20.0

LOGIN: dict[str, Any] = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "SCRAM-SHA-256",
    "sasl_plain_username": "alice",
    "sasl_plain_password": "wonderland",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(sasl="SCRAM-SHA-256", users={"alice": "wonderland"}, max_reauth_s=SESSION_S) as broker:
        yield broker


def renewed(*metrics: Any) -> int:
    """The fewest renewals of any of these clients, none of which has lost a connection."""
    told = [values for groups in metrics for values in groups.values() if "connection-count" in values]
    assert all(values["connection-close-total"] == 0 for values in told)
    return min(int(values["successful-reauthentication-total"]) for values in told)


def test_a_thread_renews_while_records_go_through(broker: Broker) -> None:
    sent, read, until = 0, [], time.monotonic() + PATIENCE
    with (
        Producer(broker.bootstrap, **LOGIN) as producer,
        Consumer(broker.bootstrap, group="threads", offset_reset="earliest", **LOGIN) as consumer,
    ):
        consumer.subscribe("threads")
        while renewed(producer.metrics(), consumer.metrics()) < 2 and time.monotonic() < until:
            producer.send("threads", b"%d" % sent)
            sent += 1
            read += [record.value for record in consumer.poll(0.02)]
        producer.flush()
        while len(read) < sent and time.monotonic() < until:
            read += [record.value for record in consumer.poll(0.1)]
        assert renewed(producer.metrics(), consumer.metrics()) >= 2
    assert read == [b"%d" % number for number in range(sent)]


def test_an_event_loop_renews_while_records_go_through(broker: Broker) -> None:
    async def run() -> None:
        sent, read, until = 0, [], time.monotonic() + PATIENCE
        async with (
            AsyncProducer(broker.bootstrap, **LOGIN) as producer,
            AsyncConsumer(broker.bootstrap, group="tasks", offset_reset="earliest", **LOGIN) as consumer,
        ):
            await consumer.subscribe("tasks")
            while renewed(producer.metrics(), consumer.metrics()) < 2 and time.monotonic() < until:
                await producer.send("tasks", b"%d" % sent)
                sent += 1
                read += [record.value for record in await consumer.poll(0.02)]
            await producer.flush()
            while len(read) < sent and time.monotonic() < until:
                read += [record.value for record in await consumer.poll(0.1)]
            assert renewed(producer.metrics(), consumer.metrics()) >= 2
        assert read == [b"%d" % number for number in range(sent)]

    asyncio.run(run())
