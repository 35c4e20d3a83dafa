"""A simulator without a world, for the tests of what runs one: its plans say themselves what comes of them."""

from __future__ import annotations

import hashlib
import os
import time

from .outcome import Found, Outcome, Plan

_ran: list[int] = []


def prepare() -> None:
    pass


def plan_of(seed: int) -> Plan:
    """Seed 7 loses a write where the writer meets both faults; seed 13 ends its process, 14 and 15 hang."""
    actors = [{"name": name, "steps": 40} for name in ("writer", "reader", "admin", "member")]
    nemesis = [{"at": at, "do": do} for at, do in enumerate(["cut", "kill", "pause", "jump", "cut", "power", "heal"])]
    return {"seed": seed, "duration": 60.0, "actors": actors, "nemesis": nemesis}


def carry_out(seed: int | None, plan: Plan | None, plants: list[str], history: bool, trace: bool) -> Outcome:
    plan = plan_of(seed) if plan is None and seed is not None else plan
    assert plan is not None
    _ran.append(plan["seed"])
    if plan["seed"] == 13:
        os.abort()
    if plan["seed"] == 14:
        time.sleep(600)
    while plan["seed"] == 15:
        pass
    done = {step["do"] for step in plan["nemesis"]}
    writers = [actor for actor in plan["actors"] if actor["name"] == "writer" and actor["steps"] >= 5]
    found = []
    if plan["seed"] == 7 and writers and {"kill", "power"} <= done and plan.get("salt", 0) in (0, 2):
        found.append(Found("lost-write", "a write was acknowledged, and is gone"))
    lines = [f"{len(_ran)} seeds ran here", f"seed {plan['seed']}"]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return Outcome(plan, plan["duration"], digest, found, history=[], trace=lines if trace else None)
