"""A disk that fails when it is told to, to see what a program does then."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from tagwire.broker.storage.files import Buffer, Files
from tagwire.errors import ConfigError

Operation = Literal["create", "open", "read", "write", "truncate", "sync", "sync_directory", "rename", "remove"]


class FaultyFiles(Files):
    """Real files, whose operations fail on demand. Any thread may ask for that.

    broker.disk.fail("sync")                              # every fsync, until mend()
    broker.disk.fail("write", errno.ENOSPC, times=1)      # the next write; half of its bytes reach the file
    """

    def __init__(self) -> None:
        self._failing: dict[str, tuple[int, float]] = {}
        self._lock = threading.Lock()

    def fail(self, operation: Operation, code: int = errno.EIO, *, times: float = float("inf")) -> None:
        """Make the next `times` operations of a kind fail.

        Args:
            operation: "create" and "open" (of a file that is there), "read", "write", "truncate", "sync" (fsync),
                "sync_directory", "rename" or "remove".
            code: the error, a number of `errno`.

        Raises:
            ConfigError: there is no such operation.
        """
        if operation not in get_args(Operation):
            raise ConfigError(f"operation={operation!r} is not one of {', '.join(get_args(Operation))}")
        with self._lock:
            self._failing[operation] = (code, times)

    def mend(self) -> None:
        """Let everything succeed again. A log that has gone offline comes back when the broker is started again."""
        with self._lock:
            self._failing.clear()

    def _check(self, operation: Operation) -> None:
        if not self._failing:
            return
        with self._lock:
            code, times = self._failing.get(operation, (0, 0))
            if times <= 0:
                return
            self._failing[operation] = (code, times - 1)
        raise OSError(code, os.strerror(code))

    def open(self, path: Path, *, write: bool = False) -> int:
        if self._failing:
            self._check("create" if write and not path.exists() else "open")
        return super().open(path, write=write)

    def read(self, fd: int, size: int, position: int) -> bytes:
        self._check("read")
        return super().read(fd, size, position)

    def read_cached(self, path: Path, size: int, position: int) -> bytearray | None:
        return None if self._failing else super().read_cached(path, size, position)

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

    def rename(self, source: Path, target: Path) -> None:
        self._check("rename")
        super().rename(source, target)

    def remove(self, path: Path) -> None:
        self._check("remove")
        super().remove(path)
