"""What it takes to look for groups that are too old."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tagwire.broker.groups import coordinator
from tagwire.broker.groups.coordinator import OFFSETS_RETENTION_MS, Groups
from tagwire.broker.groups.offsets import OffsetAndMetadata
from tagwire.partitions import TopicPartition

NOW_MS = 10 * OFFSETS_RETENTION_MS
PARTITION = TopicPartition("t", 0)


class Log:
    """Keeps nothing: what is stored is not what this is about."""

    name = "__consumer_offsets"

    def replay(self) -> tuple[()]:
        return ()

    async def append(self, records: object, *, decides: bool = False) -> None: ...


async def tasks_of_expiry(old: int, fresh: int) -> tuple[int, int]:
    """How many tasks it takes to look at so many groups, and how many groups are left."""
    log: Any = Log()
    groups = Groups(log, log, most=1_000_000)
    for number in range(old + fresh):
        committed_ms = NOW_MS - OFFSETS_RETENTION_MS - 1 if number < old else NOW_MS
        await groups.commit(f"g{number}", {PARTITION: OffsetAndMetadata(7, -1, "", committed_ms)})
    made = 0

    def count(loop: asyncio.AbstractEventLoop, work: Any, **named: Any) -> asyncio.Task[Any]:
        nonlocal made
        made += 1
        return asyncio.Task(work, loop=loop, **named)

    loop = asyncio.get_running_loop()
    loop.set_task_factory(count)
    await groups.expire()
    loop.set_task_factory(None)
    return made, sum(1 for group in groups if groups.offsets(group.group_id))


def test_groups_of_which_nothing_is_too_old_take_no_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "wall_ms", lambda: NOW_MS)
    assert asyncio.run(tasks_of_expiry(old=0, fresh=300)) == (0, 300)


def test_those_of_which_something_is_take_one_each_and_lose_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "wall_ms", lambda: NOW_MS)
    made, left = asyncio.run(tasks_of_expiry(old=3, fresh=300))
    assert left == 300
    assert made <= 2 * 3
