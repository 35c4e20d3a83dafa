"""The limit of a test is stretched by what else the machine does, and still ends a test that hangs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .limits import MOST, stretch, wait_until

PLANTED = """
import os
import threading
import time

import pytest

@pytest.fixture
def busy(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (8.0 * os.cpu_count(), 0.0, 0.0))

@pytest.fixture
def idle(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))

@pytest.mark.timeout(1)
def test_slow(busy):
    time.sleep(1.5)

@pytest.mark.timeout(1)
def test_hangs(idle):
    threading.Event().wait()

def test_after_it():
    time.sleep(1.5)
"""


def test_a_slow_test_on_a_busy_machine_is_let_go_on_and_one_that_hangs_is_stopped(tmp_path: Path) -> None:
    planted = tmp_path / "test_planted.py"
    planted.write_text(PLANTED)
    options = ("-q", "-p", "no:cacheprovider", "-p", "tests.conftest", "--rootdir", str(tmp_path))
    command = [sys.executable, "-m", "pytest", *options, str(planted)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "Failed: Timeout (>1.0s)" in done.stdout


@pytest.mark.parametrize(("wanting", "times"), [(0.0, 1.0), (0.5, 1.0), (3.0, 3.0), (1000.0, MOST)])
def test_work_takes_longer_by_how_many_want_a_processor(monkeypatch, wanting: float, times: float) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (wanting * (os.cpu_count() or 1), 0.0, 0.0))
    assert stretch() == pytest.approx(times)


def test_what_never_comes_true_is_an_error(monkeypatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    with pytest.raises(AssertionError, match="never came true"):
        wait_until(lambda: False, 0.05)
