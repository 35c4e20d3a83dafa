"""Which branches of the broker and of the client's core seeds reach, and which error paths none has reached.

    python -m tests.simulation.coverage --seeds 1-200 [--missed]

coverage.py is installed for it alone, under .cache/. Its tracer makes seeds several times slower.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .pool import ROOT, Pool, order_of

WANTED: Final = "coverage>=7.6,<8"


SECONDS: Final = 600.0


def installed() -> Path:
    """A directory for PYTHONPATH that has coverage.py.

    Raises:
        SystemExit: pip could not install it.
    """
    place = ROOT / ".cache" / "python" / f"coverage-{sysconfig.get_python_version()}"
    if not place.is_dir():
        draft = place.with_suffix(".part")
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--disable-pip-version-check",
            "--target",
            str(draft),
            WANTED,
        ]
        if subprocess.run(pip, check=False).returncode:
            sys.exit(f"coverage: pip could not install {WANTED}, see above")
        draft.rename(place)
    return place


@dataclass
class Room:
    """Branches and statements of a part of the source, and how many were reached."""

    name: str
    statements: int = 0
    reached: int = 0
    branches: int = 0
    taken: int = 0

    def __str__(self) -> str:
        return (
            f"{self.name:<28}{self.statements:>8}{_percent(self.reached, self.statements):>8}"
            f"{self.branches:>10}{_percent(self.taken, self.branches):>8}"
        )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "-"


def rooms_of(report: dict[str, Any]) -> list[Room]:
    """From what coverage.py reports as JSON: one for each directory, then all."""
    rooms: dict[str, Room] = {}
    whole = Room("all")
    for path, told in sorted(report["files"].items()):
        name = str(Path(path).relative_to("src/tagwire").parent)
        room = rooms.setdefault(name, Room(name))
        for one in (room, whole):
            found = told["summary"]
            one.statements += found["num_statements"]
            one.reached += found["covered_lines"]
            one.branches += found["num_branches"]
            one.taken += found["covered_branches"]
    return [*rooms.values(), whole]


def error_paths(source: str, missing: set[int]) -> Iterator[tuple[int, str]]:
    """The `raise` statements and `except` clauses that no seed has reached: line and text."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        is_raise = isinstance(node, ast.Raise) and node.lineno in missing
        if is_raise or (isinstance(node, ast.ExceptHandler) and node.body[0].lineno in missing):
            yield node.lineno, lines[node.lineno - 1].strip()


def measured(seeds: range, processes: int | None, data: Path) -> int:
    """Runs the seeds, each of which leaves a file beside `data`; gives how many of them found something."""
    env = {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), str(installed())]),
        "TAGWIRE_COVERAGE_DATA": str(data),
    }
    program = "tests.simulation.covered_run"
    with Pool(processes, program=program, seconds=SECONDS, env=env) as pool:
        outcomes = pool.as_they_end(order_of(seed) for seed in seeds)
        return sum(bool(outcome.found) for outcome in outcomes)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.coverage", description=__doc__)
    parser.add_argument("--seeds", default="1-100", metavar="A-B")
    parser.add_argument("--processes", type=int)
    parser.add_argument("--missed", action="store_true", help="list the error paths that no seed has reached")
    asked = parser.parse_args()
    first, _, last = asked.seeds.partition("-")
    sys.path.append(str(installed()))
    import coverage

    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "seeds"
        found = measured(range(int(first), int(last or first) + 1), asked.processes, data)
        together = coverage.Coverage(data_file=str(data), branch=True, config_file=False)
        together.combine([folder])
        out = Path(folder) / "report.json"
        together.json_report(outfile=str(out))
        _print(out, found, asked)


def _print(out: Path, found: int, asked: argparse.Namespace) -> None:
    import json

    report = json.loads(out.read_text("utf-8"))
    print(f"seeds {asked.seeds}; {found} of them found something")
    print(f"{'room':<28}{'lines':>8}{'':>8}{'branches':>10}")
    for room in rooms_of(report):
        print(room)
    if not asked.missed:
        return
    for path, told in sorted(report["files"].items()):
        for line, text in sorted(error_paths(Path(path).read_text("utf-8"), set(told["missing_lines"]))):
            print(f"{path}:{line}: {text}")


if __name__ == "__main__":
    main()
