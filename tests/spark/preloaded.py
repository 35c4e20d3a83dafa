"""Processes whose Spark forks its Python workers with what they load: see preloading/sitecustomize.py."""

from __future__ import annotations

import os
from pathlib import Path

_PRELOADING = Path(__file__).parent / "preloading"


def python_path() -> str:
    """PYTHONPATH for such a process, or for the Java that it starts."""
    return os.pathsep.join(filter(None, (str(_PRELOADING), os.environ.get("PYTHONPATH"))))


def environment() -> dict[str, str]:
    """This process's environment, with that path."""
    return {**os.environ, "PYTHONPATH": python_path()}
