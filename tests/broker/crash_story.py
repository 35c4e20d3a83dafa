"""A broker's life on a simulated disk: things are done to it at random, and what it acknowledged is written down.

`check` holds what is found after a loss of power against that. Whatever was under way then may have happened or not,
but not by half.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from tagwire.broker import scheduler
from tagwire.broker.coordinator_log import CoordinatorLog
from tagwire.broker.groups.consumer_changes import (
    CurrentChange,
    EpochChange,
    RegexChange,
    SubscriptionChange,
    TargetChange,
    TargetEpochChange,
    TopicsChange,
)
from tagwire.broker.groups.consumer_group import ConsumerGroup
from tagwire.broker.groups.consumer_member import JOINING, LEAVING
from tagwire.broker.groups.consumer_steps import Heartbeat
from tagwire.broker.groups.coordinator import Groups
from tagwire.broker.groups.offsets import OffsetAndMetadata
from tagwire.broker.producer_ids import ProducerIds
from tagwire.broker.storage.batch import batch_of
from tagwire.broker.storage.data_directory import DataDirectory
from tagwire.broker.storage.log_reading import OffsetOutOfRangeError
from tagwire.broker.topics import Topics
from tagwire.broker.transactions.coordinator import Transactions
from tagwire.errors import KafkaError, StorageError
from tagwire.records import Record, batch_headers, read, write
from tagwire.records.internal_topics import OFFSETS, TRANSACTIONS

from ..simulation.world.disk import SimulatedDisk, path_on_disk

NAMES = ("plain", "compacted", "both")
POLICIES = {"plain": "delete", "compacted": "compact", "both": "compact,delete"}
FAR = 2**60


@dataclass
class Kept:
    """What is known of one partition: (key, value) by offset, which of them were not committed, where it starts."""

    acked: dict[int, tuple[bytes, bytes | None]] = field(default_factory=dict)
    uncommitted: set[int] = field(default_factory=set)
    start: int = 0


@dataclass
class Made:
    topic_id: UUID
    configs: dict[str, str]
    partitions: list[Kept]


class Story:
    """One broker over several losses of power.

    Args:
        seed: decides everything.
        pool: whose threads the broker uses.
        fsync: as in `Settings`.
    """

    def __init__(self, seed, pool, fsync="batch"):
        self.random = Random(seed)
        self.disk = SimulatedDisk(seed)
        self.pool = pool
        self.fsync = fsync
        self.topics_made: dict[str, Made] = {}
        self.offsets: dict[str, int] = {}
        self.consumers = None
        self.told: dict[str, tuple[int, frozenset]] = {}
        self.batches: dict[bytes, list[bytes | None]] = {}
        self.doubt = None
        self.count = 0

    async def open(self):
        self.data = DataDirectory(self.disk, path_on_disk())
        self.topics = Topics(self.disk, self.data, self.pool, self.pool, self.fsync)
        self.groups = Groups(CoordinatorLog(self.topics, OFFSETS), self.topics, most=100)
        self.ids = ProducerIds(self.disk, self.data.path, self.pool)
        log = CoordinatorLog(self.topics, TRANSACTIONS)
        self.transactions = Transactions(log, self.topics, lambda: self.groups, self.ids)
        self.ids.load()
        self.topics.load()
        self.groups.load()
        self.transactions.load()

    async def start(self, interrupted=0.0):
        """Open, and carry out what was decided; again where power is lost meanwhile, as it is with this chance."""
        while True:
            is_interrupted = interrupted and self.random.random() < interrupted
            self.disk.crash_at = self.disk.steps + self.random.randint(1, 150) if is_interrupted else None
            try:
                await self.open()
                await self.finish_transactions()
            except (KafkaError, StorageError, OSError):
                if not self.disk.is_dead:
                    raise
            if not self.disk.is_dead:
                return
            await self.end()
            self.disk.lose_power()

    async def finish_transactions(self):
        self.transactions.start()
        await self.transactions.close()

    async def live(self, steps):
        """Do things, up to `steps` of them, until power is lost."""
        for _ in range(steps):
            try:
                await self.do_something()
                self.doubt = None
            except (KafkaError, StorageError, OSError):
                if not self.disk.is_dead:
                    raise
            if self.disk.is_dead:
                break
        await self.end()

    async def end(self):
        await self.transactions.close()
        await self.groups.close()
        await self.topics.settle()
        self.topics.abandon()

    async def do_something(self):
        acts = [self.create, self.alter, self.add_partition, self.delete_topic, self.delete_records, self.compact]
        often = (
            [self.append] * 10
            + [self.commit] * 3
            + [self.heartbeat] * 4
            + [self.transact] * 4
            + [self.compact, self.remember, self.restart]
        )
        await self.random.choice([*acts, *often])()

    def some_topic(self):
        return self.random.choice(sorted(self.topics_made)) if self.topics_made else None

    async def create(self):
        name = self.random.choice(NAMES)
        if name in self.topics_made:
            return
        configs = {"cleanup.policy": POLICIES[name], "segment.bytes": "1024", "index.interval.bytes": "200"}
        self.doubt = ("create", name)
        topic = await self.topics.create(name, self.random.randint(1, 2), configs)
        self.topics_made[name] = Made(topic.topic_id, configs, [Kept() for _ in topic.partitions])

    async def delete_topic(self):
        name = self.some_topic()
        if name is not None and self.random.random() < 0.3:
            self.doubt = ("delete", name)
            await self.topics.delete(self.topics.get(name))
            del self.topics_made[name]

    async def alter(self):
        name = self.some_topic()
        if name is not None:
            changes = {"segment.bytes": str(self.random.choice([1024, 1500, 3000]))}
            self.doubt = ("alter", name, changes)
            await self.topics.alter(name, changes)
            self.topics_made[name].configs.update(changes)

    async def add_partition(self):
        name = self.some_topic()
        if name is not None and len(self.topics_made[name].partitions) < 4:
            self.doubt = ("add", name)
            await self.topics.add_partitions(name, len(self.topics_made[name].partitions) + 1)
            self.topics_made[name].partitions.append(Kept())

    def batch(self, **options):
        """A batch whose values say of which batch they are; some delete their key."""
        self.count += 1
        size = self.random.choice([10, 60, 300])
        rows = []
        for number in range(self.random.randint(1, 4)):
            value = b"%d-%d-" % (self.count, number) + b"v" * size
            deletes = self.random.random() < 0.1 and "transactional" not in options
            rows.append(
                Record(b"k%d" % self.random.randint(0, 5), None if deletes else value, timestamp=1000 + self.count)
            )
        self.batches[b"%d" % self.count] = [row.value for row in rows]
        data = memoryview(write(rows, compression=self.random.choice(["none", "none", "lz4"]), **options))
        return batch_of(next(batch_headers(data)), data), rows

    async def append(self):
        name = self.some_topic()
        if name is None:
            return
        index = self.random.randrange(len(self.topics_made[name].partitions))
        partition, kept = self.topics.partition(name, index), self.topics_made[name].partitions[index]
        made = [self.batch() for _ in range(self.random.randint(1, 3))]
        self.doubt = ("append", name, index, [rows for _, rows in made])
        begun = [partition.append(lambda batch=batch: batch) for batch, _ in made]
        for (_, rows), outcome in zip(made, await asyncio.gather(*begun, return_exceptions=True)):
            if isinstance(outcome, Exception):
                raise outcome
            self.note(kept, outcome.base_offset, rows)

    @staticmethod
    def note(kept, base_offset, rows):
        for offset, row in enumerate(rows, base_offset):
            assert offset not in kept.acked
            kept.acked[offset] = row.key, row.value

    async def delete_records(self):
        name = self.some_topic()
        if name is not None:
            index = self.random.randrange(len(self.topics_made[name].partitions))
            partition, kept = self.topics.partition(name, index), self.topics_made[name].partitions[index]
            before = self.random.randint(kept.start, partition.log.end_offset)
            self.doubt = ("start", name, index, before)
            kept.start = await partition.delete_records(before)

    async def compact(self):
        now = self.random.choice([0, FAR])
        await asyncio.get_running_loop().run_in_executor(self.pool, self._compact, now)

    def _compact(self, now):
        for partition in self.topics.partitions():
            if partition.log.config.compacts and not partition.log.is_offline and self.random.random() < 0.7:
                partition.log.roll_if_due(now)
        scheduler.compact(self.topics, self.data, asyncio.Event())

    async def remember(self):
        scheduler.save_recovery_points(self.topics, self.data)

    async def restart(self):
        await self.topics.settle()
        clean = self.topics.close()
        scheduler.save_recovery_points(self.topics, self.data)
        self.data.close(clean=clean)
        await self.open()

    async def commit(self):
        group, offset = self.random.choice("gh"), self.random.randint(0, 1000)
        self.doubt = ("commit", group, offset)
        await self.groups.commit(group, {("plain", 0): OffsetAndMetadata(offset, -1, "", 0)})
        self.offsets[group] = offset

    async def heartbeat(self):
        """A member of a group of KIP-848 joins, heartbeats or leaves; what it was told to have it has, until it is told
        otherwise or gives it up by itself."""
        member = self.random.choice("xyz")
        beat = self.beat_of(member)
        group = shadow_of(self.groups.get("k"), self.topics)
        try:
            group.apply(group.heartbeat(beat).changes)
        except KafkaError:
            self.told.pop(member, None)
            return
        self.doubt = ("heartbeat", stored_of(group))
        result = await self.groups.consumer_heartbeat("k", beat)
        self.consumers = stored_of(self.groups.get("k"))
        assert self.consumers == self.doubt[1]
        if beat.epoch >= JOINING:
            had = self.told.get(member, (0, frozenset()))[1]
            self.told[member] = result.epoch, had if result.assigned is None else result.assigned
        has = [partition for _, assigned in self.told.values() for partition in assigned]
        assert len(has) == len(set(has)), self.told

    def beat_of(self, member):
        if member not in self.told or self.random.random() < 0.1:
            self.told.pop(member, None)
            topics = frozenset(self.random.sample(NAMES, 2))
            regex = self.random.choice([None, None, "b.*", ".*"])
            return Heartbeat(
                member, JOINING, topics=topics, regex=regex, rebalance_timeout_ms=60_000, owned=frozenset()
            )
        epoch, owned = self.told[member]
        if self.random.random() < 0.15:
            del self.told[member]
            return Heartbeat(member, LEAVING)
        return Heartbeat(member, epoch, owned=owned)

    async def transact(self):
        name = self.some_topic()
        if name is None:
            return
        kept = self.topics_made[name].partitions[0]
        producer_id, epoch = await self.transactions.initialize("tx", 60_000, -1, -1)
        await self.transactions.add("tx", producer_id, epoch, [(name, 0)])
        await self.transactions.add_offsets("tx", producer_id, epoch)
        batch, rows = self.batch(producer_id=producer_id, producer_epoch=epoch, base_sequence=0, transactional=True)
        self.doubt = ("append", name, 0, [rows], "uncommitted")
        outcome = await self.topics.partition(name, 0).append(lambda: batch)
        self.note(kept, outcome.base_offset, rows)
        written = range(outcome.base_offset, outcome.base_offset + len(rows))
        kept.uncommitted.update(written)
        offset = self.random.randint(2000, 3000)
        self.doubt = None
        await self.groups.commit_in_transaction(
            "g", producer_id, epoch, {("plain", 0): OffsetAndMetadata(offset, -1, "", 0)}
        )
        commits = self.random.random() < 0.6
        self.doubt = ("end", name, written, offset, commits)
        await self.transactions.end("tx", producer_id, epoch, commit=commits)
        if commits:
            self.offsets["g"] = offset
            kept.uncommitted.difference_update(written)
        assert self.is_committed(name, written) in (commits, None)

    def is_committed(self, name, written):
        """Whether a reader of committed records sees what a transaction has written; None where it is deleted."""
        log = self.topics.partition(name, 0).log
        if written.start < log.start_offset:
            return None
        fetched = log.fetch(written.start, 1 << 20, committed=True)
        first = next(read(fetched.records), None)
        aborted = {transaction.first_offset for transaction in fetched.aborted()}
        return first is not None and first.base_offset == written.start and written.start not in aborted

    def check(self):
        """What is found is what was acknowledged, and of what was under way all or nothing."""
        doubt = self.doubt or ("nothing",)
        self.check_topics(doubt)
        if doubt[0] == "end":
            _, name, written, _, commits = doubt
            committed = self.is_committed(name, written)
            assert commits or not committed
            if committed:
                self.topics_made[name].partitions[0].uncommitted.difference_update(written)
        for name, made in self.topics_made.items():
            for index, kept in enumerate(made.partitions):
                self.check_partition(name, index, kept, doubt)
        for group in "gh":
            found = self.groups.offsets(group).get(("plain", 0))
            possible = {self.offsets.get(group)}
            if doubt[:2] == ("commit", group):
                possible.add(doubt[2])
            if doubt[0] == "end" and doubt[4] and group == "g":
                possible.add(doubt[3])
            assert (found.offset if found else None) in possible, (group, found, possible)
            self.offsets[group] = found.offset if found else None
        group = self.groups.get("k")
        found = stored_of(group) if isinstance(group, ConsumerGroup) else None
        assert found == self.consumers or (doubt[0] == "heartbeat" and found == doubt[1]), (found, doubt)
        self.consumers = found
        for topic in self.topics:
            assert all(partition.log.stable_offset <= partition.log.end_offset for partition in topic.partitions)
        self.doubt = None

    def check_topics(self, doubt):
        found = {topic.name: topic for topic in self.topics if not topic.is_internal}
        if doubt[0] == "create" and doubt[1] in found:
            topic = found[doubt[1]]
            self.topics_made[topic.name] = Made(topic.topic_id, dict(topic.configs), [Kept() for _ in topic.partitions])
        if doubt[0] == "delete" and doubt[1] not in found:
            del self.topics_made[doubt[1]]
        assert found.keys() == self.topics_made.keys()
        for name, made in self.topics_made.items():
            topic = found[name]
            if doubt[:2] == ("alter", name) and topic.configs != made.configs:
                made.configs.update(doubt[2])
            if doubt[:2] == ("add", name) and len(topic.partitions) > len(made.partitions):
                made.partitions.append(Kept())
            assert (topic.topic_id, topic.configs, len(topic.partitions)) == (
                made.topic_id,
                made.configs,
                len(made.partitions),
            )

    def check_partition(self, name, index, kept, doubt):
        log = self.topics.partition(name, index).log
        if doubt[:3] == ("start", name, index) and log.start_offset == doubt[3]:
            kept.start = doubt[3]
        assert log.start_offset == kept.start
        found = self.found(log)
        unsure = doubt[3] if doubt[:3] == ("append", name, index) else []
        possible = {(row.key, row.value) for rows in unsure for row in rows}
        for offset, pair in found.items():
            assert pair == kept.acked[offset] if offset in kept.acked else pair in possible, (offset, pair)
        newest = max(kept.acked, default=-1)
        assert log.end_offset > newest
        if "compact" not in POLICIES[name]:
            wanted = {offset for offset in kept.acked if offset >= log.start_offset}
            assert wanted <= found.keys(), sorted(wanted - found.keys())
        else:
            self.check_newest(log, kept, found)
        values = [value for _, value in found.values() if value is not None]
        assert len(set(values)) == len(values)
        for rows in unsure:
            added = [pair for offset, pair in found.items() if offset not in kept.acked]
            assert [(row.key, row.value) in added for row in rows if row.value is not None] in (
                [True] * sum(row.value is not None for row in rows),
                [False] * sum(row.value is not None for row in rows),
            )
        if unsure and doubt[-1] == "uncommitted":
            kept.uncommitted.update(found.keys() - kept.acked.keys())
        kept.acked.update({offset: pair for offset, pair in found.items() if offset not in kept.acked})

    @staticmethod
    def check_newest(log, kept, found):
        """Of each key the last committed record is there, and nothing that was not committed has replaced it."""
        known = {offset: pair for offset, pair in {**kept.acked, **found}.items() if offset not in kept.uncommitted}
        last = {key: offset for offset, (key, _) in sorted(known.items())}
        for offset in last.values():
            assert offset in found or known[offset][1] is None or offset < log.start_offset, offset

    @staticmethod
    def found(log):
        """(key, value) by offset, read from the start to the end; offsets that go up, and nothing torn."""
        found = {}
        offset = log.start_offset
        while offset < log.end_offset:
            before = offset
            for batch in read(log.read(offset, 2000)):
                for record in batch.records():
                    assert batch.is_control or record.offset not in found
                    if not batch.is_control and record.offset >= log.start_offset:
                        found[record.offset] = record.key, record.value
                offset = batch.next_offset
            assert offset > before, f"no whole batch at {offset} of {log.end_offset}"
        try:
            log.read(log.end_offset + 1, 100)
        except OffsetOutOfRangeError:
            return found
        raise AssertionError("something is read past the end")


def stored_of(group):
    """All of a group of KIP-848 that a restart finds."""
    return group.epoch, group.target_epoch, group.members, group.targets, group.known_topics, group.regexes


def shadow_of(group, topics):
    """Another group that is as one of KIP-848 is; an empty one of none."""
    shadow = ConsumerGroup("k", topics, 45_000)
    if isinstance(group, ConsumerGroup):
        shadow.apply(
            [EpochChange(group.epoch), TargetEpochChange(group.target_epoch), TopicsChange(group.known_topics)]
        )
        for member_id, member in group.members.items():
            shadow.apply([SubscriptionChange(member_id, member.subscription), CurrentChange(member_id, member.current)])
        shadow.apply([TargetChange(member_id, target) for member_id, target in group.targets.items()])
        shadow.apply([RegexChange(regex, resolved) for regex, resolved in group.regexes.items()])
    return shadow


async def run(seed, pool, fsync="batch", losses=4, kills=0.0, interrupted=0.0):
    """A story of some losses of power, each at a step that the seed decides; checked after every one.

    kills: how often the process is killed instead: then nothing that was written is lost, until the next loss of power.
    interrupted: how often there is another loss of power while the broker starts after one.
    """
    story = Story(seed, pool, fsync)
    held = defaultdict(int)
    for number in range(losses):
        await story.start(interrupted if number else 0.0)
        story.check()
        story.disk.crash_at = None
        story.disk.crash_at = story.disk.steps + story.random.randint(1, 400)
        await story.live(60)
        held["crashes" if story.disk.is_dead else "quiet"] += 1
        if kills and story.random.random() < kills:
            story.disk.kill()
        else:
            story.disk.lose_power()
    await story.start(interrupted)
    story.check()
    story.topics.abandon()
    return held
