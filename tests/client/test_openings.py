"""Connections that one asker began to open, and that another needs, or nobody any longer."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tagwire import messages
from tagwire.client import Client, Producer
from tagwire.client.scheduling import gather
from tagwire.errors import ConnectError, Error

from ..limits import wait_until
from .fake_broker import FakeCluster, Late

SOON = 60.0


@pytest.fixture
def pair() -> Iterator[FakeCluster]:
    with FakeCluster(2) as cluster:
        cluster.topic("t", 2)
        yield cluster


def begin_to_connect(cluster: FakeCluster, client: Client, greeting: Any) -> None:
    """Has the client begin to connect to broker 1, as broker 0 keeps silent for a while, and not wait for it."""
    client.metadata()
    cluster.script("Metadata", Late(1.3))
    cluster.script("ApiVersions", greeting)
    client.metadata()
    assert cluster.brokers[1].connections == 1


def is_opening(client: Client) -> bool:
    """Whether a connection of the client is still not ready, after what has arrived for it."""
    client.network.driver.look()
    return not all(connection.is_ready for connection in client.network.core.connections)


def refused_late(message: Any) -> Any:
    time.sleep(1)
    return messages.ApiVersionsResponse(error_code=Error.UNKNOWN_SERVER_ERROR)


def test_what_kept_a_connection_from_being_opened_earlier_says_nothing_of_now(pair: FakeCluster) -> None:
    with Client(pair.bootstrap) as client:
        begin_to_connect(pair, client, refused_late)
        wait_until(lambda: not is_opening(client))
        assert client.request(messages.MetadataRequest(topics=[]), node=1).cluster_id == "fake"


def test_a_connection_that_is_being_opened_is_waited_for_not_opened_twice(
    pair: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    with Client(pair.bootstrap) as client:
        begin_to_connect(pair, client, Late(1.5))
        assert client.request(messages.MetadataRequest(topics=[]), node=1).cluster_id == "fake"
        wait_until(lambda: not is_opening(client))
    assert pair.brokers[1].connections == 1
    assert not raised


def test_a_connection_that_broke_after_it_was_opened_for_nobody_is_opened_anew(pair: FakeCluster) -> None:
    with Client(pair.bootstrap) as client:
        begin_to_connect(pair, client, Late(0.6))
        wait_until(lambda: not is_opening(client))
        pair.brokers[1].drop()
        assert client.request(messages.MetadataRequest(topics=[]), node=1).cluster_id == "fake"


def test_a_connection_that_ends_after_an_answer_nobody_waited_for_is_opened_anew(pair: FakeCluster) -> None:
    with Client(pair.bootstrap) as client:
        client.metadata()
        client.network.connection(1, client.network.deadline())
        pair.script("Metadata", Late(1.5), Late(1.0))
        client.metadata()  # of broker 0, a second after that broker 1 was asked too
        time.sleep(1)
        for broker in pair.brokers:
            broker.drop()
        for node in (0, 1):
            assert client.request(messages.MetadataRequest(topics=[]), node=node).cluster_id == "fake"


def test_records_go_at_once_on_a_connection_that_was_opened_for_something_else(pair: FakeCluster) -> None:
    with Client(pair.bootstrap) as client, Producer(client) as producer:
        producer.send("t", b"v", partition=0).result(SOON)
        pair.topic("u")
        pair.script("Metadata", Late(1.3))
        pair.script("ApiVersions", Late(0.6))
        producer.send("u", b"v").result(SOON)
        wait_until(lambda: not is_opening(client))
        producer.send("t", b"v", partition=1).result(SOON)


def test_a_system_without_room_for_a_thread_resolves_without_one(
    pair: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start
    failures = iter([True])

    def scarce(thread: threading.Thread) -> None:
        if thread.name.startswith("tagwire-resolver") and next(failures, False):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", scarce)
    with Client(f"localhost:{pair.brokers[0].port}") as client:
        assert client.metadata().cluster_id == "fake"
    assert next(failures, None) is None


def test_a_name_server_that_hangs_holds_up_the_connection_that_needs_it_and_no_other(
    pair: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_up, answered = socket.getaddrinfo, threading.Event()

    def slow(host: Any, *others: Any, **more: Any) -> Any:
        if host == "slow.test":
            if more.get("flags"):
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            assert answered.wait(SOON)
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return look_up(host, *others, **more)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    told = pair._Metadata(messages.MetadataRequest(topics=[]), 0)
    told.brokers[1].host = "slow.test"
    pair.script("Metadata", *[lambda message: told] * 3)
    done: list[str] = []
    with Client(pair.bootstrap, timeout=SOON) as client:
        client.metadata()
        network = client.network.core

        async def connect_to_slow() -> None:
            with suppress(ConnectError):
                await network.connection(1, network.now() + 1)
            done.append("slow")

        async def ask_the_other() -> None:
            await network.request_any(messages.MetadataRequest(topics=[]), network.deadline())
            done.append("other")

        client.network.run(gather([connect_to_slow(), ask_the_other()], network.now))
        answered.set()
    assert done == ["other", "slow"]
