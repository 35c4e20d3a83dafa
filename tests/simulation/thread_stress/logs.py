"""Threads on one log of a compacted topic: producers, readers, compaction, upkeep, and those who ask about it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

from tagwire.broker.storage import log_lock
from tagwire.broker.storage.batch import Appended, Batch, batch_of
from tagwire.broker.storage.checkpoints import OffsetCheckpoint
from tagwire.broker.storage.compaction import Compaction, dirt_of
from tagwire.broker.storage.files import Files
from tagwire.broker.storage.loading import create_log, open_log
from tagwire.broker.storage.log import PartitionLog
from tagwire.broker.storage.log_reading import OffsetOutOfRangeError
from tagwire.broker.topic_config import TopicConfig
from tagwire.partitions import TopicPartition
from tagwire.records import Record, batch_headers, read, write

from .racing import race

CONFIG = TopicConfig(cleanup_policy="compact", segment_bytes=4000, index_interval_bytes=200, retention_ms=-1)
WHERE = TopicPartition("t", 0)
LATE_MS = 2**40
"""A time at which every producer of this log has been silent for too long."""

WRITERS = 3
KEYS = 7


class _Stress:
    def __init__(self, directory: Path, seed: int) -> None:
        self._files = Files()
        self._directory = directory / "t-0"
        self._directory.mkdir()
        self._log: PartitionLog = create_log(self._files, self._directory, CONFIG)
        self._cleaned = OffsetCheckpoint(self._files, directory / "cleaned")
        self._gaps = OffsetCheckpoint(self._files, directory / "gaps")
        self._seed = seed
        self._written: dict[bytes, int] = {}

    def run(self, seconds: float) -> list[str]:
        """What was wrong."""
        log_lock.unguarded.clear()
        workers = [
            *(partial(self._write, number) for number in range(WRITERS)),
            *(partial(self._read, number) for number in range(2)),
            self._compact,
            self._forget_producers,
            self._ask,
            *(partial(self._remember, number) for number in range(2)),
        ]
        problems = race(workers, seconds)
        problems += log_lock.unguarded
        log_lock.unguarded.clear()
        return problems or self._wrong_at_the_end()

    def _write(self, number: int, is_over: Callable[[], bool]) -> None:
        """Each writer has keys of its own, so that it is known what comes last."""
        random = Random(f"{self._seed}-writer-{number}")
        for count in itertools.count():
            if is_over():
                return
            key = b"%d-%d" % (number, random.randrange(KEYS))
            (outcome,) = self._log.append([_batch(key, count, number * 1_000_000 + count)])
            if not isinstance(outcome, Appended):
                raise outcome
            self._written[key] = count
            self._log.flush() if random.random() < 0.1 else self._log.publish()

    def _read(self, number: int, is_over: Callable[[], bool]) -> None:
        random = Random(f"{self._seed}-reader-{number}")
        while not is_over():
            end = self._log.end_offset
            offset = random.randrange(max(end, 1))
            last: dict[bytes, int] = {}
            while offset < end and not is_over():
                try:
                    data = self._log.read(offset, 3000, committed=bool(number))
                except OffsetOutOfRangeError:
                    break
                before = offset
                for batch in read(data):
                    if batch.last_offset < before:
                        raise AssertionError(f"{batch!r} was read at offset {before}")
                    for record in batch.records():
                        if last.get(record.key, -1) >= int(record.value):
                            raise AssertionError(f"{record.key} is {record.value} after {last[record.key]}")
                        last[record.key] = int(record.value)
                    offset = batch.next_offset
                if offset == before:
                    raise AssertionError(f"nothing is read at offset {offset} of {end}")

    def _compact(self, is_over: Callable[[], bool]) -> None:
        while not is_over():
            dirt = dirt_of(self._log, self._cleaned.get(*WHERE), LATE_MS)
            if dirt is not None:
                compaction = Compaction(self._files, self._log, WHERE, self._cleaned, self._gaps, stop=is_over)
                compaction.run(dirt, LATE_MS)

    def _forget_producers(self, is_over: Callable[[], bool]) -> None:
        while not is_over():
            self._log.expired_before(LATE_MS)

    def _ask(self, is_over: Callable[[], bool]) -> None:
        while not is_over():
            end = self._log.end_offset
            self._log.known_producers()
            self._log.newest()
            if not self._log.start_offset <= end <= self._log.end_offset:
                raise AssertionError(f"the log has ended at {end}, and ends at {self._log.end_offset}")

    def _remember(self, number: int, is_over: Callable[[], bool]) -> None:
        """Checkpoints of other partitions are written beside this one's."""
        for count in itertools.count(1):
            if is_over():
                return
            mine = TopicPartition("others", number)
            self._cleaned.raise_to({mine: count})
            if self._cleaned.get(*mine) != count:
                raise AssertionError(f"{mine} was at {count}, and is at {self._cleaned.get(*mine)}")

    def _wrong_at_the_end(self) -> list[str]:
        self._log.flush()
        found = self._last_of(self._log)
        problems = [f"{key!r} is {found.get(key)} in the log, and was {count}" for key, count in self._wrong(found)]
        self._log.abandon("it is opened again")
        again = open_log(self._files, self._directory, CONFIG, clean=False, gaps_before=self._gaps.get(*WHERE))
        found = self._last_of(again)
        return problems + [f"{key!r} is {found.get(key)} on the disk, and was {n}" for key, n in self._wrong(found)]

    def _wrong(self, found: dict[bytes, int]) -> list[tuple[bytes, int]]:
        return [(key, count) for key, count in self._written.items() if found.get(key) != count]

    @staticmethod
    def _last_of(log: PartitionLog) -> dict[bytes, int]:
        last: dict[bytes, int] = {}
        offset = log.start_offset
        while offset < log.end_offset:
            for batch in read(log.read(offset, 1 << 20)):
                last |= {record.key: int(record.value) for record in batch.records()}
                offset = batch.next_offset
        return last


def _batch(key: bytes, count: int, producer: int) -> Batch:
    """Each of another producer, so that there are many to forget."""
    record: Record = Record(key, b"%d" % count, timestamp=1000)
    data = memoryview(write([record], producer_id=producer, producer_epoch=0, base_sequence=0))
    return batch_of(next(batch_headers(data)), data)


def stress_logs(directory: Path, seconds: float, seed: int) -> list[str]:
    """What was wrong with a log that threads use; nothing, when all is well."""
    return _Stress(directory, seed).run(seconds)
