"""`tagwire land`: a topic becomes a Parquet table; without a broker of one's own, a demonstration of it."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagwire.cli.terminal import cut, print_rows, printable

if TYPE_CHECKING:
    from tagwire.spark.land import LandReport, Progress

_CELL = 40
_NARROW = 6
_PLAIN_PHASES = {"locked": "starting Spark", "started": "landing"}
_LIVE_PHASES = {
    "started": "landing",
    "staged": "moving files",
    "published": "landing",
}


def land(
    bootstrap: Annotated[
        str | None,
        typer.Option("--bootstrap", metavar="HOST:PORT[,HOST:PORT]", help="Brokers; without, the demonstration."),
    ] = None,
    topic: Annotated[str | None, typer.Option("--topic", metavar="TOPIC", help="The topic to land.")] = None,
    to: Annotated[str, typer.Option("--to", metavar="DIR", help="Where the table stands: DIR/table.")] = "out",
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", metavar="DIR", help="What the job remembers.", show_default="DIR/_checkpoint"),
    ] = None,
    headers: Annotated[
        str | None, typer.Option("--headers", metavar="NAME,...", help="Headers that become columns of their own.")
    ] = None,
    text: Annotated[bool | None, typer.Option("--text/--bytes", help="What key and value are.")] = None,
) -> None:
    """Land a topic as a Parquet table, partitioned by the date of the record timestamp (UTC).

    Lands what the topic holds now; run again, what is new. A run that was killed is made good by the next.
    A header's column holds its last value in a record, as text; what is not UTF-8 is written 0x and hexadecimal.

    Without --bootstrap it starts a broker on DIR/_broker, fills its topic with the 336,776 departures from New York
    in 2013, and lands that.

    \b
    Examples:
      tagwire land
      tagwire land --bootstrap kafka-1:9092 --topic orders --to lake/orders --headers trace-id,tenant
    """
    if (bootstrap is None) != (topic is None):
        missing, given = ("--topic", "--bootstrap") if topic is None else ("--bootstrap", "--topic")
        raise typer.BadParameter(f"{given} needs {missing}", param_hint=f"'{missing}'")
    if bootstrap is None and text is not None:
        raise typer.BadParameter("the demonstration's values are text", param_hint="'--text'")
    names = None if headers is None else [name.strip() for name in headers.split(",")]
    from tagwire.spark import flights, land, report

    with _interruptible(), _display() as display:
        if bootstrap is None or topic is None:
            done = flights.land_flights(
                to,
                checkpoint=checkpoint,
                headers=names,
                on_fill=display.fill,
                on_progress=display.progress,
                on_step=display.step,
            )
        else:
            done = land.land(
                bootstrap,
                topic,
                to,
                checkpoint=checkpoint,
                headers=names,
                text=text,
                on_progress=display.progress,
                on_step=display.step,
            )
    _print(done)
    page, png = report.write_report(done, flights=bootstrap is None)
    print(f"report   {printable(str(page))}\npicture  {printable(str(png))}")


def _print(done: LandReport) -> None:
    from tagwire.spark.report import PARTITION_TITLES, first_rows, partition_rows, summary

    titles, rows = first_rows(done)
    if rows:
        width = _cell_width([titles, *rows])
        numbers = [titles.index(name) for name in ("partition", "offset")]
        shown = [[cut(cell, width) for cell in row] for row in [titles, *rows]]
        print_rows(shown[0], shown[1:], numbers=numbers)
        print()
    print(printable(summary(done)))
    if done.rows:
        print_rows(PARTITION_TITLES, partition_rows(done), numbers=(0, 1, 2, 3))
        seen = ", ".join(f"{key} ({count:,})" for key, count in done.header_keys.items())
        print(f"headers  {printable(seen) or 'none'}")
    print(f"spoken   {', '.join(f'{api} {version}' for api, version in done.versions.items())}")
    print(f"table    {printable(str(done.out / 'table'))}, {done.table_rows:,} rows in {done.table_files:,} files")


def _cell_width(rows: list[list[str]]) -> int:
    """How wide a cell may be for the rows to fit the terminal; `_CELL` at most, and where there is no terminal."""
    if not sys.stdout.isatty():
        return _CELL
    widest = [max(map(len, column)) for column in zip(*rows)]
    room = shutil.get_terminal_size().columns
    fitting = (width for width in range(_CELL, _NARROW, -1) if sum(min(w, width) + 2 for w in widest) <= room)
    return next(fitting, _NARROW)


class _Plain:
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
            self._say("filling the topic")

    def progress(self, progress: Progress) -> None:
        if progress.batches > self._batches:
            self._batches = progress.batches
            self._say(f"batch {progress.batches}: {progress.rows:,} rows, {progress.rate:,.0f} rows/s")

    def _say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class _Live:
    """What moves on a terminal: the phase, a bar, batches, rows, rate."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._task = bar.add_task("looking", total=None, said="")

    def step(self, name: str) -> None:
        if name == "checked":
            self._bar.reset(self._task, total=None, description="starting Spark", said="")
        elif name in _LIVE_PHASES:
            self._bar.update(self._task, description=_LIVE_PHASES[name])

    def fill(self, records: int) -> None:
        from tagwire.spark.flights import DEPARTURES

        said = f"{records:,} of {DEPARTURES:,} records"
        self._bar.update(self._task, description="filling", completed=records, total=DEPARTURES, said=said)

    def progress(self, progress: Progress) -> None:
        total = None if progress.behind is None else progress.rows + progress.behind
        said = f"{progress.batches:,} batches, {progress.rows:,} rows, {progress.rate:,.0f} rows/s"
        self._bar.update(self._task, completed=progress.rows, total=total, said=said)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C ends the process at once. The next run makes good what this one leaves; Spark would talk for long."""
    from tagwire.cli import INTERRUPTED

    def leave(signum: int, frame: FrameType | None) -> None:
        cursor = b"\x1b[?25h" if sys.stderr.isatty() else b""
        os.write(2, cursor + b"\ntagwire: interrupted; run it again to go on\n")
        os._exit(INTERRUPTED)

    before = signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _display() -> Iterator[_Plain | _Live]:
    if not sys.stderr.isatty():
        yield _Plain()
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
        yield _Live(bar)
