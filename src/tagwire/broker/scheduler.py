"""What the broker does by the clock, as Kafka's KafkaScheduler and LogCleaner do.

It deletes records that are past their retention, compacts logs, remembers how much of each log is on the disk, and
syncs in intervals where that is configured.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from itertools import islice

from tagwire.broker.clock import wall_ms
from tagwire.broker.partition import Partition, remember_starts
from tagwire.broker.storage.compaction import Compaction, Dirt, dirt_of
from tagwire.broker.storage.data_directory import DataDirectory
from tagwire.broker.storage.log import PartitionLog
from tagwire.broker.storage.retention import Deletion
from tagwire.broker.topics import Topics
from tagwire.errors import TagwireError
from tagwire.partitions import TopicPartition

logger = logging.getLogger("tagwire.broker")

RETENTION_EVERY_S = 60.0
EXPIRED_AT_A_TIME = 64
"""Partitions of which one write tells where they start, before anything of them is deleted: the file has a line for
each partition that there is."""

RECOVERY_POINTS_EVERY_S = 60.0
COMPACTION_EVERY_S = 15.0
COMPACTION_AGAIN_MS = 3_600_000
"""When a log is tried again that could not be compacted."""

GROUPS_EVERY_S = 60.0
TRANSACTIONS_EVERY_S = 0.5
SYNC_EVERY_S = 1.0
"""With fsync="interval": the longest time for which an acknowledged record may not be on the disk."""


def expire(topics: Topics) -> None:
    """Delete every segment that is past its topic's retention."""
    now_ms = wall_ms()
    partitions = iter(list(topics.partitions()))
    while some := list(islice(partitions, EXPIRED_AT_A_TIME)):
        _expire(some, now_ms)


def _expire(partitions: Sequence[Partition], now_ms: int) -> None:
    due: dict[Partition, Deletion] = {}

    def begin(partition: Partition) -> None:
        with ExitStack() as own:
            deletion = own.enter_context(partition.log.expiry(now_ms))
            if deletion.start is None:
                deletion.carry_out()
            else:
                due[partition] = deletion
                held.push(own.pop_all())

    with ExitStack() as held:
        for partition in partitions:
            _try(partition.log, partial(begin, partition))
        if due:
            try:
                remember_starts({partition: deletion.start or 0 for partition, deletion in due.items()})
            except OSError as error:
                logger.error("where %d logs start was not stored, and nothing of them deleted: %s", len(due), error)
                return
        for partition, deletion in due.items():
            _try(partition.log, deletion.carry_out)


def sync(topics: Topics) -> None:
    """Bring every log to the disk. A log whose disk refuses goes offline."""
    for partition in topics.partitions():
        _try(partition.log, partition.log.flush)


def compact(topics: Topics, data: DataDirectory, stopping: asyncio.Event) -> None:
    """Compact every log that is due for it, the dirtiest first. Gives up early when `stopping` is set."""
    now_ms = wall_ms()
    due: list[tuple[Dirt, PartitionLog, Partition]] = []
    for partition in topics.partitions():
        if partition.log.config.compacts:
            _try(partition.log, partial(_note_if_due, partition, data, now_ms, due))
    for dirt, log, partition in sorted(due, key=lambda found: found[0].ratio, reverse=True):
        compaction = Compaction(
            data.files,
            log,  # that it was found in: one that was cut since then is another, and is left for the next time
            TopicPartition(partition.topic, partition.index),
            data.cleaned,
            data.gaps,
            stop=partial(_is_over, stopping, partition),
        )
        if not _try(log, partial(compaction.run, dirt, wall_ms())):
            log.not_compacted_before = now_ms + COMPACTION_AGAIN_MS


def _is_over(stopping: asyncio.Event, partition: Partition) -> bool:
    # As Kafka's LogManager.updateTopicConfig ends it, where a topic is to be compacted no more.
    return stopping.is_set() or partition.deleted or not partition.log.config.compacts


def _note_if_due(
    partition: Partition, data: DataDirectory, now_ms: int, due: list[tuple[Dirt, PartitionLog, Partition]]
) -> None:
    log = partition.log
    if now_ms < log.not_compacted_before:
        return
    log.roll_if_due(now_ms)
    dirt = dirt_of(log, data.cleaned.get(partition.topic, partition.index), now_ms)
    if dirt is not None and (dirt.is_overdue or dirt.ratio > log.config.min_cleanable_dirty_ratio):
        due.append((dirt, log, partition))


def save_recovery_points(topics: Topics, data: DataDirectory) -> bool:
    """Remember how much of each log need not be checked after a crash; whether that is on the disk."""
    try:
        data.recovery_points.save(topics.recovery_points)
    except OSError as error:
        logger.error("recovery points were not saved: %s", error)
        return False
    return True


def _try(log: PartitionLog, act: Callable[[], object]) -> bool:
    """Whether it went well."""
    if log.is_offline:
        return False
    try:
        act()
    except (TagwireError, OSError) as error:  # of one log: the others have their turn
        if not log.is_offline:
            logger.error("%s", error)
        return False
    return True


async def every(seconds: float, stopping: asyncio.Event, act: Callable[[], object]) -> None:
    """Do `act` again and again until `stopping` is set, which never ends it in the middle: a function in a thread, a
    coroutine function here."""
    while not stopping.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), seconds)
            return
        try:
            if asyncio.iscoroutinefunction(act):
                await act()
            else:
                await asyncio.to_thread(act)
        except Exception:
            logger.exception("a scheduled task failed, and is run again")
