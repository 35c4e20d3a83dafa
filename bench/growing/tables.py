"""Commits of a landed table: what one costs, by how many there were before it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from growing.lines import Lines
from growing.row import Row, thousandfold

MEASURED = 5


def timed(commit: Callable[[], float]) -> tuple[float, float]:
    """Its seconds, and those of the processor, which it gives."""
    started = time.perf_counter()
    cpu = commit()
    return time.perf_counter() - started, cpu


def commits(size: int, folder: Path, lines: Lines, *, format: str) -> None:
    """The median of five commits before the `size`th."""
    from land_commits import Growing

    from tagwire.spark.tables.opening import open_table

    growing = Growing(open_table(folder / "table", format), folder / "table")
    growing.until(size - MEASURED)
    with lines.line("one commit, with its file") as line:
        taken = [timed(growing.commit) for _ in range(MEASURED)]
    # The first one loads the library of the format.
    line.seconds, line.cpu = (statistics.median(figures) for figures in zip(*taken))
    line.notes["files"] = sum(path.is_file() for path in (folder / "table").rglob("*"))


ROWS_OF_TABLES = tuple(
    Row(f"commits-{format}", f"commits of a {format} table", thousandfold(10), partial(commits, format=format))
    for format in ("delta", "iceberg", "parquet")
)
