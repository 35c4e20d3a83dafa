"""A broker that hangs stops what is for it, and nothing else."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tagwire import messages
from tagwire.client import Client, Producer
from tagwire.client.broker_connection import WRITE_BUFFER
from tagwire.errors import Error, RequestTimeoutError, TagwireError

from ..certificates import Certificates
from .fake_broker import FakeCluster, Late, Silence, Stalled
from .produce_responses import TRANSACTIONS, added, committed, coordinated_by

MIB = 1024 * 1024

# A client that waits for the broker that hangs waits this long (seconds); others must not wait for a part of it.
TIMEOUT = 240.0
SOON = 60.0


@pytest.fixture(params=["plain", "TLS"])
def pair(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[tuple[FakeCluster, dict[str, str]]]:
    tls = certificates.server() if request.param == "TLS" else None
    options = {} if tls is None else {"security_protocol": "SSL", "ssl_cafile": str(certificates.authority)}
    with FakeCluster(2, tls=tls) as cluster:
        cluster.topic("t", 2)
        yield cluster, options


def serve_transactions(cluster: FakeCluster) -> None:
    """Has the last broker coordinate transactions that all go well."""
    last = cluster.brokers[-1]
    answers = {
        "FindCoordinator": coordinated_by(last.node, last.port),
        "AddPartitionsToTxn": added,
        "EndTxn": lambda message: messages.EndTxnResponse(),
        "AddOffsetsToTxn": lambda message: messages.AddOffsetsToTxnResponse(),
        "TxnOffsetCommit": committed,
    }
    cluster.serve(TRANSACTIONS, answers)


def stall(cluster: FakeCluster, producer: Producer) -> list[Any]:
    """Has the leader of partition 1 stop reading in the middle of more than sockets take; returns what is on its way
    there."""
    for partition in (0, 1):
        producer.send("t", b"first", partition=partition).result(SOON)
    stalled = Stalled()
    cluster.script("Produce", stalled)
    producer.send("t", b"second", partition=1)
    assert stalled.begun.wait(SOON)
    return [producer.send("t", bytes(MIB), partition=1) for _ in range(24)]


def test_records_for_another_broker_pass_one_that_stopped_reading(pair: tuple[FakeCluster, dict[str, str]]) -> None:
    cluster, options = pair
    with Client(cluster.bootstrap, timeout=TIMEOUT, **options) as client:
        producer = Producer(client, batch_bytes=4 * MIB, buffer_memory=64 * MIB)
        stuck = stall(cluster, producer)
        for number in range(20):
            producer.send("t", b"%d" % number, partition=0).result(SOON)
        assert not any(delivery.done() for delivery in stuck)
        with pytest.raises(TagwireError):
            producer.close(0.1)


def test_a_topic_is_found_while_a_broker_that_was_asked_before_hangs(pair: tuple[FakeCluster, dict[str, str]]) -> None:
    cluster, options = pair
    with Client(cluster.bootstrap, timeout=TIMEOUT, **options) as client:
        producer = Producer(client, batch_bytes=4 * MIB, buffer_memory=64 * MIB)
        stall(cluster, producer)
        cluster.topic("u", 1)
        producer.send("u", b"v").result(SOON)
        with pytest.raises(TagwireError):
            producer.close(0.1)


def test_metadata_comes_from_another_broker_when_one_keeps_silent() -> None:
    with FakeCluster(2) as cluster, Client(cluster.bootstrap, timeout=TIMEOUT) as client:
        client.metadata()
        cluster.script("Metadata", Silence())
        before = time.monotonic()
        assert client.metadata().cluster_id == "fake"
        assert time.monotonic() - before < SOON


def test_a_producer_id_comes_from_another_broker_when_one_keeps_silent() -> None:
    with FakeCluster(2) as cluster, Client(cluster.bootstrap, timeout=TIMEOUT) as client:
        cluster.topic("t")[0].leader = 1  # which is not the one that is connected to first
        cluster.script("InitProducerId", Silence())
        with Producer(client) as producer:
            producer.send("t", b"v").result(SOON)


def test_the_only_broker_is_waited_for_as_long_as_the_client_may_take() -> None:
    with FakeCluster() as cluster, Client(cluster.bootstrap, timeout=1.5) as client:
        client.metadata()
        cluster.script("Metadata", Silence())
        with pytest.raises(RequestTimeoutError, match=r"did not answer Metadata v12 within 1\.\d s"):
            client.metadata()


def test_records_are_delivered_while_the_coordinator_takes_its_time() -> None:
    with FakeCluster(2) as cluster:
        cluster.topic("t", 2)
        serve_transactions(cluster)
        with Client(cluster.bootstrap, timeout=TIMEOUT) as client:
            producer = Producer(client, transactional_id="x")
            producer.init_transactions()
            producer.begin_transaction()
            producer.send("t", b"first", partition=0).result(SOON)
            cluster.script("AddOffsetsToTxn", Late(3.0))
            offsets = threading.Thread(target=producer.send_offsets, args=({("t", 0): 1}, "group"))
            offsets.start()
            while not cluster.requests("AddOffsetsToTxn"):
                time.sleep(0.01)
            producer.send("t", b"second", partition=0).result(SOON)
            assert offsets.is_alive()
            offsets.join()
            producer.commit_transaction()
            producer.close()


def test_a_producer_closes_while_its_coordinator_is_to_be_left_alone_for_long() -> None:
    with FakeCluster() as cluster:
        cluster.topic("t")
        serve_transactions(cluster)
        with Client(cluster.bootstrap, timeout=1.0) as client:
            producer = Producer(client, transactional_id="x")
            producer.init_transactions()
            producer.begin_transaction()
            producer.send("t", b"first", partition=0).result(SOON)
            refusal = messages.AddOffsetsToTxnResponse(
                throttle_time_ms=int(TIMEOUT * 1000), error_code=Error.CONCURRENT_TRANSACTIONS
            )
            cluster.script("AddOffsetsToTxn", lambda message: refusal)

            def commit_offsets() -> None:
                with suppress(TagwireError):
                    producer.send_offsets({("t", 0): 1}, "group")

            offsets = threading.Thread(target=commit_offsets)
            offsets.start()
            while not cluster.requests("AddOffsetsToTxn"):
                time.sleep(0.01)
            time.sleep(0.5)  # until it is asked again
            producer.close(abort=False)
            offsets.join(SOON)
            assert not offsets.is_alive()


def test_a_transactional_producer_closes_in_time_though_a_broker_keeps_what_it_was_sent() -> None:
    with FakeCluster() as cluster:
        cluster.topic("t")
        serve_transactions(cluster)
        with Client(cluster.bootstrap, timeout=TIMEOUT) as client:
            producer = Producer(client, transactional_id="x")
            producer.init_transactions()
            producer.begin_transaction()
            cluster.script("Produce", Silence())
            delivery = producer.send("t", b"v")
            while not cluster.requests("Produce"):
                time.sleep(0.01)
            before = time.monotonic()
            with pytest.raises(RequestTimeoutError):
                producer.close(0.5)
            assert time.monotonic() - before < SOON
            assert delivery.exception(0) is not None
            assert not cluster.requests("EndTxn")  # while it may still be written


def test_a_connection_keeps_no_more_than_its_buffer_and_one_request() -> None:
    with FakeCluster() as cluster, Client(cluster.bootstrap, timeout=TIMEOUT) as client:
        cluster.topic("t")
        connection = client.network.connection(None, client.network.deadline())
        kind = messages.ProduceRequest
        data = kind.PartitionProduceData(index=0, records=bytes(WRITE_BUFFER // 2))
        request = kind(acks=-1, topic_data=[kind.TopicProduceData(name="t", partition_data=[data])])
        cluster.script("Produce", Stalled())
        kept: list[int] = []

        def fill() -> None:
            for _ in range(200):
                client.network.run(client.network.core.put(connection, request, time.monotonic() + 0.3))
                kept.append(connection.unwritten_bytes)

        with pytest.raises(RequestTimeoutError, match=r"did not take Produce"):
            fill()
        assert WRITE_BUFFER < max(kept) <= 2 * WRITE_BUFFER
