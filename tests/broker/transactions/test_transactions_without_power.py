"""Transactions and losses of power with fsync="interval": what was ended stays ended, and what is left can be ended."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from tagwire.broker.storage.batch import batch_of
from tagwire.errors import KafkaError, StorageError
from tagwire.records import Record, batch_headers, write

from ..crash_story import Story

PLACES = [("t", 0), ("t", 1)]


@pytest.fixture(scope="module")
def pool():
    with ThreadPoolExecutor(1) as threads:
        yield threads


async def created(story):
    await story.start()
    await story.topics.create("t", 2, {})


async def send(story, who, sequence, *places):
    """A transactional batch to each place."""
    for place in places:
        rows = [Record(None, f"{who[1]}/{sequence}".encode(), timestamp=1000)]
        numbers = {"producer_id": who[0], "producer_epoch": who[1], "base_sequence": sequence}
        data = memoryview(write(rows, transactional=True, **numbers))
        await story.topics.partition(*place).append(lambda data=data: batch_of(next(batch_headers(data)), data))


async def transact(story, who, sequence, commit):
    await story.transactions.add("tx", *who, PLACES)
    await send(story, who, sequence, *PLACES)
    await story.transactions.end("tx", *who, commit=commit)


async def loses_power(story):
    await story.end()
    story.disk.lose_power()
    await story.start()


def seen(story, place):
    """The values that a reader of committed records is given, and whether nothing is open."""
    log = story.topics.partition(*place).log
    fetched = log.fetch(0, 1 << 20, committed=True)
    aborted = [(each.first_offset, each.last_offset) for each in fetched.aborted()]
    found = story.found(log)
    values = [
        value.decode()
        for offset, (_, value) in sorted(found.items())
        if offset < log.stable_offset and not any(first <= offset <= last for first, last in aborted)
    ]
    return values, log.stable_offset == log.end_offset


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_whose_end_was_answered_is_ended_after_a_loss_of_power(pool, seed, commit):
    async def scenario():
        story = Story(seed, pool, "interval")
        await created(story)
        who = await story.transactions.initialize("tx", 60_000, -1, -1)
        await transact(story, who, 0, commit)
        await loses_power(story)
        assert [seen(story, place) for place in PLACES] == [(["0/0"] if commit else [], True)] * 2
        await story.end()

    asyncio.run(scenario())


@pytest.mark.parametrize("seed", range(10))
def test_no_epoch_is_given_to_two_producers_with_a_loss_of_power_between(pool, seed):
    async def scenario():
        story = Story(seed, pool, "interval")
        await created(story)
        before = [await story.transactions.initialize("tx", 60_000, -1, -1) for _ in range(2)]
        await loses_power(story)
        assert await story.transactions.initialize("tx", 60_000, -1, -1) not in before
        await story.end()

    asyncio.run(scenario())


async def ended_at(step, seed, pool):
    """One transaction is aborted, the next committed in the same epoch, power is lost at a step; whether it was."""
    story = Story(seed, pool, "interval")
    await created(story)
    who = await story.transactions.initialize("tx", 60_000, -1, -1)
    story.disk.crash_at = story.disk.steps + step
    asked = []
    with suppress(KafkaError, StorageError, OSError):
        await transact(story, who, 0, commit=False)
        await story.transactions.add("tx", *who, PLACES)
        await send(story, who, 1, *PLACES)
        asked.append("asked")
        await story.transactions.end("tx", *who, commit=True)
        asked.append("answered")
    reached = story.disk.is_dead
    await loses_power(story)
    await story.transactions.initialize("tx", 60_000, *who)  # aborts what is still open
    for place in PLACES:
        values, is_stable = seen(story, place)
        assert is_stable, (step, seed, place)
        assert values in ([[]] if not asked else [["0/1"]] if "answered" in asked else [[], ["0/1"]]), (step, seed)
    await story.end()
    return reached


def test_whenever_power_is_lost_nothing_aborted_is_seen_and_nothing_stays_open(pool):
    step, reached = 0, True
    while reached:
        step += 1
        reached = max(asyncio.run(ended_at(step, seed, pool)) for seed in range(4))
    assert step > 10
