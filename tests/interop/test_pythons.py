"""The kernels on each other version of CPython that they are built for, as far as this machine has it.

They make objects word by word: what is right on one version may end the process on another. A version that is not there
is NOT RUN.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.pythons import MINORS, interpreter

from .conftest import not_run_without
from .peer import NotRunError

ROOT = Path(__file__).parents[2]
OF_TESTS = (
    *("pytest", "pytest-timeout", "pytest-xdist", "hypothesis"),
    *("dpkt", "lz4", "python-snappy", "trustme", "zstandard"),
)
NEEDED = ("setuptools", "Cython", *OF_TESTS)
SECONDS = 900


def versions() -> list[Any]:
    """Each builds all kernels, for minutes: the newest that is here, and the others at night."""
    here = [minor for minor in MINORS if interpreter(minor)]
    newest = (here or MINORS)[-1]
    return [minor if minor == newest else pytest.param(minor, marks=pytest.mark.nightly) for minor in MINORS]


@pytest.mark.timeout(2 * SECONDS)
@pytest.mark.parametrize("minor", versions())
def test_the_kernels_pass_their_tests_on_another_cpython(minor: int, tmp_path: Path) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TAGWIRE"))}

    def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=tmp_path / "project", env=environment, capture_output=True, text=True, timeout=SECONDS
        )

    project = tmp_path / "project"
    project.mkdir()
    for name in ("src", "tests"):
        ignored = shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, project / name, ignore=ignored)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, project / name)
    with not_run_without():
        if (found := interpreter(minor)) is None:
            raise NotRunError(f"there is no CPython 3.{minor}")
        subprocess.run([found, "-m", "venv", tmp_path / "venv"], check=True, env=environment)
        installed = run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *NEEDED)
        if installed.returncode:
            raise NotRunError(f"pip: {installed.stderr.strip().splitlines()[-1]}")
    built = run(
        python,
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        "--no-build-isolation",
        "-e",
        ".[arrow,audit,broker]",
    )
    assert built.returncode == 0, built.stderr
    tests = ["tests/codec", "tests/kernel", "tests/records", "--ignore", "tests/records/test_peers.py"]
    ran = run(python, "-X", "faulthandler", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert ran.returncode == 0, f"{ran.stdout[-4000:]}\n{ran.stderr[-4000:]}"
    assert "kernels that are compiled" in ran.stdout
