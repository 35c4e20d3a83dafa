"""Requests with a timeout: their work is done a part at a time, until the time is over.

As a controller of Kafka does, the broker responds REQUEST_TIMED_OUT for what is left then, all of it where no time is
given; that was not begun, or undone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol, TypeVar

from tagwire.errors import Error, KafkaError

Requested = TypeVar("Requested")

AT_A_TIME: Final = 64
"""How many partitions are created or deleted before others have their turn: a second's work for a slow disk."""

TIMED_OUT: Final = KafkaError(Error.REQUEST_TIMED_OUT, "there was no time for it: request less, or give more time")
"""Told, never raised: an error that is one for all keeps the frames of each raise, and their requests."""


class Timed(Protocol):
    """A request that says how long it may take."""

    timeout_ms: int


def deadline(request: Timed) -> float:
    """By time.monotonic, when the time that a request gives is over."""
    return time.monotonic() + request.timeout_ms / 1000


def is_over(until: float) -> bool:
    """Whether a deadline is past."""
    return time.monotonic() >= until


def batches(requested: Iterable[Requested], weight: Callable[[Requested], int]) -> Iterator[list[Requested]]:
    """What is requested, in parts of `AT_A_TIME` partitions, or of one topic that has more."""
    part: list[Requested] = []
    taken = 0
    for one in requested:
        if part and taken + weight(one) > AT_A_TIME:
            yield part
            part, taken = [], 0
        part.append(one)
        taken += weight(one)
    if part:
        yield part
