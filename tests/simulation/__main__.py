"""Runs the simulator: `python -m tests.simulation --help`, and docs/reliability.md."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from pathlib import Path

from .outcome import Outcome, Plan
from .pool import SECONDS, Pool, order_of
from .searching import Search, from_seed, search
from .shrinking import Shrinking
from .story import plan_told, story

# New seeds are drawn from here on, so that two runs of `make simulate` hardly ever meet.
NEW_SEEDS = 1 << 48


EXAMPLES = """examples:
  python -m tests.simulation --minutes 10
  python -m tests.simulation --seed 42 --trace
  python -m tests.simulation --plant ack-before-fsync --seeds 1-30
  python -m tests.simulation --plant ack-before-fsync --seed 1 --shrink

exit status: 0 nothing was found, 1 something was, 2 it could not be run as asked, 130 it was interrupted before"""
INTERRUPTED = 130

SHRINKING_S = 240.0
SHRUNK = Path("build") / "simulation"
"""Where the plan is kept that `--shrink` ends with."""


def main(arguments: list[str] | None = None) -> int:
    parser = command_line()
    asked = parser.parse_args(arguments)
    if asked.plants:
        return _planted(as_json=asked.json)
    try:
        _check(asked)
        return _run(asked)
    except (OSError, ValueError) as error:
        parser.exit(2, f"{parser.prog}: error: {error}\n")
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _check(asked: argparse.Namespace) -> None:
    """Raises ValueError or OSError where it cannot be run as asked."""
    one = asked.seed is not None or asked.plan is not None
    for name in ("trace", "shrink", "history", "save_plan"):
        if getattr(asked, name) and not one:
            raise ValueError(f"--{name.replace('_', '-')} is for one --seed or --plan")
    for path in (asked.history, asked.save_plan):
        if path is not None and not path.parent.is_dir():
            raise ValueError(f"there is no directory {path.parent}")
    if asked.first is not None and asked.minutes is None:
        raise ValueError("--from is for --minutes")
    if asked.plant:
        from .planted import PlantError, defect

        try:
            for name in asked.plant:
                defect(name)
        except PlantError as error:
            raise ValueError(f"{error}; --plants says which there are") from None
    asked.planned = None if asked.plan is None else _plan_of(asked.plan)


def _plan_of(path: Path) -> Plan:
    try:
        plan = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no plan: {error}") from None
    if not isinstance(plan, dict) or "seed" not in plan or "actors" not in plan:
        raise ValueError(f"{path} is no plan: it has no seed, or no actors")
    return plan


def _run(asked: argparse.Namespace) -> int:
    one = asked.seed is not None or asked.plan is not None
    with Pool(1 if one and not asked.shrink else asked.processes, seconds=asked.limit) as pool:
        return _one(pool, asked) if one else _many(pool, asked)


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation",
        description="Runs client and broker in a simulated world, which a seed decides, and judges what happened.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--seed", type=int, metavar="N", help="run this seed")
    which.add_argument("--seeds", type=_range, metavar="A-B", help="run these seeds, A and B among them")
    which.add_argument("--plan", type=Path, metavar="FILE", help="run the plan in this file, as --save-plan wrote it")
    which.add_argument("--minutes", type=_positive, metavar="M", help="run new seeds for so long")
    which.add_argument("--plants", action="store_true", help="say which defects can be planted")
    parser.add_argument("--from", dest="first", type=int, metavar="N", help="with --minutes: begin at this seed")
    parser.add_argument("--processes", type=_count, metavar="P", help="with how many processes; one for each processor")
    parser.add_argument(
        "--plant", action="append", default=[], metavar="NAME", help="with this defect; may be repeated"
    )
    parser.add_argument("--go-on", action="store_true", help="do not stop at the first finding")
    parser.add_argument(
        "--limit", type=_positive, default=SECONDS, metavar="S", help="seconds of a processor that a seed may take"
    )
    parser.add_argument("--trace", action="store_true", help="tell what happened, request by request")
    parser.add_argument("--history", type=Path, metavar="FILE", help="write the history, as JSON lines")
    parser.add_argument(
        "--shrink", action="store_true", help="look for the smallest plan that shows the same, for some minutes"
    )
    parser.add_argument("--save-plan", type=Path, metavar="FILE", help="write the plan, the shrunk one with --shrink")
    parser.add_argument("--json", action="store_true", help="print as JSON what was found, or which defects there are")
    return parser


def _range(text: str) -> range:
    first, _, last = text.partition("-")
    try:
        seeds = range(int(first), int(last or first) + 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not as 1-100") from None
    if not seeds:
        raise argparse.ArgumentTypeError(f"{text} has no seeds")
    return seeds


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not more than 0")
    return number


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return number


def _planted(*, as_json: bool) -> int:
    from .planted.table import rows, to_json

    print(to_json() if as_json else "\n".join(rows()))
    return 0


def _one(pool: Pool, asked: argparse.Namespace) -> int:
    wanted = {"plants": asked.plant, "history": asked.history is not None, "trace": asked.trace}
    [outcome] = pool.in_order([order_of(asked.seed, asked.planned, **wanted)])
    if asked.shrink and outcome.found:
        outcome = _shrunk(pool, outcome, asked.plant)
        if asked.save_plan is None:
            SHRUNK.mkdir(parents=True, exist_ok=True)
            asked.save_plan = SHRUNK / f"plan-{outcome.plan['seed']}.json"
        asked.plan = asked.save_plan
        [outcome] = pool.in_order([order_of(plan=outcome.plan, **wanted)])
    if asked.history is not None:
        asked.history.write_text("".join(f"{line}\n" for line in outcome.history or ()), "utf-8")
    if asked.save_plan is not None:
        asked.save_plan.write_text(json.dumps(outcome.plan, indent=1) + "\n", "utf-8")
    if asked.json:
        print(outcome.to_json())
    else:
        _tell(outcome, asked)
    return 1 if outcome.found else 0


def _tell(outcome: Outcome, asked: argparse.Namespace) -> None:
    for line in outcome.trace or ():
        print(line)
    if asked.shrink and outcome.found:
        print(plan_told(outcome.plan))
    if outcome.found:
        print(story(outcome, plants=asked.plant, saved=asked.plan))
    else:
        counted = ", ".join(f"{count} {what}" for what, count in sorted(outcome.counts.items()))
        print(f"seed {outcome.plan.get('seed')}: nothing found in {outcome.seconds:.1f} simulated seconds; {counted}")
    print(f"trace {outcome.digest}")


def _shrunk(pool: Pool, outcome: Outcome, plants: list[str]) -> Outcome:
    def run(plans: list[Plan]) -> list[Outcome]:
        return pool.in_order([order_of(plan=plan, plants=plants) for plan in plans])

    shrinking = Shrinking(run, outcome.names[0], seconds=SHRINKING_S)
    smallest = shrinking.smallest(outcome)
    print(f"{shrinking.tried} plans tried for {outcome.names[0]}", file=sys.stderr)
    return smallest


def _many(pool: Pool, asked: argparse.Namespace) -> int:
    if asked.seeds is not None:
        made = _search(pool, asked, first=asked.seeds[0], last=asked.seeds[-1])
    else:
        first = secrets.randbelow(NEW_SEEDS) if asked.first is None else asked.first
        made = _search(pool, asked, first=first, seconds=60 * asked.minutes)
    if asked.json:
        print(made.to_json(asked.plant))
    if made.found:
        return 1
    return INTERRUPTED if made.interrupted else 0


def _search(
    pool: Pool, asked: argparse.Namespace, *, first: int, last: int | None = None, seconds: float | None = None
) -> Search:
    def told(outcome: Outcome) -> None:
        if not asked.json:
            print(story(outcome, plants=asked.plant), flush=True)

    where = f"from seed {first}" if last is None else f"seeds {first}-{last}"
    print(f"{where}, on {pool.processes} processes", file=sys.stderr, flush=True)
    seeds = from_seed(first) if last is None else range(first, last + 1)
    made = search(pool, seeds, plants=asked.plant, seconds=seconds, go_on=asked.go_on, told=told, progress=sys.stderr)
    print(f"{where}: {made}", file=sys.stderr)
    return made


if __name__ == "__main__":
    sys.exit(main())
