"""Looks for planted defects: `python -m tests.simulation.planted --help`."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator

from tests.simulation.pool import Pool

from . import DEFECTS
from .hunting import Hunt, hunt, hunt_together
from .table import FOUND_AFTER


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.planted",
        description="Plants defects, one after the other, and runs seeds from 1 on until each is found.",
        epilog="Exit status: 0 all that were looked for were found, 1 one was not.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a defect; all of them without")
    parser.add_argument("--missing", action="store_true", help="those that the table does not have as found")
    parser.add_argument("--together", action="store_true", help="plant all of them at once, and see who shows")
    parser.add_argument("--from", type=int, default=1, metavar="N", dest="first", help="the first seed")
    parser.add_argument("--seeds", type=int, metavar="N", help="how many seeds for each; as many as its bound without")
    parser.add_argument("--minutes", type=float, default=float("inf"), metavar="M", help="begin no more after so long")
    parser.add_argument("--processes", type=int, metavar="P", help="with how many processes; one for each processor")
    asked = parser.parse_args()
    names = asked.names or [name for name in DEFECTS if not asked.missing or name not in FOUND_AFTER]
    with Pool(asked.processes) as pool:
        hunts = list((_together if asked.together else _in_turn)(pool, names, asked))
    missed = [found.defect.name for found in hunts if found.seed is None]
    print(f"not found: {', '.join(missed) or 'none'}")
    return int(bool(missed))


def _in_turn(pool: Pool, names: list[str], asked: argparse.Namespace) -> Iterator[Hunt]:
    until = time.monotonic() + asked.minutes * 60
    for name in names:
        if time.monotonic() >= until:
            yield _told(Hunt(DEFECTS[name], None, 0))
            continue
        count = asked.seeds or DEFECTS[name].seeds
        yield _told(hunt(pool, DEFECTS[name], range(asked.first, asked.first + count)))


def _together(pool: Pool, names: list[str], asked: argparse.Namespace) -> Iterator[Hunt]:
    until = time.monotonic() + asked.minutes * 60
    count = asked.seeds or max(DEFECTS[name].seeds for name in names)
    seeds = itertools.takewhile(lambda _: time.monotonic() < until, range(asked.first, asked.first + count))
    for found in hunt_together(pool, [DEFECTS[name] for name in names], seeds):
        yield _told(found)


def _told(found: Hunt) -> Hunt:
    print(told(found), flush=True)
    return found


def told(found: Hunt) -> str:
    """A line about a hunt."""
    if found.seed is None:
        return f"{found.defect.name}: not found by {found.tried} seeds"
    return f"{found.defect.name}: seed {found.seed}, the {found.tried}. that was tried: {', '.join(found.names)}"


if __name__ == "__main__":
    sys.exit(main())
