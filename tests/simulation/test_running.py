"""Plans run in processes of their own, are searched, and become small."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

import pytest

from . import pretended
from .outcome import Outcome, Plan
from .pool import CRASHED, HUNG, Pool, order_of
from .searching import search
from .shrinking import Shrinking

PRETENDED = "tests.simulation.pretended"


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(2, program=PRETENDED, seconds=1.0) as pool:
        yield pool


def test_a_seed_finds_nothing_of_the_seeds_before_it(pool: Pool) -> None:
    outcomes = pool.in_order([order_of(seed, trace=True) for seed in [*range(20, 60), 20]])
    assert [outcome.trace for outcome in outcomes] == [
        ["1 seeds ran here", f"seed {seed}"] for seed in [*range(20, 60), 20]
    ]


def test_a_seed_that_ends_its_process_is_a_finding(pool: Pool) -> None:
    [outcome] = pool.in_order([order_of(13)])
    assert outcome.names == [CRASHED]
    assert outcome.plan["seed"] == 13
    assert "ended with -6" in outcome.found[0].told


@pytest.mark.parametrize("seed", [14, 15], ids=["and waits", "and spins"])
def test_a_seed_that_hangs_is_a_finding_that_says_where(seed: int, pool: Pool) -> None:
    [outcome] = pool.in_order([order_of(seed)])
    assert outcome.names == [HUNG]
    assert "in carry_out" in outcome.found[0].told


def test_an_exception_of_the_simulator_is_a_finding_with_its_traceback(pool: Pool) -> None:
    [outcome] = pool.in_order([order_of(plan={"seed": 1})])
    assert outcome.names == [CRASHED]
    assert "KeyError: 'nemesis'" in outcome.found[0].told


def test_after_a_crash_the_next_seed_runs_as_ever(pool: Pool) -> None:
    outcomes = pool.in_order([order_of(seed) for seed in (13, 20, 13, 21, 22)])
    assert [outcome.names for outcome in outcomes] == [[CRASHED], [], [CRASHED], [], []]


def test_a_search_stops_at_the_first_finding(pool: Pool) -> None:
    told: list[Outcome] = []
    # Without end; and the other process may be far ahead when 7 ends, where no other seed shows anything.
    made = search(pool, itertools.chain(range(1, 8), itertools.repeat(20)), told=told.append)
    assert [outcome.names for outcome in told] == [["lost-write"]]
    assert made.found == told
    assert made.seeds >= 7


def test_a_search_that_goes_on_runs_every_seed(pool: Pool) -> None:
    made = search(pool, range(5, 14), go_on=True)
    assert made.seeds == 9
    assert sorted(outcome.plan["seed"] for outcome in made.found) == [7, 13]
    assert made.seconds == 8 * 60.0


def test_a_search_tells_as_json_what_was_found_by_which_seed_and_how_it_is_replayed(pool: Pool) -> None:
    told = json.loads(search(pool, range(5, 9), go_on=True).to_json(["ack-before-fsync"]))
    [found] = told.pop("found")
    assert (told["seeds"], told["seconds"], told["interrupted"]) == (4, 240.0, False)
    assert (found["seed"], found["names"]) == (7, ["lost-write"])
    assert found["anomalies"] == [{"name": "lost-write", "told": "a write was acknowledged, and is gone"}]
    assert found["replay"] == "python -m tests.simulation --seed 7 --plant ack-before-fsync"
    assert len(found["trace"]) == 64


def test_a_search_ends_when_its_time_is_up(pool: Pool) -> None:
    made = search(pool, itertools.repeat(20), seconds=0.5)
    assert made.seeds > 0
    assert not made.found


def test_a_plan_becomes_as_small_as_what_it_shows_needs(pool: Pool) -> None:
    def shrunk() -> tuple[Plan, int]:
        shrinking = Shrinking(
            lambda plans: pool.in_order([order_of(plan=plan) for plan in plans]), "lost-write", runs=400
        )
        [whole] = pool.in_order([order_of(7)])
        return shrinking.smallest(whole).plan, shrinking.tried

    plan, tried = shrunk()
    assert plan["actors"] == [{"name": "writer", "steps": 5}]
    assert [step["do"] for step in plan["nemesis"]] == ["kill", "power"]
    assert plan["duration"] < 2
    assert shrunk() == (plan, tried)


def test_what_shows_nothing_smaller_stays_as_it_is() -> None:
    plan = {
        "seed": 7,
        "duration": 1.0,
        "actors": [{"name": "writer", "steps": 5}],
        "nemesis": [{"do": "kill"}, {"do": "power"}],
    }
    whole = pretended.carry_out(None, plan, [], False, False)
    shrinking = Shrinking(lambda plans: [pretended.carry_out(None, p, [], False, False) for p in plans], "lost-write")
    assert shrinking.smallest(whole) is whole


def test_a_shrinking_tries_no_more_plans_than_it_may() -> None:
    [whole] = [pretended.carry_out(7, None, [], False, False)]
    shrinking = Shrinking(
        lambda plans: [pretended.carry_out(None, p, [], False, False) for p in plans], "lost-write", runs=10
    )
    assert "lost-write" in shrinking.smallest(whole).names
    assert shrinking.tried <= 12
