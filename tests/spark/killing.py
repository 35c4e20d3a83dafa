"""Spark jobs in processes of their own, to be killed dead: Java, and the Python workers that it has."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress


def start(command: Sequence[str]) -> subprocess.Popen[str]:
    """Starts a job that `kill` can end as a whole."""
    return subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def kill(job: subprocess.Popen[str]) -> None:
    """Ends all processes of a job at once. Workers have process groups of their own; a session they share."""
    listed = subprocess.run(["ps", "-A", "-o", "pid="], capture_output=True, text=True, check=True).stdout
    for process in map(int, listed.split()):
        with suppress(ProcessLookupError, PermissionError):
            if os.getsid(process) == job.pid:
                os.kill(process, signal.SIGKILL)
