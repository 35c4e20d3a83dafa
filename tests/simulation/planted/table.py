"""The table of planted defects, as docs/reliability.md has it: `python -m tests.simulation --plants` prints it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from . import DEFECTS

FOUND_AFTER: dict[str, int] = json.loads(Path(__file__).with_name("found_after.json").read_text("utf-8"))
"""How many seeds it took to find each, of those whose plan has what the defect needs: a crash, a transaction, a second
member. What none has found yet is not there. `python -m tests.simulation.planted` looks anew, from seed 1 on."""


def rows() -> Iterator[str]:
    """The table's lines, in Markdown."""
    yield "| planted | in | what goes wrong | to be found within | found after |"
    yield "|---|---|---|---|---|"
    for defect in DEFECTS.values():
        found = FOUND_AFTER.get(defect.name, "not yet")
        yield f"| {defect.name} | `{defect.file.removeprefix('tagwire/')}` | {defect.told} | {defect.seeds} | {found} |"


def to_json() -> str:
    """The table, as JSON: a list of objects, whose `found_after` is null where no seed has shown it."""
    return json.dumps(
        [
            {
                "name": defect.name,
                "file": defect.file,
                "told": defect.told,
                "breaks": list(defect.breaks),
                "seeds": defect.seeds,
                "found_after": FOUND_AFTER.get(defect.name),
            }
            for defect in DEFECTS.values()
        ]
    )
