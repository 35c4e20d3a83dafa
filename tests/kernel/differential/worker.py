"""A process that tells the outcomes of cases, on compiled or uncompiled kernels: the choice is made when they are
imported, so one process cannot do both.

    python -m tests.kernel.differential.worker    # with TAGWIRE_PURE=1 or without

Cases come in and outcomes go out as pickles, many at a time, each after its size in eight bytes.
"""

from __future__ import annotations

import os
import pickle
import select
import subprocess
import sys
from pathlib import Path
from typing import Any, BinaryIO

from tagwire import kernel

from ...limits import stretch
from .mutations import Case
from .outcomes import Outcome, outcome

ROOT = Path(__file__).parents[3]
MOST_SECONDS = 100
"""How long a batch of cases may take: far more than any does, unless a kernel runs for ever."""


class DiedError(Exception):
    """The process ended, or did not answer."""


class Kernels:
    """The kernels of another process: `start` and `outcomes` may be called in turns, so that several work at a time."""

    def __init__(self, *, compiled: bool) -> None:
        self.compiled = compiled
        settings = {**os.environ, "TAGWIRE_PURE": "0" if compiled else "1"}
        settings["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=settings
        )
        assert self._take() is compiled, "the other process runs on the wrong kernels"

    def start(self, cases: list[Case]) -> None:
        """Gives it cases; takes nothing back yet."""
        assert self._process.stdin is not None
        try:
            send(self._process.stdin, cases)
        except BrokenPipeError:
            raise DiedError(f"exit status {self._process.wait(10)}") from None

    def outcomes(self) -> list[Outcome]:
        """The outcomes of the cases given before. Raises DiedError."""
        return self._take()  # type: ignore[no-any-return]

    def _take(self) -> Any:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], MOST_SECONDS * stretch())
        if not ready:
            raise DiedError(f"no answer within {MOST_SECONDS} s")
        found = take(self._process.stdout)
        if found is None:
            raise DiedError(f"exit status {self._process.wait(10)}")
        return found

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def send(stream: BinaryIO | Any, value: object) -> None:
    data = pickle.dumps(value)
    stream.write(len(data).to_bytes(8, "big") + data)
    stream.flush()


def take(stream: BinaryIO | Any) -> Any:
    """The next value; None at the end."""
    size = stream.read(8)
    data = stream.read(int.from_bytes(size, "big"))
    return pickle.loads(data) if data else None


def main() -> None:
    send(sys.stdout.buffer, kernel.compiled)
    while (cases := take(sys.stdin.buffer)) is not None:
        send(sys.stdout.buffer, [outcome(case) for case in cases])


if __name__ == "__main__":
    main()
