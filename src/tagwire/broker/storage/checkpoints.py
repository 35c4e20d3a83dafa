"""Kafka's small text files: checkpoints, properties, a partition's topic id. Source: docs/log-files.md#checkpoints.

What a checkpoint and partition.metadata look like stands in records/files. Reading is strict: a file that breaks its
format is a StorageError that names it, but for offsets, of which none are known then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Set
from pathlib import Path
from threading import Lock
from typing import TypeVar
from uuid import UUID

from tagwire.broker.storage.files import Files, read_file, replace_file
from tagwire.errors import DecodeError, StorageError
from tagwire.partitions import TopicPartition
from tagwire.records.files import checkpoints, partition_metadata

logger = logging.getLogger("tagwire.broker")

Content = TypeVar("Content")

_GREATEST_OFFSET = 2**63 - 1
_GREATEST_EPOCH = 2**31 - 1


class OffsetCheckpoint:
    """A file with an offset for each topic and partition, as recovery-point-offset-checkpoint; any thread may save it.

    What is saved is on the disk when that returns, or OSError is raised and the file is as it was.

    Attributes:
        was_found: whether it was there and could be read, or something has been saved since.
        was_broken: whether what was there could not be read, and nothing has been saved since.
    """

    def __init__(self, files: Files, path: Path, *, when_broken: int = 0) -> None:
        """Read what is there. Of a broken file, which is logged, `when_broken` is every partition's offset."""
        self._files = files
        self._path = path
        self._saving = Lock()
        self._offsets: Mapping[TopicPartition, int] = {}
        self._unknown = 0
        self.was_found = self.was_broken = False
        try:
            self._offsets = _read(path, _read_offsets, read_file(files, path))
            self.was_found = True
        except FileNotFoundError:
            pass
        except StorageError as error:
            logger.warning("%s; it is not taken", error)
            self._unknown = when_broken
            self.was_broken = True

    @property
    def offsets(self) -> Mapping[TopicPartition, int]:
        """What the file holds."""
        return self._offsets

    def get(self, topic: str, partition: int) -> int:
        """A partition's offset; 0 where there is none."""
        return self._offsets.get(TopicPartition(topic, partition), self._unknown)

    def save(self, offsets: Callable[[], Mapping[TopicPartition, int]]) -> None:
        """Make what `offsets` gives all that the file holds. It is called when nothing else can save any more: what it
        leaves out was not added meanwhile."""
        with self._saving:
            self._replace(offsets())

    def raise_to(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Add `offsets`; one that is lower than what the file holds is left out."""
        with self._saving:
            higher = {where: offset for where, offset in offsets.items() if offset > self._offsets.get(where, 0)}
            if higher:
                self._replace({**self._offsets, **higher})

    def lower_to(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace what the file holds that is higher than `offsets`."""
        with self._saving:
            lower = {where: offset for where, offset in offsets.items() if offset < self._offsets.get(where, 0)}
            if lower:
                self._replace({**self._offsets, **lower})

    def forget(self, topics: Set[str]) -> None:
        """Take out what the file says of topics: new ones of their names must not inherit it."""
        with self._saving:
            others = {where: offset for where, offset in self._offsets.items() if where[0] not in topics}
            if len(others) < len(self._offsets):
                self._replace(others)

    def _replace(self, offsets: Mapping[TopicPartition, int]) -> None:
        replace_file(self._files, self._path, checkpoints.format_offsets(offsets))
        self._offsets = dict(offsets)
        self._unknown, self.was_found, self.was_broken = 0, True, False


def write_epochs(files: Files, path: Path, epochs: Iterable[tuple[int, int]]) -> None:
    """Write leader epochs and their start offsets, as in leader-epoch-checkpoint."""
    replace_file(files, path, checkpoints.format_epochs(epochs))


def read_epochs(files: Files, path: Path) -> list[tuple[int, int]]:
    """Leader epochs and their start offsets, oldest first; empty when the file is missing or empty."""
    try:
        return _read(path, _read_epochs, read_file(files, path))
    except FileNotFoundError:
        return []


def _read_offsets(data: bytes) -> Mapping[TopicPartition, int]:
    offsets = checkpoints.read_offsets(data)
    for (topic, partition), offset in offsets.items():
        if partition < 0 or not 0 <= offset <= _GREATEST_OFFSET:
            raise DecodeError(f"{topic[:249]}-{partition} has offset {offset}, which none can have")
    return offsets


def _read_epochs(data: bytes) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for epoch, start in checkpoints.read_epochs(data):
        before = found[-1] if found else (-1, 0)
        if not before[0] < epoch <= _GREATEST_EPOCH or not before[1] <= start <= _GREATEST_OFFSET:
            raise DecodeError(f"epoch {epoch} from offset {start} cannot follow epoch {before[0]} from {before[1]}")
        found.append((epoch, start))
    return found


def _read(path: Path, reader: Callable[[bytes], Content], data: bytes) -> Content:
    try:
        return reader(data)
    except DecodeError as error:
        raise StorageError(f"{path}: {error}") from None


def write_properties(files: Files, path: Path, properties: Mapping[str, str]) -> None:
    """Write `name=value` lines, as in meta.properties. Names and values here need no escapes."""
    replace_file(files, path, "".join(f"{name}={value}\n" for name, value in properties.items()).encode())


def read_properties(files: Files, path: Path) -> dict[str, str]:
    """The properties in a file; comments and blank lines are skipped.

    Raises:
        FileNotFoundError: there is no such file.
    """
    lines = (line.strip() for line in _read(path, checkpoints.text_of, read_file(files, path)).splitlines())
    pairs = (line.partition("=") for line in lines if line and line[0] not in "#!")
    return {name.strip(): value.strip() for name, _, value in pairs}


def write_topic_id(files: Files, path: Path, topic_id: UUID, dialect: str | None = None) -> None:
    """Write partition.metadata."""
    replace_file(files, path, partition_metadata.format_topic_id(topic_id, dialect))


def read_metadata(files: Files, path: Path) -> tuple[UUID, str | None]:
    """The topic id in partition.metadata, and the record dialect of the partition's log; None for Kafka's formats."""
    try:
        data = read_file(files, path)
    except FileNotFoundError:
        raise StorageError(f"{path} is missing") from None
    return _read(path, partition_metadata.read_topic_id, data), _read(path, partition_metadata.read_dialect, data)
