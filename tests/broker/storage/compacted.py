"""A log that is compacted, for tests: what is put into it, and what is found in it."""

from __future__ import annotations

from tagwire.broker.storage.batch import batch_of
from tagwire.broker.storage.checkpoints import OffsetCheckpoint
from tagwire.broker.storage.compaction import Compaction, dirt_of
from tagwire.broker.storage.files import Files
from tagwire.broker.storage.loading import create_log, open_log
from tagwire.broker.topic_config import TopicConfig
from tagwire.records import Record, batch_headers, read, write, write_end_transaction

CONFIG = TopicConfig(cleanup_policy="compact", segment_bytes=2000, index_interval_bytes=150)
WHERE = ("t", 0)
DAY = 86_400_000


def batch(*pairs, timestamp=1000, **options):
    """A batch of (key, value) pairs."""
    records = [Record(key, value, timestamp=timestamp) for key, value in pairs]
    data = memoryview(write(records, **options))
    return batch_of(next(batch_headers(data)), data)


def marker(producer, epoch=0, *, commit, timestamp=1000):
    data = memoryview(
        write_end_transaction(
            commit=commit, coordinator_epoch=0, producer_id=producer, producer_epoch=epoch, timestamp=timestamp
        )
    )
    return batch_of(next(batch_headers(data)), data)


class Compacted:
    """A log in a directory, its checkpoints, and what was put into it."""

    def __init__(self, directory, config=CONFIG, files=None, log=None):
        self.files = files or Files()
        self.directory = directory / "t-0"
        self.cleaned = OffsetCheckpoint(self.files, directory / "cleaned")
        self.gaps = OffsetCheckpoint(self.files, directory / "gaps")
        if log is None:
            self.directory.mkdir()
        self.log = log or create_log(self.files, self.directory, config)

    def add(self, *batches):
        results = self.log.append(batches)
        self.log.flush()
        for result in results:
            if isinstance(result, Exception):
                raise result
        return [result.base_offset for result in results]

    def roll(self):
        """Close the segment that is written to."""
        config, self.log.config = self.log.config, TopicConfig(cleanup_policy="compact", segment_ms=1)
        self.log.roll_if_due(2**50)
        self.log.config = config

    def dirt(self, now_ms=0):
        return dirt_of(self.log, self.cleaned.get(*WHERE), now_ms)

    def compact(self, now_ms=0, **options):
        dirt = self.dirt(now_ms)
        if dirt is not None:
            Compaction(self.files, self.log, WHERE, self.cleaned, self.gaps, **options).run(dirt, now_ms)

    def reopen(self, *, clean=False):
        if clean:
            self.log.close()
        else:
            self.log.abandon("the test crashes it")
        gaps = self.gaps.get(*WHERE)
        self.log = open_log(self.files, self.directory, self.log.config, clean=clean, gaps_before=gaps)

    def batches(self, offset=None, committed=False):
        """Every batch that is read from `offset` on."""
        offset = self.log.start_offset if offset is None else offset
        end = self.log.stable_offset if committed else self.log.end_offset
        while offset < end:
            data = self.log.read(offset, 700, committed=committed)
            assert data, f"nothing at {offset} of {end}"
            for found in read(data):
                yield found
                offset = found.next_offset

    def records(self, offset=None):
        """(offset, key, value) of every record that is no marker."""
        return [
            (record.offset, record.key, record.value)
            for found in self.batches(offset)
            if not found.is_control
            for record in found.records()
        ]

    def newest(self):
        """What a reader has who keeps of each key the last."""
        state = {}
        for _, key, value in self.records():
            state[key] = value
        return {key: value for key, value in state.items() if value is not None}


def fill(kept, rounds=30, keys=5, size=60):
    for number in range(rounds):
        kept.add(batch(*[(b"k%d" % key, b"%d-" % number + b"v" * size) for key in range(keys)], timestamp=number))


def in_transaction(sequence, *pairs, producer=7):
    return batch(*pairs, producer_id=producer, producer_epoch=0, base_sequence=sequence, transactional=True)
