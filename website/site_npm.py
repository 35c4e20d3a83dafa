"""Packages of the registry for Node, each fetched once by a package.json that pins it, and kept under .cache/."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Final

CACHE: Final = Path(__file__).parents[1] / ".cache" / "website"
SECONDS: Final = 300


def package(manifest: Path) -> Path | str:
    """The directory of the one package that a package.json names, or why there is none."""
    ((name, version),) = json.loads(manifest.read_text(encoding="utf-8"))["dependencies"].items()
    home = CACHE / f"{name}-{version}"
    found = home / "node_modules" / name
    if found.is_dir():
        return found
    if shutil.which("npm") is None:
        return "npm is not on the PATH"
    draft = home.with_suffix(".part")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    shutil.copy(manifest, draft)
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
    try:
        done = subprocess.run(command, cwd=draft, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"{name}: npm took longer than {SECONDS} seconds"
    if done.returncode:
        return f"{name}: {(done.stderr or done.stdout or 'npm failed').strip().splitlines()[-1]}"
    draft.rename(home)
    return found
