"""A plan becomes as small as it can while what it shows stays: delta debugging over its actors and the nemesis' steps.

To take something away changes the order in which the rest runs, so that an anomaly which needs one order may hide. Each
candidate is therefore tried under several schedules (`salt`), which are part of the plan.

Source: A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from math import inf
from typing import Any, Final

from .outcome import Outcome, Plan

SALTS: Final = 3
LISTS: Final = ("last", "nemesis", "actors")
# What an actor has that may be less of.
AMOUNTS: Final = ("steps", "records", "count")

Runs = Callable[[list[Plan]], list[Outcome]]


class Shrinking:
    """The search for a smaller plan.

    Args:
        run: what the plans give, in their order.
        wanted: the anomaly that has to stay.
        runs: how many plans it may try.
        seconds: after how long it ends with what it has.
    """

    def __init__(self, run: Runs, wanted: str, runs: int = 400, seconds: float = inf) -> None:
        self._run = run
        self._wanted = wanted
        self._runs = runs
        self._until = time.monotonic() + seconds
        self.tried = 0

    @property
    def _is_over(self) -> bool:
        return self.tried >= self._runs or time.monotonic() >= self._until

    def smallest(self, outcome: Outcome) -> Outcome:
        """The outcome of the smallest plan found; `outcome` itself where none is smaller."""
        while True:
            before = outcome
            for key in LISTS:
                outcome = self._fewer(outcome, key)
            outcome = self._less(outcome)
            if outcome is before or self._is_over:
                return outcome

    def _fewer(self, outcome: Outcome, key: str) -> Outcome:
        """ddmin over the items of a list."""
        pieces = 2
        while (items := outcome.plan.get(key) or []) and not self._is_over:
            size = max(1, len(items) // pieces)
            starts = range(0, len(items), size)
            candidates = [{**outcome.plan, key: items[:start] + items[start + size :]} for start in starts]
            smaller = self._first(candidates)
            if smaller is not None:
                outcome = smaller
                pieces = max(2, pieces - 1)
            elif size == 1:
                break
            else:
                pieces = min(len(items), pieces * 2)
        return outcome

    def _less(self, outcome: Outcome) -> Outcome:
        """Numbers halved, one at a time."""
        while not self._is_over:
            smaller = self._first(list(_halved(outcome.plan)))
            if smaller is None:
                break
            outcome = smaller
        return outcome

    def _first(self, candidates: list[Plan]) -> Outcome | None:
        """What the first candidate gives that shows the anomaly under one of the schedules."""
        for candidate in candidates:
            if self._is_over:
                break
            salts = dict.fromkeys([candidate.get("salt", 0), *range(SALTS)])
            outcomes = self._run([{**candidate, "salt": salt} for salt in salts])
            self.tried += len(outcomes)
            for outcome in outcomes:
                if self._wanted in outcome.names:
                    return outcome
        return None


def _halved(plan: Plan) -> Iterator[Plan]:
    if plan.get("duration", 0) > 1:
        yield {**plan, "duration": plan["duration"] / 2}
    for number, actor in enumerate(plan.get("actors", ())):
        for name in AMOUNTS:
            amount: Any = actor.get(name)
            if isinstance(amount, int) and amount > 1:
                actors = list(plan["actors"])
                actors[number] = {**actor, name: amount // 2}
                yield {**plan, "actors": actors}
