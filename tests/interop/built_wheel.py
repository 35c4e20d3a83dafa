"""The wheel that `make wheel` leaves, of a copy of the project."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[2]


def built(folder: Path, **environment: str) -> Path:
    """Builds it in a folder, beside what an older build has left there.

    Args:
        environment: variables that are set for the build.
    """
    project = folder / "project"
    project.mkdir()
    for name in ("Makefile", "setup.py", "pyproject.toml", "constraints.txt", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, project / name)
    for name in ("src", "scripts"):
        ignored = shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, project / name, ignore=ignored)
    stale = project / "build" / "lib" / "tagwire" / "that_was_deleted.py"
    stale.parent.mkdir(parents=True)
    stale.touch()
    ran = subprocess.run(
        ["make", "wheel", f"PYTHON={sys.executable}"],
        cwd=project,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert "warning" not in (ran.stdout + ran.stderr).lower()
    assert len(ran.stdout.splitlines()) < 10
    (wheel,) = (project / "dist").glob("tagwire-*.whl")
    assert "tagwire/that_was_deleted.py" not in ZipFile(wheel).namelist()
    return wheel
