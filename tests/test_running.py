"""How `make test` and `make interop` run pytest: what failed beside others runs once more, alone, and is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "run_tests.py"


def run(directory: Path, tests: str, *options: str) -> tuple[int, str]:
    (directory / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    for name in ("test_it.py", "test_its_like.py", "test_more.py"):
        (directory / name).write_text(tests)
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), "-q", "-p", "xdist.plugin", *options],
        cwd=directory,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return ran.returncode, ran.stdout + ran.stderr


PASSES_THE_SECOND_TIME = """
from pathlib import Path

def test_first_fails():
    been = Path("been")
    again = been.exists()
    been.touch()
    assert again, "the first time"

def test_passes():
    with Path("passed").open("a") as file:
        file.write("x")
"""


@pytest.mark.long
def test_what_failed_beside_others_runs_once_more_alone_and_is_told_as_unstable(tmp_path):
    status, said = run(tmp_path, PASSES_THE_SECOND_TIME, "-n", "2", "test_it.py")
    assert status == 0, said
    assert "UNSTABLE test_it.py::test_first_fails" in said
    assert "the first time" in said
    assert (tmp_path / "passed").read_text() == "x"


def test_what_fails_alone_too_fails(tmp_path):
    status, said = run(tmp_path, "def test_fails():\n    raise AssertionError('always')\n", "test_it.py")
    assert status == 1
    assert "UNSTABLE" not in said


def test_a_run_in_which_many_fail_is_not_tried_again(tmp_path):
    tests = "import pytest\n@pytest.mark.parametrize('n', range(4))\ndef test_fails(n):\n    assert False\n"
    status, said = run(tmp_path, tests)
    assert status == 1
    assert "12 failed, in 3 files: too many to run them once more" in said


def test_what_shares_its_file_runs_once_more_however_many_failed(tmp_path):
    tests = """
from pathlib import Path
import pytest

@pytest.fixture(scope="module")
def started():
    been = Path("been")
    again = been.exists()
    been.touch()
    assert again, "it did not start"

@pytest.mark.parametrize("n", range(11))
def test_uses_it(started, n):
    pass
"""
    status, said = run(tmp_path, tests, "test_it.py")
    assert status == 0, said
    assert said.count("UNSTABLE") == 11


def test_what_ended_pytest_otherwise_is_its_status(tmp_path):
    assert run(tmp_path, "")[0] == 5  # no test was found


def test_tests_may_keep_bytecode_whatever_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    status, said = run(tmp_path, "import sys\n\ndef test_it():\n    assert not sys.dont_write_bytecode\n", "test_it.py")
    assert status == 0, said


@pytest.mark.parametrize("fails", ["", "0", "1"])
def test_a_run_on_uncompiled_kernels_goes_on_beside_and_either_fails_both(tmp_path, fails):
    tests = f"""
import os

def test_it():
    assert os.environ.get("TAGWIRE_PURE", "0") != "{fails}", "on purpose"
"""
    status, said = run(tmp_path, tests, "test_it.py", "--uncompiled", "-q", "-p", "xdist.plugin", "test_more.py")
    assert status == (1 if fails else 0), said
    compiled, _, uncompiled = said.partition("On kernels that are not compiled")
    assert ("on purpose" in compiled, "on purpose" in uncompiled) == (fails == "0", fails == "1")
