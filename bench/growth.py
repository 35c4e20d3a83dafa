"""How cost grows when the work grows a thousandfold: time and memory at 1, 10, 100 and 1,000 times, and the exponent.

    make bench WHAT=growth
    python bench/growth.py --rows metadata,producers --largest 20000
    python bench/growth.py --json bench/growth.json --write docs/performance.md

Each row at each size is a process of its own, so that its peak of memory is its own. A row that passes its time is
told with the sizes it reached. The exponent is that of the power law that fits best, over all sizes, and of the last
step, where fixed costs hide least: of the wall's time, of the processor's, which neighbours change little, and of
memory beyond what the process had. Above 1.1 is a defect, or is argued in docs/performance.md. Interrupted, it tells
what it has.

--json FILE keeps what is measured beside what the file has of other rows; --write PAGE writes the file's table into
the page, between its markers, and the plot beside it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from growing import fit, page
from growing.row import Row
from rounds import arguments, sized

HERE = Path(__file__).resolve()
PARTS = {
    "records": ("headers", "record-size", "batch-size"),
    "specs": ("fields", "depth"),
    "captures": ("capture",),
    "clusters": ("metadata", "planning", "groups"),
    "embedded": ("broker-partitions", "connections", "producers"),
    "tables": ("commits-delta", "commits-iceberg", "commits-parquet"),
    "spark": ("spark-partitions",),
    "landing": ("landed-rows",),
}
"""{file of bench/growing: its rows}: a process imports what its row needs, and nothing else."""

NAMES = tuple(name for names in PARTS.values() for name in names)
LEAST = ("headers", "batch-size", "fields", "depth", "connections", "producers")
"""With --smallest: whether it runs."""


def row_of(name: str) -> Row:
    part = next(part for part, names in PARTS.items() if name in names)
    module = import_module(f"growing.{part}")
    found = [row for rows in vars(module).values() if isinstance(rows, tuple) for row in rows if isinstance(row, Row)]
    return next(row for row in found if row.name == name)


def measure(name: str, size: int, folder: str) -> None:
    """One row at one size, in this process: what it took, as JSON."""
    from growing.lines import Lines

    lines = Lines()
    row_of(name).measure(size, Path(folder), lines)
    print("\n" + json.dumps(lines.told()), flush=True)


def measured(name: str, size: int, seconds: float) -> dict[str, Any] | str:
    """The lines of a row at a size, from a process of its own; or why there are none."""
    with tempfile.TemporaryDirectory(prefix="tagwire-growth-", ignore_cleanup_errors=True) as folder:
        command = [sys.executable, str(HERE), "--measure", name, str(size), folder]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        try:
            out, said = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return f"not in {seconds:,.0f} s"
        finally:
            # Its brokers and Spark too, which it may have left.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode:
        print(said.decode(errors="replace")[-3000:], file=sys.stderr)
        return f"status {process.returncode}"
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


def grown(name: str, largest: int | None, seconds: float | None) -> dict[str, Any]:
    """A row at its sizes, as long as there is time; each is told as soon as it is there."""
    row = row_of(name)
    limit = row.seconds if seconds is None else seconds
    until = time.monotonic() + limit
    found: dict[str, Any] = {"unit": row.unit, "sizes": {}, "largest": row.sizes[-1], "ended": ""}
    print(f"{name}: {row.unit}", flush=True)
    for size in row.sizes:
        if largest is not None and size > largest:
            found["ended"] = f"{size:,} was not tried"
            break
        told = measured(name, size, max(until - time.monotonic(), 1.0))
        if isinstance(told, str):
            found["ended"] = f"{size:,}: {told}"
            print(f"  {size:>14,}  {told}", flush=True)
            break
        found["sizes"][str(size)] = told
        for line, took in told.items():
            notes = "".join(f"  {value:,.0f} {note}" for note, value in took["notes"].items())
            figures = f"{page.seconds(took['seconds']):>9} {page.seconds(took['cpu']):>9} {took['mib']:8,.0f} MiB"
            print(f"  {size:>14,}  {line:34} {figures}{notes}", flush=True)
    for line in sorted({line for told in found["sizes"].values() for line in told}):
        print(f"  {'':14}  {line:34} " + "   ".join(page.exponents(found, line)), flush=True)
    return found


def main() -> None:
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2], int(sys.argv[3]), sys.argv[4])
        return
    parser = arguments(__doc__)
    parser.add_argument("--rows", default=",".join(sized(NAMES, LEAST)), help="some of: " + ", ".join(NAMES))
    parser.add_argument("--largest", type=int, default=sized(None, 200), help="no size past this")
    parser.add_argument("--seconds", type=float, help="that all sizes of a row may take; each row has its own")
    parser.add_argument("--json", type=Path, help="where figures are kept")
    parser.add_argument("--write", type=Path, help="the page that gets the table, such as docs/performance.md")
    parser.add_argument("--none", action="store_true", help="measure nothing: write what the file has")
    given = parser.parse_args()
    names = [] if given.none else given.rows.split(",")
    if unknown := [name for name in names if name not in NAMES]:
        parser.error(f"no row {unknown[0]!r}: there are {', '.join(NAMES)}")
    kept: dict[str, Any] = json.loads(given.json.read_text()) if given.json and given.json.exists() else {}
    try:
        for name in names:
            kept[name] = grown(name, given.largest, given.seconds)
            if given.json:
                given.json.write_text(json.dumps(in_order(kept), indent=1) + "\n")
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    kept = in_order(kept)
    steep = page.steep(kept)
    print(f"{len(steep)} lines grow faster than {fit.DEFECT}" + "".join(f"\n  {each}" for each in steep))
    if given.write:
        page.write(given.write, kept)


def in_order(kept: dict[str, Any], names: Sequence[str] = NAMES) -> dict[str, Any]:
    return {name: kept[name] for name in names if name in kept}


if __name__ == "__main__":
    main()
