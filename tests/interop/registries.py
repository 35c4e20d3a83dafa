"""Schema registries that others wrote, on loopback."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kafka_jars import CACHE, fetching

from .peer import NotRunError

_SRFAKE: Final = Path(__file__).parent / "srfake"
_BUILD_SECONDS: Final = 300


@contextmanager
def srfake(authorization: str | None = None) -> Iterator[str]:
    """The registry of franz-go, in memory; its URL.

    Args:
        authorization: what that header of each request has to be; None is nothing.

    Raises:
        NotRunError: it, or Go, is not to be had.
    """
    command = [str(_built()), *([authorization] if authorization else [])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


def _built() -> Path:
    if shutil.which("go") is None:
        raise NotRunError("go is not on the PATH")
    program = CACHE / "clients" / "srfake" / "srfake"
    with fetching():
        program.parent.mkdir(parents=True, exist_ok=True)
        command = ["go", "build", "-o", str(program), "."]
        done = subprocess.run(command, cwd=_SRFAKE, capture_output=True, text=True, timeout=_BUILD_SECONDS, check=False)
        if done.returncode:
            raise NotRunError(f"srfake: {done.stderr.strip()[-500:]}")
    return program
