"""Programs that read with all that a consumer has for them, when nothing goes wrong any more: they take records by
polls, several at a time or one by one, look at each before it is given, commit where their listener hears that
partitions go, raise in it and in what they are called back with, and ask where they are."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final

from tagwire.client import Consumer, NewTopic, OffsetAndMetadata
from tagwire.client.aio import AsyncAdmin, AsyncProducer
from tagwire.errors import KafkaError, TagwireError, WakeupError
from tagwire.partitions import TopicPartition
from tagwire.records import Record
from tests.simulation.workload.blocking import Blocking
from tests.simulation.workload.consuming import Noting, subscribed
from tests.simulation.workload.records import read_of
from tests.simulation.workload.stage import PATIENCE, Spec, Stage, is_refusal
from tests.simulation.workload.storing import WRITING, Writer

TOPIC: Final = "listened"
GROUP: Final = "listening"
PARTITIONS: Final = 3
RECORDS: Final = 12
"""In each partition."""

NEAR_S: Final = 0.3
"""A round trip, spikes and all, of who is near enough to do all that in time."""

BURSTS: Final = (1, 1, 1, 5, 10)
"""Of what is written while they read: members are behind now and then, and have fetched what they have not read."""

DOZES_S: Final = 2.0
"""How long members may stay away, where they stay away for longer now and then: others come and go meanwhile."""

REQUEST_S: Final = 20.0
MEMBERS: Final = 3
COMES_S: Final = 1.2
"""Between one member and the next, on average."""

CALM_S: Final = 10.0
"""Before that, what was wrong before excuses what members are given again."""

BEGINS_S: Final = 0.05
"""By then an event loop runs: how many steps of a thread that takes depends on the version of Python."""

STAYS_S: Final = 4.0
DRAINS_S: Final = 15.0
"""By then the last member is given all that was given to nobody."""

ASSIGNORS: Final = ("range", "sticky", "cooperative-sticky", "cooperative-sticky")


def _written(stage: Stage) -> int:
    """How many records are acknowledged."""
    return sum(
        event.f == "send" and event.type == "ok" and event.process.startswith("listening-writer")
        for event in stage.history.events
    )


class DislikedError(Exception):
    """What an application raises in the midst of what a consumer does for it."""


class Listening(Blocking):
    """Its spec: has_consumer_groups: whether brokers know KIP-848."""

    @property
    def goes_on(self) -> bool:
        return not self.is_done

    def live_blocking(self) -> None:
        self.is_done = True
        if self.stage.round_trip_s + self.stage.spikes_s > NEAR_S:
            return
        asyncio.run(self._write())
        if _written(self.stage) == PARTITIONS * RECORDS:  # brokers of before KIP-98 refuse who numbers records
            self._by_hand()
            self._in_a_group()

    async def _write(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        asked: Spec = {"topic": TOPIC, "partitions": PARTITIONS, "configs": {}}
        async with AsyncAdmin(properties) as admin:
            new = NewTopic(TOPIC, PARTITIONS, -1, {})
            await self.noted("create_topic", asked, lambda: admin.create_topics(new), has_no_effect=is_refusal)
        topic = {"name": TOPIC, "partitions": PARTITIONS, "kind": "steady", "compacted": False, "configs": {}}
        self.stage.topics[TOPIC] = topic
        writer = Writer(self.stage, WRITING | {"name": f"{self.name}-writer", "value_size": 0})
        async with AsyncProducer(properties, **writer.options()) as producer:
            for partition in range(PARTITIONS):
                await writer.write(producer, TOPIC, [None] * RECORDS, partition)

    async def _write_on(self, is_over: threading.Event) -> None:
        """Something for whoever takes several at a time to wait for."""
        writer = Writer(self.stage, WRITING | {"name": f"{self.name}-writer-2", "value_size": 0})
        async with AsyncProducer(self.stage.properties(writer.name, REQUEST_S), **writer.options()) as producer:
            while not is_over.is_set():
                count = self.random.choice(BURSTS)
                await writer.write(producer, TOPIC, [None] * count, self.random.randrange(PARTITIONS))
                await asyncio.sleep(self.random.choice([0.0, 0.1, 0.3]))

    # By hand -----------------------------------------------------------------------------------------------------

    def _by_hand(self) -> None:
        """Goes from one place to another in one partition, while there are records of another one."""
        first, second = (TopicPartition(TOPIC, one) for one in self.random.sample(range(PARTITIONS), 2))
        properties = self.stage.properties(f"{self.process}-by-hand", REQUEST_S)
        with Consumer(properties, offset_reset="none", max_wait_ms=300) as consumer:
            consumer.assign({first: 0, second: RECORDS + 1000})
            time.sleep(self.random.choice([0.5, 1.5]))
            self._take_some(consumer)
            consumer.seek(second, 0)
            self._holds(f"{second} by who has left what is not there", self._all_of(consumer, second), RECORDS)
        where, due = self.random.choice([("earliest", 0), ("latest", RECORDS)])
        with Consumer(properties, offset_reset=where, max_wait_ms=300) as consumer:
            consumer.assign({first: 0})
            time.sleep(0.5)
            consumer.assign([first, second])
            about = f"where {second} is read, of which it is not said where"
            self._holds(about, consumer.position(second, REQUEST_S), due)

    def _take_some(self, consumer: Consumer) -> None:
        try:
            consumer.poll(1.0) if self.random.random() < 0.5 else consumer.consume(RECORDS + 1, 1.0)
        except KafkaError:  # of the other partition
            return

    def _all_of(self, consumer: Consumer, at: TopicPartition) -> int | str:
        """How many of its records come; an error, where there is one."""
        count, until = 0, time.monotonic() + DRAINS_S
        while count < RECORDS and time.monotonic() < until:
            try:
                count += sum(record.partition == at.partition for record in consumer.poll(0.5))
            except TagwireError as error:
                return str(error)
        return count

    def _holds(self, about: str, answer: Any, due: Any) -> None:
        op = self.history.invoke(self.process, "probe", node=-1, api="Consumer", about=about, answers=[due])
        self.history.ok(op, answer=answer)

    # In a group --------------------------------------------------------------------------------------------------

    def _in_a_group(self) -> None:
        """Members come one after the other, and go; the last one reads what is left."""
        random = self.random
        by_kip_848 = self.spec["has_consumer_groups"] and random.random() < 0.4
        shared: Spec = {
            "group": GROUP,
            "topics": [TOPIC],
            "pattern": None,
            "protocol": "consumer" if by_kip_848 else "classic",
            "isolation": "read_uncommitted",
            "reset": "earliest",
            "auto_commit": random.random() < 0.5,
            "session_timeout": None if by_kip_848 else 6.0,
            "max_poll_interval": random.choice([20.0, 20.0, DOZES_S]),
            "assignors": None if by_kip_848 else [random.choice(ASSIGNORS)],
        }
        seen: set[tuple[int, int]] = set()
        members = [
            _Listener(self.stage, shared | {"name": f"{self.name}-{number}", "number": number}, seen)
            for number in range(1, MEMBERS + 1)
        ]
        time.sleep(CALM_S)
        is_over = threading.Event()
        writing = threading.Thread(target=lambda: asyncio.run(self._write_on(is_over)))
        threads = [threading.Thread(target=member.main) for member in members]
        writing.start()
        time.sleep(BEGINS_S)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        is_over.set()
        writing.join(PATIENCE)
        last = _Listener(self.stage, shared | {"name": f"{self.name}-last", "number": 0}, seen)
        last.main()


class _Listener(Blocking):
    """A member. `seen`: partition and offset of what was given to any of them."""

    def __init__(self, stage: Stage, spec: Spec, seen: set[tuple[int, int]]) -> None:
        super().__init__(stage, spec | {"at": 0.0})
        self.group: str = spec["group"]
        self.given: dict[TopicPartition, int] = {}
        self.is_new = False
        self._seen = seen
        self._there: Iterator[Record] | None = None
        self.is_last = not spec["number"]
        self._is_slow = False

    @property
    def goes_on(self) -> bool:
        return not self.is_done

    def live_blocking(self) -> None:
        self.is_done = True
        spec, random = self.spec, self.random
        if spec["number"] > 1:
            time.sleep((spec["number"] - 1) * COMES_S * random.uniform(0.5, 1.5))
        self._is_slow = not self.is_last and random.random() < 0.4
        names = ("group", "protocol", "auto_commit", "session_timeout", "max_poll_interval", "assignors")
        options = {name: spec[name] for name in names if spec[name] is not None}
        if spec["protocol"] == "classic":
            options["heartbeat_interval"] = 0.3
        if self._is_slow:
            options["interceptors"] = [self._looked_at]
        options |= {"offset_reset": spec["reset"], "max_poll_records": random.choice([2, 5]), "max_wait_ms": 300}
        properties = self.stage.properties(self.process, REQUEST_S)
        consumer = self.member_of = Consumer(properties, **options)
        try:
            op = self.history.invoke(self.process, "subscribe", **subscribed(spec))
            consumer.subscribe(spec["topics"], _Committing(self, random, commits=not spec["auto_commit"]))
            self.history.ok(op)
            self._read(consumer)
        finally:
            self._end(consumer)

    def _read(self, consumer: Consumer) -> None:
        ways = ["consume", "consume", "poll", "each"]
        if self.random.random() < 0.5:  # most programs have one way
            ways = [self.random.choice(ways)]
        if self._is_slow:  # while it looks at a record, nobody wakes it
            ways = ["poll" if way == "each" else way for way in ways]
        until = time.monotonic() + (DRAINS_S if self.is_last else STAYS_S)
        while time.monotonic() < until and not (self.is_last and self._is_all_seen()):
            way = "poll" if self.is_last else self.random.choice(ways)
            if way == "consume":
                wanted, wait = self.random.choice([3, 3 * RECORDS]), self.random.choice([0.3, 1.5])
                self._noted(consumer, lambda wanted=wanted, wait=wait: consumer.consume(wanted, wait))
            elif way == "poll":
                self._noted(consumer, lambda: consumer.poll(0.3))
            else:
                self._one_by_one(consumer)
            if not self.is_last:
                time.sleep(self.random.choice([0.0, 0.1, 0.4]))
                if self.spec["max_poll_interval"] == DOZES_S and self.random.random() < 0.15:
                    time.sleep(DOZES_S * self.random.uniform(0.3, 1.6))

    def _is_all_seen(self) -> bool:
        """Whether each record was given to some member."""
        return len(self._seen) >= _written(self.stage)

    def _one_by_one(self, consumer: Consumer) -> None:
        """Takes some of what is there, and leaves the rest to whatever it asks for next."""
        there = iter(consumer)
        for _ in range(self.random.randint(1, 4)):
            is_over = threading.Event()

            def wake(is_over: threading.Event = is_over) -> None:
                if not is_over.wait(0.5):
                    consumer.wakeup()

            waker = threading.Thread(target=wake)
            waker.start()
            try:
                if not self._noted(consumer, lambda: [next(there)]):
                    return
            finally:
                is_over.set()
                waker.join()

    def _noted(self, consumer: Consumer, take: Callable[[], Sequence[Record]]) -> bool:
        """Notes what a call gives. False where it is interrupted by the application itself."""
        op = self.history.invoke(self.process, "poll", group=self.group, isolation=self.spec["isolation"])
        try:
            records = take()
        except (DislikedError, WakeupError):
            self.history.fail(op)
            return False
        except TagwireError as error:
            self.history.fail(op, error)
            raise
        self._seen.update((record.partition or 0, record.offset) for record in records)
        positions = consumer.positions()
        member = consumer.group_metadata()
        told = {"member": member.member_id, "generation": member.generation}
        self.history.ok(op, **told, read=read_of(records, positions))
        return True

    def _looked_at(self, record: Record) -> Record:
        """What is done with each record before it is given takes its time now and then."""
        if self.random.random() < 0.15:
            time.sleep(self.random.choice([0.5, 1.0]))
        return record

    def commit(self, consumer: Consumer) -> None:
        """Commits where it stands, as its listener does."""
        found = consumer.positions()
        if not found:
            return
        member = consumer.group_metadata()
        asked = {"group": self.group, "member": member.member_id, "generation": member.generation}
        offsets = [[*partition, found[partition].offset] for partition in sorted(found)]
        op = self.history.invoke(self.process, "commit", **asked, offsets=offsets)
        try:
            consumer.commit()
        except DislikedError:  # of a callback of another commit; whether this one was taken is not told
            self.history.info(op)
            raise
        except TagwireError as error:
            self.history.info(op, error)
            return
        self.history.ok(op)

    def _end(self, consumer: Consumer) -> None:
        """Closes, while commits are under way whose callbacks raise: each is called."""
        asked, called = self.random.randint(0, 3), []
        if not self.is_last:
            for number in range(asked):
                self._commit_beside(consumer, number, called)
        op = self.history.invoke(self.process, "close", group=self.group)
        try:
            consumer.close(10.0)
        except DislikedError:
            pass
        except TagwireError as error:
            self.history.info(op, error)
            return
        self.history.ok(op)
        if not self.is_last and asked:
            about = f"which of the callbacks of {self.process} were called when it was closed"
            told = self.history.invoke(
                self.process, "probe", node=-1, api="Consumer", about=about, answers=[[*range(asked)]]
            )
            self.history.ok(told, answer=called)

    def _commit_beside(self, consumer: Consumer, number: int, called: list[int]) -> None:
        offsets = {at: found.offset for at, found in consumer.positions().items()}
        member = consumer.group_metadata()
        told = [[*partition, offsets[partition]] for partition in sorted(offsets)]
        own = {"group": self.group, "member": member.member_id, "generation": member.generation, "offsets": told}
        op = self.history.invoke(self.process, "commit", **own)

        def done(_: Mapping[TopicPartition, OffsetAndMetadata], error: Exception | None) -> None:
            called.append(number)
            if error is None:
                self.history.ok(op)
            else:
                self.history.info(op, error)
            raise DislikedError(f"callback {number}")

        consumer.commit_async(offsets, done)


class _Committing(Noting):
    """Commits, where its consumer does not by itself, before partitions go, and raises now and then."""

    def __init__(self, actor: _Listener, random: Random, *, commits: bool) -> None:
        super().__init__(actor)
        self._member = actor
        self._random = random
        self._commits = commits
        self._raises = 0.0 if actor.is_last else random.choice([0.0, 0.5, 0.5])

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        super().on_partitions_assigned(partitions)
        self._raise()

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        if self._commits:
            self._member.commit(self._member.member_of)
        super().on_partitions_revoked(partitions)
        self._raise()

    def _raise(self) -> None:
        if self._random.random() < self._raises:
            raise DislikedError("in a listener")
