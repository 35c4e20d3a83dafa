"""What the run of one plan gave, in a form that crosses from one process to another."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Self

Plan = dict[str, Any]


@dataclass(frozen=True)
class Found:
    """An anomaly: its name, what is wrong in a sentence, and the events that show it, as the history's lines."""

    name: str
    told: str
    events: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Outcome:
    """Of one plan.

    Attributes:
        seconds: how long it lasted in the simulated world.
        digest: of the trace, whether or not that is here.
        history, trace: lines; None where they were not asked for.
    """

    plan: Plan
    seconds: float
    digest: str
    found: list[Found]
    history: list[str] | None = None
    trace: list[str] | None = None
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return sorted({found.name for found in self.found})

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        fields = json.loads(text)
        return cls(**{**fields, "found": [Found(**found) for found in fields["found"]]})
