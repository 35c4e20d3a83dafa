"""A seed is one story, whatever else differs: the process, what ran before, the hash seed, the kernels."""

from __future__ import annotations

import pytest

from .outcome import Outcome, Plan
from .pool import Stem, order_of
from .workload import plan

Told = tuple[str, list[str] | None, list[str] | None]


def short(seed: int) -> Plan:
    """A seed's plan, cut short: what decides an order shows within seconds."""
    return {**plan(seed), "duration": 5.0, "settle": 4.0}


PLANS = [short(seed) for seed in (2, 7)]
"""Of producers that send again, and of a group."""

OTHERWISE = {"PYTHONHASHSEED": "271828", "TAGWIRE_PURE": "1", "TAGWIRE_CHECK_LOCKS": "0"}


def told(env: dict[str, str], plans: list[Plan]) -> list[Told]:
    with Stem(env=env) as stem:
        return [story(stem.run(order_of(plan=plan, trace=True, history=True))) for plan in plans]


def story(outcome: Outcome) -> Told:
    assert outcome.digest, outcome.found
    return outcome.digest, outcome.trace, outcome.history


@pytest.fixture(scope="module")
def first() -> list[Told]:
    return told({"PYTHONHASHSEED": "1"}, PLANS)


def test_a_seed_is_told_the_same_by_another_process_that_differs_in_everything(first: list[Told]) -> None:
    """Another hash seed, kernels that are not compiled, locks unchecked, and other seeds before it."""
    order = [1, 0]
    assert told(OTHERWISE, [PLANS[at] for at in order]) == [first[at] for at in order]


def test_two_seeds_are_two_stories(first: list[Told]) -> None:
    assert len({digest for digest, _, _ in first}) == len(PLANS)
    assert all(trace and history for _, trace, history in first)


@pytest.mark.nightly
@pytest.mark.parametrize("name", OTHERWISE)
def test_a_seed_is_told_the_same_where_one_thing_differs(name: str, first: list[Told]) -> None:
    assert told({"PYTHONHASHSEED": "1", name: OTHERWISE[name]}, PLANS) == first


@pytest.mark.nightly
def test_to_ask_for_the_trace_changes_nothing(first: list[Told]) -> None:
    with Stem(env={"PYTHONHASHSEED": "1"}) as stem:
        assert stem.run(order_of(plan=PLANS[0])).digest == first[0][0]


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_a_seed_is_told_the_same_as_the_fiftieth_of_its_process(first: list[Told]) -> None:
    others = [short(seed) for seed in range(1000, 1049)]
    assert told({"PYTHONHASHSEED": "1"}, [*others, PLANS[0]])[-1] == first[0]
