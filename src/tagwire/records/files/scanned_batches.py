"""Headers of a segment's batches, scanned many at a time into columns of numbers."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import NamedTuple

from tagwire.kernel.batch_scan import scan_batches
from tagwire.kernel.checksum import wrong_checksums
from tagwire.records.batch import CRC_FROM

_BATCHES = 512


class ScannedBatch(NamedTuple):
    """One scanned batch. leader_epoch and producer_id are -1 where its format has none."""

    position: int
    end: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    max_timestamp: int
    producer_id: int


class ScannedBatches:
    """Batches scanned together, in the order of their offsets.

    Attributes:
        count: how many there are now; the columns have room for more.
        positions, ends, base_offsets, last_offsets, epochs, timestamps, producers: int64, one a batch.
    """

    def __init__(self, room: int = _BATCHES) -> None:
        empty = bytes(8 * room)
        self.count = self._origin = 0
        self._data = memoryview(b"")
        self.positions, self.ends, self._checksums = (array("q", empty) for _ in range(3))
        self.base_offsets, self.last_offsets = array("q", empty), array("q", empty)
        self.epochs, self.timestamps, self.producers = (array("q", empty) for _ in range(3))

    @classmethod
    def of(cls, seen: ScannedBatch) -> ScannedBatches:
        """One batch alone."""
        alone = cls(1)
        alone.count = 1
        for column, value in zip(alone._columns(), seen):
            column[0] = value
        return alone

    def __getitem__(self, number: int) -> ScannedBatch:
        return ScannedBatch(*(column[number] for column in self._columns()))

    @property
    def next_offset(self) -> int:
        """The offset after the last of them."""
        return self.last_offsets[self.count - 1] + 1

    def number_of(self, offset: int) -> int:
        """The number of the first batch that does not end before `offset`; `count` where there is none."""
        return bisect_left(self.last_offsets, offset, 0, self.count)

    def fill(self, data: memoryview, origin: int, position: int, least_offset: int) -> int:
        """Takes the batches from `position` on, as many as there is room for, up to the first that does not fit.

        `data` begins at `origin` of the file; every position is one in the file. Returns how many were taken.
        """
        self._data, self._origin = data, origin
        self.count = scan_batches(
            data,
            position - origin,
            origin,
            least_offset,
            self.positions,
            self.ends,
            self._checksums,
            self.base_offsets,
            self.last_offsets,
            self.epochs,
            self.timestamps,
            self.producers,
        )
        return self.count

    def wrong_checksums(self) -> list[int]:
        """The numbers of the batches whose checksum is not the one that they state."""
        return wrong_checksums(
            self._data, self._origin, CRC_FROM, self.positions, self.ends, self._checksums, self.count
        )

    def _columns(self) -> tuple[array[int], ...]:
        return (
            self.positions,
            self.ends,
            self.base_offsets,
            self.last_offsets,
            self.epochs,
            self.timestamps,
            self.producers,
        )
