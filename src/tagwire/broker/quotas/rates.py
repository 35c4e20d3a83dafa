"""How much of something there was, and how long to wait until it is within a bound again.

Source: Kafka's Rate, SampledStat, TokenBucket, QuotaUtils.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, Protocol

SAMPLES: Final = 11
"""Ten whole ones and the one that is being filled; Kafka's quota.window.num."""

SAMPLE_MS: Final = 1000
"""Kafka's quota.window.size.seconds."""

LONGEST_MS: Final = 2**31 - 1
"""What a response can tell."""


class Meter(Protocol):
    """Measures one client's use of one thing. Times are milliseconds of one clock."""

    def record(self, amount: float, bound: float, now_ms: int) -> int:
        """Count an amount; for how many milliseconds the client is to wait now, 0 where it is within the bound."""

    def take_back(self, amount: float, bound: float, now_ms: int) -> None:
        """Count an amount no more that was counted at this time."""


@dataclass(slots=True)
class _Sample:
    begun_ms: int
    last_ms: int
    amount: float = 0.0


class Rate:
    """An amount a second, over the last ten seconds or so: much at once is allowed where there was little before."""

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque()

    def record(self, amount: float, bound: float, now_ms: int) -> int:
        """As `Meter`."""
        self._add(amount, now_ms)
        self._forget_old(now_ms)
        window_ms = self._window_ms(now_ms)
        rate = sum(sample.amount for sample in self._samples) * 1000 / window_ms
        return _waiting_ms((rate - bound) / bound * window_ms) if rate > bound else 0

    def take_back(self, amount: float, bound: float, now_ms: int) -> None:
        """As `Meter`."""
        self._add(-amount, now_ms)

    def _add(self, amount: float, now_ms: int) -> None:
        if not self._samples or now_ms - self._samples[-1].begun_ms >= SAMPLE_MS:
            self._samples.append(_Sample(now_ms, now_ms))
            if len(self._samples) > SAMPLES + 1:
                self._samples.popleft()
        last = self._samples[-1]
        last.amount += amount
        last.last_ms = now_ms

    def _forget_old(self, now_ms: int) -> None:
        while now_ms - self._samples[0].last_ms >= SAMPLES * SAMPLE_MS:
            self._samples.popleft()

    def _window_ms(self, now_ms: int) -> int:
        """The time that the samples are of; at least ten whole ones, so that a client may begin with a burst."""
        elapsed_ms = now_ms - self._samples[0].begun_ms
        missing = max(SAMPLES - 1 - elapsed_ms // SAMPLE_MS, 0)
        return max(elapsed_ms + missing * SAMPLE_MS, 1)


class TokenBucket:
    """Tokens that come at a rate, and are taken by what is done (KIP-599). It may go below zero, and who finds it there
    waits."""

    def __init__(self) -> None:
        self._tokens: float | None = None
        self._filled_ms = 0

    def record(self, amount: float, bound: float, now_ms: int) -> int:
        """As `Meter`: the amount is taken whatever there is."""
        self._tokens = self._filled(bound, now_ms) - amount
        return self._missing_ms(bound)

    def take_back(self, amount: float, bound: float, now_ms: int) -> None:
        """As `Meter`."""
        self._tokens = min(self._filled(bound, now_ms) + amount, _most(bound))

    def record_strictly(self, amount: float, bound: float, now_ms: int) -> int:
        """As `record`, but that nothing is taken while tokens are missing."""
        self._tokens = self._filled(bound, now_ms)
        missing_ms = self._missing_ms(bound)
        if not missing_ms:
            self._tokens -= amount
        return missing_ms

    def _filled(self, bound: float, now_ms: int) -> float:
        most = _most(bound)
        before = most if self._tokens is None else self._tokens
        filled = min(before + bound * (now_ms - self._filled_ms) / 1000, most)
        self._filled_ms = now_ms
        return filled

    def _missing_ms(self, bound: float) -> int:
        return max(_waiting_ms(-(self._tokens or 0.0) / bound * 1000), 0)


def _waiting_ms(exact: float) -> int:
    """Whole milliseconds; of a bound next to nothing it would be infinite."""
    return round(min(exact, LONGEST_MS))


def _most(bound: float) -> float:
    return SAMPLES * SAMPLE_MS / 1000 * bound
