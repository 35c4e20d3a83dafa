"""Runs a command while a broker of ours is running: `python with_broker.py [BROKER-OPTION ...] -- COMMAND ...`.

The command finds the broker by the environment variable BOOTSTRAP. Its last line, `broker-log`, is about the broker: it
fails when the broker met an error that it did not expect.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

SECONDS: Final = 30
FAILED: Final = 3
UNEXPECTED: Final = ("could not be handled", "Traceback", "never retrieved", "never awaited")
"""What the broker's log says of errors that none of its rules foresaw."""


@contextmanager
def broker(data: Path, log: Path, *options: str) -> Iterator[tuple[str, int]]:
    """A broker in a process of its own: ("host:port", process id). It is stopped in order, and must end well."""
    command = [sys.executable, "-m", "tagwire", "broker", "--data", str(data), "--listen", "127.0.0.1:0", *options]
    with open(log, "ab") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    try:
        ready = process.stdout.readline()
        assert ready.startswith("listening on "), log.read_text(errors="replace")
        yield ready.split()[2].rstrip(","), process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            process.stdout.close()


def unexpected(log: Path) -> list[str]:
    """The lines of a broker's log that should never be there."""
    lines = log.read_text(errors="replace").splitlines()
    return [line for line in lines if any(sign in line for sign in UNEXPECTED)]


def main(arguments: Sequence[str]) -> int:
    """Runs the command; its exit code, or FAILED if the broker failed."""
    split = list(arguments).index("--")
    options, command = arguments[:split], arguments[split + 1 :]
    with tempfile.TemporaryDirectory(prefix="tagwire-interop-") as folder:
        log = Path(folder) / "log"
        with broker(Path(folder) / "data", log, *options) as (bootstrap, _):
            done = subprocess.run(command, env={**os.environ, "BOOTSTRAP": bootstrap})
        faults = unexpected(log)
        print(f"FAIL broker-log: {faults[0]}" if faults else "ok broker-log", flush=True)
        if faults:
            print(log.read_text(errors="replace"), file=sys.stderr)
    return done.returncode or FAILED * bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
