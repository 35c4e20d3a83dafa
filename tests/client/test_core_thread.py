"""What callers wait for in the thread of a producer or a consumer, without sockets beyond the one that wakes it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tagwire.client.blocking_driver import BlockingDriver
from tagwire.client.core_thread import CoreThread
from tagwire.client.scheduling import NEVER, Tasks, completed
from tagwire.errors import TagwireError

ENOUGH = 10.0


class CountedWork:
    """Work that counts its steps, and does in each what a test says."""

    def __init__(self) -> None:
        self.steps = 0
        self.on_step: Callable[[], None] = lambda: None

    def step(self) -> None:
        self.steps += 1
        self.on_step()

    def until(self) -> float:
        return NEVER

    def failed(self, error: BaseException) -> None:
        return

    def close(self) -> None:
        return


@pytest.fixture
def work() -> CountedWork:
    return CountedWork()


@pytest.fixture
def thread(work: CountedWork) -> Iterator[CoreThread]:
    thread = CoreThread(work, Tasks(), BlockingDriver(), "consumer")
    yield thread
    thread.stop()


def test_who_waits_goes_on_when_the_thread_has_made_true_what_is_waited_for(
    thread: CoreThread, work: CountedWork
) -> None:
    found: list[int] = []
    work.on_step = lambda: found.append(1)
    later = threading.Timer(0.05, thread.wakeup)
    later.start()
    began = time.monotonic()
    completed(thread.wait_for(lambda: bool(found), began + ENOUGH))
    assert found
    assert time.monotonic() < began + ENOUGH


def test_waiting_has_the_thread_do_nothing(thread: CoreThread, work: CountedWork) -> None:
    thread.wakeup()
    while not work.steps:
        time.sleep(0.001)
    time.sleep(0.05)
    before = work.steps
    for _ in range(3):
        completed(thread.wait_for(lambda: False, time.monotonic() + 0.02))
    completed(thread.wait_for(lambda: True, NEVER))
    assert work.steps == before


def test_nobody_waits_for_a_thread_that_has_ended(thread: CoreThread, work: CountedWork) -> None:
    def broken() -> None:
        raise ValueError("this is the test's")

    work.on_step = broken
    later = threading.Timer(0.05, thread.wakeup)
    later.start()
    began = time.monotonic()
    completed(thread.wait_for(lambda: False, began + ENOUGH))
    assert time.monotonic() < began + ENOUGH
    with pytest.raises(TagwireError, match="the consumer broke down: ValueError"):
        completed(thread.wait_for(lambda: False, NEVER))
