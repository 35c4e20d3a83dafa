"""Which files a read of `tagwire-segments` takes, and the ranges of whole batches that its tasks read.

A segment is split where its `.index` says that batches start; without one, only a local segment is, by its headers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import PurePosixPath

from tagwire.errors import DecodeError, StorageError
from tagwire.partitions import TopicPartition
from tagwire.records import BatchHeader, next_offset
from tagwire.records.batch_bounds import batch_bounds
from tagwire.records.files import Segment, kind_of, partition_name
from tagwire.records.files.names import offset_of
from tagwire.records.files.offset_index import OffsetEntry, read_offset_index
from tagwire.records.files.opening import strange_kind
from tagwire.records.files.replacements import final_name, finished
from tagwire.spark.file_systems import FileInfo, FileSystem, LocalFileSystem, file_system_of
from tagwire.spark.segments.log_starts import CHECKPOINT, LogStarts
from tagwire.spark.segments.options import SegmentOptions

_HEADER_SIZE = 61
_MAGIC_AT = 16
_PIECE = 8 << 20


@dataclass(frozen=True)
class LogFile:
    """A segment. `last`: whether its partition's log ends with it, so that its end may be half written."""

    file_system: FileSystem
    path: str
    size: int
    base_offset: int
    last: bool = True

    def check_kept(self) -> None:
        """Raises StorageError where the segment has another size than when the read was planned: nothing is written to
        one that is not the last, but compaction puts another in its place (Kafka's UnifiedLog.replaceSegments), whose
        records stand elsewhere, and those of one task would come twice or not at all. What was the last grows, or is
        cut; once another follows it, it may be replaced, too."""
        if not isinstance(self.file_system, LocalFileSystem):  # stores keep what was tiered as it is
            return
        size = self.file_system.size(self.path)
        if size == self.size or (self.last and (size > self.size or not self._is_followed(self.file_system))):
            return
        raise StorageError(
            f"{self.path}: has {size:,} bytes, and had {self.size:,} when the read began: a broker has cut or "
            "replaced it meanwhile, as compaction does; read again"
        )

    def _is_followed(self, file_system: LocalFileSystem) -> bool:
        names = (final_name(each.name) for each in file_system.list_directory(str(PurePosixPath(self.path).parent)))
        return any(kind_of(name) == "log" and (offset_of(name) or 0) > self.base_offset for name in names)


@dataclass(frozen=True)
class PartitionLog:
    """The files of one partition. topic and partition are None where no directory says.

    Attributes:
        files: its segments, by offset.
        beside: other files, by name: of those that are ready to replace others (`.swap`), the name that they will have.
        start_offset: where the log begins for readers of its broker; what the files have before it was deleted.
    """

    topic: str | None
    partition: int | None
    files: tuple[LogFile, ...]
    beside: dict[str, FileInfo] = field(default_factory=dict)
    start_offset: int = 0

    def within(self, start: int, end: int | None) -> PartitionLog:
        """The log with those of its files alone that may hold offsets from `start` to before `end` (None: all)."""
        ends = [file.base_offset for file in self.files[1:]] + [None]
        kept = [
            file
            for file, following in zip(self.files, ends)
            if (following is None or following > start) and (end is None or file.base_offset < end)
        ]
        return replace(self, files=tuple(kept))

    def read(self, name: str) -> bytes:
        """A file beside the segments. Raises StorageError."""
        return self.files[0].file_system.read(self.beside[name].path)


@dataclass(frozen=True)
class FileSplit:
    """Bytes of a segment, whole batches: what one task reads."""

    topic: str | None
    partition: int | None
    file: LogFile
    start: int
    end: int


def partition_logs(options: SegmentOptions) -> list[PartitionLog]:
    """The partitions that the paths hold, in order.

    Raises:
        StorageError: a path cannot be read, or holds no file of Kafka's.
        ConfigError: a path needs what is not installed.
    """
    found: list[PartitionLog] = []
    for path in options.paths:
        file_system, path = file_system_of(path, dict(options.settings))
        starts = LogStarts(file_system)
        there = [
            log for entry in file_system.get_info(path) for log in _logs_at(file_system, entry, starts, options.dialect)
        ]
        if not there:
            raise StorageError(f"{path}: neither a segment nor a directory of Kafka's")
        found += there
    return sorted(found, key=lambda log: (log.topic or "", log.partition or 0))


def file_splits(logs: Iterable[PartitionLog], split_bytes: int, dialect: str | None = None) -> Iterator[FileSplit]:
    """The tasks of a read: ranges of about `split_bytes`. Raises StorageError."""
    for log in logs:
        for file in log.files:
            for start, end in _ranges(log, file, split_bytes, dialect):
                yield FileSplit(log.topic, log.partition, file, start, end)


def start_before(log: PartitionLog, file: LogFile, position: int) -> int:
    """The last batch start at or before `position` that the index beside a segment tells of; else 0."""
    return max(_indexed_starts(log, file, [position]), default=0)


def _logs_at(
    file_system: FileSystem, entry: FileInfo, starts: LogStarts, dialect: str | None
) -> Iterator[PartitionLog]:
    if not entry.is_directory:
        parent = PurePosixPath(entry.path.replace("\\", "/")).parent
        named = partition_name(parent.name)
        topic, partition = (named.topic, named.partition) if named else (None, None)
        if kind_of(entry.name) in ("log", "snapshot") or ".log" in entry.name:
            yield PartitionLog(
                topic, partition, (_log_file(file_system, entry),), _beside(file_system, entry, str(parent))
            )
        return
    here = file_system.list_directory(entry.path)
    itself = partition_name(entry.name)
    if itself or any(kind_of(final_name(each.name)) == "log" for each in here):
        topic, partition = (itself.topic, itself.partition) if itself else (None, None)
        start = starts.of_partition(entry.path, itself.topic, itself.partition) if itself else 0
        yield from _partition(file_system, here, topic, partition, start, dialect)
        return
    begins = starts.within(entry.path) if any(each.name == CHECKPOINT for each in here) else {}
    for each in here:
        named = partition_name(each.name) if each.is_directory else None
        if named and named.state is None:
            try:
                files = file_system.list_directory(each.path)
            except StorageError:
                if any(there.name == each.name for there in file_system.list_directory(entry.path)):
                    raise
                continue  # a broker has removed it since it was listed
            start = begins.get(TopicPartition(named.topic, named.partition), 0)
            yield from _partition(file_system, files, named.topic, named.partition, start, dialect)


def _partition(
    file_system: FileSystem,
    here: list[FileInfo],
    topic: str | None,
    partition: int | None,
    start_offset: int,
    dialect: str | None,
) -> Iterator[PartitionLog]:
    named = {each.name: each for each in here}
    names = finished(sorted(named), lambda name: _end_of(file_system, named[name], dialect))
    files = [_log_file(file_system, named[now]) for name, now in names.items() if kind_of(name) == "log"]
    if files:
        files = [*(replace(file, last=False) for file in files[:-1]), files[-1]]
        beside = {name: named[now] for name, now in names.items() if not named[now].is_directory}
        yield PartitionLog(topic, partition, tuple(files), beside, start_offset)


def _end_of(file_system: FileSystem, entry: FileInfo, dialect: str | None) -> int:
    """The offset after the last whole batch of a log. Raises CorruptRecordError, StorageError."""
    last = at = 0
    while at < entry.size:
        begin, data = at, memoryview(file_system.read(entry.path, at, at + _PIECE))
        for position, size, _ in batch_bounds(data, whole=False):
            if begin + position + size <= entry.size:
                last, at = begin + position, begin + position + size
        if at == begin:
            break
    try:
        found = next_offset(file_system.read(entry.path, last, at), dialect)
    except DecodeError as error:
        raise error.under(entry.path) from None
    return _base_offset(entry) if found is None else found


def _log_file(file_system: FileSystem, entry: FileInfo) -> LogFile:
    if isinstance(file_system, LocalFileSystem) and (
        kind := strange_kind(entry.path)
    ):  # it has no size, and would seem empty
        raise StorageError(f"{entry.path}: {kind}, where a segment should be")
    return LogFile(file_system, entry.path, entry.size, _base_offset(entry))


def _base_offset(entry: FileInfo) -> int:
    return offset_of(final_name(entry.name)) or 0


def _beside(file_system: FileSystem, entry: FileInfo, parent: str) -> dict[str, FileInfo]:
    """The indexes of a segment that was named by itself."""
    stem = entry.name.split(".", 1)[0]
    try:
        return {each.name: each for each in file_system.list_directory(parent) if each.name.startswith(f"{stem}.")}
    except StorageError:
        return {}


def _ranges(log: PartitionLog, file: LogFile, split_bytes: int, dialect: str | None) -> list[tuple[int, int]]:
    parts = -(-file.size // split_bytes)
    if parts <= 1:
        return [(0, file.size)] if file.size else []
    if isinstance(file.file_system, LocalFileSystem):
        with Segment(file.path, dialect=dialect) as segment:
            return segment.split(parts)
    starts = {0, *_indexed_starts(log, file, [file.size * part // parts for part in range(1, parts)])}
    return list(pairwise([*sorted(starts), file.size]))


def _indexed_starts(log: PartitionLog, file: LogFile, wanted: list[int]) -> set[int]:
    """Batch starts at or before the positions wanted, as far as the index beside the segment bears them out."""
    name = f"{PurePosixPath(final_name(file.path)).stem}.index"
    if name not in log.beside:
        return set()
    entries = read_offset_index(log.read(name), file.base_offset).entries
    found = {bisect_right(entries, position, key=lambda entry: entry.position) - 1 for position in wanted}
    return {entries[number].position for number in found if number >= 0 and _holds(file, entries[number])}


def _holds(file: LogFile, entry: OffsetEntry) -> bool:
    data = memoryview(file.file_system.read(file.path, entry.position, entry.position + _HEADER_SIZE))
    if len(data) < _HEADER_SIZE or data[_MAGIC_AT] != 2:
        return False
    try:
        return BatchHeader(data, 0).last_offset == entry.offset
    except DecodeError:
        return False
