"""How many changes that nobody has thought of seeds show: `python -m tests.simulation.planted.mutating --help`."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.simulation import coverage
from tests.simulation.pool import ROOT, Pool

from .defect import PlantError, plant
from .hunting import hunt
from .mutants import Mutant, mutants

PACKAGES: Final = (
    "broker",
    "broker/groups",
    "broker/handlers",
    "broker/storage",
    "broker/transactions",
    "client",
    "client/consuming",
    "client/consuming/assignors",
    "client/producing",
)
"""Those whose promises the judge knows; nobody promises a text, a metric or an option."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.planted.mutating",
        description="Draws changes of lines that seeds reach, plants each alone, and runs seeds until one shows it.",
        epilog="example: python -m tests.simulation.planted.mutating --count 40 --seeds 10 --draw 1",
    )
    parser.add_argument("--count", type=int, default=40, metavar="N", help="how many are drawn")
    parser.add_argument("--draw", type=int, default=1, metavar="N", help="the same number draws the same ones")
    parser.add_argument("--seeds", type=int, default=10, metavar="N", help="how many for each, from 1 on")
    parser.add_argument("--reached", default="1-6", metavar="A-B", help="by which seeds lines have to be reached")
    parser.add_argument("--minutes", type=float, default=float("inf"), metavar="M", help="begin no more after so long")
    parser.add_argument("--processes", type=int, metavar="P", help="with how many processes; one for each processor")
    asked = parser.parse_args()
    first, _, last = asked.reached.partition("-")
    lines = reached(range(int(first), int(last or first) + 1), asked.processes)
    drawn = list(draw(lines, asked.count, asked.draw))
    shown = tried = 0
    until = time.monotonic() + asked.minutes * 60
    with Pool(asked.processes) as pool:
        for each in drawn:
            if time.monotonic() >= until:
                break
            found = hunt(pool, each.defect, range(1, asked.seeds + 1))
            tried, shown = tried + 1, shown + (found.seed is not None)
            what = f"seed {found.seed}: {', '.join(found.names)}" if found.seed is not None else "NOT SHOWN"
            print(f"{each.name} (line {each.line})\n    {each.told}\n    {what}", flush=True)
    print(f"{shown} of {tried} were shown by up to {asked.seeds} seeds")
    return 0


def reached(seeds: range, processes: int | None) -> dict[str, set[int]]:
    """The lines of each module of `PACKAGES` that any of these seeds reaches."""
    sys.path.append(str(coverage.installed()))
    from coverage import Coverage

    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "seeds"
        coverage.measured(seeds, processes, data)
        together = Coverage(data_file=str(data), branch=True, config_file=False)
        together.combine([folder])
        report = Path(folder) / "report.json"
        together.json_report(outfile=str(report))
        files = json.loads(report.read_text("utf-8"))["files"]
    found = {}
    for name, told in files.items():
        path = (ROOT / name).relative_to(ROOT / "src")
        if str(path.parent.relative_to("tagwire")) in PACKAGES:
            found[".".join(path.with_suffix("").parts)] = set(told["executed_lines"])
    return found


def draw(lines: dict[str, set[int]], count: int, number: int) -> Iterator[Mutant]:
    """So many mutants of these lines, of different functions, that can be planted."""
    every = [each for module in sorted(lines) for each in mutants(module) if each.line in lines[module]]
    random.Random(number).shuffle(every)
    functions: set[str] = set()
    for each in every:
        if len(functions) == count:
            return
        if each.edit.function in functions or not _fits(each):
            continue
        functions.add(each.edit.function)
        yield each


def _fits(each: Mutant) -> bool:
    try:
        plant(each.defect)()
    except (PlantError, SyntaxError):
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
