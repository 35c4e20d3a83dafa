"""A job of `exactly_once_job.py`, from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ..spark import killing

SCRIPT: Final = Path(__file__).with_name("exactly_once_job.py")
QUICK: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class KilledError(Exception):
    """All processes of the job are dead, as it was told."""


class SparkJob:
    """A Spark session in processes of its own.

    Args:
        log: takes what they say.
        master: as Spark takes it. settings: of the session.
    """

    def __init__(self, log: Path, master: str = "local[2]", settings: Mapping[str, str] | None = None) -> None:
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, str(SCRIPT), master, json.dumps(settings or {})],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                start_new_session=True,
                env=os.environ | {"SPARK_SUBMIT_OPTS": QUICK},
            )
        assert self._answer() == "ready\n", log.read_text(errors="replace")[-3000:]

    def begin(self, **query: Any) -> None:
        """Starts a query, of which `ended` tells more."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(query) + "\n")
        self._process.stdin.flush()

    def ended(self) -> str | None:
        """The error that the query ended with. Raises KilledError if the job ended with it."""
        answer = self._answer()
        if not answer:
            assert self._process.wait(30) == -signal.SIGKILL, self._log.read_text(errors="replace")[-3000:]
            raise KilledError
        found: str | None = json.loads(answer)
        return found

    def run(self, **query: Any) -> str | None:
        """Runs a query, as `begin` and `ended`."""
        self.begin(**query)
        return self.ended()

    def close(self) -> None:
        """Ends it, by force: nothing is kept in it."""
        killing.kill(self._process)
        self._process.communicate()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


class Jobs:
    """The one Spark session that runs; another once it was killed."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._job: SparkJob | None = None

    def run(self, query: dict[str, Any]) -> str | None:
        """Runs a query to its end; the error, if there is one."""
        self.begin(query)
        return self.ended()

    def begin(self, query: dict[str, Any]) -> None:
        if self._job is None:
            self._job = SparkJob(self._log)
        self._job.begin(**query)

    def ended(self) -> str | None:
        assert self._job is not None
        try:
            return self._job.ended()
        except KilledError:
            self.close()
            raise

    def close(self) -> None:
        if self._job is not None:
            self._job.close()
            self._job = None
