"""Batches, and file operations that fail or forget, for the broker's tests."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from tagwire.broker.files import Buffer, Files
from tagwire.broker.log import Batch
from tagwire.records import Record, batch_headers, write


def make_batch(count: int = 1, timestamp: int = 1000, size: int = 20, compression: str = "none") -> Batch:
    """A batch of `count` records with timestamps counting up from `timestamp`, and values of `size` bytes."""
    records = [Record(b"k%d" % i, b"v" * size, timestamp=timestamp + i) for i in range(count)]
    data = write(records, compression=compression)
    header = next(batch_headers(data))
    return Batch(memoryview(data), header.last_offset_delta, header.max_timestamp)


@pytest.fixture(scope="session")
def batch() -> Callable[..., Batch]:
    return make_batch


class FailingFiles(Files):
    """Real files, of which one operation fails when told to.

    `fail("sync")` makes every later sync fail with EIO, `fail("write", errno.ENOSPC, times=1)` the next write; a
    failing write leaves half of its bytes behind.
    """

    def __init__(self) -> None:
        self._failing: dict[str, tuple[int, float]] = {}

    def fail(self, operation: str, code: int = errno.EIO, *, times: float = float("inf")) -> None:
        self._failing[operation] = (code, times)

    def mend(self) -> None:
        self._failing.clear()

    def _check(self, operation: str) -> None:
        code, times = self._failing.get(operation, (0, 0))
        if times > 0:
            self._failing[operation] = (code, times - 1)
            raise OSError(code, os.strerror(code))

    def open(self, path: Path, *, write: bool = False) -> int:
        self._check("create" if write and not path.exists() else "open")
        return super().open(path, write=write)

    def read(self, fd: int, size: int, position: int) -> bytes:
        self._check("read")
        return super().read(fd, size, position)

    def write(self, fd: int, buffers: Sequence[Buffer], position: int) -> None:
        try:
            self._check("write")
        except OSError:
            data = b"".join(buffers)
            super().write(fd, [data[: len(data) // 2]], position)
            raise
        super().write(fd, buffers, position)

    def truncate(self, fd: int, size: int) -> None:
        self._check("truncate")
        super().truncate(fd, size)

    def sync(self, fd: int) -> None:
        self._check("sync")
        super().sync(fd)

    def sync_directory(self, path: Path) -> None:
        self._check("sync_directory")
        super().sync_directory(path)


@pytest.fixture
def failing_files() -> FailingFiles:
    return FailingFiles()


class ForgetfulFiles(Files):
    """Real files that can lose power: what was not synced is then cut off, zeroed or scrambled, or its name is gone."""

    def __init__(self) -> None:
        self._paths: dict[int, Path] = {}
        self._safe: dict[Path, int] = {}
        self._unsafe_names: set[Path] = set()

    def open(self, path: Path, *, write: bool = False) -> int:
        if write and not path.exists():
            self._unsafe_names.add(path)
            self._safe[path] = 0
        fd = super().open(path, write=write)
        self._paths[fd] = path
        self._safe.setdefault(path, self.size(path))
        return fd

    def sync(self, fd: int) -> None:
        super().sync(fd)
        path = self._paths[fd]
        self._safe[path] = self.size(path)

    def sync_directory(self, path: Path) -> None:
        super().sync_directory(path)
        self._unsafe_names = {name for name in self._unsafe_names if name.parent != path}

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        self._safe[target] = self._safe.pop(source)
        self._unsafe_names.discard(source)

    def remove(self, path: Path) -> None:
        super().remove(path)
        self._safe.pop(path, None)
        self._unsafe_names.discard(path)

    def lose_power(self, random: Random) -> None:
        """Close every file and let the unsynced part of the directory's files suffer."""
        for path, safe in list(self._safe.items()):
            if path in self._unsafe_names and random.random() < 0.5:
                path.unlink()
                continue
            data = bytearray(path.read_bytes())
            if len(data) <= safe:
                continue
            cut = random.randint(safe, len(data))
            fate = random.choice(["cut", "zero", "scramble"])
            if fate == "cut":
                del data[cut:]
            elif fate == "zero":
                data[cut:] = bytes(len(data) - cut)
            else:
                data[cut:] = random.randbytes(len(data) - cut)
            path.write_bytes(data)
        self._safe.clear()
        self._unsafe_names.clear()


@pytest.fixture(scope="session")
def forgetful_files() -> type[ForgetfulFiles]:
    return ForgetfulFiles
