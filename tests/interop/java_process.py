"""A Java program that runs beside a test, and what it printed so far."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from kafka_jars import Coordinates, MavenError, classpath

from .peer import NotRunError

SMALL: Final = ("-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
LOGGING: Final[Coordinates] = ("org.slf4j", "slf4j-simple", "1.7.36")
"""A jar that brings a program's log to its error output."""


def fetch(name: str, whole: Sequence[Coordinates], alone: Sequence[Coordinates] = ()) -> list[Path]:
    """The jars of a program, as `kafka_jars.classpath` takes them, with the one that shows its log.

    Raises:
        NotRunError: they, or Java, are not to be had.
    """
    if shutil.which("java") is None:
        raise NotRunError("java (17 or newer) is not on the PATH")
    try:
        return classpath(name, [*whole, LOGGING], alone)
    except MavenError as error:
        raise NotRunError(f"{name}: {error}") from None


class JavaProcess:
    """One that writes all it prints to a file.

    Attributes:
        log: the file.
    """

    def __init__(self, log: Path, jars: Iterable[Path], program: str, *arguments: str) -> None:
        self.log = log
        path = ":".join(map(str, jars))
        level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        with open(log, "ab") as printed:
            command = ["java", *SMALL, level, "-cp", path, program, *arguments]
            self._process = subprocess.Popen(command, stdout=printed, stderr=subprocess.STDOUT)

    def printed(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def await_line(self, pattern: str, seconds: float) -> None:
        """Waits until it has printed a line in which the pattern is found."""
        found = re.compile(pattern, re.MULTILINE)
        until = time.monotonic() + seconds
        while not found.search(self.printed()):
            assert self._process.poll() is None, f"ended before {pattern!r}:\n{self.printed()[-5000:]}"
            assert time.monotonic() < until, f"no {pattern!r} within {seconds} seconds:\n{self.printed()[-5000:]}"
            time.sleep(0.1)

    def wait(self, seconds: float) -> int:
        """Its exit code."""
        return self._process.wait(seconds)

    def kill(self) -> None:
        """Ends it without a word."""
        self._process.kill()
        self._process.wait()

    def stop(self, seconds: float) -> int:
        """Ends it as an operator does; its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(seconds)


def properties(path: Path, settings: dict[str, object]) -> str:
    """Writes a file of Java properties; its path as an argument."""
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
    return str(path)
