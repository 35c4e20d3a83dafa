"""The topics of a broker as they change: created, altered, deleted, cut.

Creating and deleting take turns and are durable when they return; both leave either all or nothing after a crash. A
topic exists exactly when the data directory lists it, so directories are made before it is listed and removed after
it is not.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence, Set
from concurrent.futures import Executor
from dataclasses import replace
from typing import TypeVar, TypeVarTuple, Unpack
from uuid import uuid4

from tagwire.broker.busy_time import counted
from tagwire.broker.cluster_image import ClusterImage
from tagwire.broker.partition import Fsync, Partition
from tagwire.broker.serial_tasks import SerialTasks
from tagwire.broker.storage.data_directory import MAX_PARTITIONS, DataDirectory, StoredTopic
from tagwire.broker.storage.files import Files, UnsettledError, problem_of
from tagwire.broker.storage.loading import create_log, open_log
from tagwire.broker.storage.log import PartitionLog
from tagwire.broker.topic import INTERNAL, NewTopic, Replicas, Topic, check_topic_name, unified
from tagwire.broker.topic_config import DIALECT, TopicConfig
from tagwire.broker.topic_table import TopicTable
from tagwire.errors import ConfigError, Error, KafkaError, StorageError
from tagwire.partitions import TopicPartition
from tagwire.records.internal_topics import CLUSTER_METADATA

logger = logging.getLogger("tagwire.broker")

Done = TypeVar("Done")
Arguments = TypeVarTuple("Arguments")

_Growing = tuple[Topic, int, Replicas | None]
"""A topic, how many partitions it is to have, and which nodes are to hold the new ones."""

WhenDeleted = Callable[[Set[str]], Awaitable[None]]
"""What is to follow when topics of these names are gone."""

Changes = Mapping[str, str | None] | Callable[[Topic], Mapping[str, str | None]]
"""Configurations and what they are to be, None for the default; or what tells that of the topic as it is."""

Outcome = Topic | KafkaError
"""A topic, or why it is not the requested one."""

SIDE_BY_SIDE = 4
"""How many topics, or shares of their partitions, are made or discarded at once: they wait for the disk, which then
syncs some together, and leave threads for appends."""

SHARE = 32
"""Partitions of one topic that are made one after the other."""


class Topics(TopicTable):
    """The topics of one data directory, and the changes to them: one after another.

    Args:
        files, data, commits, fsync, image: as of `TopicTable`.
        disk: whose threads create and delete.

    Attributes:
        when_deleted: awaited before a deletion is over, though whoever asked for it has gone; None for nothing.
    """

    def __init__(
        self,
        files: Files,
        data: DataDirectory,
        commits: Executor,
        disk: Executor,
        fsync: Fsync,
        image: ClusterImage | None = None,
    ) -> None:
        super().__init__(files, data, commits, fsync, image)
        self._disk = disk
        self._changing = asyncio.Lock()
        self._steps = SerialTasks()
        self.when_deleted: WhenDeleted | None = None
        # Set while nobody can know which topics the directory lists; then what may be listed and is not known of.
        self._unsettled = False
        self._left: list[tuple[str, range]] = []

    def check_new(self, name: str, partitions: int, configs: Mapping[str, str | None]) -> TopicConfig:
        """What `create` checks before it touches the disk.

        Raises:
            KafkaError: as `check_new_name` and `check_new_configs`, in this order; INVALID_PARTITIONS.
        """
        self.check_new_name(name)
        return self._check_new(name, partitions, configs)

    def check_new_name(self, name: str) -> None:
        """Refuse a name that no new topic can have.

        Raises:
            KafkaError: INVALID_REQUEST for the cluster's metadata, which no client makes (Kafka's ControllerApis);
                INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS.
        """
        check_topic_name(name)
        if name == CLUSTER_METADATA:
            raise KafkaError(Error.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
        if name in INTERNAL:
            raise KafkaError(Error.INVALID_TOPIC_EXCEPTION, f"topic {name} is the broker's own")
        alike = next(iter(self._alike.get(unified(name), ())), name)
        if alike != name and name not in self._by_name:
            problem = (
                f"topic name {name!r} is that of topic {alike} but for '.' and '_', which metrics do not tell apart"
            )
            raise KafkaError(Error.INVALID_TOPIC_EXCEPTION, problem)
        self._check_free(name)

    @staticmethod
    def check_new_configs(configs: Mapping[str, str | None]) -> TopicConfig:
        """What a topic with these configurations would have. Raises KafkaError INVALID_CONFIG."""
        try:
            return TopicConfig.of(configs)
        except ConfigError as error:
            raise KafkaError(Error.INVALID_CONFIG, str(error)) from None

    def _check_free(self, name: str) -> None:
        if name in self._by_name:
            raise KafkaError(Error.TOPIC_ALREADY_EXISTS, f"topic {name} exists")

    def _check_new(self, name: str, partitions: int, configs: Mapping[str, str | None]) -> TopicConfig:
        self._check_free(name)
        config = self.check_new_configs(configs)
        if not 1 <= partitions <= MAX_PARTITIONS:
            raise KafkaError(Error.INVALID_PARTITIONS, f"{partitions} partitions are not 1 to {MAX_PARTITIONS}")
        return config

    async def create(self, name: str, partitions: int, configs: Mapping[str, str | None]) -> Topic:
        """Create a topic; it is on the disk when this returns.

        Raises:
            KafkaError: as `check_new`; KAFKA_STORAGE_ERROR when the disk refused, and nothing of it remains.
        """
        (outcome,) = await self.create_all([NewTopic(name, partitions, configs)])
        return _or_raise(outcome)

    async def create_all(self, wanted: Sequence[NewTopic], until: float = math.inf) -> list[Outcome]:
        """Create topics, each with its own outcome: the topic, which is on the disk then, or why there is none, as
        `create` raises; REQUEST_TIMED_OUT for one that is not whole at `until`, by time.monotonic.

        They are made side by side, and one sync serves all. Nothing else is changed meanwhile: give a few at a time.
        """
        return await self._steps.run_concurrently(self._create_all(wanted, until))

    async def _create_all(self, wanted: Sequence[NewTopic], until: float) -> list[Outcome]:
        outcomes: dict[str, Outcome] = {}
        fresh: list[_Growing] = []
        async with self._changing:
            for new in wanted:
                try:
                    await self._settle()
                    config = self.check_new(new.name, new.partitions, new.configs)
                    topic = Topic(new.name, uuid4(), dict(new.configs), config, ())
                    fresh.append((topic, new.partitions, new.replicas))
                except KafkaError as refusal:
                    outcomes[new.name] = refusal
            outcomes.update(await self._grow(fresh, until))
        return [outcomes[new.name] for new in wanted]

    async def create_internal(self, name: str) -> Topic:
        """A topic of the broker's own, created unless it exists; as `create`."""
        return await self._steps.run_concurrently(self._create_internal(name))

    async def _create_internal(self, name: str) -> Topic:
        async with self._changing:
            found = self._by_name.get(name)
            if found is not None:
                return found
            await self._settle()
            config = self._check_new(name, 1, INTERNAL[name])
            fresh = Topic(name, uuid4(), dict(INTERNAL[name]), config, ())
            return _or_raise((await self._grow([(fresh, 1, None)], math.inf))[name])

    async def _on_disk(self, act: Callable[[Unpack[Arguments]], Topic], *arguments: *Arguments) -> Topic:
        topic = await asyncio.get_running_loop().run_in_executor(self._disk, act, *arguments)
        self._add(topic)
        return topic

    async def _grow(self, wanted: Sequence[_Growing], until: float) -> dict[str, Outcome]:
        """Topics whose partitions become as many as is said, by their names. What is made of them goes again where the
        whole is refused."""
        loop = asyncio.get_running_loop()

        async def make(growing: _Growing, share: range) -> list[Partition] | KafkaError:
            return await loop.run_in_executor(self._commits, self._make, growing, share, until)

        fresh = {topic.name for topic, _, _ in wanted if not topic.partitions}
        try:
            await loop.run_in_executor(self._disk, self._data.forget_offsets, fresh)
        except OSError as error:
            return {topic.name: _not_created(topic, count, error) for topic, count, _ in wanted}
        shares = [(growing, share) for growing in wanted for share in _shares(growing)]
        made = await self._side_by_side(make(*share) for share in shares)
        new: dict[str, list[Partition]] = {topic.name: [] for topic, _, _ in wanted}
        outcomes: dict[str, Outcome] = {}
        for ((topic, _, _), _), found in zip(shares, made):
            if isinstance(found, KafkaError):
                outcomes.setdefault(topic.name, found)
            else:
                new[topic.name] += found
        for topic, count, _ in wanted:
            if topic.name in outcomes:
                await loop.run_in_executor(self._commits, self._discard, topic.name, _new(topic, count))
            else:
                outcomes[topic.name] = replace(topic, partitions=(*topic.partitions, *new[topic.name]))
        grown = ((before, outcomes[before.name]) for before, _, _ in wanted)
        whole = [(before, topic) for before, topic in grown if isinstance(topic, Topic)]
        if whole:
            names = {topic.name for _, topic in whole}
            others = [topic.stored for topic in self._by_name.values() if topic.name not in names]
            outcomes.update(await loop.run_in_executor(self._disk, self._list, whole, others))
        for outcome in outcomes.values():
            if isinstance(outcome, Topic):
                self._add(outcome)
        return outcomes

    @staticmethod
    async def _side_by_side(steps: Iterable[Coroutine[object, None, Done]]) -> list[Done]:
        turns = asyncio.Semaphore(SIDE_BY_SIDE)

        async def step(work: Coroutine[object, None, Done]) -> Done:
            async with turns:
                return await work

        return list(await asyncio.gather(*(counted(step(work)) for work in steps)))

    def _make(self, growing: _Growing, share: range, until: float) -> list[Partition] | KafkaError:
        """Some of a topic's new partitions, which are on the disk, but in no list yet. What is made of them stays where
        one is not."""
        topic, count, replicas = growing
        made: list[Partition] = []
        try:
            for index in share:
                if time.monotonic() >= until:
                    return KafkaError(Error.REQUEST_TIMED_OUT, f"topic {topic.name}: there was no time to create it")
                path = self._data.create_partition(topic.name, index, topic.topic_id, topic.config.dialect)
                log = create_log(self._files, path, topic.config)
                held_by = None if replicas is None else replicas(index)
                made.append(self._partition(topic.name, index, log, held_by))
        except OSError as error:
            return _not_created(topic, count, error)
        return made

    def _list(self, whole: Sequence[tuple[Topic, Topic]], others: list[StoredTopic]) -> dict[str, Outcome]:
        """Make topics, each as it was and as it is now, some of those that exist."""
        try:
            self._data.sync()
            self._save([*others, *(topic.stored for _, topic in whole)])
        except OSError as error:
            for before, topic in whole:
                new = _new(before, len(topic.partitions))
                if self._unsettled:  # they may be listed, and a start would need them then
                    self._left.append((topic.name, new))
                else:
                    self._discard(topic.name, new)
            return {topic.name: _not_created(before, len(topic.partitions), error) for before, topic in whole}
        return {topic.name: topic for _, topic in whole}

    async def add_partitions(
        self, name: str, count: int, until: float = math.inf, placed: Callable[[Topic], Replicas] | None = None
    ) -> Topic:
        """Give a topic more partitions, `count` in all; they are on the disk when this returns.

        Args:
            placed: says which nodes are to hold the new ones, of the topic as it is when its turn has come.

        Raises:
            KafkaError: as `check_more_partitions`, and what `placed` raises; KAFKA_STORAGE_ERROR when the disk refused,
                REQUEST_TIMED_OUT when they are not made by `until`, as in `create_all`; none were added then.
        """
        self.check_more_partitions(name, count)
        return await self._steps.run_concurrently(self._add_partitions(name, count, until, placed))

    async def _add_partitions(
        self, name: str, count: int, until: float, placed: Callable[[Topic], Replicas] | None
    ) -> Topic:
        async with self._changing:
            await self._settle()
            topic = self.check_more_partitions(name, count)
            replicas = None if placed is None else placed(topic)
            return _or_raise((await self._grow([(topic, count, replicas)], until))[name])

    def check_more_partitions(self, name: str, count: int) -> Topic:
        """What `add_partitions` checks before it touches the disk.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION; INVALID_TOPIC_EXCEPTION for one of the broker's own;
                INVALID_PARTITIONS for fewer partitions than there are, as many, or too many.
        """
        topic = self._changeable(name)
        if not len(topic.partitions) < count <= MAX_PARTITIONS:
            problem = f"topic {name} has {len(topic.partitions)} partitions, and can have up to {MAX_PARTITIONS}"
            raise KafkaError(Error.INVALID_PARTITIONS, f"{problem}: not {count}")
        return topic

    def check_alteration(self, name: str, changes: Changes) -> Topic:
        """The topic as `alter` would make it; nothing is changed.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION; INVALID_TOPIC_EXCEPTION for one of the broker's own; INVALID_CONFIG
                for a name that there is not, or a value that it does not take; what `changes` raises.
        """
        topic = self._changeable(name)
        given = changes(topic) if callable(changes) else changes
        configs = {key: value for key, value in {**topic.configs, **given}.items() if value is not None}
        try:
            TopicConfig.check_names(given)
            config = TopicConfig.of(configs)
        except ConfigError as error:
            raise KafkaError(Error.INVALID_CONFIG, str(error)) from None
        if config.dialect != topic.config.dialect:
            raise KafkaError(Error.INVALID_CONFIG, f"{DIALECT} is what the topic is stored in, and cannot be changed")
        return replace(topic, configs=configs, config=config)

    async def alter(self, name: str, changes: Changes) -> Topic:
        """Change configurations of a topic, by Kafka's names; None takes one back to its default. What is not named
        stays.

        They are on the disk, and have effect, when this returns. A value that is a list is given whole: whoever adds to
        one or takes from it gives a function, which is asked in the topic's turn, since others change it meanwhile.

        Raises:
            KafkaError: as `check_alteration`; KAFKA_STORAGE_ERROR when the disk refused, and nothing was changed.
        """
        self.check_alteration(name, changes)
        return await self._steps.run_concurrently(self._alter(name, changes))

    async def _alter(self, name: str, changes: Changes) -> Topic:
        async with self._changing:
            await self._settle()
            altered = self.check_alteration(name, changes)
            return await self._on_disk(self._save_altered, altered, self._others(altered))

    def _save_altered(self, altered: Topic, others: list[StoredTopic]) -> Topic:
        try:
            self._save([*others, altered.stored])
        except OSError as error:
            raise KafkaError(Error.KAFKA_STORAGE_ERROR, f"topic {altered.name} was not altered: {error}") from error
        for partition in altered.partitions:
            partition.log.reconfigure(altered.config)
        return altered

    def _save(self, topics: list[StoredTopic]) -> None:
        """Make `topics` what the directory lists.

        Raises:
            UnsettledError: a start may find these topics, or those before; nothing is changed before that is settled.
            OSError: the disk refused, and the list is as it was.
        """
        try:
            self._data.save_topics(topics)
        except UnsettledError:
            self._unsettled = True
            raise

    async def _settle(self) -> None:
        """Before anything is changed: make the directory list the topics that are known, if it may list others.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        if self._unsettled:
            known = [topic.stored for topic in self]
            await asyncio.get_running_loop().run_in_executor(self._disk, self._list_known, known)

    def _list_known(self, known: list[StoredTopic]) -> None:
        try:
            self._data.save_topics(known)
        except OSError as error:
            raise KafkaError(
                Error.KAFKA_STORAGE_ERROR, f"which topics there are could not be stored: {error}"
            ) from error
        self._unsettled = False
        while self._left:
            self._discard(*self._left.pop())

    def _others(self, topic: Topic) -> list[StoredTopic]:
        return [other.stored for other in self._by_name.values() if other.name != topic.name]

    def _changeable(self, name: str) -> Topic:
        topic = self._by_name.get(name)
        if topic is None:
            raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
        if topic.is_internal:
            raise KafkaError(Error.INVALID_TOPIC_EXCEPTION, f"topic {name} is the broker's own")
        return topic

    async def delete(self, topic: Topic) -> None:
        """Delete a topic and its records; appends already under way finish first.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION when it has just been deleted; INVALID_TOPIC_EXCEPTION for one of the
                broker's own; KAFKA_STORAGE_ERROR when the disk refused, and the topic is still there.
        """
        (outcome,) = await self.delete_all([topic])
        _or_raise(outcome)

    async def delete_all(self, topics: Sequence[Topic]) -> list[Outcome]:
        """Delete topics, each with its own outcome: the topic as it was, or why it is still there, as `delete` raises.
        One sync serves all."""
        return await self._steps.run_concurrently(self._delete_and_tell(topics))

    async def _delete_and_tell(self, topics: Sequence[Topic]) -> list[Outcome]:
        outcomes = await self._delete_all(topics)
        gone = {outcome.name for outcome in outcomes if isinstance(outcome, Topic)}
        if gone and self.when_deleted is not None:  # not in the turn of changes: it may itself make a topic
            await self.when_deleted(gone)
        return outcomes

    async def _delete_all(self, topics: Sequence[Topic]) -> list[Outcome]:
        loop = asyncio.get_running_loop()
        async with self._changing:
            try:
                await self._settle()
                outcomes = {topic.topic_id: self._as_it_is(topic) for topic in topics}
                deleted = {key: topic for key, topic in outcomes.items() if isinstance(topic, Topic)}
                left = [topic.stored for topic in self if topic.topic_id not in deleted]
                if deleted:
                    await loop.run_in_executor(self._disk, self._save, left)
            except KafkaError as refusal:
                return [refusal] * len(topics)
            except OSError as error:
                if isinstance(error, UnsettledError):
                    # What was acknowledged from now on might be gone at the next start.
                    reason = "its topic was deleted, or will be there again"
                    await loop.run_in_executor(self._disk, _abandon_all, list(deleted.values()), reason)
                for key, topic in deleted.items():
                    outcomes[key] = _not_deleted(topic, error)
                return [outcomes[topic.topic_id] for topic in topics]
            for topic in deleted.values():
                self._remove(topic)
                for partition in topic.partitions:
                    partition.mark_deleted()
            await self._side_by_side(self._discard_settled(topic) for topic in deleted.values())
        return [outcomes[topic.topic_id] for topic in topics]

    async def _discard_settled(self, topic: Topic) -> None:
        for partition in topic.partitions:
            await partition.settle()
        await asyncio.get_running_loop().run_in_executor(self._commits, self._discard_deleted, topic)

    def _as_it_is(self, topic: Topic) -> Outcome:
        """A topic that is to be deleted as it is now: it may have been altered."""
        if topic.is_internal:
            return KafkaError(Error.INVALID_TOPIC_EXCEPTION, f"topic {topic.name} is the broker's own")
        gone = KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic.name} has just been deleted")
        return self._by_id.get(topic.topic_id, gone)

    def _discard_deleted(self, topic: Topic) -> None:
        _abandon(topic, "its topic was deleted")
        self._discard(topic.name, range(len(topic.partitions)))

    def _discard(self, name: str, partitions: range) -> None:
        for index in partitions:
            try:
                self._data.discard_partition(name, index)
            except FileNotFoundError:
                continue
            except OSError as error:
                logger.warning("%s-%d: %s; what is left goes at the next start", name, index, error)

    async def truncate(self, partition: Partition, offset: int) -> None:
        """Lose the records from an offset on, with the whole of the batch that holds it, and begin a leader epoch.

        Raises:
            StorageError: the disk refused, and the partition is offline, or it was.
        """
        await self._steps.run_concurrently(self._truncate(partition, offset))

    async def _truncate(self, partition: Partition, offset: int) -> None:
        loop = asyncio.get_running_loop()
        async with self._changing:
            await partition.settle()
            await loop.run_in_executor(self._disk, partition.log.cut, offset)
            topic = self._by_name[partition.topic]
            log = await loop.run_in_executor(self._disk, self._open_cut, topic, partition.index)
            partition.reopened(log)

    def _open_cut(self, topic: Topic, index: int) -> PartitionLog:
        path = self._data.check_partition(topic.stored, index, topic.config.dialect)
        log = open_log(
            self._files,
            path,
            topic.config,
            clean=False,
            start_offset=self._data.start_offsets.get(topic.name, index),
            gaps_before=self._data.gaps.get(topic.name, index),
        )
        try:
            self._data.lower_offsets({TopicPartition(topic.name, index): log.end_offset})
        except OSError as error:
            raise StorageError(problem_of(error, path)) from error
        return log

    async def settle(self) -> None:
        """Wait until every append, creation and deletion that was begun has been carried out."""
        async with self._changing:
            for partition in self.partitions():
                await partition.settle()


def _abandon(topic: Topic, reason: str) -> None:
    for partition in topic.partitions:
        partition.log.abandon(reason)


def _abandon_all(topics: Sequence[Topic], reason: str) -> None:
    for topic in topics:
        _abandon(topic, reason)


def _or_raise(outcome: Outcome) -> Topic:
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome


def _new(topic: Topic, count: int) -> range:
    """The partitions that a topic gets when it is to have `count`."""
    return range(len(topic.partitions), count)


def _shares(growing: _Growing) -> list[range]:
    topic, count, _ = growing
    new = _new(topic, count)
    return [new[at : at + SHARE] for at in range(0, len(new), SHARE)]


def _not_created(topic: Topic, count: int, error: OSError) -> KafkaError:
    which = f"partitions {len(topic.partitions)} to {count - 1} of topic {topic.name}"
    refusal = KafkaError(Error.KAFKA_STORAGE_ERROR, f"{which} were not created: {error}")
    refusal.__cause__ = error
    return refusal


def _not_deleted(topic: Topic, error: OSError) -> KafkaError:
    fate = "was deleted or not" if isinstance(error, UnsettledError) else "was not deleted"
    refusal = KafkaError(Error.KAFKA_STORAGE_ERROR, f"topic {topic.name} {fate}: {error}")
    refusal.__cause__ = error
    return refusal
