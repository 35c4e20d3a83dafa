"""What is on a simulated disk: bytes of files and names in directories, and what of them a loss of power spares.

Names are as unsafe as bytes: a file that was created, renamed or removed is so after the loss only if its directory was
synced, or by chance. A rename is one change. Files that were synced are whole, under the names that are safe.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random
from typing import Final

SECTOR_BYTES: Final = 512

FATES: Final = ("nothing", "beginning", "beginning", "any", "sectors", "all")
"""What a loss of power spares of the changes of a file that are not safe."""


class File:
    """Bytes, and those of them that are on the disk.

    Attributes:
        data: as readers see it.
        modified: when it was last written, seconds of the wall clock.
    """

    def __init__(self) -> None:
        self.data = bytearray()
        self.modified = time.time()
        self._safe = bytearray()
        self._pending: list[tuple[int, bytes | None]] = []

    def write(self, position: int, data: bytes) -> None:
        _overwrite(self.data, position, data)
        self._pending.append((position, data))
        self.modified = time.time()

    def truncate(self, size: int) -> None:
        _resize(self.data, size)
        self._pending.append((size, None))
        self.modified = time.time()

    def sync(self) -> None:
        for change in self._pending:
            _apply(self._safe, change)
        self._pending = []

    def fail_to_sync(self, random: Random) -> None:
        """The disk refused some of what was written. As on Linux, it counts as written from then on, and the next sync
        says that all is well; readers may see it for a while, or not any more."""
        for change in self._pending:
            if change[1] is None or random.random() < 0.5:
                _apply(self._safe, change)
        self._pending = []
        if random.random() < 0.5:
            self.data = bytearray(self._safe)

    def lose(self, random: Random, spares: str | None = None) -> None:
        """Keep of what is not safe nothing, all, its beginning, or any part: a disk writes sectors in any order.

        Args:
            spares: which of `FATES`; None draws one.
        """
        fate = random.choice(FATES) if spares is None else spares
        count = random.randint(0, len(self._pending))
        for number, (position, written) in enumerate(self._pending):
            if fate == "nothing" or (fate == "any" and random.random() < 0.5):
                continue
            if fate == "sectors" and written:
                for begin, sector in _sectors(position, written):
                    if random.random() < 0.7:
                        _overwrite(self._safe, begin, sector)
                continue
            if fate == "beginning" and number >= count:
                if number == count and written:  # torn
                    _overwrite(self._safe, position, written[: random.randint(0, len(written))])
                break
            _apply(self._safe, (position, written))
        self._pending = []
        self.data = bytearray(self._safe)


class Directory:
    """Names, and those of them that are on the disk."""

    def __init__(self) -> None:
        self.names: dict[str, File | Directory] = {}
        self._safe: dict[str, File | Directory] = {}
        self._pending: list[dict[str, File | Directory | None]] = []

    def change(self, **names: File | Directory | None) -> None:
        """Give names what they stand for from now on, or nothing: one change."""
        _rename(self.names, names)
        self._pending.append(names)

    def sync(self) -> None:
        self._safe = dict(self.names)
        self._pending = []

    def lose(self, random: Random, spares: str | None = None) -> None:
        keep = random.choice([0.0, 0.5, 1.0]) if spares is None else {"nothing": 0.0, "all": 1.0}.get(spares, 0.5)
        self.names = dict(self._safe)
        for change in self._pending:
            if random.random() < keep:
                _rename(self.names, change)
        self.sync()
        for node in self.names.values():
            node.lose(random, spares)


def _rename(names: dict[str, File | Directory], change: dict[str, File | Directory | None]) -> None:
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def _sectors(position: int, written: bytes) -> Iterator[tuple[int, bytes]]:
    """A write in parts that reach the disk whole or not at all."""
    end = position + len(written)
    begin = position
    while begin < end:
        following = min(end, begin - begin % SECTOR_BYTES + SECTOR_BYTES)
        yield begin, written[begin - position : following - position]
        begin = following


def _apply(data: bytearray, change: tuple[int, bytes | None]) -> None:
    position, written = change
    if written is None:
        _resize(data, position)
    else:
        _overwrite(data, position, written)


def _overwrite(data: bytearray, position: int, written: bytes) -> None:
    if len(data) < position:
        data.extend(bytes(position - len(data)))
    data[position : position + len(written)] = written


def _resize(data: bytearray, size: int) -> None:
    del data[size:]
    data.extend(bytes(size - len(data)))
