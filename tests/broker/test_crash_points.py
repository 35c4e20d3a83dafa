"""Losses of power at hundreds of moments: what was acknowledged is there once, in order, the rest whole or not at all.

The disk forgets every byte and every name that was not synced, in part or whole, and tears the write it dies in. Logs
that are rolled, compacted, cut at their start, and the broker's own state are all on it.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from tagwire.errors import TagwireError

from .crash_story import run


@pytest.fixture(scope="module")
def pool():
    with ThreadPoolExecutor(1) as threads:
        yield threads


@pytest.mark.parametrize("seed", range(75))
def test_no_loss_of_power_takes_what_was_acknowledged_or_leaves_half_of_what_was_not(pool, seed):
    asyncio.run(run(seed, pool))


def test_without_fsync_the_same_stories_lose_records(pool):
    """So that the disk is seen to forget, and the test above to look."""
    lost = 0
    for seed in range(12):
        try:
            asyncio.run(run(seed, pool, "never"))
        except (AssertionError, TagwireError):  # state that contradicts itself is one sign of loss
            lost += 1
    assert lost >= 10
