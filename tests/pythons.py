"""Other versions of CPython on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

MINORS = [minor for minor in (11, 12, 13, 14) if minor != sys.version_info[1]]
"""Of those that tagwire supports, the ones that do not run this."""


def interpreter(minor: int) -> str | None:
    """Where CPython 3.`minor` is; None where there is none."""
    for name in filter(None, [shutil.which(f"python3.{minor}"), *_installed_by_pyenv(minor)]):
        asked = subprocess.run([name, "-c", "import sys; print(sys.version_info[1])"], capture_output=True, text=True)
        if asked.stdout.strip() == str(minor):
            return name
    return None


def _installed_by_pyenv(minor: int) -> list[str]:
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    return [str(found) for found in sorted(root.glob(f"versions/3.{minor}.*/bin/python"))]
