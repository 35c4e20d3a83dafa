"""Sets the project up in a virtual environment, and says how far it is: what `make` runs before anything else.

    python3 scripts/set_up.py .venv

Packages are installed while the kernels compile on all cores. What is up to date is left as it is, and a set-up that
was interrupted goes on where it stopped. Uses nothing but the standard library.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import time
import tomllib
from collections import deque
from pathlib import Path

EXTRAS = "dev"
SECONDS_BETWEEN_LINES = 5
LINES_OF_A_FAILURE = 60
PIP = ("-m", "pip", "--disable-pip-version-check", "install", "--progress-bar", "off", "-c", "constraints.txt")


class Step:
    """A command that runs in the background, and how far it has come in a few words."""

    def __init__(self, what: str, command: list[str | Path], **environment: str) -> None:
        self.what = what
        self.progress = "starting"
        self._last: deque[str] = deque(maxlen=LINES_OF_A_FAILURE)
        self.process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._last.append(line)
            self.see(line.strip())

    def see(self, line: str) -> None:
        """Take a line of the command's output."""

    def running(self) -> bool:
        return self.process.poll() is None

    def check(self) -> None:
        """Ends the program with what the command said if it failed."""
        if self.running():
            return
        self._reading.join()
        if self.process.returncode:
            sys.exit(f"{''.join(self._last)}set-up: {self.what} failed, see above")

    def stop(self) -> None:
        if self.running():
            self.process.terminate()
        self.process.wait()


class Packages(Step):
    """pip, told by what it prints."""

    found = 0
    pinned = len(
        re.findall(
            r"^[^#\s]", (Path(__file__).parents[1] / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE
        )
    )

    def see(self, line: str) -> None:
        if line.startswith(("Collecting", "Requirement already satisfied")):
            self.found += 1
            self.progress = f"{self.found} of about {self.pinned} found"
        elif match := re.match(r"(?:Downloading|Using cached) ([^\s/]+)(?<!\.metadata)( \(.*\))?$", line):
            self.progress = f"{self.found} found, fetching {match[1]}{match[2] or ''}"
        elif match := re.match(r"Building (?:editable|wheel) for (\S+).*: started", line):
            self.progress = f"building {match[1]}"
        elif line.startswith("Installing collected packages:"):
            self.progress = f"installing {line.count(',') + 1}"


class Kernels(Step):
    """setup.py, which prints a line for each kernel."""

    def see(self, line: str) -> None:
        if match := re.match(r"kernel (\d+ of \d+)", line):
            self.progress = f"{match[1]} ready"


def finish(*steps: Step) -> None:
    """Wait for all of them, with a line every few seconds. Ends the program when one fails."""
    began = last = time.monotonic()
    try:
        while any(step.running() for step in steps):
            for step in steps:
                step.check()
            if time.monotonic() - last >= SECONDS_BETWEEN_LINES:
                last = time.monotonic()
                where = "; ".join(f"{step.what}: {step.progress}" for step in steps if step.running())
                say(f"{last - began:3.0f} s  {where}")
            time.sleep(0.1)
        for step in steps:
            step.check()
    finally:
        for step in steps:
            step.stop()


def say(text: str) -> None:
    print(f"set-up: {text}", flush=True)


def wanted(python: Path) -> str:
    """What decides which packages are installed, in a few bytes."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    decides = [project["build-system"], project["project"], Path("constraints.txt").read_text(encoding="utf-8")]
    decides.append(subprocess.run([python, "-VV"], capture_output=True, text=True, check=True).stdout)
    return hashlib.sha256(json.dumps(decides).encode()).hexdigest()


def works(python: Path) -> bool:
    """Whether there is an environment, and its making was not interrupted."""
    return python.exists() and subprocess.run([python, "-c", "import pip"], capture_output=True).returncode == 0


def main(home: Path) -> None:
    began = time.monotonic()
    python = home / "bin" / "python"
    if not works(python):
        say(f"a virtual environment in {home}")
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
    stamp = home / ".packages"
    stale = not stamp.exists() or stamp.read_text() != wanted(python)
    if stale:
        stamp.unlink(missing_ok=True)
        finish(Packages("tools", [python, *PIP, "pip", "setuptools", "wheel", "Cython"]))
    steps: list[Step] = [Kernels("kernels", [python, "setup.py", "-q", "build_ext", "--inplace"])]
    if stale:
        # Without the kernels, which are compiled beside it, and but once.
        command = [python, *PIP, "--no-build-isolation", "--no-compile", "-e", f".[{EXTRAS}]"]
        steps.append(Packages("packages", command, TAGWIRE_PURE="1"))
    finish(*steps)
    stamp.write_text(wanted(python))
    say(f"ready after {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit(130)
