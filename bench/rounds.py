"""Contenders taking turns: the same work, alternating inside every round, medians and ratios to the first contender.

Machines are noisy; what a neighbour does hits all contenders of a round alike, so ratios say more than seconds.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

_Size = TypeVar("_Size")

_SMALLEST = "--smallest"


def sized(usual: _Size, smallest: _Size) -> _Size:
    """A size of a bench's work: the usual one, or with --smallest the least."""
    return smallest if _SMALLEST in sys.argv[1:] else usual


def arguments(about: str | None) -> argparse.ArgumentParser:
    """The command line of a bench, about which its docstring tells."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(_SMALLEST, action="store_true", help="the least work: whether it runs, not how fast")
    return parser


@dataclass(frozen=True)
class Timing:
    """Seconds one contender took, one figure a round."""

    name: str
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def alternate(
    contenders: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    warmup: int = sized(1, 0),
    clock: Callable[[], float] = time.perf_counter,
) -> list[Timing]:
    """Runs every contender once a round, after `warmup` rounds that do not count.

    `clock`: what is measured; `time.thread_time` for work of one thread that waits for nothing, which neighbours then
    slow down less.
    """
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(warmup + rounds):
        for name, work in contenders.items():
            gc.collect()
            started = clock()
            work()
            elapsed = clock() - started
            if number >= warmup:
                taken[name].append(elapsed)
    return [Timing(name, tuple(seconds)) for name, seconds in taken.items()]


def table(title: str, timings: list[Timing], *, units: float, unit: str) -> str:
    """One line a contender: median rate in `unit` per second, spread, and its ratio to the first."""
    first = timings[0]
    lines = [title, f"  {'':32} {unit + '/s':>14}  {'min..max':>24}  ratio"]
    for timing in timings:
        slowest, fastest = units / max(timing.seconds), units / min(timing.seconds)
        rate, ratio = units / timing.median, first.median / timing.median
        lines.append(f"  {timing.name:32} {rate:14,.0f}  {slowest:11,.0f}..{fastest:11,.0f}  {ratio:5.2f}")
    return "\n".join(lines)
