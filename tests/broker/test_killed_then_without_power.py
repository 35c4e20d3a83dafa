"""A broker that is killed, started again, and then loses power: what the killed one had not synced is still not safe.

What the next broker found in memory, and let clients build upon, has to be on the disk before it says so.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from tagwire.errors import KafkaError, StorageError

from ..simulation.world.disk import DiskFault
from .crash_story import Story, run

CONFIGS = {"segment.bytes": "1024", "index.interval.bytes": "200"}


@pytest.fixture(scope="module")
def pool():
    with ThreadPoolExecutor(1) as threads:
        yield threads


@pytest.mark.parametrize("seed", range(12))
def test_kills_and_losses_of_power_in_any_order_take_nothing_that_was_acknowledged(pool, seed):
    asyncio.run(run(seed, pool, losses=5, kills=0.5))


@pytest.mark.parametrize("seed", range(12))
def test_losses_of_power_while_a_broker_starts_after_one_take_nothing_that_was_acknowledged(pool, seed):
    asyncio.run(run(seed, pool, interrupted=0.7))


async def appended(story, name="t"):
    batch, rows = story.batch()
    outcome = await story.topics.partition(name, 0).append(lambda: batch)
    return outcome.base_offset, rows


async def stopped(story):
    await story.transactions.close()
    await story.groups.close()
    await story.topics.settle()
    story.topics.abandon()


async def killed_at(step, seed, pool, prepare, act):
    """Acts, is killed at a step, and appends after the next start; whether the step was reached."""
    story = Story(seed, pool)
    await story.open()
    await prepare(story)
    story.disk.crash_at = story.disk.steps + step
    with suppress(KafkaError, StorageError, OSError):
        await act(story)
    reached = story.disk.is_dead
    await stopped(story)
    story.disk.kill()
    await story.open()
    appends = [await appended(story) for _ in range(3)] if story.topics.get("t") is not None else []
    await stopped(story)
    story.disk.lose_power()
    await story.open()
    if appends:
        assert story.topics.get("t") is not None
        found = story.found(story.topics.partition("t", 0).log)
        for offset, rows in appends:
            assert found[offset] == (rows[0].key, rows[0].value), (step, seed)
    await stopped(story)
    return reached


async def nothing(story):
    pass


async def create(story):
    await story.topics.create("t", 1, CONFIGS)


async def append_many(story):
    for _ in range(12):
        await appended(story)


async def add_partition(story):
    await story.topics.add_partitions("t", 2)


@pytest.mark.parametrize(
    ("prepare", "act"),
    [(nothing, create), (create, append_many), (create, add_partition)],
    ids=["a topic is created", "segments are rolled", "a partition is added"],
)
def test_what_is_acknowledged_upon_what_a_killed_broker_left_survives_a_loss_of_power(pool, prepare, act):
    step, reached = 0, True
    while reached:
        step += 1
        reached = [asyncio.run(killed_at(step, seed, pool, prepare, act)) for seed in range(3)] != [False] * 3
    assert step > 3


async def failing_at(operation, after, seed, pool, *others):
    """Appends until the disk has refused something, starts again, appends more, and loses power; whether it refused.

    others: what the disk refuses for as long as the first broker lives.
    """
    story = Story(seed, pool)
    await story.open()
    await create(story)
    fault = DiskFault({operation}, count=1, after=after)
    story.disk.inject(fault)
    if others:
        story.disk.inject(DiskFault(set(others), count=None))
    appends = []
    with suppress(KafkaError, StorageError, OSError):
        for _ in range(8):
            appends.append(await appended(story))
    await stopped(story)
    story.disk.kill()
    refused = fault.count == 0
    story.disk.heal()
    await story.open()
    appends += [await appended(story) for _ in range(3)]
    await stopped(story)
    story.disk.lose_power()
    await story.open()
    found = story.found(story.topics.partition("t", 0).log)
    for offset, rows in appends:
        assert found[offset] == (rows[0].key, rows[0].value), (operation, after, seed)
    await stopped(story)
    return refused


@pytest.mark.parametrize("operation", ["sync", "write", "sync_directory", "create", "truncate", "rename", "read"])
def test_what_is_acknowledged_before_and_after_a_disk_refused_survives_a_loss_of_power(pool, operation):
    """Also where the system drops what a failed sync did not write, and says at the next sync that all is well."""
    after, refused = -1, True
    while refused:
        after += 1
        refused = [asyncio.run(failing_at(operation, after, seed, pool)) for seed in range(2)] != [False] * 2
    assert after > 0 or operation in ("truncate", "rename", "read")


def test_bytes_that_a_sync_dropped_and_nobody_could_cut_off_are_not_built_upon_as_they_are(pool):
    for after in range(4):
        for seed in range(8):
            asyncio.run(failing_at("sync", after, seed, pool, "truncate"))
