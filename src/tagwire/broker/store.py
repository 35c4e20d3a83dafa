"""What the nodes of one process serve: topics, groups and transactions of a data directory, threads for the disk, and
scheduled tasks."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tagwire.broker import scheduler
from tagwire.broker.authorization.authorizer import Authorizer
from tagwire.broker.cluster_image import ClusterImage
from tagwire.broker.controller import Controller
from tagwire.broker.coordinator_log import CoordinatorLog
from tagwire.broker.producer_ids import ProducerIds
from tagwire.broker.quotas.stored import ClientQuotas
from tagwire.broker.quotas.throttles import mutation_meters
from tagwire.broker.scram_users import ScramUsers
from tagwire.broker.serial_tasks import SerialTasks
from tagwire.broker.settings import Settings
from tagwire.broker.storage.data_directory import DataDirectory
from tagwire.broker.storage.files import Files
from tagwire.broker.topics import Topics
from tagwire.broker.transactions.coordinator import Transactions
from tagwire.errors import Error, KafkaError, StorageError
from tagwire.records.internal_topics import OFFSETS, TRANSACTIONS

if TYPE_CHECKING:
    from tagwire.broker.groups.coordinator import Groups

logger = logging.getLogger("tagwire.broker")

# Threads that append and sync, one partition each at a time: they wait for the disk, not for the processor.
COMMIT_THREADS = 8
# Threads that read, create and delete; apart, so that a read never stands behind a sync.
DISK_THREADS = 4


class Store:
    """What requests are served from, whichever node serves them. Opened and closed on the event loop it is used on.

    Attributes:
        settings: how it was started.
        node_id, cluster_id: who the (first) node on the directory is, and of which cluster.
        data_path: where its topics are.
        files: by what it is read and written.
        topics: its topics.
        transactions: its transactional ids.
        producer_ids: where producers get their ids.
        scram_users: who can come in by SCRAM.
        quotas, mutations: what clients may take, and who has taken how much of the controller.
        disk: threads for reading files.
        image: which nodes there are, and which of them does what.
        controller: who changes that.
        creations: what is created within its `room_for` goes on when whoever asked for it goes away, and keeps it.
        authorizer: what decides who may do what; None where everybody may do everything.
    """

    def __init__(self, settings: Settings, files: Files, image: Callable[[int], ClusterImage] = ClusterImage) -> None:
        """Take the data directory into use and open every log in it; this may take as long as reading what a crash
        left.

        Args:
            image: gives the nodes, from the id that the directory has for the first.

        Raises:
            StorageError: the directory is not ours, is in use, or cannot be read or written.
        """
        self.settings = settings
        self._temporary = tempfile.mkdtemp(prefix="tagwire-broker-") if settings.data_dir is None else None
        # Also when it is never closed: when nobody knows it any more, or the program ends.
        self._remove_temporary = weakref.finalize(self, _remove, self._temporary, os.getpid())
        self._commits = ThreadPoolExecutor(COMMIT_THREADS, "tagwire-commit")
        self.disk = ThreadPoolExecutor(DISK_THREADS, "tagwire-disk")
        self._stopping = asyncio.Event()
        self._coming = 0, 0
        self._scheduled: list[asyncio.Task[None]] = []
        try:
            self._data = DataDirectory(files, Path(self._temporary or settings.data_dir or ""))
            self.image = image(self._data.node_id)
            self.topics = Topics(files, self._data, self._commits, self.disk, settings.fsync, self.image)
            self.topics.when_deleted = self._forget_topics
            self.creations = SerialTasks()
            self.controller = Controller(self.topics, self.image)
            self._groups: Groups | None = None
            self._starts_groups = False
            self.producer_ids = ProducerIds(files, self._data.path, self.disk)
            self.transactions = Transactions(
                CoordinatorLog(self.topics, TRANSACTIONS), self.topics, lambda: self.groups, self.producer_ids
            )
            self.scram_users = ScramUsers(settings, files, self._data.path, self.disk)
            self.quotas = ClientQuotas(files, self._data.path, self.disk)
            self.mutations = mutation_meters(self.quotas)
            self.authorizer = self._authorizer(files)
            try:
                self.scram_users.load()
                self.quotas.load()
                if self.authorizer is not None:
                    self.authorizer.load()
                self.producer_ids.load()
                self.topics.load()
                if self.topics.get(OFFSETS) is not None:
                    self._groups = self._load_groups()
                self.transactions.load()
            except BaseException:
                self.topics.abandon()
                self._data.close(clean=False)
                raise
        except BaseException:
            self._release()
            raise
        self.data_path = self._data.path
        self.files = files
        self.node_id = self._data.node_id
        self.cluster_id = self._data.cluster_id

    @property
    def groups(self) -> Groups:
        """Its consumer groups. What they are made of is a seventh of what a broker loads: without any it is loaded when
        somebody asks for one.

        Raises:
            StorageError: they cannot be read.
        """
        if self._groups is None:
            self._groups = self._load_groups()
            if self._starts_groups:
                self._groups.start()
        return self._groups

    def _load_groups(self) -> Groups:
        from tagwire.broker.groups.coordinator import Groups

        groups = Groups(
            CoordinatorLog(self.topics, OFFSETS),
            self.topics,
            self.settings.groups,
            most=self.settings.max_groups,
            most_bytes=self.settings.max_groups_bytes,
        )
        groups.load()
        return groups

    def _authorizer(self, files: Files) -> Authorizer | None:
        settings = self.settings
        if settings.authorizer is None:
            return None
        return Authorizer(
            files,
            self._data.path,
            self.disk,
            settings.super_user_set,
            allow_if_none=settings.allow_everyone_if_no_acl_found,
            with_networks=settings.has_network_acls,
        )

    @contextmanager
    def room_for(self, *, topics: int = 0, partitions: int) -> Iterator[None]:
        """Reserve room for topics and partitions that are created inside the `with` block.

        Raises:
            KafkaError: POLICY_VIOLATION: there would be more than the settings allow.
        """
        most_topics, most_partitions = self.settings.max_topics, self.settings.max_partitions
        if self.topics.count + self._coming[0] + topics > most_topics:
            raise KafkaError(Error.POLICY_VIOLATION, f"there may be {most_topics} topics (max_topics)")
        if self.topics.partition_count + self._coming[1] + partitions > most_partitions:
            raise KafkaError(Error.POLICY_VIOLATION, f"there may be {most_partitions} partitions (max_partitions)")
        self._coming = self._coming[0] + topics, self._coming[1] + partitions
        try:
            yield
        finally:
            self._coming = self._coming[0] - topics, self._coming[1] - partitions

    def start_scheduler(self) -> None:
        """Begin what is done by the clock."""
        self._starts_groups = True
        if self._groups is not None:
            self._groups.start()
        self.transactions.start()
        duties: list[tuple[float, Callable[[], object]]] = [
            (scheduler.RETENTION_EVERY_S, partial(scheduler.expire, self.topics)),
            (scheduler.COMPACTION_EVERY_S, partial(scheduler.compact, self.topics, self._data, self._stopping)),
            (scheduler.RECOVERY_POINTS_EVERY_S, partial(scheduler.save_recovery_points, self.topics, self._data)),
            (scheduler.GROUPS_EVERY_S, self._forget_missing),
            (scheduler.GROUPS_EVERY_S, self._expire_groups),
            (scheduler.TRANSACTIONS_EVERY_S, self.transactions.expire),
        ]
        if self.settings.fsync == "interval":
            duties.append((scheduler.SYNC_EVERY_S, partial(scheduler.sync, self.topics)))
        self._scheduled = [asyncio.create_task(scheduler.every(pause, self._stopping, act)) for pause, act in duties]
        self._scheduled.append(asyncio.create_task(self._forget_missing()))

    async def _forget_topics(self, names: Set[str]) -> None:
        """Delete the offsets of topics that are deleted. While the store closes that is left to the next start."""
        if self._groups is not None and not self._stopping.is_set():
            await self._groups.forget_topics(names)

    async def _forget_missing(self) -> None:
        """Delete offsets of topics whose deletion a crash or the disk cut short."""
        if self._groups is not None:
            await self._groups.forget_missing(lambda partition: self.topics.partition(*partition) is not None)

    async def _expire_groups(self) -> None:
        if self._groups is not None:
            await self._groups.expire()

    async def close(self) -> None:
        """Finish every append, bring every log to the disk, and let go of the data directory.

        What the disk refused is logged; the next start then checks every log.
        """
        self._stopping.set()
        await asyncio.gather(*self._scheduled)
        await self.creations.close()
        await self.controller.close()
        await self.transactions.close()
        if self._groups is not None:
            await self._groups.close()
        await self.topics.settle()
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        clean = self.topics.close()
        # They tell which logs were not opened, and are not closed: the mark would be for these, too.
        is_told = scheduler.save_recovery_points(self.topics, self._data)
        try:
            self._data.close(clean=clean and is_told)
        except StorageError as error:
            logger.error("%s", error)
        self._release()

    def _release(self) -> None:
        self._commits.shutdown()
        self.disk.shutdown()
        self._remove_temporary()


def _remove(temporary: str | None, made_by: int) -> None:
    # A process that was forked off inherits this too, but not the directory.
    if temporary is not None and os.getpid() == made_by:
        shutil.rmtree(temporary, ignore_errors=True)
