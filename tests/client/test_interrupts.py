"""A call that is interrupted, anywhere, leaves a client whose next call is answered with what it asked for."""

from __future__ import annotations

import dis
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import pytest

from tagwire import messages
from tagwire.broker import Broker
from tagwire.client import LATEST, Client, Consumer, Producer
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.core_thread import CoreThread
from tagwire.client.in_flight_request import InFlightRequest
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


class Steps:
    """Interrupts the thread where CPython may: behind one of its calls or its jumps back, in whichever file but this
    one.

    Attributes:
        left: how many of them go by before. ran: how many did.
    """

    def __init__(self, left: int = sys.maxsize) -> None:
        self.left = left
        self.ran = 0
        self._is_behind: dict[FrameType, bool] = {}

    @contextmanager
    def counted(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename == __file__:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _step(self, frame: FrameType, event: str, argument: object) -> Any:
        if event == "exception":  # a handler begins without a look at signals
            self._is_behind[frame] = False
        elif event == "opcode":
            if self._is_behind.get(frame):
                self.ran += 1
                if self.ran > self.left:
                    sys.settrace(None)
                    self.left = sys.maxsize
                    raise KeyboardInterrupt
            name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            self._is_behind[frame] = name in ("RESUME", "JUMP_BACKWARD") or (
                name.startswith("CALL") and not name.startswith("CALL_INTRINSIC")
            )
        return self._step


def interrupted_everywhere(call: Callable[[], object]) -> None:
    """Has a call interrupted at each of its steps, and each time made once more, which has to work."""
    for _ in range(2):  # from CPython 3.12 on single instructions are told once some were asked for
        steps = Steps()
        with steps.counted():
            call()
    assert steps.ran > 10, "no step was seen"
    for left in range(steps.ran):
        before = time.monotonic()
        with suppress(KeyboardInterrupt), Steps(left).counted():
            call()
        call()
        assert time.monotonic() - before < 5, f"after an interrupt at step {left} of {steps.ran} it hung"


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_a_consumer_that_is_interrupted_anywhere_goes_on() -> None:
    with Broker() as broker, Consumer(broker.bootstrap, group="g", auto_commit=False) as consumer:
        with Producer(broker.bootstrap) as producer:
            producer.send("t", b"v")
        consumer.assign({("t", 0): 0})
        consumer.poll(0.1)
        interrupted_everywhere(lambda: consumer.commit({("t", 0): 0}))
        interrupted_everywhere(lambda: consumer.poll(0.001))
        consumer.commit()
        assert consumer.committed() == consumer.positions()


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_a_producer_that_is_interrupted_anywhere_goes_on() -> None:
    with FakeCluster() as cluster, Producer(cluster.bootstrap, linger=0) as producer:
        cluster.topic("t")
        producer.send("t", b"v").result(10)
        interrupted_everywhere(lambda: producer.send("t", b"v").result(10))
        interrupted_everywhere(lambda: producer.flush(10))
