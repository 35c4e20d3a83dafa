"""Runs programs on both brokers in lock step, and makes those shorter on which they differ."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from tagwire import messages

from .answers import Reading, codes, differing
from .known import is_known, sets_apart
from .program import Program, Step
from .side import Side

_READS: Final = frozenset(
    {
        "ListOffsets",
        "OffsetForLeaderEpoch",
        "DescribeProducers",
        "DescribeTransactions",
        "ListTransactions",
        "OffsetFetch",
        "DescribeGroups",
        "ListGroups",
        "ConsumerGroupDescribe",
        "Metadata",
        "DescribeConfigs",
        "DescribeTopicPartitions",
        "DescribeClientQuotas",
        "DescribeUserScramCredentials",
        "DescribeLogDirs",
        "DescribeAcls",
        "ListConfigResources",
        "ListPartitionReassignments",
    }
)
"""What changes nothing: Kafka is asked again, where it does a thing after it has answered."""

_WAIT: Final = 1.5

STUCK: Final = "a transaction of Kafka's does not come to its end where an administrator's marker has a later epoch"


@dataclass(frozen=True)
class Difference:
    """The first answer of a program that is another one.

    Attributes:
        at: which step.
        paths: where in the answer.
    """

    at: int
    step: Step
    paths: frozenset[str]
    theirs: Any
    ours: Any

    def is_like(self, other: Difference | None) -> bool:
        """Whether the other is of the same cause, as far as can be seen."""
        return other is not None and other._signature == self._signature

    @property
    def _signature(self) -> tuple[object, ...]:
        return self.step.api, self.paths, *(frozenset(codes(answer)) for answer in (self.theirs, self.ours))


class Brokers:
    """Kafka's and ours."""

    def __init__(self, theirs: str, ours: str) -> None:
        self._addresses = theirs, ours
        self.known: dict[str, int] = {}
        self.asked = 0
        with self._sides() as sides:
            for side in sides:
                side.warm_up()
            kafkas, served = (side.versions() for side in sides)
        self._versions = {
            key: range(max(lowest, served[key][0]), min(highest, served[key][1]) + 1)
            for key, (lowest, highest) in kafkas.items()
            if key in served
        }

    def versions(self, api: str) -> Sequence[int]:
        """Those of an API that both serve."""
        return self._versions.get(getattr(messages, f"{api}Request").api_key, range(0))

    @contextmanager
    def _sides(self) -> Iterator[tuple[Side, Side]]:
        tag, now = f"r{secrets.token_hex(4)}-", int(time.time() * 1000)
        theirs, ours = (Side(address, tag, now, more) for address, more in zip(self._addresses, (1, 0)))
        try:
            yield theirs, ours
        finally:
            theirs.close()
            ours.close()

    def run(self, program: Program) -> Difference | None:
        """The first difference that is none of the known ones."""
        with self._sides() as (theirs, ours):
            for side in (theirs, ours):
                side.prepare(program)
            for at, step in enumerate(program.steps):
                self.asked += 1
                found = self._compare(step, theirs, ours)
                if theirs.is_stuck:
                    self.known[STUCK] = self.known.get(STUCK, 0) + 1
                    return None
                if found is None:
                    continue
                paths = frozenset(differing(*found))
                known = is_known(step, paths, *found)
                if known is None:
                    return Difference(at, step, paths, *found)
                self.known[known] = self.known.get(known, 0) + 1
                if sets_apart(step, *found):
                    return None
        return None

    def _compare(self, step: Step, theirs: Side, ours: Side) -> tuple[Any, Any] | None:
        said, told = theirs.say(step), ours.say(step)
        until = time.monotonic() + _WAIT
        while True:
            expected, found = Reading(theirs, step.api).read(said), Reading(ours, step.api).read(told)
            if expected == found:
                return None
            again = step.api in _READS or (step.api == "Fetch" and step.body.get("sessionEpoch", -1) == -1)
            if not again or time.monotonic() > until:
                return expected, found
            time.sleep(0.03)
            said = theirs.say(step)

    def shortened(self, program: Program, difference: Difference, seconds: float = 30) -> tuple[Program, Difference]:
        """The program with as few steps as still show the difference."""
        until = time.monotonic() + seconds
        kept = list(program.steps[: difference.at + 1])
        size = len(kept) // 2
        while size and time.monotonic() < until:
            at = len(kept) - 1 - size
            while at > -size and time.monotonic() < until:
                begin = max(at, 0)
                tried = [*kept[:begin], *kept[at + size :]]
                found = self.run(replace(program, steps=tried))
                if found is not None and difference.is_like(found):
                    kept, difference = tried[: found.at + 1], found
                at -= size
            size //= 2
        used = {name: how for name, how in program.topics.items() if name in repr(kept)}
        return Program(used, kept), difference


def told(program: Program, difference: Difference) -> str:
    """A difference for a person."""
    lines = [f"topics {dict(program.topics)}"]
    lines += [f"  {step}" for step in program.steps]
    lines += [f"differ at {sorted(difference.paths)}:", f"  Kafka {difference.theirs}", f"  ours  {difference.ours}"]
    return "\n".join(lines)
