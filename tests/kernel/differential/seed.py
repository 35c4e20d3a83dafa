"""Which cases a run makes."""

from __future__ import annotations

import os

SEED = "TAGWIRE_SEED"


def seed_of_environment() -> int:
    """What TAGWIRE_SEED says, to repeat a run that failed or to make another; 1 where it says nothing."""
    return int(os.environ.get(SEED, "1"))
