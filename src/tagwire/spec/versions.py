"""Version ranges: `none`, `N`, `N-M`, `N+` (docs/wire-format.md#version-ranges)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

HIGHEST = 32767
_RANGE = re.compile(r"(\d+)(?:(\+)|-(\d+))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Versions:
    """An inclusive range of int16 versions; empty when `lowest > highest`."""

    lowest: int
    highest: int

    @classmethod
    @lru_cache(4096)
    def parse(cls, text: str) -> Versions:
        """The range `text` spells. Raises ValueError naming the text."""
        text = text.strip()
        if text == "none":
            return NONE
        match = _RANGE.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is no version range: write none, N, N-M or N+")
        lowest = int(match[1])
        highest = HIGHEST if match[2] else int(match[3] or match[1])
        if lowest > HIGHEST or highest > HIGHEST:
            raise ValueError(f"{text!r} goes beyond version {HIGHEST}")
        return cls(lowest, highest) if lowest <= highest else NONE

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.lowest <= version <= self.highest

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.lowest, self.highest + 1))

    def __bool__(self) -> bool:
        return self.lowest <= self.highest

    def __and__(self, other: Versions) -> Versions:
        both = Versions(max(self.lowest, other.lowest), min(self.highest, other.highest))
        return both if both else NONE

    def covers(self, other: Versions) -> bool:
        """Whether every version of `other` is in this range."""
        return not other or (self.lowest <= other.lowest and other.highest <= self.highest)

    def __sub__(self, other: Versions) -> Versions | None:
        """What `other` leaves of this range; None where it would leave two ranges."""
        shared = self & other
        if not shared:
            return self
        if shared == self:
            return NONE
        if shared.lowest == self.lowest:
            return Versions(shared.highest + 1, self.highest)
        if shared.highest == self.highest:
            return Versions(self.lowest, shared.lowest - 1)
        return None

    @property
    def is_open(self) -> bool:
        """Whether the range has no upper end (`N+`)."""
        return bool(self) and self.highest == HIGHEST

    def __str__(self) -> str:
        if not self:
            return "none"
        if self.highest == HIGHEST:
            return f"{self.lowest}+"
        return str(self.lowest) if self.lowest == self.highest else f"{self.lowest}-{self.highest}"


NONE = Versions(0, -1)
