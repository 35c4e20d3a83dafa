"""`one_run` under coverage.py: each seed leaves a file of what it reached."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import coverage

from .outcome import Outcome

_measured: coverage.Coverage | None = None


def prepare() -> None:
    """Begins before the simulator imports what is measured."""
    global _measured
    _measured = coverage.Coverage(
        data_file=os.environ["TAGWIRE_COVERAGE_DATA"],
        data_suffix=True,
        branch=True,
        source=["src/tagwire/broker", "src/tagwire/client"],
        config_file=False,
    )
    _measured.start()
    from . import one_run
    from .world import real

    one_run.prepare()
    begin = real.start_new_thread
    real.start_new_thread = lambda function, args: begin(_traced(function), args)


def _traced(function: Callable[..., object]) -> Callable[..., None]:
    """Simulated threads begin without `threading`, which would have told them of the tracer."""

    def run(*args: object) -> None:
        sys.settrace(threading.gettrace())
        function(*args)

    return run


def carry_out(**order: Any) -> Outcome:
    from . import one_run

    assert _measured is not None
    outcome = one_run.carry_out(**order)
    _measured.stop()
    _measured.save()
    return outcome
