"""Every kind of change that the broker's own state knows, with a disk that fails at each of its steps in turn.

Whatever fails, what is in memory is what a broker would find that starts on the same files: after kill -9 nothing is
there that was not shown before, and nothing is gone that was.
"""

from __future__ import annotations

import asyncio
import copy
import errno
import gc
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from random import Random
from unittest import mock

import pytest

from tagwire.broker.clock import wall_ms
from tagwire.broker.coordinator_log import CoordinatorLog
from tagwire.broker.groups import coordinator
from tagwire.broker.groups.consumer_group import ConsumerGroup
from tagwire.broker.groups.consumer_member import LEAVING, LEAVING_STATIC
from tagwire.broker.groups.consumer_steps import Heartbeat
from tagwire.broker.groups.coordinator import Groups
from tagwire.broker.groups.membership import Joining, State
from tagwire.broker.groups.offsets import OffsetAndMetadata
from tagwire.broker.producer_ids import BLOCK, ProducerIds
from tagwire.broker.storage.batch import batch_of
from tagwire.broker.storage.data_directory import DataDirectory
from tagwire.broker.topics import Topics
from tagwire.broker.transactions.coordinator import IDS_EXPIRE_AFTER_MS, Transactions
from tagwire.errors import Error, KafkaError
from tagwire.records import Record, batch_headers, write
from tagwire.records.internal_topics import OFFSETS, TRANSACTIONS

from ..simulation.world.disk import SimulatedDisk, path_on_disk

TIMEOUT_MS = 60_000


class FailingDisk(SimulatedDisk):
    """A disk at which one operation fails, or that syncs no directory from some step on."""

    def __init__(self):
        super().__init__(0)
        self.fail_at = self.no_directories_from = None
        self.failed = False

    def _step(self):
        super()._step()
        if self.steps == self.fail_at:
            self._fail()
        return False

    def sync_directory(self, path):
        if self.no_directories_from is not None and self.steps >= self.no_directories_from:
            self._fail()
        super().sync_directory(path)

    def _fail(self):
        self.failed = True
        raise OSError(errno.EIO, "it failed")

    def after_kill_9(self):
        """What the next process finds: everything that was written."""
        other = FailingDisk()
        with self._lock:
            other._root = copy.deepcopy(self._root)
        return other


SUBSCRIBED = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"
"""A subscription to topic t, as consumers tell it in the classic protocol."""


class Parts:
    """A broker's state without its sockets; its clock is told the time."""

    def __init__(self, disk, pool):
        self.disk, self.now = disk, [1_000_000]
        self.data = DataDirectory(disk, path_on_disk())
        self.topics = Topics(disk, self.data, pool, pool, "batch")
        self.groups = Groups(CoordinatorLog(self.topics, OFFSETS), self.topics, most=100, clock=lambda: self.now[0])
        self.ids = ProducerIds(disk, self.data.path, pool)
        log = CoordinatorLog(self.topics, TRANSACTIONS)
        self.transactions = Transactions(log, self.topics, lambda: self.groups, self.ids, clock=lambda: self.now[0])
        self.ids.load()
        self.topics.load()
        self.groups.load()
        self.transactions.load()

    async def close(self):
        await self.transactions.close()
        await self.groups.close()
        await self.topics.settle()
        self.topics.abandon()

    def state(self):
        """All that is stored of it, as plain values."""
        topics = [(t.name, t.topic_id, dict(t.configs), t.config, len(t.partitions)) for t in self.topics]
        transactions = [
            (t.transactional_id, t.producer_id, t.epoch, t.timeout_ms, t.state, set(t.partitions), t.started_ms)
            for t in self.transactions
        ]
        groups = {}
        for group in self.groups:
            offsets = self.groups.offsets(group.group_id)
            where = [(topic.name, p.index) for topic in self.topics for p in topic.partitions]
            unstable = {partition for partition in where if offsets.is_unstable(partition)}
            groups[group.group_id] = (is_settled(group) and described(group), list(offsets), unstable)
        return topics, transactions, groups

    async def joined(self, group_id="g", instance=None, session_ms=TIMEOUT_MS, said=b"t", member_id=""):
        joining = Joining(
            member_id, instance, "c", "/h", session_ms, TIMEOUT_MS, "consumer", (("range", said),), takes_id=False
        )
        return await self.groups.join(group_id, joining)

    async def synced(self, answer, group_id="g", data=b"all"):
        assignments = {answer.member_id: data}
        return await self.groups.sync(group_id, answer.member_id, None, answer.generation, None, None, assignments)

    async def beaten(self, member, epoch=0, owned=frozenset(), **said):
        """A heartbeat of a member of KIP-848, subscribed to topic t."""
        said = {"topics": frozenset("t"), "rebalance_timeout_ms": TIMEOUT_MS, **said} if epoch == 0 else said
        return await self.groups.consumer_heartbeat("g", Heartbeat(member, epoch, owned=owned, **said))


def is_settled(group):
    """Whether it is not in the middle of a rebalance, of which nothing is stored until it is over."""
    return isinstance(group, ConsumerGroup) or group.state in (State.EMPTY, State.STABLE)


def described(group):
    if isinstance(group, ConsumerGroup):
        return group.epoch, group.target_epoch, group.members, group.targets, group.regexes, group.held_bytes
    if group.state is State.EMPTY:
        return group.state, group.generation
    members = [
        (m.member_id, m.instance_id, m.client_id, m.metadata(group.protocol), m.assignment)
        for m in group.members.values()
    ]
    return group.state, group.generation, group.protocol_type, group.protocol, group.leader, members


def offsets(offset):
    return {("t", 0): OffsetAndMetadata(offset, -1, "m", 0)}


async def nothing(parts):
    return None


async def with_topic(parts):
    return await parts.topics.create("t", 2, {"retention.ms": "1000"})


async def with_id(parts):
    await with_topic(parts)
    return await parts.transactions.initialize("tx", TIMEOUT_MS, -1, -1)


async def with_transaction(parts):
    who = await with_id(parts)
    await parts.transactions.add("tx", *who, [("t", 0)])
    data = memoryview(
        write([Record(b"k", b"v")], producer_id=who[0], producer_epoch=who[1], base_sequence=0, transactional=True)
    )
    batch = batch_of(next(batch_headers(data)), data)
    await parts.topics.partition("t", 0).append(lambda: batch)
    return who


async def with_offsets_in_transaction(parts):
    who = await with_transaction(parts)
    await parts.groups.commit("g", offsets(3))
    await parts.transactions.add_offsets("tx", *who)
    await parts.groups.commit_in_transaction("g", *who, offsets(5))
    return who


async def with_offsets(parts):
    await with_topic(parts)
    await parts.groups.commit("g", offsets(3))


async def with_joined(parts):
    await with_offsets(parts)
    return await parts.joined()


async def with_members(parts):
    joined = await with_joined(parts)
    await parts.synced(joined)
    return joined


async def with_short_session(parts):
    joined = await parts.joined(session_ms=1)
    await parts.synced(joined)


async def with_static_member(parts):
    await with_offsets(parts)
    joined = await parts.joined(instance="i")
    await parts.groups.sync("g", joined.member_id, "i", joined.generation, None, None, {joined.member_id: b"all"})
    return joined


async def with_empty_group(parts):
    joined = await with_members(parts)
    await leave(parts, joined)


async def with_member(parts):
    await with_offsets(parts)
    return await parts.beaten("a")


async def with_two_members(parts):
    await with_member(parts)
    await parts.beaten("b")
    return await parts.beaten("a", 1, None)


async def with_one_that_gave_up(parts):
    assigned = (await with_two_members(parts)).assigned
    await parts.beaten("a", 1, assigned)


async def with_one_away(parts):
    await with_offsets(parts)
    await parts.beaten("a", instance_id="i")
    await parts.beaten("a", LEAVING_STATIC, instance_id="i")


async def with_nobody_left(parts):
    await with_member(parts)
    await parts.beaten("a", LEAVING)


async def with_classic_member(parts):
    await with_offsets(parts)
    joined = await parts.joined(said=SUBSCRIBED)
    await parts.synced(joined, data=b"")
    return joined


async def with_both(parts):
    joined = await with_classic_member(parts)
    await parts.beaten("a")
    return joined


async def leave(parts, joined):
    return error_of(await parts.groups.leave("g", joined.member_id, None))


async def expire_member(parts, _):
    parts.now[0] += 1
    while (group := parts.groups.get("g")) is not None and (group.members or group.proposal):
        await asyncio.sleep(0.001)


async def expire_group(parts, _):
    a_week_later = wall_ms() + 2 * coordinator.OFFSETS_RETENTION_MS
    with mock.patch.object(coordinator, "wall_ms", return_value=a_week_later):
        await parts.groups.expire()


async def expire_transaction(parts, who):
    parts.now[0] += TIMEOUT_MS
    await parts.transactions.expire()


async def forget_id(parts, who):
    parts.now[0] += IDS_EXPIRE_AFTER_MS + 1
    await parts.transactions.expire()


async def use_up_ids(parts, _):
    """Every id is told to whoever asked: none may come again."""
    for _ in range(BLOCK + 1):
        await parts.ids.take()


def error_of(outcome):
    error = getattr(outcome, "error", outcome)
    if isinstance(error, Error) and error is not Error.NONE:
        raise KafkaError(error)
    return outcome


CHANGES = {
    "the first of all topics": (nothing, lambda parts, _: parts.topics.create("u", 1, {})),
    "create a topic": (with_topic, lambda parts, _: parts.topics.create("u", 2, {})),
    "add a partition": (with_topic, lambda parts, _: parts.topics.add_partitions("t", 3)),
    "alter a topic": (with_topic, lambda parts, _: parts.topics.alter("t", {"retention.ms": "2000"})),
    "delete a topic": (with_topic, lambda parts, topic: parts.topics.delete(topic)),
    "producer ids": (nothing, use_up_ids),
    "a transactional id": (with_topic, lambda parts, _: parts.transactions.initialize("tx", TIMEOUT_MS, -1, -1)),
    "take an id over": (with_id, lambda parts, who: parts.transactions.initialize("tx", TIMEOUT_MS, *who)),
    "take an open one over": (
        with_transaction,
        lambda parts, who: parts.transactions.initialize("tx", TIMEOUT_MS, *who),
    ),
    "begin a transaction": (with_id, lambda parts, who: parts.transactions.add("tx", *who, [("t", 1)])),
    "add to a transaction": (with_transaction, lambda parts, who: parts.transactions.add("tx", *who, [("t", 1)])),
    "add offsets to a transaction": (with_transaction, lambda parts, who: parts.transactions.add_offsets("tx", *who)),
    "commit a transaction": (
        with_offsets_in_transaction,
        lambda parts, who: parts.transactions.end("tx", *who, commit=True),
    ),
    "abort a transaction": (
        with_offsets_in_transaction,
        lambda parts, who: parts.transactions.end("tx", *who, commit=False),
    ),
    "a transaction times out": (with_offsets_in_transaction, expire_transaction),
    "forget an id": (with_id, forget_id),
    "the first offsets": (with_topic, lambda parts, _: parts.groups.commit("g", offsets(5))),
    "offsets": (with_offsets, lambda parts, _: parts.groups.commit("g", offsets(5))),
    "offsets in a transaction": (
        with_offsets_in_transaction,
        lambda parts, who: parts.groups.commit_in_transaction("h", *who, offsets(7)),
    ),
    "delete offsets": (with_offsets, lambda parts, _: parts.groups.delete_offsets("g", [("t", 0)])),
    "delete offsets in a transaction": (
        with_offsets_in_transaction,
        lambda parts, _: parts.groups.delete_offsets("g", [("t", 0)]),
    ),
    "forget a topic's offsets": (with_members, lambda parts, _: parts.groups.forget_topics({"t"})),
    "assign": (with_joined, lambda parts, joined: parts.synced(joined)),
    "the last member leaves": (with_members, leave),
    "the last member expires": (with_short_session, expire_member),
    "a static member is replaced": (with_static_member, lambda parts, _: parts.joined(instance="i")),
    "delete a group": (with_empty_group, lambda parts, _: parts.groups.delete("g")),
    "delete a group with a transaction": (with_offsets_in_transaction, lambda parts, _: parts.groups.delete("g")),
    "groups and offsets expire": (with_empty_group, expire_group),
    "the first member of KIP-848 joins": (with_offsets, lambda parts, _: parts.beaten("a")),
    "another member of KIP-848 joins": (with_member, lambda parts, _: parts.beaten("b", regex="t|u")),
    "a member gives partitions up": (with_two_members, lambda parts, told: parts.beaten("a", 1, told.assigned)),
    "a member gets what another gave up": (with_one_that_gave_up, lambda parts, _: parts.beaten("b", 2, None)),
    "a member of KIP-848 leaves": (with_two_members, lambda parts, _: parts.beaten("a", LEAVING)),
    "a static member comes back": (with_one_away, lambda parts, _: parts.beaten("a2", instance_id="i")),
    "a group of KIP-848 is deleted": (with_nobody_left, lambda parts, _: parts.groups.delete("g")),
    "a group of KIP-848 expires": (with_nobody_left, lambda parts, _: parts.groups.expire()),
    "a classic member joins an empty group": (with_nobody_left, lambda parts, _: parts.joined()),
    "a classic group becomes one of KIP-848": (with_classic_member, lambda parts, _: parts.beaten("a")),
    "a classic member joins again": (
        with_both,
        lambda parts, joined: parts.joined(said=SUBSCRIBED, member_id=joined.member_id),
    ),
    "a classic member of it leaves": (with_both, leave),
    "the last member of KIP-848 leaves the others": (with_both, lambda parts, _: parts.beaten("a", LEAVING)),
}


@pytest.fixture(scope="module")
def pool():
    with ThreadPoolExecutor(1) as threads:
        yield threads


async def carry_out(change, parts, prepared):
    """Whether it was granted."""
    try:
        error_of(await asyncio.wait_for(change(parts, prepared), 20))
    except KafkaError:
        return False
    return True


async def check_against_a_restart(parts, pool):
    found = Parts(parts.disk.after_kill_9(), pool)
    held, stored = parts.state(), found.state()
    for group_id, (settled, *kept) in held[2].items():
        if not settled:
            _, *found_of_it = stored[2].get(group_id, (False, [], set()))
            assert kept == found_of_it
            stored[2][group_id] = held[2][group_id]
    assert held == stored
    await found.close()


async def fail_at_every_step(prepare, change, pool):
    step = 0
    while True:
        step += 1
        disk = FailingDisk()
        parts = Parts(disk, pool)
        prepared = await prepare(parts)
        disk.fail_at = disk.steps + step
        granted = await carry_out(change, parts, prepared)
        await parts.transactions.close()
        disk.fail_at = None
        await check_against_a_restart(parts, pool)
        if not disk.failed:
            assert granted
            await parts.close()
            return step
        await carry_out(change, parts, prepared)  # asked again, when the disk is well
        await check_against_a_restart(parts, pool)
        await parts.close()


@pytest.fixture(autouse=True)
def quiet(caplog):
    caplog.set_level(logging.CRITICAL, "tagwire.broker")


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_failing_disk_did_not_store_is_not_in_memory_either(pool, name):
    assert asyncio.run(fail_at_every_step(*CHANGES[name], pool)) > 1


TOPIC_CHANGES = [name for name in CHANGES if ("topic" in name and "forget" not in name) or name == "add a partition"]


async def sync_no_directory_from_every_step_on(prepare, change, pool):
    step = 0
    while True:
        step += 1
        disk = FailingDisk()
        parts = Parts(disk, pool)
        prepared = await prepare(parts)
        disk.no_directories_from = disk.steps + step
        granted = await carry_out(change, parts, prepared)
        disk.no_directories_from = None
        found = Parts(disk.after_kill_9(), pool)
        await found.close()
        if not disk.failed:
            assert granted
            await parts.close()
            return step
        await carry_out(change, parts, prepared)  # asked again, when the disk is well
        assert await carry_out(lambda parts, _: parts.topics.create("next", 1, {}), parts, None)
        found = Parts(disk.after_kill_9(), pool)
        assert found.state()[0] == parts.state()[0]
        await found.close()
        await parts.close()


@pytest.mark.parametrize("name", TOPIC_CHANGES)
def test_a_disk_that_syncs_no_directory_leaves_topics_to_start_with_and_to_change_when_it_is_well(pool, name):
    assert asyncio.run(sync_no_directory_from_every_step_on(*CHANGES[name], pool)) > 1


class Crowd:
    """Clients that all ask at once, some of which go away before they are answered."""

    def __init__(self, parts, random):
        self.parts, self.random = parts, random

    async def pause(self):
        for _ in range(self.random.randint(0, 12)):
            await asyncio.sleep(0)

    async def member(self, group_id):
        for _ in range(3):
            await self.pause()
            joined = await self.parts.joined(group_id, instance=self.random.choice([None, "i"]))
            if joined.error is Error.NONE and joined.generation >= 0:
                await self.pause()
                await self.parts.synced(joined, group_id, b"%d" % self.random.randint(0, 9))
                await self.pause()
                await self.parts.groups.leave(group_id, joined.member_id, None)

    async def committer(self, group_id):
        for number in range(4):
            await self.pause()
            await self.ask(self.parts.groups.commit(group_id, offsets(number)))

    async def transacting(self, name):
        transactions, groups = self.parts.transactions, self.parts.groups
        for number in range(3):
            await self.pause()
            who = await transactions.initialize(name, TIMEOUT_MS, -1, -1)
            await self.ask(transactions.add(name, *who, [("t", number % 2)]))
            await self.ask(transactions.add_offsets(name, *who))
            group_id, where = self.random.choice("gh"), (OFFSETS, 0)
            transactions.check_batch(name, *who, where)
            check = partial(transactions.check_batch, name, *who, where)
            await self.ask(groups.commit_in_transaction(group_id, *who, offsets(100 + number), check))
            await self.pause()
            await self.ask(transactions.end(name, *who, commit=self.random.random() < 0.5))

    async def administrator(self):
        groups, topics = self.parts.groups, self.parts.topics
        for _ in range(5):
            await self.pause()
            act = self.random.randrange(6)
            group_id = self.random.choice(["g", "h", "m"])
            if act < 2:
                await self.ask(groups.delete(group_id))
            elif act == 2:
                await self.ask(groups.delete_offsets(group_id, [("t", 0)]))
            elif act == 3:
                await self.ask(groups.expire())
            elif act == 4:
                await self.ask(groups.forget_topics({"t"}))
            else:
                await self.ask(topics.alter("t", {"retention.ms": str(self.random.randint(1, 9))}))

    async def ask(self, work):
        """Ask, and sometimes go away at once."""
        if self.random.random() < 0.2:
            asking = asyncio.ensure_future(work)
            await self.pause()
            asking.cancel()
            await asyncio.wait([asking])
            return
        with suppress(KafkaError):
            await work


async def all_at_once(seed, pool):
    random = Random(seed)
    disk = FailingDisk()
    parts = Parts(disk, pool)
    await with_topic(parts)
    crowd = Crowd(parts, random)
    disk.fail_at = disk.steps + random.randint(1, 120)
    clients = [
        *(crowd.committer(random.choice(["g", "h", "m"])) for _ in range(3)),
        crowd.member("m"),
        crowd.transacting("tx"),
        crowd.transacting("tx"),
        crowd.transacting("ty"),
        crowd.administrator(),
        crowd.administrator(),
    ]
    outcomes = await asyncio.wait_for(asyncio.gather(*clients, return_exceptions=True), 60)
    assert [outcome for outcome in outcomes if not isinstance(outcome, (KafkaError, type(None)))] == []
    await parts.transactions.close()
    await parts.groups.close()
    await parts.topics.settle()
    disk.fail_at = None
    await check_against_a_restart(parts, pool)
    await parts.close()
    return disk.failed


def test_whoever_asks_at_once_and_goes_away_what_is_in_memory_is_what_is_stored(pool, caplog):
    failed = [asyncio.run(all_at_once(seed, pool)) for seed in range(60)]
    assert sum(failed) > 20
    gc.collect()
    assert [record for record in caplog.records if record.name == "asyncio"] == []  # of errors that nobody heard
