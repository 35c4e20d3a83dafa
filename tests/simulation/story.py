"""What a run showed, for people."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

from .history import Event
from .outcome import Found, Outcome, Plan


def story(outcome: Outcome, *, plants: list[str] | None = None, saved: Path | None = None) -> str:
    """Seed, the first anomaly of each name with its shortest history, and the command that replays it.

    Args:
        saved: where the plan is; None for the seed's own.
    """
    parts = [f"seed {outcome.plan.get('seed')}: {', '.join(outcome.names)}"]
    for name, alike in groupby(sorted(outcome.found, key=lambda found: found.name), key=lambda found: found.name):
        first, *more = alike
        parts.append(_anomaly(first))
        if more:
            parts.append(f"{name}: and {len(more)} more")
    parts.append(f"replay: {command(outcome.plan, plants or [], saved)}")
    return "\n".join(parts)


def _anomaly(found: Found) -> str:
    events = [f"  {Event(**json.loads(line))}" for line in found.events]
    return "\n".join([f"{found.name}: {found.told}", *events])


def command(plan: Plan, plants: list[str], saved: Path | None = None) -> str:
    planted = "".join(f" --plant {name}" for name in plants)
    which = f"--seed {plan.get('seed')}" if saved is None else f"--plan {saved}"
    return f"python -m tests.simulation {which}{planted}"


def plan_told(plan: Plan) -> str:
    """The plan itself: one line for each actor and each step of the nemesis."""
    lines = []
    for key, value in plan.items():
        if isinstance(value, list):
            lines += [f"{key}:", *(f"  {_short(item)}" for item in value)]
        else:
            lines.append(f"{key}: {_short(value)}")
    return "\n".join(lines)


def _short(value: Any) -> str:
    return json.dumps(value, separators=(", ", ": "))
