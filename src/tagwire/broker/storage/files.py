"""The broker's file operations, behind one small object, so that a test can make any of them fail.

Each call does all it says or raises OSError; none retries. A broker that cannot tell whether bytes reached the disk
must not say that they did, so an error here always reaches whoever waits for the write.

Whatever else has the name of a file, a directory, a pipe or a device, is an OSError that names it: reading from it
could wait for ever, or never end.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import struct
from collections.abc import Sequence
from pathlib import Path

Buffer = bytes | bytearray | memoryview

# POSIX allows a system to take as few as 16 buffers in one call; Linux and macOS take 1024.
MAX_BUFFERS_PER_WRITE = 1024

# struct flock: type, whence, start, length (0 is all of it), process.
_WHOLE_FILE = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)

SMALL_FILE_BYTES = 64 << 20
"""More than any file has that is read whole: checkpoints, properties, topics, snapshots of producers."""


class Files:
    """Operations on the local file system. File descriptors are plain ints; positions and sizes are bytes."""

    def open(self, path: Path, *, write: bool = False) -> int:
        """Open for reading, or with `write` for reading and writing, creating the file when it is missing."""
        how = os.O_RDWR | os.O_CREAT if write else os.O_RDONLY
        # Opening a pipe would otherwise wait for whoever opens its other end.
        fd = os.open(path, how | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, 0o644)
        try:
            _check_regular(os.fstat(fd), path)
        except OSError:
            os.close(fd)
            raise
        return fd

    def close(self, fd: int) -> None:
        os.close(fd)

    def restrict(self, fd: int) -> None:
        """Let nobody but its owner read a file from now on."""
        os.fchmod(fd, 0o600)

    def size(self, path: Path) -> int:
        found = os.stat(path)
        _check_regular(found, path)
        return found.st_size

    def space(self, path: Path) -> tuple[int, int]:
        """How many bytes the disk of a directory has, and how many of them are free."""
        usage = shutil.disk_usage(path)
        return usage.total, usage.free

    def modified_ms(self, path: Path) -> int:
        """When the file was last written, in milliseconds since the epoch."""
        return os.stat(path).st_mtime_ns // 1_000_000

    def read(self, fd: int, size: int, position: int) -> bytes:
        """Up to `size` bytes at `position`; fewer only at the end of the file."""
        data = os.pread(fd, size, position)
        if len(data) == size or not data:
            return data
        parts = [data]
        got = len(data)
        while got < size and (data := os.pread(fd, size - got, position + got)):
            parts.append(data)
            got += len(data)
        return b"".join(parts)

    def read_cached(self, path: Path, size: int, position: int) -> bytearray | None:
        """`size` bytes at `position` of a file that is open elsewhere, if the system has them in its memory; None where
        it would have to wait for the disk, or cannot tell: RWF_NOWAIT. Source: preadv2(2)."""
        if not hasattr(os, "RWF_NOWAIT"):  # Linux alone has it
            return None
        data = bytearray(size)
        fd = self.open(path)
        try:
            got = os.preadv(fd, [data], position, os.RWF_NOWAIT)
        except OSError:
            return None
        finally:
            self.close(fd)
        return data if got == size else None

    def write(self, fd: int, buffers: Sequence[Buffer], position: int) -> None:
        """Write all of `buffers`, one after another, at `position`."""
        for first in range(0, len(buffers), MAX_BUFFERS_PER_WRITE):
            rest = list(buffers[first : first + MAX_BUFFERS_PER_WRITE])
            while rest:
                written = os.pwritev(fd, rest, position)
                position += written
                while rest and written >= len(rest[0]):
                    written -= len(rest.pop(0))
                if rest and written:
                    rest[0] = memoryview(rest[0])[written:]

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def sync(self, fd: int) -> None:
        """Wait until the file's bytes and size are on the disk."""
        os.fsync(fd)

    def sync_directory(self, path: Path) -> None:
        """Wait until the names in a directory are on the disk: needed after a file is created, renamed or removed."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def names(self, path: Path) -> list[str]:
        """The names in a directory, sorted."""
        return sorted(os.listdir(path))

    def make_directory(self, path: Path) -> None:
        os.mkdir(path)

    def make_directories(self, path: Path) -> None:
        """Make a directory, and those it is in, unless they are there."""
        path.mkdir(parents=True, exist_ok=True)

    def is_directory(self, path: Path) -> bool:
        return path.is_dir()

    def lock_directory(self, path: Path) -> int | None:
        """Take a directory for whoever holds the file descriptor this gives, until it is closed; None when another has
        it. Nothing in the directory has to be there, or to stay there, for that."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            if isinstance(error, BlockingIOError):
                return None
            raise
        return fd

    def lock(self, fd: int) -> bool:
        """Take an open file as Kafka's broker takes its `.lock`, until it is closed; False when another has it.

        Java's FileChannel takes POSIX locks, which flock neither sees nor hinders. Those of an open file (Linux) meet
        them, and do not end when something else of this process closes the same file.
        """
        try:
            if hasattr(fcntl, "F_OFD_SETLK"):
                fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _WHOLE_FILE)
            else:
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            return False
        return True

    def rename(self, source: Path, target: Path) -> None:
        """Give `source` the name `target`, replacing what is there."""
        os.replace(source, target)

    def remove(self, path: Path) -> None:
        os.unlink(path)

    def remove_tree(self, path: Path) -> None:
        """Remove a directory and all in it; or a file that has the place of one."""
        if path.is_dir():
            shutil.rmtree(path)
        else:
            os.unlink(path)


def _check_regular(found: os.stat_result, path: Path) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "a directory stands where a file should", str(path))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "what stands there is no regular file", str(path))


def problem_of(error: OSError, path: Path) -> str:
    """What an error says, and of which file; `path` where it names none."""
    return f"{error.filename or path}: {error.strerror or error}"


def read_file(files: Files, path: Path) -> bytes:
    """The whole of a small file. OSError for one of more than SMALL_FILE_BYTES."""
    data = read_start(files, path, SMALL_FILE_BYTES + 1)
    if len(data) > SMALL_FILE_BYTES:
        raise OSError(errno.EFBIG, f"a file of this kind has {SMALL_FILE_BYTES} bytes at most", str(path))
    return data


def read_start(files: Files, path: Path, most: int) -> bytes:
    """A file up to its end or `most` bytes."""
    fd = files.open(path)
    try:
        return files.read(fd, min(files.size(path), most), 0)
    finally:
        files.close(fd)


class UnsettledError(OSError):
    """A file was to be replaced, the disk refused, and then refused to put back what was there: it may hold either."""


def replace_file(files: Files, path: Path, data: bytes, *, secret: bool = False) -> None:
    """Make `path` hold `data` in one step: after a crash it holds the old content or the new, never a mixture.
    `secret`: for its owner's eyes alone.

    Raises:
        UnsettledError: nobody can know which of the two the next start will find.
        OSError: any other: `path` is as it was.
    """
    try:
        before = read_file(files, path)
    except FileNotFoundError:
        before = None
    _rename_onto(files, path, data, secret)
    try:
        files.sync_directory(path.parent)
    except OSError as error:
        try:
            if before is None:
                files.remove(path)
            else:
                _rename_onto(files, path, before, secret)
            files.sync_directory(path.parent)
        except OSError:
            problem = f"{error.strerror}; {path.name} may hold its old content or the new"
            raise UnsettledError(error.errno, problem) from error
        raise


def _rename_onto(files: Files, path: Path, data: bytes, secret: bool) -> None:
    temporary = path.with_name(path.name + ".tmp")
    fd = files.open(temporary, write=True)
    try:
        if secret:
            files.restrict(fd)
        files.truncate(fd, 0)
        files.write(fd, [data], 0)
        files.sync(fd)
    finally:
        files.close(fd)
    files.rename(temporary, path)
