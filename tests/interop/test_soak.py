"""A minute of the soak; `python tests/interop/soak.py --minutes 30` is a longer one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .conftest import Count

SOAK = Path(__file__).parent / "soak.py"


def test_nothing_is_lost_repeated_or_kept_while_clients_and_broker_come_and_go(count: Count):
    command = [sys.executable, str(SOAK), "--minutes", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]
    for line in done.stdout.splitlines():
        count(f"soak: {line}")
