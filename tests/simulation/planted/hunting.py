"""Looks for planted defects by seeds: how many it takes until the judge sees each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from tests.simulation.outcome import Outcome
from tests.simulation.pool import Pool, order_of

from .defect import Defect


@dataclass(frozen=True)
class Hunt:
    """What became of looking for a defect.

    Attributes:
        seed: the one that shows it; None where none of those that were tried does.
        tried: how many were.
        names: what the judge calls it.
    """

    defect: Defect
    seed: int | None
    tried: int
    names: tuple[str, ...] = ()


def hunt(pool: Pool, defect: Defect, seeds: Iterable[int]) -> Hunt:
    """Runs seeds with a defect until one finds what it does not find without."""
    tried = 0
    for seed, outcome in _in_turns(pool, defect, seeds):
        tried += 1
        if outcome.found:
            names = _Sound(pool, seed).without(outcome)
            if names:
                return Hunt(defect, seed, tried, names)
    return Hunt(defect, None, tried)


def _in_turns(pool: Pool, defect: Defect, seeds: Iterable[int]) -> Iterator[tuple[int, Outcome]]:
    """Outcomes in the order of the seeds, as many at once as the pool has processes."""
    waiting = list(seeds)
    while waiting:
        some, waiting = waiting[: pool.processes], waiting[pool.processes :]
        yield from zip(some, pool.in_order([order_of(seed, plants=[defect.name]) for seed in some]), strict=True)


def hunt_together(pool: Pool, defects: Iterable[Defect], seeds: Iterable[int]) -> Iterator[Hunt]:
    """Runs seeds with all defects at once, and where one finds anything looks by halves for who shows it: most seeds
    show none of them, and cost as much as with one. Gives each defect that is found, and at the end the others.

    What is found so is found with the defect alone, too. That some seed before it shows it alone, where another defect
    hid it, is possible.
    """
    left, tried = list(defects), 0
    for seed in seeds:
        if not left:
            break
        tried += 1
        sound = _Sound(pool, seed)
        for some in _apart(left):
            for defect, names in _shown(pool, sound, some):
                left.remove(defect)
                yield Hunt(defect, seed, tried, names)
    yield from (Hunt(defect, None, tried) for defect in left)


def _apart(defects: list[Defect]) -> list[list[Defect]]:
    """Defects of which no two change the same function, which only one of them could."""
    groups: list[list[Defect]] = []
    for defect in defects:
        functions = {edit.function for edit in defect.edits}
        for group in groups:
            if not any(edit.function in functions for other in group for edit in other.edits):
                group.append(defect)
                break
        else:
            groups.append([defect])
    return groups


class _Sound:
    """What a seed finds where nothing is planted; looked for once."""

    def __init__(self, pool: Pool, seed: int) -> None:
        self._pool = pool
        self.seed = seed

    @cached_property
    def names(self) -> list[str]:
        """What the judge calls it."""
        (outcome,) = self._pool.in_order([order_of(self.seed)])
        return outcome.names

    def without(self, outcome: Outcome) -> tuple[str, ...]:
        """What was found that is not found here."""
        if not outcome.found:
            return ()
        return tuple(name for name in outcome.names if name not in self.names)


def _shown(pool: Pool, sound: _Sound, defects: list[Defect]) -> list[tuple[Defect, tuple[str, ...]]]:
    """Which of these defects a seed shows, of those that it shows alone."""
    (outcome,) = pool.in_order([order_of(sound.seed, plants=[defect.name for defect in defects])])
    names = sound.without(outcome)
    if not names:
        return []
    if len(defects) == 1:
        return [(defects[0], names)]
    half = len(defects) // 2
    return _shown(pool, sound, defects[:half]) + _shown(pool, sound, defects[half:])
