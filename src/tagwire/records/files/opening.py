"""Opening files where regular ones are expected. A named pipe would be waited for, and a device may have no end."""

from __future__ import annotations

import os
import stat
from io import FileIO
from pathlib import Path

from tagwire.errors import StorageError

_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def strange_kind(path: str | os.PathLike[str]) -> str | None:
    """What stands at a path that is neither a file nor a directory, such as "a named pipe"; None for those, and where
    nothing stands there."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return None
    return next((name for holds, name in _KINDS if holds(mode)), None)


def open_file(path: str | os.PathLike[str]) -> FileIO:
    """A regular file, for reading, without a buffer.

    Raises:
        OSError: it is not there, or cannot be read.
        StorageError: it is no file; a named pipe is not waited for.
    """
    _check(path)
    # Not to wait for the other end of a pipe that took the file's place just now.
    file = FileIO(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise StorageError(f"{os.fspath(path)}: no regular file")


def bytes_of(path: Path) -> bytes:
    """All of a regular file. Raises as `open_file`."""
    with open_file(path) as file:
        return file.readall()


def _check(path: str | os.PathLike[str]) -> None:
    kind = strange_kind(path)
    if kind is not None:
        raise StorageError(f"{os.fspath(path)}: {kind}, where a file should be")
