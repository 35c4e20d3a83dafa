"""What is planted is a defect: tests that hold the rule by themselves fail with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from . import DEFECTS

ROOT = Path(__file__).parents[3]
SHOWN = {name: defect.shown_by for name, defect in DEFECTS.items() if defect.shown_by}


def ran(test, **env):
    """How pytest ends that runs one test: 0 it passed, 1 it failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test]
    if env:
        command[3:3] = ["-p", "tests.simulation.planted.pytest_plant"]
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    found = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths, **env}, capture_output=True, timeout=110
    )
    return found.returncode


@pytest.mark.nightly
@pytest.mark.parametrize("name", SHOWN)
def test_a_test_of_its_room_fails_with_a_defect(name):
    assert ran(SHOWN[name], TAGWIRE_PLANT=name) == 1
