"""Ranges of versions: (lowest, highest), both included, kept by API key."""

from __future__ import annotations

from collections.abc import Mapping

from tagwire.spec.versions import Versions

Range = tuple[int, int]
"""The lowest and the highest version, both included."""
Ranges = Mapping[int, Range]
"""{API key: its range of versions}."""


def intersect(*sides: Ranges) -> dict[int, Range]:
    """The range of every API that all sides share. An API that one side lacks, or with nothing in common, is left
    out."""
    if not sides:
        return {}
    shared = set(sides[0]).intersection(*sides[1:])
    ranges = {api: overlap(*(side[api] for side in sides)) for api in sorted(shared)}
    return {api: both for api, both in ranges.items() if both is not None}


def overlap(*ranges: Range) -> Range | None:
    """The versions that all ranges hold, or None."""
    lowest = max(low for low, _ in ranges)
    highest = min(high for _, high in ranges)
    return (lowest, highest) if lowest <= highest else None


def range_text(versions: Range) -> str:
    """`(0, 3)` is "0-3", `(3, 3)` is "3", `(3, 32767)` is "3+"."""
    return str(Versions(*versions)) if 0 <= versions[0] <= versions[1] else f"{versions[0]}-{versions[1]}"
