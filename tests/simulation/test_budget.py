"""`make test` runs some seeds, and says which. TAGWIRE_SEED=n begins elsewhere; `make simulate` runs new ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kernel.differential.seed import seed_of_environment

from .pool import Pool
from .searching import search
from .story import story

SEEDS = 3
"""Some twenty to thirty seconds of a processor."""


@pytest.mark.timeout(600)
def test_no_seed_of_a_fixed_budget_finds_anything(record_property: Callable[[str, object], None]) -> None:
    first = seed_of_environment()
    seeds = range(first, first + SEEDS)
    with Pool(1) as pool:
        made = search(pool, seeds, go_on=True)
    record_property("simulated", f"seeds {seeds[0]} to {seeds[-1]}: {made}")
    assert made.seeds == SEEDS
    assert not made.found, "\n".join(story(outcome) for outcome in made.found)
