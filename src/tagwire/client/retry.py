"""Trying again: which errors are worth it, and how long to wait between attempts."""

from __future__ import annotations

from random import Random
from typing import Final

from tagwire.client.driver import Driver
from tagwire.errors import ConnectError, ConnectionLostError, KafkaError, TagwireError

FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 1.0
JITTER: Final = 0.2
LONGEST_WITH_JITTER: Final = LONGEST_PAUSE * (1 + JITTER)


def is_retriable(error: TagwireError) -> bool:
    """Whether the same request may succeed later: the broker says so, or the connection broke."""
    if isinstance(error, KafkaError):
        return error.retriable
    return isinstance(error, ConnectionLostError | ConnectError)


def pause_before(attempt: int, random: Random) -> float:
    """Seconds to wait before attempt number `attempt` (1 is the first repetition): doubling, bounded, with jitter.

    The jitter keeps clients that lost the same broker from coming back all at once.
    """
    longest: float = min(FIRST_PAUSE * 2 ** (attempt - 1), LONGEST_PAUSE)
    return longest * random.uniform(1 - JITTER, 1 + JITTER)


class Retry:
    """Counts the attempts of one operation up to a deadline (seconds of the driver's clock)."""

    def __init__(self, deadline: float, driver: Driver) -> None:
        self.deadline = deadline
        self.attempts = 0
        self._driver = driver

    def pause_until(self, error: TagwireError, *, anyway: bool = False) -> float:
        """When the next attempt is due; `anyway`: it is worth one whatever the error says. Raises `error` when it is
        not worth one, or when the time is up."""
        if not anyway and not is_retriable(error):
            raise error
        self.attempts += 1
        again = self._driver.now() + pause_before(self.attempts, self._driver.random)
        if again >= self.deadline:
            raise error
        return again
