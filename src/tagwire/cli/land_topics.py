"""`tagwire land` of several topics, and landing that goes on until it is told to stop."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from tagwire.cli.ending import answered_once
from tagwire.cli.land_display import loss
from tagwire.cli.terminal import print_json, print_rows, printable

if TYPE_CHECKING:
    from tagwire.errors import TagwireError
    from tagwire.spark.jobs.land_topics import Outcome
    from tagwire.spark.jobs.landed import Batch, LandListener

_TITLES = ("topic", "rows", "batches", "files", "table")


@contextmanager
def stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """Ctrl-C and SIGTERM set `stop`; a second one is as it was before. One that is ignored goes on to be."""

    def ask(number: int) -> None:
        # Not here: this thread may be about to wait for it, and hold what setting it takes.
        threading.Thread(target=stop.set, name="tagwire-stop", daemon=True).start()
        print("stopping after the micro-batch that is being written", file=sys.stderr, flush=True)

    with answered_once((signal.SIGINT, signal.SIGTERM), ask):
        yield


class TopicsDisplay:
    """What is said on stderr of several topics: a line for each micro-batch and each topic that has ended."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._lock = threading.Lock()

    def listener(self, topic: str) -> LandListener:
        from tagwire.spark.jobs.landed import LandListener

        def batch(done: Batch) -> None:
            if self._as_json:
                self._document({"topic": topic, **vars(done)})
            else:
                behind = "" if done.behind is None else f", {done.behind:,} behind"
                self._say(f"{topic}: batch {done.number}: {done.rows:,} rows{behind}")

        def pause(error: TagwireError, seconds: float) -> None:
            self._say(f"{topic}: {error}; again in {seconds:.0f} s")

        def lost(partition: int, start: int, first: int) -> None:
            self._say(f"{topic}: {loss(partition, start, first)}")

        return LandListener(on_batch=batch, on_pause=pause, on_loss=lost)

    def ended(self, topic: str, outcome: Outcome) -> None:
        """What became of a topic."""
        from tagwire.spark.jobs.landed import LandReport

        if not isinstance(outcome, LandReport):
            self._say(f"tagwire: {topic}: {outcome}")
        elif self._as_json:
            self._document(outcome.document())

    def _say(self, text: str) -> None:
        with self._lock:
            print(printable(text), file=sys.stderr, flush=True)

    def _document(self, document: dict[str, Any]) -> None:
        with self._lock:
            print_json([document])
            sys.stdout.flush()


def print_outcomes(outcomes: dict[str, Outcome]) -> None:
    """A row for each topic that was landed."""
    from tagwire.spark.jobs.landed import LandReport

    rows = [
        [topic, f"{done.rows:,}", f"{done.batches:,}", f"{done.files:,}", done.where]
        for topic, done in outcomes.items()
        if isinstance(done, LandReport)
    ]
    if rows:
        print_rows(_TITLES, rows, numbers=(1, 2, 3))


def named_topics(topic: str | None) -> Sequence[str]:
    """The topics of `a,b,c`, each once. Raises typer.BadParameter where one has no name."""
    if topic is None:
        return []
    names = [name.strip() for name in topic.split(",")]
    if not all(names):
        raise typer.BadParameter(f"{topic!r} is not TOPIC,TOPIC,...: a name is empty", param_hint="'TOPIC'")
    return list(dict.fromkeys(names))
