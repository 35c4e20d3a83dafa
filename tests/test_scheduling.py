"""A run in several processes makes what tests share once, and not once in each."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .scheduling import FilesTogether, shares_spark, turn

ROOT = Path(__file__).parents[1]


@pytest.mark.long
def test_a_files_tests_run_in_one_process() -> None:
    files = ["tests/rpc/test_frames.py", "tests/rpc/test_scram.py", "tests/spec/test_names.py"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    how = re.search(r"^PROCESSES := -n 4 (.*)$", makefile, re.MULTILINE)
    assert how is not None
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-n", "2", *how[1].split(), *files]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    ran = set(re.findall(r"^\[(gw\d)\].* PASSED (tests/[^:]+)::", told, re.MULTILINE))
    assert sorted(file for _, file in ran) == files
    assert len({process for process, _ in ran}) == 2


def test_half_of_the_files_that_share_a_spark_run_in_one_process() -> None:
    files = sorted(
        path for path in (ROOT / "tests" / "spark").glob("test_*.py") if shares_spark(f"tests/spark/{path.name}")
    )
    assert len(files) > 10
    split = FilesTogether.__new__(FilesTogether)
    split._halves = {}
    scopes = [split._split_scope(f"tests/spark/{path.name}::test") for path in files]
    assert abs(scopes.count("spark-0") - scopes.count("spark-1")) <= 1
    assert set(scopes) == {"spark-0", "spark-1"}


def test_what_takes_longest_begins_first() -> None:
    assert (
        turn("tests/spark/test_land.py::test") < turn("tests/simulation/test_replay.py::test") < turn("tests/broker/x")
    )
