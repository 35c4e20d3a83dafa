"""Real threads on a log, on a producer's batches and on a core's thread: well by themselves, and not with a race."""

from __future__ import annotations

import os

import pytest

from tagwire.broker.storage import log_lock
from tests.simulation.planted import planted

from .all import STRESSES
from .races import RACES

SECONDS = float(os.environ.get("TAGWIRE_STRESS_SECONDS", "1.5"))
SEED = int(os.environ.get("TAGWIRE_SEED", "1"))

FOUND_IN = 6.0
"""Seconds within which a race is found; each ends with the first thing that is wrong."""


@pytest.mark.parametrize("name", STRESSES)
def test_nothing_is_wrong_with_what_threads_share(name, tmp_path):
    assert log_lock.CHECKED
    assert STRESSES[name](tmp_path, SECONDS, SEED) == []


QUICKLY_FOUND = "logs"
"""Where threads that do not hold the lock are told at once; of the others somebody has to have waited in vain."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if QUICKLY_FOUND in race.breaks else pytest.mark.long)
        for name, race in RACES.items()
    ],
)
def test_a_planted_race_is_found(name, tmp_path):
    race = RACES[name]
    (stress,) = race.breaks
    with planted([race]):
        found = STRESSES[stress](tmp_path, FOUND_IN, SEED)
    assert found
