"""Goes one of the ways in a temporary folder, and shows what is typed and what is printed.

python -m tests.interop.newcomers data_engineer dist/tagwire-0.1.0-....whl
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from . import backend_developer, data_engineer, operator
from .way import Way

WAYS: Final[dict[str, Callable[[Way], None]]] = {
    "data_engineer": data_engineer.walk,
    "backend_developer": backend_developer.walk,
    "operator": operator.walk,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.interop.newcomers", description=__doc__)
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("wheel", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, Way.begin(Path(place), given.wheel.absolute()) as way:
        WAYS[given.way](way)


if __name__ == "__main__":
    main()
