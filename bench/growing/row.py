"""A row: what grows, at which sizes, and what is done at each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from growing.lines import Lines

TIMES: Final = (1, 10, 100, 1_000)


@dataclass(frozen=True)
class Row:
    """One thing that grows.

    Attributes:
        name: on the command line.
        unit: what a size counts.
        sizes: ascending; the last ones are left out where time is up.
        measure: fills the lines at one size, with a folder of its own. It runs in a process of its own.
        seconds: that all sizes together may take.
        why: what is said of a line whose exponent is past 1.1, or whose memory grows: by the line's name.
    """

    name: str
    unit: str
    sizes: tuple[int, ...]
    measure: Callable[[int, Path, Lines], None]
    seconds: float = 300.0


def thousandfold(least: int) -> tuple[int, ...]:
    """1, 10, 100 and 1,000 times `least`."""
    return tuple(least * times for times in TIMES)
