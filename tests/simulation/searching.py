"""New seeds on all processors, until time is up or one of them shows something."""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from .outcome import Outcome
from .pool import Pool, order_of
from .story import command


@dataclass
class Search:
    """What has been run, and what it showed.

    Attributes:
        seconds: of the simulated world.
    """

    seeds: int = 0
    seconds: float = 0.0
    took: float = 0.0
    found: list[Outcome] = field(default_factory=list)
    interrupted: bool = False

    def to_json(self, plants: Iterable[str] = ()) -> str:
        """How much was run, and of each seed that shows anything what, and how it is replayed."""
        found = [
            {
                "seed": outcome.plan.get("seed"),
                "names": outcome.names,
                "anomalies": [{"name": each.name, "told": each.told} for each in outcome.found],
                "trace": outcome.digest,
                "replay": command(outcome.plan, list(plants)),
            }
            for outcome in self.found
        ]
        told = {"seeds": self.seeds, "seconds": self.seconds, "took": self.took, "interrupted": self.interrupted}
        return json.dumps({**told, "found": found}, sort_keys=True)

    def __str__(self) -> str:
        hours = self.seconds / 3600
        rate = self.seeds / self.took if self.took else 0.0
        speed = hours / self.took if self.took else 0.0
        interrupted = "interrupted after " if self.interrupted else ""
        return (
            f"{interrupted}{self.seeds} seeds, {hours:.2f} simulated hours, {rate:.1f} seeds/s, "
            f"{speed:.4f} simulated hours per second, {len(self.found)} found"
        )


def search(
    pool: Pool,
    seeds: Iterable[int],
    *,
    plants: Iterable[str] = (),
    seconds: float | None = None,
    go_on: bool = False,
    told: Callable[[Outcome], None] = lambda _: None,
    progress: IO[str] | None = None,
) -> Search:
    """Run `seeds` until they or `seconds` are used up, or, unless it is to `go_on`, one of them shows an anomaly.

    Args:
        told: called with each outcome that shows one, at once.
        progress: where the line about how far it is stands; None tells nothing.
    """
    made = Search()
    begun = time.monotonic()
    stopped = False
    plants = list(plants)
    line = _Line(progress)

    def orders() -> Iterator[dict[str, Any]]:
        for seed in seeds:
            if stopped or (seconds is not None and time.monotonic() - begun >= seconds):
                return
            yield order_of(seed, plants=plants)

    try:
        for outcome in pool.as_they_end(orders()):
            made.seeds += 1
            made.seconds += outcome.seconds
            made.took = time.monotonic() - begun
            if outcome.found:
                made.found.append(outcome)
                line.clear()
                told(outcome)
                stopped = not go_on
            line.show(str(made))
    except KeyboardInterrupt:
        made.interrupted = True
    line.clear()
    return made


def from_seed(first: int) -> Iterator[int]:
    return itertools.count(first)


class _Line:
    """One line that is written over; on what is no terminal a new one every minute."""

    def __init__(self, stream: IO[str] | None) -> None:
        self._stream = stream
        self._over = stream is not None and stream.isatty()
        self._last = time.monotonic()
        self._width = 0

    def show(self, text: str) -> None:
        if self._stream is None or time.monotonic() - self._last < (0.2 if self._over else 60.0):
            return
        self._last = time.monotonic()
        if self._over:
            self._stream.write(f"\r{text:<{self._width}}")
            self._width = len(text)
        else:
            self._stream.write(f"{text}\n")
        self._stream.flush()

    def clear(self) -> None:
        if self._stream is not None and self._over and self._width:
            self._stream.write(f"\r{'':<{self._width}}\r")
            self._stream.flush()
            self._width = 0


def stderr_if(wanted: bool) -> IO[str] | None:
    return sys.stderr if wanted else None
