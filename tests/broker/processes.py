"""Brokers that are processes of their own, and can be killed."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from pathlib import Path
from tagwire.broker import Settings, serve
settings = Settings(data_dir=Path(sys.argv[1]), fsync=sys.argv[2])
serve(settings, lambda addresses: print(addresses[0], flush=True))
"""


class Process:
    """A broker that can be killed."""

    def __init__(self, directory, fsync="batch"):
        command = [sys.executable, "-c", PROGRAM, str(directory), fsync]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.pid = self._process.pid
        self.bootstrap = self._process.stdout.readline().strip()

    def end(self, number):
        self._process.send_signal(number)
        _, self.errors = self._process.communicate()
        return self._process.returncode

    def is_running(self):
        return self._process.poll() is None
