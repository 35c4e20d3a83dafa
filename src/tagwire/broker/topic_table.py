"""The topics of a broker as they are: opened with their logs when it starts, found by name or id, closed at its end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from uuid import UUID

from tagwire.broker.cluster_image import ClusterImage
from tagwire.broker.partition import Fsync, Partition
from tagwire.broker.storage.data_directory import EVERYWHERE, TOPICS_FILE, DataDirectory, StoredTopic
from tagwire.broker.storage.files import Files, problem_of
from tagwire.broker.storage.loading import open_log
from tagwire.broker.storage.log import PartitionLog
from tagwire.broker.storage.unopened_log import UnopenedLog
from tagwire.broker.topic import INTERNAL, Topic, to_go_on_without, unified
from tagwire.broker.topic_config import TopicConfig
from tagwire.errors import ConfigError, StorageError
from tagwire.partitions import TopicPartition

logger = logging.getLogger("tagwire.broker")


class TopicTable:
    """Every topic of one data directory, as it is.

    Args:
        files, data: where they are kept.
        commits: whose threads append; no others' work, so that reading never waits for a sync.
        fsync: as in `Settings`.
        image: the nodes that lead and hold partitions; None for one alone, whose id is 0.

    Attributes:
        partition_count: how many partitions the topics have.
        version: counts the changes to which topics there are, and to how many partitions they have.
    """

    def __init__(
        self,
        files: Files,
        data: DataDirectory,
        commits: Executor,
        fsync: Fsync,
        image: ClusterImage | None = None,
    ) -> None:
        self._files = files
        self._data = data
        self._commits = commits
        self._fsync: Fsync = fsync
        self._image = image or ClusterImage(0)
        self.partition_count = 0
        self.version = 0
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[UUID, Topic] = {}
        self._alike: dict[str, dict[str, None]] = {}  # names by `unified`

    def __iter__(self) -> Iterator[Topic]:
        return iter(sorted(self._by_name.values(), key=lambda topic: topic.name))  # a copy: threads iterate too

    def get(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def by_id(self, topic_id: UUID) -> Topic | None:
        return self._by_id.get(topic_id)

    def partition(self, topic: str, index: int) -> Partition | None:
        """A partition that exists, or None."""
        found = self._by_name.get(topic)
        return found.partitions[index] if found and 0 <= index < len(found.partitions) else None

    def partitions(self) -> Iterator[Partition]:
        """Every partition of every topic."""
        return (partition for topic in self for partition in topic.partitions)

    def load(self) -> None:
        """Open every topic the directory lists; logs are checked and repaired where it was not left in order.

        One that cannot be opened is offline, with its reason, and the others are served.

        Raises:
            StorageError: the list of topics is not one of this version, or a topic of the broker's own cannot be
                opened: without it groups and transactions would be forgotten.
        """
        opening = [
            (stored, config, [self._opening(stored, index, config) for index in range(count)])
            for stored in self._data.take_topics()
            for config, count in [(self._config_of(stored), stored.partitions)]
        ]
        for stored, config, logs in opening:
            partitions = [self._partition(stored.name, index, log()) for index, log in enumerate(logs)]
            self._add(Topic(stored.name, stored.topic_id, stored.configs, config, tuple(partitions)))
        for partition in self.partitions():
            if partition.topic in INTERNAL and partition.log.is_offline:
                raise StorageError(f"{partition.log.offline_reason}; {to_go_on_without(partition.topic)}")
        if self._data.gaps.was_broken:
            self._guess_gaps()
        self._lower_offsets()

    def _opening(self, stored: StoredTopic, index: int, config: TopicConfig) -> Callable[[], PartitionLog]:
        """What gives the log of a partition. Logs that are checked wait for the disk, and are opened side by side;
        others would only wait for one another."""
        if self._data.was_clean:
            return partial(self._open, stored, index, config)
        return self._commits.submit(self._open, stored, index, config).result

    def _config_of(self, stored: StoredTopic) -> TopicConfig:
        try:
            return TopicConfig.of(stored.configs)
        except ConfigError as error:
            raise StorageError(f"{self._data.path / TOPICS_FILE}: topic {stored.name}: {error}") from None

    def _open(self, stored: StoredTopic, index: int, config: TopicConfig) -> PartitionLog:
        data = self._data
        start_offset = data.start_offsets.get(stored.name, index)
        try:
            return open_log(
                self._files,
                data.check_partition(stored, index, config.dialect),
                config,
                clean=data.was_closed(stored.name, index),
                recovery_point=data.recovery_points.get(stored.name, index),
                start_offset=start_offset,
                gaps_before=data.gaps.get(stored.name, index),
            )
        except StorageError as error:
            reason = str(error)
        except Exception as error:  # a fault of this broker, which the other logs have no part in
            logger.exception("%s-%d could not be opened", stored.name, index)
            reason = f"it could not be opened: {type(error).__name__}: {error}"
        path = data.partition_path(stored.name, index)
        logger.error("%s is offline until the next start: %s", path.name, reason)
        return UnopenedLog(self._files, path, config, start_offset, reason)

    def _guess_gaps(self) -> None:
        """Gaps may be anywhere in what there is: the next one to be noted must not hide that."""
        try:
            self._data.gaps.save(
                lambda: {
                    TopicPartition(p.topic, p.index): p.log.end_offset if p.log.was_opened else EVERYWHERE
                    for p in self.partitions()
                }
            )
        except OSError as error:
            raise StorageError(problem_of(error, self._data.path)) from error

    def _lower_offsets(self) -> None:
        """Damage may have left logs that end before what was known of them."""
        ends = {TopicPartition(p.topic, p.index): p.log.end_offset for p in self.partitions() if p.log.was_opened}
        try:
            self._data.lower_offsets(ends)
        except OSError as error:
            raise StorageError(problem_of(error, self._data.path)) from error

    def _partition(self, topic: str, index: int, log: PartitionLog, replicas: Sequence[int] | None = None) -> Partition:
        leadership = self._image.place(topic, index, log.leader_epoch, replicas)
        return Partition(topic, index, log, self._commits, self._data.start_offsets, leadership, fsync=self._fsync)

    @property
    def count(self) -> int:
        """How many topics there are."""
        return len(self._by_name)

    def _add(self, topic: Topic) -> None:
        before = self._by_name.get(topic.name)
        new = topic.partitions[len(before.partitions) if before else 0 :]
        for partition in new:
            partition.leadership = self._image.elect(partition.leadership)  # nodes may have stopped since it was placed
        self.partition_count += len(new)
        self._by_name[topic.name] = topic
        self._alike.setdefault(unified(topic.name), {})[topic.name] = None
        self._by_id[topic.topic_id] = topic
        self.version += 1

    def _remove(self, topic: Topic) -> None:
        del self._by_name[topic.name], self._by_id[topic.topic_id]
        alike = self._alike[unified(topic.name)]
        del alike[topic.name]
        if not alike:
            del self._alike[unified(topic.name)]
        self.partition_count -= len(topic.partitions)
        self.version += 1

    def recovery_points(self) -> dict[TopicPartition, int]:
        """Up to which offset each log is on the disk; of one that could not be opened nothing is known."""
        return {TopicPartition(p.topic, p.index): p.log.recovery_point for p in self.partitions() if p.log.was_opened}

    def close(self) -> bool:
        """Bring every log to the disk and close it; whether all of that went well."""
        clean = True
        for partition in self.partitions():
            try:
                partition.log.close()
            except StorageError as error:
                logger.error("%s", error)
                clean = False
        return clean

    def abandon(self) -> None:
        """Close every log as it is."""
        for partition in self.partitions():
            partition.log.abandon("the broker did not start")
