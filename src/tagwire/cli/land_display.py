"""What `tagwire land` shows on stderr while it runs: a bar on a terminal, a line for each batch anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tagwire.cli.terminal import printable

if TYPE_CHECKING:
    from tagwire.errors import TagwireError
    from tagwire.spark.jobs.landed import Progress

_PLAIN_PHASES = {"locked": "starting Spark", "started": "landing the topic"}
_FILLING = "filling a topic of an embedded broker with departures from New York, 2013"
_LIVE_PHASES = {
    "started": "landing",
    "staged": "moving files",
    "published": "landing",
}


def loss(partition: int, start: int, first: int) -> str:
    """What is said of offsets that brokers no longer keep, and that are left out."""
    return f"partition {partition}: offsets {start} to {first - 1} are gone, and left out"


class PlainDisplay:
    """What is said where stderr is no terminal: a line for each phase and batch."""

    def __init__(self) -> None:
        self._batches = 0
        self._filling = False

    def step(self, name: str) -> None:
        if name in _PLAIN_PHASES:
            self._say(_PLAIN_PHASES[name])

    def fill(self, records: int) -> None:
        if not self._filling:
            self._filling = True
            self._say(_FILLING)

    def progress(self, progress: Progress) -> None:
        if progress.batches > self._batches:
            self._batches = progress.batches
            self._say(f"batch {progress.batches}: {progress.rows:,} rows, {progress.rate:,.0f} rows/s")

    def pause(self, error: TagwireError, seconds: float) -> None:
        self._say(f"{error}; again in {seconds:.0f} s")

    def loss(self, partition: int, start: int, first: int) -> None:
        self._say(loss(partition, start, first))

    def _say(self, text: str) -> None:
        print(printable(text), file=sys.stderr, flush=True)


class LiveDisplay:
    """What moves on a terminal: the phase, a bar, batches, rows, rate."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._task = bar.add_task("looking", total=None, said="")

    def step(self, name: str) -> None:
        if name == "checked":
            self._bar.reset(self._task, total=None, description="starting Spark", said="")
        elif name in _LIVE_PHASES:
            self._bar.update(self._task, description=_LIVE_PHASES[name])

    def pause(self, error: TagwireError, seconds: float) -> None:
        self._bar.update(self._task, description="waiting", said=printable(f"{error}; again in {seconds:.0f} s"))

    def loss(self, partition: int, start: int, first: int) -> None:
        self._bar.console.print(loss(partition, start, first), markup=False)

    def fill(self, records: int) -> None:
        from tagwire.spark.jobs.flights import DEPARTURES

        said = f"{records:,} of {DEPARTURES:,} records"
        self._bar.update(self._task, description="filling", completed=records, total=DEPARTURES, said=said)

    def progress(self, progress: Progress) -> None:
        total = None if progress.behind is None else progress.rows + progress.behind
        said = f"{progress.batches:,} batches, {progress.rows:,} rows, {progress.rate:,.0f} rows/s"
        self._bar.update(self._task, completed=progress.rows, total=total, said=said)


@contextmanager
def display() -> Iterator[PlainDisplay | LiveDisplay]:
    if not sys.stderr.isatty():
        yield PlainDisplay()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = [
        SpinnerColumn(),
        TextColumn("{task.description:15}", markup=False),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[said]}", markup=False),
        TimeElapsedColumn(),
    ]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield LiveDisplay(bar)
