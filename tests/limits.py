"""Limits of tests count their work, not the machine's: beside others a test has as many times longer as it gets less.

A limit ends what hangs. It is no measure of speed, so that it may be far too long, and never too short.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

MOST = 10.0
STEP = 0.01

BEFORE_A_TEST_IS_STOPPED: list[Callable[[], None]] = []
"""Called in the main thread where a test hangs, before it is told so: for what would keep it from ending."""


def stretch() -> float:
    """How many times longer than on an idle machine work takes now: how many want each processor, 10 at most."""
    return min(max(os.getloadavg()[0] / (os.cpu_count() or 1), 1.0), MOST)


def wait_until(condition: Callable[[], Any], seconds: float = 30.0) -> Any:
    """Waits for a condition, and gives what it gave; an AssertionError where it never comes true."""
    begun = time.monotonic()
    while not (found := condition()):
        assert time.monotonic() - begun < seconds * stretch(), f"it never came true: {condition}"
        time.sleep(STEP)
    return found


def stretch_timer(seconds: float) -> None:
    """Makes the timer that pytest-timeout has just set look at the machine's load before it stops the test."""
    stop = signal.getsignal(signal.SIGALRM)
    if not callable(stop):  # the limit is a thread's
        return
    begun = time.monotonic()

    def look(signum: int, frame: FrameType | None) -> None:
        __tracebackhide__ = True
        left = seconds * stretch() - (time.monotonic() - begun)
        if left > 0:
            signal.setitimer(signal.ITIMER_REAL, left)
            return
        for each in BEFORE_A_TEST_IS_STOPPED:
            each()
        stop(signum, frame)

    signal.signal(signal.SIGALRM, look)
