"""A program that mypy finds right, and what it says of each mistake that is planted in it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import tagwire

SOURCES = Path(tagwire.__file__).parent.parent
CONFIGURATION = SOURCES.parent / "pyproject.toml"


def assert_mypy_refuses(directory: Path, code: str, mistakes: Sequence[tuple[str, str, str]]) -> None:
    """Checks that `code` is right, and that each mistake is told.

    Args:
        directory: an empty one, for the programs.
        mistakes: (what is right, what stands there instead, what mypy says of it) each.
    """
    (directory / "right.py").write_text(code)
    for number, (right, wrong, _) in enumerate(mistakes):
        assert code.count(right) == 1
        (directory / f"wrong{number}.py").write_text(code.replace(right, wrong))
    files = sorted(path.name for path in directory.glob("*.py"))
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(CONFIGURATION), "--follow-imports", "silent", *files],
        cwd=directory,
        env={**os.environ, "MYPYPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    told = checked.stdout.splitlines()
    assert not [line for line in told if line.startswith("right.py")], checked.stdout
    for number, (*_, sentence) in enumerate(mistakes):
        assert any(line.startswith(f"wrong{number}.py:") and sentence in line for line in told), checked.stdout
