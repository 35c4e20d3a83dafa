"""The cases of a client in Python: functions, run in the order they are written, a line for each.

A case's name is its function's, with - for _; it passes if the function returns. `NotRun` says why one could not be
tried. One that takes longer than SECONDS has failed.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, Final

SECONDS: Final = 60
FAILED: Final = 3
"""The exit code of a run in which a case failed; any other but 0 tells that the run itself did."""
BOOTSTRAP: Final = os.environ.get("BOOTSTRAP", "")
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
HEADERS: Final = [("origin", b"EWR"), ("empty", b""), ("origin", b"JFK")]
RECORDS: Final = [(b"k%d" % i, b"value-%d" % i * (i % 50), HEADERS if i % 2 else []) for i in range(500)]
"""Keys, values and headers: every second record has headers, one of which twice."""

Case = Callable[[], None]
CASES: list[Case] = []


class NotRun(Exception):
    """What a case needs is not there. The text says what."""


def case(function: Case) -> Case:
    """Registers a case."""
    CASES.append(function)
    return function


def case_for(*values: Any) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """Registers a case for each of `values`, which is its argument and ends its name."""

    def register(function: Callable[[Any], None]) -> Callable[[Any], None]:
        for value in values:

            def bound(value: Any = value) -> None:
                function(value)

            bound.__name__ = f"{function.__name__}_{value}"
            CASES.append(bound)
        return function

    return register


def given(variable: str) -> str:
    """What `with_broker.py` says about the broker's security. NotRun where the broker has none of that kind."""
    try:
        return os.environ[variable]
    except KeyError:
        raise NotRun(f"the broker was started without {variable}") from None


def until(holds: Callable[[], Any], what: str, seconds: float = 40) -> Any:
    """Tries until `holds` gives something true, and returns it."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds} seconds"
        time.sleep(0.02)
    return found


def run() -> int:
    """Runs the cases named on the command line, or all; FAILED if one failed, else 0."""
    signal.signal(signal.SIGALRM, _too_long)
    chosen = sys.argv[1:]
    code = 0
    for function in CASES:
        name = function.__name__.replace("_", "-")
        if chosen and name not in chosen:
            continue
        signal.alarm(SECONDS)
        try:
            function()
            line = f"ok {name}"
        except NotRun as reason:
            line = f"NOT RUN {name}: {reason}"
        except Exception as error:
            code = FAILED
            traceback.print_exc()
            line = f"FAIL {name}: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
        finally:
            signal.alarm(0)
        print(line, flush=True)
    return code


def _too_long(*_: object) -> None:
    raise TimeoutError(f"longer than {SECONDS} seconds")
