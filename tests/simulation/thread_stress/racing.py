"""Workers on threads of their own, for a while, and what was wrong."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

SWITCH_INTERVAL = 1e-6
"""Seconds after which a thread has to let others run, five thousand times less than Python's own."""

PATIENCE = 30.0

Worker = Callable[[Callable[[], bool]], None]
"""Works until what it is handed says that it is over, and raises what is wrong."""


@contextmanager
def switching_often() -> Iterator[None]:
    """Threads take turns whenever they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def race(workers: Sequence[Worker], seconds: float) -> list[str]:
    """Runs workers beside each other; what they raised, and which of them did not come to their end. All end as soon as
    one has raised."""
    problems: list[str] = []
    until = time.monotonic() + seconds

    def is_over() -> bool:
        return bool(problems) or time.monotonic() >= until

    def run(worker: Worker) -> None:
        try:
            worker(is_over)
        except Exception as error:
            problems.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=run, args=(worker,), daemon=True) for worker in workers]
    with switching_often():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(until - time.monotonic(), 0) + PATIENCE)
    return [*problems, *(f"{thread.name} has not ended" for thread in threads if thread.is_alive())]
