"""Writes a partition's directory as a broker would, batch by batch."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tagwire.records import Record, next_offset, write, write_end_transaction

NOON = 1_372_939_200_000  # 2013-07-04 12:00 UTC


class LogDirectory:
    """A partition's directory that grows by batches, its offset index beside each segment."""

    def __init__(self, parent: Path, name: str) -> None:
        self.path = parent / name
        self.path.mkdir(parents=True)
        self.next = 0
        self.roll()

    def roll(self) -> Path:
        """Begins the next segment."""
        self.segment = self.path / f"{self.next:020}.log"
        self.segment.touch()
        return self.segment

    def append(self, records: Sequence[Record], **options: Any) -> int:
        """Appends a batch; the offset of its first record."""
        return self.append_bytes(write(records, base_offset=self.next, **options))

    def numbered(self, count: int, **options: Any) -> int:
        """Appends a batch of `count` records whose values are their offsets."""
        rows = [Record(b"k", b"%d" % (self.next + i), (("h", b"1"),), NOON + self.next + i) for i in range(count)]
        return self.append(rows, **options)

    def end_transaction(self, producer: int, first: int, *, commit: bool) -> None:
        """Appends a marker; of an aborted transaction also the entry in the `.txnindex`."""
        marker = {"coordinator_epoch": 0, "producer_epoch": 0, "timestamp": NOON}
        at = self.append_bytes(
            write_end_transaction(commit=commit, producer_id=producer, base_offset=self.next, **marker)
        )
        if not commit:
            with open(self.segment.with_suffix(".txnindex"), "ab") as index:
                index.write(struct.pack(">hqqqq", 0, producer, first, at, at + 1))

    def append_bytes(self, data: bytes) -> int:
        """Appends a batch; its first offset."""
        at, position = self.next, self.segment.stat().st_size
        with open(self.segment, "ab") as file:
            file.write(data)
        end = next_offset(data)
        assert end is not None
        self.next = end
        if position:  # Kafka has no entry for the first batch either
            with open(self.segment.with_suffix(".index"), "ab") as index:
                index.write(struct.pack(">ii", end - 1 - int(self.segment.stem), position))
        return at


def transactional(producer: int) -> dict[str, Any]:
    """The options of a transactional batch."""
    return {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
