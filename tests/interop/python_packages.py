"""Python packages that only some tests need, fetched with pip and kept under .cache/, apart from this environment."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kafka_jars import CACHE, fetching

from .peer import NotRunError

SECONDS: Final = 300


def fetched(name: str, wanted: Sequence[str], *, alone: bool = False) -> Path:
    """A directory for PYTHONPATH that holds the packages.

    Args:
        name: the directory's, under .cache/python.
        alone: without what they depend on, which this environment has.

    Raises:
        NotRunError: they are not to be had.
    """
    place = CACHE / "python" / name
    if place.is_dir():  # whole: it waits for nobody who fetches something else
        return place
    with fetching():
        if not place.is_dir():
            _fetch(name, wanted, place, alone=alone)
    return place


def _fetch(name: str, wanted: Sequence[str], place: Path, *, alone: bool) -> None:
    draft = place.with_name(f"{name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile"]
    command = [*pip, *(["--no-deps"] if alone else []), "--target", str(draft), *wanted]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise NotRunError(f"{name}: pip took longer than {SECONDS} seconds") from None
    if done.returncode:
        raise NotRunError(f"{name}: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'pip failed'}")
    draft.rename(place)
