"""Runs the benches: `python bench/run.py land`, or `all`. Each bench is one file, one claim, runnable by itself."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent
NOT_BENCHES = {"run", "rounds", "brokers", "client_producing", "spark_delta", "spark_sources"}


def main() -> int:
    known = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in NOT_BENCHES)
    wanted = sys.argv[1] if len(sys.argv) > 1 else "all"
    if wanted != "all" and wanted not in known:
        print(f"no bench {wanted!r}: there are {', '.join(known)} and all", file=sys.stderr)
        return 2
    for name in known if wanted == "all" else [wanted]:
        print(f"== {name}", flush=True)
        sys.argv = [name]  # the bench reads its own arguments, and this file's are not among them
        runpy.run_path(str(HERE / f"{name}.py"), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    sys.exit(main())
