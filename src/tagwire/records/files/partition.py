"""A partition's directory: its segments in order, and the files beside them."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tagwire.errors import DecodeError
from tagwire.records.files.names import Kind, kind_of, offset_of, partition_name
from tagwire.records.files.opening import bytes_of
from tagwire.records.files.partition_metadata import dialect_in
from tagwire.records.files.replacements import final_name, finished
from tagwire.records.files.segment import Segment
from tagwire.records.files.transaction_index import AbortedTransaction, read_transaction_index

if TYPE_CHECKING:
    from tagwire.records import HeaderRegister

_LISTINGS = 3


class PartitionFiles:
    """The directory of one partition.

    Attributes:
        path: the directory.
        topic, partition: what its name says; None where it says none.
        state: delete, future or stray where the name says that; else None.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, dialect: str | None = None, register: HeaderRegister | None = None
    ) -> None:
        """`dialect`: None as partition.metadata says; `register`: for where there is one.

        Raises:
            OSError: the directory cannot be listed.
            CorruptRecordError, StorageError: what is ready to replace other segments cannot be read.
        """
        self.path = Path(path)
        named = partition_name(self.path.resolve().name)
        self.topic = named.topic if named else None
        self.partition = named.partition if named else None
        self.state = named.state if named else None
        self._dialect = dialect_in(self.path) if dialect is None else dialect
        self._register = None if self._dialect is None else register
        self._names, self._replaced = self._listed()

    def files(self, kind: Kind) -> list[Path]:
        """The files of a kind, in the order of their names, which is that of their offsets. What is ready to replace
        others (`.swap`) is of the kind that it will be, and they are not among them."""
        return [self.path / now for name, now in self._names.items() if kind_of(name) == kind]

    @cached_property
    def segments(self) -> list[Segment]:
        """The segments in the order of their offsets. None of them is opened yet."""
        return self._segments("log")

    @property
    def snapshots(self) -> list[Segment]:
        """KRaft snapshots, oldest first: __cluster_metadata has them."""
        return self._segments("snapshot")

    def _segments(self, kind: Kind) -> list[Segment]:
        return [Segment(path, dialect=self._dialect, register=self._register) for path in self.files(kind)]

    @property
    def leftovers(self) -> list[Path]:
        """What was being made or deleted when the broker ended, or is replaced. None of it belongs to the log."""
        return sorted([*self.files("leftover"), *(self.path / name for name in self._replaced)])

    def aborted(self, first_offset: int = 0, end_offset: int | None = None) -> list[tuple[int, int]]:
        """The aborted transactions that reach into a range of offsets, (producer id, first offset) of each.

        It is what `aborted=` of `to_arrow` takes, of the whole partition or of a part of it. A transaction that had not
        ended yet is not among them.

        Raises:
            OSError: an index cannot be read.
            DecodeError: one is damaged; what it no longer tells stands in the markers of its segment.
        """
        return [
            (entry.producer_id, entry.first_offset)
            for path in self.files("txnindex")
            for entry in _aborted_in(path)
            if entry.last_offset >= first_offset and (end_offset is None or entry.first_offset < end_offset)
        ]

    def _listed(self) -> tuple[dict[str, str], list[str]]:
        """The files by the names that they will have, and those that others replace."""
        for left in reversed(range(_LISTINGS)):
            names = sorted(os.listdir(self.path))
            try:
                found = finished(names, self._end_of)
            except FileNotFoundError:  # a broker that runs has finished the replacement meanwhile
                if not left:
                    raise
            else:
                break
        taken = set(found.values())
        return found, [name for name in names if name not in taken]

    def _end_of(self, name: str) -> int:
        with Segment(self.path / name, dialect=self._dialect) as segment:
            return segment.next_offset


def _aborted_in(path: Path) -> list[AbortedTransaction]:
    found = read_transaction_index(bytes_of(path), offset_of(final_name(path.name)) or 0)
    if found.fault is not None:
        raise DecodeError(found.fault, path=path.name)
    return found.entries


def partitions(
    path: str | os.PathLike[str], *, dialect: str | None = None, register: HeaderRegister | None = None
) -> list[PartitionFiles]:
    """The partitions in a directory, which is one itself or holds them, by topic and partition. Raises OSError."""
    path = Path(path)
    itself = PartitionFiles(path, dialect=dialect, register=register)
    if itself.topic is not None or itself.segments:
        return [itself]
    found = []
    for entry in path.iterdir():
        if entry.is_dir() and partition_name(entry.name):
            try:
                found.append(PartitionFiles(entry, dialect=dialect, register=register))
            except FileNotFoundError:
                if entry.exists():  # else a broker has removed it since it was listed
                    raise
    return sorted(found, key=lambda each: (each.topic or "", each.partition or 0, each.state or ""))
