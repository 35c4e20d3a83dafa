"""The broker's data directory: whose it is, what topics are in it, and whether it was left in order.

    .lock                               which process uses the directory; held as Kafka's broker holds it
    meta.properties                     cluster, node and directory id
    tagwire-topics.json                 the topics that exist; a directory is ours by having this file
    tagwire-acls                        who may do what, where there is an authorizer
    recovery-point-offset-checkpoint    up to which offset each log is known to be on the disk
    log-start-offset-checkpoint         before which offset each log's records were deleted
    cleaner-offset-checkpoint           up to which offset each log was compacted
    tagwire-gap-offset-checkpoint       before which offset compaction may have left gaps in each log
    tagwire-client-quotas.json          the quotas that clients have set
    tagwire-scram-credentials.json      the SCRAM credentials that clients have set and deleted
    .kafka_cleanshutdown                there only while no broker runs, and the last one shut down cleanly
    <topic>-<partition>/                a partition's log, and partition.metadata with its topic's id
    <topic>-<partition>.<hex>-delete/   a deleted partition on its way out
    <topic>-<partition>.<hex>-stray/    a partition directory that belongs to no topic, set aside

What is named tagwire-* is ours, all else as Kafka has it (docs/log-files.md); Kafka keeps topics and credentials in a
metadata log instead.

The directory itself is locked by the one broker that uses it: a lock file can be deleted.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID, uuid4

from tagwire.broker.storage.checkpoints import (
    OffsetCheckpoint,
    read_metadata,
    read_properties,
    write_properties,
    write_topic_id,
)
from tagwire.broker.storage.files import Files, problem_of, read_file, read_start, replace_file
from tagwire.errors import DecodeError, StorageError
from tagwire.partitions import TopicPartition
from tagwire.records.files.checkpoints import number_of
from tagwire.records.files.names import partition_name
from tagwire.records.files.partition_metadata import METADATA_FILE, parse_uuid, uuid_text

logger = logging.getLogger("tagwire.broker")

LOCK_FILE = ".lock"
META_FILE = "meta.properties"
TOPICS_FILE = "tagwire-topics.json"
RECOVERY_POINTS_FILE = "recovery-point-offset-checkpoint"
START_OFFSETS_FILE = "log-start-offset-checkpoint"
CLEANED_FILE = "cleaner-offset-checkpoint"
GAPS_FILE = "tagwire-gap-offset-checkpoint"
EVERYWHERE = 2**63 - 1
CLEAN_FILE = ".kafka_cleanshutdown"

MAX_PARTITIONS = 1000
"""Partitions one topic can have: each costs a directory, an open file and a few syncs."""

NODE_ID = 1
_IN_AN_EMPTY_DIRECTORY = {LOCK_FILE, TOPICS_FILE + ".tmp", "lost+found"}
_LONGEST_NAME = 255
_LONGEST_TOPIC = 249
_LONGEST_CLUSTER_ID = 249
_GREATEST_NODE_ID = 2**31 - 1


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """A topic as the directory remembers it. `configs` has what was set when it was created, by Kafka's names."""

    name: str
    topic_id: UUID
    partitions: int
    configs: Mapping[str, str | None]
    _line: str | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def line(self) -> str:
        """Its line in the list of topics. It is made once: the list is written whole whenever one topic changes."""
        if self._line is None:
            listed = {
                "name": self.name,
                "id": uuid_text(self.topic_id),
                "partitions": self.partitions,
                "configs": dict(self.configs),
            }
            object.__setattr__(self, "_line", json.dumps(listed))
        assert self._line is not None
        return self._line


def _stored_topic(topic: Mapping[str, object]) -> StoredTopic:
    """A topic as the directory lists it. ValueError, KeyError or TypeError for what is no topic."""
    name, partitions, configs = topic["name"], topic["partitions"], topic["configs"]
    # Only what can be the name of a partition's directory may become a path.
    if not isinstance(name, str) or len(name) > _LONGEST_TOPIC or partition_name(f"{name}-0") != (name, 0, None):
        raise ValueError(f"{str(name)[:60]!r} is no topic's name")
    if type(partitions) is not int or not 1 <= partitions <= MAX_PARTITIONS:
        raise ValueError(f"topic {name} cannot have {str(partitions)[:20]} partitions")
    if not isinstance(configs, dict) or not all(isinstance(value, str | None) for value in configs.values()):
        raise ValueError(f"topic {name} has configurations that are no texts")
    return StoredTopic(name, parse_uuid(str(topic["id"])), partitions, configs)


class DataDirectory:
    """A data directory in use by this process, until `close`.

    Attributes:
        path: where it is.
        files: by what it is read and written.
        cluster_id, node_id: who the broker on it is.
        was_clean: whether its last user shut down cleanly (or there was none).
        recovery_points: up to which offset each log is known to be on the disk.
        start_offsets: before which offset the records of a log were deleted.
        cleaned: up to which offset a log was compacted.
        gaps: before which offset compaction may have left gaps; written down before it does.
    """

    def __init__(self, files: Files, path: Path) -> None:
        """Take the directory into use; an empty or missing one is set up.

        Raises:
            StorageError: it belongs to something else, is in use, or cannot be read or written; nothing is changed
                then.
        """
        self.path = path
        self.files = files
        self._locks: list[int] = []
        try:
            files.make_directories(path)
            self._check_ours()
            self._take_lock()
            self._topics = self._read_topics()
            self.cluster_id, self.node_id = self._read_meta()
            self.recovery_points = OffsetCheckpoint(files, path / RECOVERY_POINTS_FILE)
            self.start_offsets = OffsetCheckpoint(files, path / START_OFFSETS_FILE)
            self.cleaned = OffsetCheckpoint(files, path / CLEANED_FILE)
            self.gaps = OffsetCheckpoint(files, path / GAPS_FILE, when_broken=EVERYWHERE)
            self.was_clean = self._remove_clean_mark() or not self._topics
            self._sweep()
        except OSError as error:
            self._release_lock()
            raise StorageError(f"data directory {problem_of(error, path)}") from error
        except StorageError:
            self._release_lock()
            raise

    def partition_path(self, topic: str, partition: int) -> Path:
        """Where a partition's log is."""
        return self.path / f"{topic}-{partition}"

    def create_partition(self, topic: str, partition: int, topic_id: UUID, dialect: str | None = None) -> Path:
        """Make a partition's directory, for a log of a record dialect. It is on the disk after `sync`."""
        path = self.partition_path(topic, partition)
        self.files.make_directory(path)
        write_topic_id(self.files, path / METADATA_FILE, topic_id, dialect)
        return path

    def check_partition(self, topic: StoredTopic, partition: int, dialect: str | None = None) -> Path:
        """The directory of a partition that should exist.

        Raises:
            StorageError: it is missing, another topic's, cannot be read, or its log is of another record dialect.
        """
        path = self.partition_path(topic.name, partition)
        try:
            found, kept = read_metadata(self.files, path / METADATA_FILE)
        except OSError as error:
            raise StorageError(problem_of(error, path / METADATA_FILE)) from error
        if found != topic.topic_id:
            wanted = uuid_text(topic.topic_id)
            raise StorageError(f"{path / METADATA_FILE} is of a topic with id {uuid_text(found)}, not {wanted}")
        if kept != dialect:
            raise StorageError(f"{path / METADATA_FILE}: the log is of record dialect {kept}, not {dialect}")
        return path

    def was_closed(self, topic: str, partition: int) -> bool:
        """Whether a partition's log is as its last user closed it.

        A log that could not be opened was not, though its broker shut down cleanly: recovery points leave it out.
        """
        # Without the file, or with a broken one, the mark of a clean shutdown is all that is known.
        points = self.recovery_points
        return self.was_clean and (not points.was_found or (topic, partition) in points.offsets)

    def sync(self) -> None:
        """Wait until the names in the directory are on the disk."""
        self.files.sync_directory(self.path)

    def take_topics(self) -> list[StoredTopic]:
        """The topics it held when it was opened. It keeps them no longer: they change, and some are deleted."""
        taken, self._topics = self._topics, []
        return taken

    def save_topics(self, topics: Iterable[StoredTopic]) -> None:
        """Make `topics` the topics that exist, in one step."""
        document = '{"version": 0, "topics": [\n' + ",\n".join(topic.line for topic in topics) + "\n]}\n"
        replace_file(self.files, self.path / TOPICS_FILE, document.encode())

    def discard_partition(self, topic: str, partition: int) -> None:
        """Delete a partition's directory: renamed first, so that a crash leaves nothing that looks alive."""
        aside = self._aside(topic, partition, "delete")
        self.files.rename(self.partition_path(topic, partition), aside)
        self.files.remove_tree(aside)

    def forget_offsets(self, topics: Set[str]) -> None:
        """Take what is known of deleted topics' logs out of every checkpoint."""
        for checkpoint in (self.recovery_points, self.start_offsets, self.cleaned, self.gaps):
            checkpoint.forget(topics)

    def lower_offsets(self, ends: Mapping[TopicPartition, int]) -> None:
        """Take back what is known of logs past their ends: what is written there from now on is neither on the disk nor
        compacted. As Kafka's LogManager.truncateTo."""
        for checkpoint in (self.recovery_points, self.cleaned, self.gaps):
            checkpoint.lower_to(ends)

    def close(self, *, clean: bool) -> None:
        """Let go of the directory; `clean` says that every log in it is whole and on the disk."""
        try:
            if clean:
                replace_file(self.files, self.path / CLEAN_FILE, b'{"version":0,"brokerEpoch":-1}')
        except OSError as error:
            raise StorageError(f"data directory {problem_of(error, self.path)}") from error
        finally:
            self._release_lock()

    def _check_ours(self) -> None:
        names = set(self.files.names(self.path))
        if TOPICS_FILE in names or names <= _IN_AN_EMPTY_DIRECTORY:
            return
        what = "the log directory of a Kafka broker" if META_FILE in names else "neither empty nor a data directory"
        raise StorageError(f"{self.path} is {what}, and not tagwire's: it has no {TOPICS_FILE}")

    def _take_lock(self) -> None:
        try:
            directory = self.files.lock_directory(self.path)
        except OSError as error:
            raise StorageError(f"data directory {self.path} cannot be locked: {error.strerror or error}") from error
        if directory is None:
            raise StorageError(f"data directory {self.path} is in use by another broker (process {self._holder()})")
        self._locks.append(directory)
        fd = self.files.open(self.path / LOCK_FILE, write=True)
        self._locks.append(fd)
        if not self.files.lock(fd):
            problem = f"another process holds {self.path / LOCK_FILE}, as a Kafka broker does"
            raise StorageError(f"data directory {self.path} is in use: {problem}")
        self.files.truncate(fd, 0)
        self.files.write(fd, [f"{os.getpid()}\n".encode()], 0)

    def _holder(self) -> str:
        """The process that says in the lock file that it is the one."""
        try:
            said = read_start(self.files, self.path / LOCK_FILE, 32).decode("ascii", "replace").strip()
        except OSError:
            said = ""
        return said if said.isdigit() else "unknown"

    def _release_lock(self) -> None:
        while self._locks:
            self.files.close(self._locks.pop())

    def _read_topics(self) -> list[StoredTopic]:
        path = self.path / TOPICS_FILE
        try:
            data = read_file(self.files, path)
        except FileNotFoundError:
            self.save_topics([])
            return []
        try:
            document = json.loads(data)
            if document["version"] != 0:
                raise StorageError(f"{path}: version {document['version']!r} was written by a newer tagwire")
            topics = [_stored_topic(topic) for topic in document["topics"]]
            if len({topic.name for topic in topics}) != len(topics):
                raise ValueError("a topic stands in it twice")
            return topics
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            problem = f"{path}: not a list of topics: {error!r}"
            raise StorageError(f"{problem}; restore it from a backup: without it no topic is found") from None

    def _read_meta(self) -> tuple[str, int]:
        path = self.path / META_FILE
        to_do = "restore it, or write version=1, cluster.id=NAME and node.id=1 into it, each on a line"
        try:
            found = read_properties(self.files, path)
            if found["version"] != "1":
                raise ValueError("it is not version 1")
            cluster_id, node_id = found["cluster.id"], number_of(found["node.id"])
            if not 1 <= len(cluster_id) <= _LONGEST_CLUSTER_ID or not 0 <= node_id <= _GREATEST_NODE_ID:
                raise ValueError("no cluster has this id, or no node")
            return cluster_id, node_id
        except FileNotFoundError:
            if self._topics:
                raise StorageError(f"{path} is missing; {to_do}") from None
        except (KeyError, ValueError, DecodeError, StorageError) as error:
            problem = str(error) if isinstance(error, StorageError) else f"{path}: {error!r}"
            raise StorageError(f"not the properties of a data directory: {problem}; {to_do}") from None
        cluster_id = uuid_text(uuid4())
        properties = {
            "version": "1",
            "cluster.id": cluster_id,
            "node.id": str(NODE_ID),
            "directory.id": uuid_text(uuid4()),
        }
        write_properties(self.files, path, properties)
        return cluster_id, NODE_ID

    def _remove_clean_mark(self) -> bool:
        try:
            self.files.remove(self.path / CLEAN_FILE)
        except FileNotFoundError:
            was_clean = False
        else:
            was_clean = True
        # Also after a kill: names that were changed and not synced are in memory alone, and are about to be built upon.
        self.files.sync_directory(self.path)
        return was_clean

    def _sweep(self) -> None:
        """Finish deletions, and set aside partition directories of no topic: what a crash while creating one leaves."""
        known = {
            self.partition_path(topic.name, number) for topic in self._topics for number in range(topic.partitions)
        }
        for name in self.files.names(self.path):
            path = self.path / name
            if not self.files.is_directory(path):
                continue
            found = partition_name(name)
            if found is None:
                continue
            try:
                if found.state == "delete":
                    self.files.remove_tree(path)
                elif found.state is None and path not in known:
                    aside = self._aside(found.topic, found.partition, "stray")
                    logger.warning("%s belongs to no topic and is set aside as %s", path, aside.name)
                    self.files.rename(path, aside)
            except OSError as error:  # it is in nobody's way
                logger.warning("%s; it stays until the next start", problem_of(error, path))

    def _aside(self, topic: str, partition: int, why: str) -> Path:
        end = f"-{partition}.{uuid4().hex}-{why}"
        return self.path / (topic[: _LONGEST_NAME - len(end)] + end)
