"""A call that is interrupted, anywhere, leaves a client whose next call is answered with what it asked for."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import pytest

from tagwire import messages
from tagwire.client import LATEST, Client, Producer
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.core_thread import CoreThread
from tagwire.client.in_flight_request import InFlightRequest
from tagwire.client.producing.blocking_completion import BatchCompletion
from tagwire.client.producing.producer_batch import ProducerBatch
from tagwire.rpc import Connection

from .fake_broker import Close, FakeCluster
from .stored import values_in


@pytest.mark.parametrize("step", ["send", "received", "next_event"])
def test_the_next_call_after_an_interrupted_one_gets_its_own_answer(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    whole = getattr(Connection, step)
    left = [0]

    def interrupted(connection: Connection, *arguments: Any) -> Any:
        result = whole(connection, *arguments)
        if connection.role == "client" and left[0]:
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt
        return result

    monkeypatch.setattr(Connection, step, interrupted)
    with FakeCluster() as cluster, Client(cluster.bootstrap, timeout=10) as client:
        cluster.topic("t")
        client.metadata()
        for ask in (client.metadata, lambda: client.request(messages.MetadataRequest(topics=None))):
            left[0] = 1
            with pytest.raises(KeyboardInterrupt):
                ask()
            assert client.list_offsets({("t", 0): LATEST}) == {("t", 0): 0}
            assert list(client.metadata().topics) == ["t"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", ["attach", "resolved", "connected", "space", "received", "output", "written"])
def test_a_connection_whose_opening_was_interrupted_is_opened_anew(
    monkeypatch: pytest.MonkeyPatch, step: str, when: str
) -> None:
    whole = getattr(BrokerConnection, step)
    left = [True]

    def interrupted(connection: BrokerConnection, *arguments: Any) -> Any:
        is_now = bool(left and left.pop())
        if is_now and when == "before":
            raise KeyboardInterrupt
        result = whole(connection, *arguments)
        if is_now:
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(BrokerConnection, step, interrupted)
    with FakeCluster() as cluster, Client(cluster.bootstrap, timeout=10) as client:
        with pytest.raises(KeyboardInterrupt):
            client.metadata()
        before = time.monotonic()
        assert client.metadata().cluster_id == "fake"
        assert time.monotonic() - before < 9  # what is left of the other one is not waited for


def test_a_record_after_an_interrupted_send_goes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeCluster() as cluster, Producer(cluster.bootstrap) as producer:
        cluster.topic("t")
        producer.send("t", b"first").result(10)
        with monkeypatch.context() as patched:

            def interrupted(thread: CoreThread) -> None:
                raise KeyboardInterrupt

            patched.setattr(CoreThread, "wakeup", interrupted)
            with pytest.raises(KeyboardInterrupt):
                producer.send("t", b"interrupted")
        producer.send("t", b"next").result(10)
    assert values_in(cluster.topics["t"][0]) == [b"first", b"next"]


def test_a_send_that_was_interrupted_before_its_record_was_kept_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with FakeCluster() as cluster, Producer(cluster.bootstrap) as producer:
        cluster.topic("t")
        producer.send("t", b"first").result(10)
        with monkeypatch.context() as patched:

            def interrupted(batch: ProducerBatch, *_: Any) -> int:
                raise KeyboardInterrupt

            patched.setattr(ProducerBatch, "append", interrupted)
            with pytest.raises(KeyboardInterrupt):
                producer.send("t", b"interrupted")
        producer.flush(10)
        producer.send("t", b"next").result(10)
    assert values_in(cluster.topics["t"][0]) == [b"first", b"next"]


def test_the_socket_of_a_connection_whose_end_was_interrupted_is_closed_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with FakeCluster() as cluster, Client(cluster.bootstrap, timeout=10) as client:
        client.metadata()
        cluster.script("Metadata", Close())
        opened = len(os.listdir("/dev/fd"))
        with monkeypatch.context() as patched:

            def interrupted(request: InFlightRequest[Any], *_: Any, **__: Any) -> None:
                raise KeyboardInterrupt

            patched.setattr(InFlightRequest, "settle", interrupted)
            with pytest.raises(KeyboardInterrupt):
                client.metadata()
        assert len(os.listdir("/dev/fd")) <= opened - 2  # the broker's end, and this one
        assert client.metadata().cluster_id == "fake"


def test_an_interrupt_of_a_thread_that_waits_for_deliveries_takes_the_lock_from_no_other() -> None:
    completion = BatchCompletion(lambda: None)
    failures: list[BaseException] = []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which a background job has ignored

    def complete() -> None:
        try:
            with completion:
                completion.notify_all()
                time.sleep(0.1)  # the other one is awake, and takes the lock back
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                time.sleep(0.1)
        except RuntimeError as error:
            failures.append(error)

    thread = threading.Thread(target=complete)
    try:
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            with completion:
                thread.start()
                completion.wait(10)
            thread.join()
        thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert not failures
