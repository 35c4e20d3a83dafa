"""Compiled and uncompiled kernels held against each other over any number of cases."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field

from .mutations import Case, case
from .outcomes import Outcome
from .seed import SEED
from .worker import DiedError, Kernels

Pair = tuple[Kernels, ...]
"""Compiled kernels, and uncompiled ones."""

AT_ONCE = 100
ACCEPTED = ("strict", "read", "written", "exchanges")
MOST_TOLD = 12
MOST_CHARACTERS = 1200


@dataclass
class Comparison:
    """What came of many cases.

    Attributes:
        kinds: how many cases there were of each kind.
        accepted: how many of them were read, or written, in one way at least.
        problems: of those that must not be, the first few.
    """

    seed: int
    kinds: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def add(self, one: Case, compiled: Outcome, uncompiled: Outcome) -> None:
        self.kinds[one.kind] += 1
        lines = [line for name, line in compiled.lines.items() if name in ACCEPTED]
        self.accepted[one.kind] += any("Error: " not in line[:60] for line in lines)
        problems = [f"compiled: {fault}" for fault in compiled.faults]
        problems += [f"uncompiled: {fault}" for fault in uncompiled.faults]
        for name in {**compiled.lines, **uncompiled.lines}:
            lines = compiled.lines.get(name), uncompiled.lines.get(name)
            if lines[0] != lines[1]:
                problems.append(f"{name}: {apart(*lines)}")
        if problems:
            self.problems.append("\n  ".join((str(one), *(each[:MOST_CHARACTERS] for each in problems))))

    def report(self) -> str:
        told = "\n".join(self.problems[:MOST_TOLD])
        return f"{SEED}={self.seed}: {len(self.problems)} of {self.kinds.total()} cases went wrong\n{told}"


def compare(seed: int, count: int, *, processes: int = 1) -> Comparison:
    """Compares the outcomes of the first `count` cases of `seed`; `processes` of each kind of kernel share them.

    Raises AssertionError where a process dies, which names the case.
    """
    found = Comparison(seed)
    under_way: deque[tuple[Pair, list[Case]]] = deque()
    with pairs(processes) as idle:
        for at in range(0, count, AT_ONCE):
            batch = [case(seed, number) for number in range(at, min(at + AT_ONCE, count))]
            if not idle:
                idle.append(finish(found, *under_way.popleft()))
            pair = idle.popleft()
            for kernels in pair:
                kernels.start(batch)
            under_way.append((pair, batch))
        for pair, batch in under_way:
            finish(found, pair, batch)
    return found


def apart(compiled: str | None, uncompiled: str | None) -> str:
    """Two lines from shortly before where they differ."""
    one, other = compiled or "nothing", uncompiled or "nothing"
    alike = next((at for at, pair in enumerate(zip(one, other)) if pair[0] != pair[1]), 0)
    start = max(0, alike - 60)
    return f"compiled …{one[start : start + 300]}\n    uncompiled …{other[start : start + 300]}"


def finish(found: Comparison, pair: Pair, batch: list[Case]) -> Pair:
    """Takes in what the kernels say of the cases that they were given."""
    try:
        outcomes = [kernels.outcomes() for kernels in pair]
    except DiedError as error:
        found.problems.append(f"{error}: {culprit(batch)}")
        raise AssertionError(found.report()) from None
    for one, compiled, uncompiled in zip(batch, *outcomes, strict=True):
        found.add(one, compiled, uncompiled)
    return pair


def culprit(batch: list[Case]) -> str:
    """Which case of a batch ends a process."""
    for compiled in (True, False):
        for one in batch:
            with closing(Kernels(compiled=compiled)) as kernels:
                try:
                    kernels.start([one])
                    kernels.outcomes()
                except DiedError as error:
                    return f"{'compiled' if compiled else 'uncompiled'} kernels, {error}: {one}"
    return f"none of the cases {batch[0].seed} to {batch[-1].seed} alone"


@contextmanager
def pairs(count: int) -> Iterator[deque[Pair]]:
    """Processes of compiled and of uncompiled kernels."""
    with ExitStack() as stack:
        made = [
            tuple(stack.enter_context(closing(Kernels(compiled=compiled))) for compiled in (True, False))
            for _ in range(count)
        ]
        yield deque(made)
