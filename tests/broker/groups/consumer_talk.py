"""A group of KIP-848 that is talked to: no broker, no clock, no sleep, and what it stores is what a restart finds."""

from __future__ import annotations

from types import SimpleNamespace
from uuid import UUID

from tagwire.broker.groups.consumer_group import ConsumerGroup
from tagwire.broker.groups.consumer_member import JOINING, LEAVING, LEAVING_STATIC, TopicIdPartition
from tagwire.broker.groups.consumer_steps import Heartbeat
from tagwire.broker.groups.stored import change_records, read_record

SESSION, REBALANCE = 45_000, 300_000


class FakeTopics:
    """Topics by name, each with a number of partitions."""

    def __init__(self, **topics):
        self.version = 0
        self._topics = {}
        self._made = 0
        for name, partitions in topics.items():
            self.put(name, partitions)

    def put(self, name, partitions):
        """Create a topic, or give it more partitions."""
        known = self._topics.get(name)
        if known is None:
            self._made += 1
        topic_id = known.topic_id if known is not None else UUID(int=self._made)
        self._topics[name] = SimpleNamespace(name=name, topic_id=topic_id, partitions=(None,) * partitions)
        self.version += 1

    def drop(self, name):
        del self._topics[name]
        self.version += 1

    def get(self, name):
        return self._topics.get(name)

    def by_id(self, topic_id):
        return next((topic for topic in self if topic.topic_id == topic_id), None)

    def __iter__(self):
        return iter(list(self._topics.values()))


class Talk:
    """A group, and members that do as they are told.

    Attributes:
        records: all that was stored, oldest first.
        told: by member, its epoch and what it has.
        refuses: whether the disk refuses what is to be stored.
    """

    def __init__(self, **topics):
        self.topics = FakeTopics(**(topics or {"t": 4}))
        self.group = ConsumerGroup("g", self.topics, SESSION)
        self.records = []
        self.now = 1000
        self.told = {}
        self.refuses = False

    def store(self, step):
        """Store what a step changes, and go on."""
        if self.refuses:
            return None
        self.group.check_growth(step.changes)
        self.records += change_records("g", step.changes)
        self.group.apply(step.changes)
        step.then(self.now)
        return step.result

    def beat(self, member, epoch=None, *, instance=None, owned="as told", **said):
        """A heartbeat of a member, that speaks of its epoch and has what it was told."""
        before = self.told.get(member, (JOINING, frozenset()))
        epoch = before[0] if epoch is None else epoch
        if owned == "as told":
            owned = frozenset() if epoch == JOINING else before[1]
        topics = said.pop("topics", None)
        topics = frozenset(topics) if topics is not None else None
        beat = Heartbeat(member, epoch, instance, owned=owned, topics=topics, client_id=member, **said)
        result = self.store(self.group.heartbeat(beat))
        if result is not None and epoch >= JOINING:
            assigned = before[1] if result.assigned is None else result.assigned
            self.told[member] = result.epoch, assigned
        elif result is not None:
            self.told.pop(member, None)
        return result

    def join(self, member, *topics, **said):
        """A member joins, subscribed to topics, "t" if none is said."""
        self.told.pop(member, None)
        if "regex" not in said:
            said["topics"] = topics or ("t",)
        return self.beat(member, JOINING, rebalance_timeout_ms=said.pop("rebalance", REBALANCE), **said)

    def leave(self, member, instance=None, *, comes_back=False):
        return self.beat(member, LEAVING_STATIC if comes_back else LEAVING, instance=instance)

    def settle(self, *members):
        """Members heartbeat until nothing is new for any of them."""
        members = members or tuple(self.told)
        for _ in range(20):
            before = dict(self.told)
            for member in members:
                self.beat(member, instance=self.group.members[member].subscription.instance_id)
            if before == self.told and all(m.current.is_reconciled_to(self.group.epoch) for m in self.of_group()):
                return self
        raise AssertionError(f"it does not settle: {self.told}")

    def of_group(self):
        return [self.group.members[member] for member in self.told if member in self.group.members]

    def wait(self, ms):
        self.now += ms
        while (step := self.group.tick(self.now)) is not None:
            if self.refuses:
                self.group.postpone(self.now + 1000)
                return
            self.store(step)

    def has(self, member):
        """What a member has, as "topic-index"."""
        return self.names(self.told[member][1])

    def names(self, partitions):
        return {f"{self.topics.by_id(one.topic_id).name}-{one.partition}" for one in partitions}

    def at(self, *names):
        """Partitions of "topic-index"."""
        split = [name.rpartition("-") for name in names]
        return frozenset(TopicIdPartition(self.topics.get(topic).topic_id, int(index)) for topic, _, index in split)

    def restarted(self, records=None):
        """The group as a restart finds it, of all that was stored or of what compaction left of it."""
        group = ConsumerGroup("g", self.topics, SESSION)
        for record in self.records if records is None else records:
            group.apply([read_record(record).change])
        group.restored(self.now)
        return group

    def compacted(self, until=None):
        """The records, of which compaction has been over the first `until`: of each key it left the last."""
        dirty = len(self.records) if until is None else until
        last = {record.key: number for number, record in enumerate(self.records[:dirty])}
        clean = [record for number, record in enumerate(self.records[:dirty]) if last[record.key] == number]
        return clean + self.records[dirty:]


def shape(group):
    """All of a group that is stored."""
    return group.epoch, group.target_epoch, group.members, group.targets, group.regexes, group.held_bytes
