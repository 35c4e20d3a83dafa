"""Which offsets and groups are too old, and what it takes to look for them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tagwire.broker.groups import coordinator, group_table
from tagwire.broker.groups.consumer_member import JOINING
from tagwire.broker.groups.consumer_steps import Heartbeat
from tagwire.broker.groups.coordinator import OFFSETS_RETENTION_MS, Groups
from tagwire.broker.groups.membership import Joining
from tagwire.broker.groups.offsets import OffsetAndMetadata
from tagwire.errors import Error
from tagwire.partitions import TopicPartition
from tagwire.records import read, write

from .consumer_talk import FakeTopics

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


class GatedLog(Log):
    """Keeps what is appended, in its order; with `gate` set it waits for that."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.gate: asyncio.Event | None = None

    def replay(self) -> Any:  # type: ignore[override]
        return [next(iter(read(batch))) for batch in self.batches]

    async def append(self, records: Any, *, decides: bool = False) -> None:
        if records:
            await self.append_batch(write(records))

    async def append_batch(self, data: bytes, check: Any = None, *, decides: bool = False) -> None:
        self.batches.append(bytes(data))
        if self.gate is not None:
            await self.gate.wait()


LONG_AGO_MS = NOW_MS - OFFSETS_RETENTION_MS - 1
OLD = OffsetAndMetadata(7, -1, "", LONG_AGO_MS)
NEW = OffsetAndMetadata(8, -1, "", NOW_MS)


def told(groups: Groups, group_id: str = "g") -> dict[TopicPartition, int]:
    return {partition: found.offset for partition, found in groups.offsets(group_id)}


def groups_of(log: Any, most: int = 10) -> Groups:
    groups = Groups(log, log, most=most)
    groups.load()
    return groups


async def emptied_at(groups: Groups, monkeypatch: pytest.MonkeyPatch, left_ms: int) -> None:
    """A member takes part, commits long ago, and leaves at a time."""
    for module in (coordinator, group_table):
        monkeypatch.setattr(module, "wall_ms", lambda: left_ms)
    joining = Joining("", None, "c", "/", 10_000, 10_000, "consumer", (("range", b""),), takes_id=False)
    member = (await groups.join("g", joining)).member_id
    await groups.sync("g", member, None, 1, None, None, {member: b"all"})
    await groups.commit("g", {PARTITION: OLD})
    assert await groups.leave("g", member, None) is Error.NONE
    for module in (coordinator, group_table):
        monkeypatch.setattr(module, "wall_ms", lambda: NOW_MS)


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(("left_ms", "left"), [(LONG_AGO_MS + 2, {PARTITION: 7}), (LONG_AGO_MS, {})])
def test_offsets_of_a_group_last_from_when_its_last_member_was_gone(
    monkeypatch: pytest.MonkeyPatch, restarted: bool, left_ms: int, left: dict[TopicPartition, int]
) -> None:
    async def run() -> None:
        log = GatedLog()
        groups = groups_of(log)
        await emptied_at(groups, monkeypatch, left_ms)
        groups = groups_of(log) if restarted else groups
        await groups.expire()
        assert told(groups) == left
        assert told(groups_of(log)) == left

    asyncio.run(run())


@pytest.mark.parametrize("committed", [True, False])
def test_an_offset_is_not_too_old_while_a_transaction_would_commit_another(
    monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    monkeypatch.setattr(coordinator, "wall_ms", lambda: NOW_MS)

    async def run() -> None:
        log = GatedLog()
        groups = groups_of(log)
        await groups.commit("g", {PARTITION: OLD})
        await groups.commit_in_transaction("g", 1, 0, {PARTITION: NEW})
        await groups.expire()
        groups.end_transaction(1, committed=committed)
        assert told(groups) == {PARTITION: 8 if committed else 7}
        await groups.expire()
        assert told(groups) == ({PARTITION: 8} if committed else {})

    asyncio.run(run())


@pytest.mark.parametrize("in_transaction", [False, True])
def test_an_offset_that_is_being_stored_is_not_forgotten_with_the_one_before(
    monkeypatch: pytest.MonkeyPatch, in_transaction: bool
) -> None:
    monkeypatch.setattr(coordinator, "wall_ms", lambda: NOW_MS)

    async def run() -> None:
        log = GatedLog()
        groups = groups_of(log)
        await groups.commit("g", {PARTITION: OLD})
        log.gate = asyncio.Event()
        new = {PARTITION: NEW}
        storing = groups.commit_in_transaction("g", 1, 0, new) if in_transaction else groups.commit("g", new)
        commit = asyncio.create_task(storing)
        await asyncio.sleep(0.01)
        expiry = asyncio.create_task(groups.expire())
        await asyncio.sleep(0.01)
        log.gate.set()
        await asyncio.gather(commit, expiry)
        groups.end_transaction(1, committed=True)
        assert told(groups) == {PARTITION: 8}

    asyncio.run(run())


WANTED, UNWANTED, UNWANTED_NOW = PARTITION, TopicPartition("u", 0), TopicPartition("u", 1)


async def with_old_offsets(groups: Groups) -> None:
    await groups.commit("g", {WANTED: OLD, UNWANTED: OLD, UNWANTED_NOW: NEW})


@pytest.mark.parametrize(
    ("subscription", "is_synced", "left"),
    [
        (b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff", True, {WANTED, UNWANTED_NOW}),
        (b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff", False, {WANTED, UNWANTED, UNWANTED_NOW}),
        (b"?", True, {WANTED, UNWANTED, UNWANTED_NOW}),
    ],
)
def test_offsets_of_topics_that_no_classic_member_wants_last_as_long_as_those_of_nobody(
    monkeypatch: pytest.MonkeyPatch, subscription: bytes, is_synced: bool, left: set[TopicPartition]
) -> None:
    monkeypatch.setattr(coordinator, "wall_ms", lambda: NOW_MS)

    async def run() -> None:
        groups = groups_of(GatedLog())
        joining = Joining("", None, "c", "/", 10_000, 10_000, "consumer", (("range", subscription),), takes_id=False)
        member = (await groups.join("g", joining)).member_id
        if is_synced:
            await groups.sync("g", member, None, 1, None, None, {member: b""})
        await with_old_offsets(groups)
        await groups.expire()
        assert told(groups).keys() == left

    asyncio.run(run())


def test_offsets_of_topics_that_no_member_of_kip_848_wants_last_as_long_as_those_of_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coordinator, "wall_ms", lambda: NOW_MS)

    async def run() -> None:
        log: Any = GatedLog()
        groups = Groups(log, FakeTopics(t=1, u=2), most=10)
        joining = Heartbeat("m", JOINING, None, owned=frozenset(), topics=frozenset({"t"}), rebalance_timeout_ms=10_000)
        await groups.consumer_heartbeat("g", joining)
        await with_old_offsets(groups)
        await groups.expire()
        assert told(groups).keys() == {WANTED, UNWANTED_NOW}

    asyncio.run(run())
