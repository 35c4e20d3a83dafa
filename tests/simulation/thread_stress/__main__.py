"""Runs the stress of threads: `python -m tests.simulation.thread_stress --help`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

os.environ["TAGWIRE_CHECK_LOCKS"] = "1"  # read when the broker is imported


def main() -> int:
    from tests.simulation.planted import planted

    from .all import STRESSES
    from .races import RACES

    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.thread_stress",
        description="Real threads on one log, one producer's batches, one core's thread.",
        epilog="Exit status: 0 nothing was wrong, 1 something was.",
    )
    parser.add_argument("--seconds", type=float, default=30.0, metavar="S", help="for how long, all together")
    parser.add_argument("--plant", choices=RACES, metavar="NAME", help=f"with a defect: {', '.join(RACES)}")
    asked = parser.parse_args()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        names = list(STRESSES)
        if asked.plant is not None:
            stack.enter_context(planted([RACES[asked.plant]]))
            names = list(RACES[asked.plant].breaks)
        is_wrong = False
        for number, name in enumerate(names):
            began = time.monotonic()
            (directory / str(number)).mkdir()
            problems = STRESSES[name](directory / str(number), asked.seconds / len(names), number)
            took = time.monotonic() - began
            sys.stdout.write(f"{name}: {'; '.join(problems) or 'nothing was wrong'} ({took:.1f} s)\n")
            is_wrong |= bool(problems)
        return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
