"""Seeds find planted defects: the quickest here, all of them by `make nightly`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.outcome import Found, Outcome
from tests.simulation.pool import Pool

from . import DEFECTS
from .hunting import hunt, hunt_together
from .table import FOUND_AFTER, rows

QUICKLY_FOUND = ("high-watermark-one-too-high", "watchers-left-behind")
SEEDS = range(1, 9)


@pytest.fixture(scope="module")
def pool():
    with Pool(1) as pool:
        yield pool


CRASH = "crash"
"""What is found where a broker does not start any more for what a defect has left on its disk."""


class Pretended:
    """A pool of which some seeds show some defects, and one finds something without any."""

    processes = 1

    def __init__(self, shows):
        self.shows = shows
        self.runs = 0

    def in_order(self, orders):
        self.runs += len(orders)
        return [self._outcome(order["seed"], order["plants"]) for order in orders]

    def _outcome(self, seed, plants):
        shown = [name for name in plants if seed in self.shows.get(name, ())] + ["unsound"] * (seed == 2)
        return Outcome({"seed": seed}, 1.0, "", [Found(name, "") for name in shown])


def test_defects_that_are_planted_together_are_found_each_by_the_first_seed_that_shows_it():
    names = list(DEFECTS)[:20]
    shows = {names[3]: {4, 5}, names[4]: {4}, names[17]: {2, 3}}
    pool = Pretended(shows)
    hunts = {
        each.defect.name: each.seed for each in hunt_together(pool, [DEFECTS[name] for name in names], range(1, 9))
    }
    assert hunts == {name: min(shows[name]) if name in shows else None for name in names}
    assert pool.runs < 8 * len(names) / 2


@pytest.mark.long
def test_a_defect_is_found_quickly(pool):
    found = hunt(pool, DEFECTS[QUICKLY_FOUND[0]], SEEDS)
    assert found.seed is not None
    assert set(found.names) & {*DEFECTS[QUICKLY_FOUND[0]].breaks, CRASH}


@pytest.mark.nightly
@pytest.mark.parametrize("name", QUICKLY_FOUND[1:])
def test_a_planted_defect_is_found_by_the_first_seeds(pool, name):
    found = hunt(pool, DEFECTS[name], SEEDS)
    assert found.seed is not None
    assert set(found.names) & {*DEFECTS[name].breaks, CRASH}


def test_what_seeds_have_found_are_defects_that_there_are():
    assert set(FOUND_AFTER) <= set(DEFECTS)


def test_the_page_has_the_table_of_planted_defects():
    page = Path(__file__).parents[3] / "docs" / "reliability.md"
    assert "\n".join(rows()) in page.read_text("utf-8")
