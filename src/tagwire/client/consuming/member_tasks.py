"""What a member does at once: heartbeats go on while it waits for the group, or for its user."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tagwire.client.scheduling import Tasks, Wait, Work


async def run_together(works: Iterable[Work[None]], now: Callable[[], float], until: Callable[[], bool]) -> None:
    """Runs all beside each other, until one of them ends or `until` holds; the others are ended where they wait.

    Args:
        now: the driver's clock.

    Raises whatever one of them raises.
    """
    begun, tasks = list(works), Tasks()
    ended: list[Exception | None] = []

    def end(result: Any, error: Exception | None) -> None:
        ended.append(error)

    try:
        for key, work in enumerate(begun):
            tasks.start(key, work, end)
        while not ended and not until():
            await Wait(lambda: bool(ended) or until() or tasks.is_any_over(now()), tasks.until)
            if not until():
                tasks.step(now())
    finally:
        tasks.close()
        for work in begun:
            work.close()
    error = next((each for each in ended if each is not None), None)
    if error is not None and not until():
        raise error
