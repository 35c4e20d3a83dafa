"""How a figure grows with its size: the exponent of the power law that fits best, by least squares of logarithms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

LEAST_CPU = 0.002  # seconds: what takes less is the clock's grain and the process's own noise
LEAST_MIB = 4.0  # less is what the allocator asks for at once
DEFECT = 1.1


class Growth(NamedTuple):
    """Of one line: the exponent over all sizes, and that of its last step, which fixed costs hide least. None where
    there are fewer than two sizes whose figure can be told from nothing."""

    exponent: float | None
    last: float | None

    @property
    def is_steep(self) -> bool:
        return any(found is not None and found > DEFECT for found in self)


def growth(figures: Mapping[int, float], least: float) -> Growth:
    """Of figures by size. Those below `least` count as `least`."""
    points = [(math.log(size), math.log(max(figure, least))) for size, figure in sorted(figures.items())]
    if len(points) < 2 or all(figure <= least for figure in figures.values()):
        return Growth(None, None)
    (before, low), (after, high) = points[-2:]
    return Growth(slope(points), (high - low) / (after - before))


def slope(points: list[tuple[float, float]]) -> float:
    """Of the straight line with the least squares."""
    x, y = (sum(values) / len(points) for values in zip(*points))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def by_line(sizes: Mapping[str, Any], what: str) -> dict[str, dict[int, float]]:
    """{line: {size: figure}} of what a row's processes told: {size: {line: figures}}."""
    found: dict[str, dict[int, float]] = {}
    for size, lines in sizes.items():
        for name, figures in lines.items():
            found.setdefault(name, {})[int(size)] = figures[what]
    return found
