"""Spark jobs in processes of their own, to be killed dead: Java, and the Python workers that it has."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .preloaded import environment

# Every job lands into a table of its own, and stands still when it is at its step. When all stand, the process dies
# with its Spark: each table is as a kill at that step leaves it.
_STANDING = """
import json, os, signal, sys, threading, traceback
from pathlib import Path
from tagwire.spark.jobs.land import BatchSettings, CatalogSettings, LandListener, TableSettings, land
from tagwire.spark.session import session

bootstrap, topic, log, jobs = sys.argv[1:]
standing = threading.Semaphore(0)

def run(step, at, to, table, batches, catalog, **given):
    left = at
    def on_step(name):
        nonlocal left
        left -= name == step
        if left == 0 and name == step:
            standing.release()
        if left <= 0:
            threading.Event().wait()
    try:
        settings = {"table": TableSettings(**table), "batches": BatchSettings(**batches)}
        if catalog:
            settings["catalog"] = CatalogSettings(**catalog)
        land(bootstrap, topic, to, listener=LandListener(on_step=on_step), **settings, **given)
    finally:
        traceback.print_exc()
        os._exit(3)  # the step was not reached

with session(Path(log)):
    for job in json.loads(jobs):
        threading.Thread(target=run, kwargs=job, daemon=True).start()
        standing.acquire()
    os.kill(os.getpid(), signal.SIGKILL)
"""

# One Spark for all of them.
_COMMANDS = """
import io, json, sys
from contextlib import redirect_stdout
from pathlib import Path
from tagwire.cli import main
from tagwire.spark.session import session

log, commands = sys.argv[1:]
with session(Path(log)):
    for command in json.loads(commands):
        out = io.StringIO()
        with redirect_stdout(out):
            if main(command):
                sys.exit(f"{command[:2]}: failed")
        print(json.dumps(out.getvalue()))
"""


@dataclass(frozen=True)
class Standing:
    """A landing job that gets as far as a step.

    Attributes:
        at: the occurrence of the step.
        table, batches, catalog: of `TableSettings`, `BatchSettings` and `CatalogSettings`.
    """

    step: str
    at: int
    to: str
    format: str
    table: Mapping[str, Any] = field(default_factory=dict)
    batches: Mapping[str, Any] = field(default_factory=dict)
    catalog: Mapping[str, Any] | None = None
    storage_options: Mapping[str, str] | None = None


def land_and_die(bootstrap: str, topic: str, log: Path, jobs: Sequence[Standing]) -> None:
    """One process lands tables as far as is wanted of each, and is killed with its Spark."""
    command = [sys.executable, "-c", _STANDING, bootstrap, topic, str(log), json.dumps([asdict(job) for job in jobs])]
    killed = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr


def reports_of(log: Path, commands: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Runs `tagwire land ... --json` in one process with one Spark; the report of each."""
    command = [sys.executable, "-c", _COMMANDS, str(log), json.dumps([["land", *each, "--json"] for each in commands])]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(json.loads(line).splitlines()[-1]) for line in done.stdout.splitlines()]


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
