"""A disk in memory that loses power, fails, fills up and takes its time, as it is told to or by the seed's chance."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from tagwire.broker.storage.files import Buffer, Files

from .disk_contents import Directory, File

OPERATIONS: Final = (
    "create",
    "open",
    "read",
    "write",
    "truncate",
    "sync",
    "sync_directory",
    "rename",
    "remove",
    "make_directory",
)
"""Those that can fail; "open" is of a file that is there."""

DISK_BYTES: Final = 1 << 40
"""What a disk says that takes any number of bytes."""

SYNC_S: Final = (0.0, 0.0005, 0.005, 0.03)

SPLIT_WRITES: Final = 0.02
"""How often another thread runs, or the process is killed, when half of a write is done."""


@dataclass(eq=False)
class DiskFault:
    """Operations that fail.

    Attributes:
        operations: of `OPERATIONS`.
        errno: the error's number.
        count: how many fail; None for all until it is healed.
        after: how many are let pass before.
        part: what their path has in it.
    """

    operations: Collection[str]
    errno: int = errno.EIO
    count: int | None = 1
    after: int = 0
    part: str = ""

    def strikes(self, operation: str, path: str) -> bool:
        if operation not in self.operations or self.part not in path or self.count == 0:
            return False
        if self.after:
            self.after -= 1
            return False
        if self.count is not None:
            self.count -= 1
        return True


@dataclass(eq=False)
class SlowDisk:
    """Operations that take up to `most_s` seconds, so many of all on paths that have `part` in them."""

    most_s: float
    chance: float = 1.0
    part: str = ""


@dataclass(eq=False)
class _Descriptor:
    node: File | Directory
    path: str
    owner: object


class SimulatedDisk(Files):
    """File operations on it. Any thread may use them.

    Loses power at a step, if it is told to: that operation is done in part or not at all, and every later one fails.

    Args:
        seed: of what a loss of power leaves, and of how long operations take.
        pause: called before each operation with its name and how long it takes, in seconds, where one thread at a time
            runs: what the thread waits for, and where another may run.
        process: who calls; to whom descriptors and locks belong.
        sync_s: how long a sync takes at most; None draws that of a disk, from memory to a slow one.
        cached: how often the system has in its memory what is read, and can tell.
        remembers: of which reads that is true.

    Attributes:
        steps: how many operations have changed something since power came.
        crash_at: the step at which power is lost; None for never.
        is_dead: whether it was.
        faults: what fails, of `DiskFault` and `SlowDisk`.
        capacity: how many bytes files can have; None for any number.
        on_refused_sync: told the path of each file of which a sync fails.
        spares: what the next loss of power leaves of what is not safe, see `disk_contents.FATES`; None draws that for
            each file and directory.
    """

    def __init__(
        self,
        seed: int | Random,
        *,
        pause: Callable[[str, float], None] | None = None,
        process: Callable[[], object] = lambda: None,
        sync_s: float | None = None,
        cached: float = 0.0,
        remembers: Random | None = None,
    ) -> None:
        self._random = Random(seed) if isinstance(seed, int) else seed
        self._pause = pause
        self._process = process
        if sync_s is None:
            sync_s = 0.0 if pause is None else self._random.choice(SYNC_S)
        self._sync_s = sync_s
        self._cached = cached
        self._remembers = remembers or Random(0)
        self._root = Directory()
        self._open: dict[int, _Descriptor] = {}
        self._locked: dict[File | Directory, int] = {}
        self._next = 1000
        # Where threads run one at a time, one that is killed must not keep others out.
        self._lock: AbstractContextManager[object] = threading.Lock() if pause is None else nullcontext()
        self.steps = 0
        self.crash_at: int | None = None
        self.is_dead = False
        self.faults: dict[DiskFault | SlowDisk, None] = {}
        self.capacity: int | None = None
        self.on_refused_sync: Callable[[str], None] = lambda path: None
        self.spares: str | None = None
        self._upon: dict[str, list[tuple[str, Callable[[], None]]]] = {}

    # What befalls it -----------------------------------------------------------------------------------------------

    def lose_power(self) -> None:
        """Come back with what a loss of power leaves."""
        with self._lock:
            self._root.lose(self._random, self.spares)
            self.spares = None
            self._open.clear()
            self._locked.clear()
            self.steps, self.crash_at, self.is_dead = 0, None, False

    def kill(self) -> None:
        """Come back as after kill -9: with all that was written, safe or not."""
        with self._lock:
            self._open.clear()
            self._locked.clear()
            self.steps, self.crash_at, self.is_dead = 0, None, False

    def process_ended(self, process: object) -> None:
        """The descriptors of a process are closed; what it has written stays."""
        with self._lock:
            for fd in [fd for fd, descriptor in self._open.items() if descriptor.owner is process]:
                self._close(fd)

    def inject(self, fault: DiskFault | SlowDisk) -> Callable[[], None]:
        """Have operations fail or take longer, until what this gives is called."""
        self.faults[fault] = None

        def heal() -> None:
            self.faults.pop(fault, None)

        return heal

    def slow(self, most_s: float, chance: float = 1.0, part: str = "") -> Callable[[], None]:
        """Have operations take longer: see `SlowDisk`."""
        return self.inject(SlowDisk(most_s, chance, part))

    def upon(self, operation: str, act: Callable[[], None], part: str = "") -> Callable[[], None]:
        """Have something done when the next operation of a kind begins, on a path that has `part` in it, once; what
        this gives takes it back."""
        waiting, one = self._upon.setdefault(operation, []), (part, act)
        waiting.append(one)

        def take_back() -> None:
            if one in waiting:
                waiting.remove(one)

        return take_back

    def heal(self) -> None:
        """Nothing fails or takes longer any more. What failed has failed."""
        self.faults.clear()

    @property
    def used(self) -> int:
        """How many bytes its files have, those among them that have no name and are open."""
        files = dict.fromkeys(_files(self._root))
        files.update((each.node, None) for each in self._open.values() if isinstance(each.node, File))
        return sum(len(file.data) for file in files)

    @property
    def root(self) -> Directory:
        """What is on it, as readers see it."""
        return self._root

    def descriptors(self, process: object) -> list[str]:
        """The paths of what a process has open."""
        return [descriptor.path for descriptor in self._open.values() if descriptor.owner is process]

    # Steps ---------------------------------------------------------------------------------------------------------

    def _comes_to(self, operation: str, at: Path | int) -> None:
        """Does what is to be done at an operation on a path, or on what is open as a number."""
        if waiting := self._upon.get(operation):
            path = self._path_of(at)
            for one in [one for one in waiting if one[0] in path]:
                waiting.remove(one)
                one[1]()

    def _path_of(self, at: Path | int) -> str:
        if isinstance(at, int):
            return self._open[at].path if at in self._open else ""
        return str(at)

    def _take_time(self, operation: str, at: Path | int) -> None:
        self._comes_to(operation, at)
        if self._pause is None:
            return
        takes = self._sync_s * self._random.random() if operation in ("sync", "sync_directory") else 0.0
        for fault in self.faults:
            if not isinstance(fault, SlowDisk) or (fault.part and fault.part not in self._path_of(at)):
                continue
            if self._random.random() < fault.chance:
                takes += fault.most_s * self._random.random()
        self._pause(operation, takes)

    def _strike(self, operation: str, path: Path | str) -> None:
        for fault in self.faults:
            if isinstance(fault, DiskFault) and fault.strikes(operation, str(path)):
                raise OSError(fault.errno, os.strerror(fault.errno), str(path))

    def _step(self) -> bool:
        self._check()
        self.steps += 1
        if self.crash_at is not None and self.steps >= self.crash_at:
            self.is_dead = True
            return True
        return False

    def _check(self) -> None:
        if self.is_dead:
            raise OSError(errno.EIO, "there is no power")

    def _change(self, act: Callable[[], None]) -> None:
        """Do what is one step; when power is lost at it, perhaps."""
        dies = self._step()
        if not dies or self._random.random() < 0.5:
            act()
        self._check()

    def _node(self, path: Path) -> File | Directory:
        node: File | Directory | None = self._root
        for name in path.parts[1:]:
            if isinstance(node, File):
                raise NotADirectoryError(errno.ENOTDIR, "not a directory", str(path))
            node = node.names.get(name) if node is not None else None
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
        return node

    def _file(self, path: Path) -> File:
        node = self._node(path)
        if not isinstance(node, File):
            raise IsADirectoryError(errno.EISDIR, "a directory stands where a file should", str(path))
        return node

    def _directory(self, path: Path) -> Directory:
        node = self._node(path)
        if not isinstance(node, Directory):
            raise NotADirectoryError(errno.ENOTDIR, "not a directory", str(path))
        return node

    def _described(self, fd: int) -> tuple[File, str]:
        descriptor = self._open.get(fd)
        if descriptor is None or not isinstance(descriptor.node, File):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return descriptor.node, descriptor.path

    def _space(self) -> int:
        return 2**62 if self.capacity is None else max(self.capacity - self.used, 0)

    def _require_space(self, path: Path) -> None:
        if not self._space():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    # Descriptors ---------------------------------------------------------------------------------------------------

    def _opened(self, node: File | Directory, path: Path) -> int:
        self._next += 1
        self._open[self._next] = _Descriptor(node, str(path), self._process())
        return self._next

    def open(self, path: Path, *, write: bool = False) -> int:
        self._take_time("open", path)
        with self._lock:
            self._check()
            try:
                node = self._file(path)
            except FileNotFoundError:
                if not write:
                    raise
                parent, node = self._directory(path.parent), File()
                self._comes_to("create", path)
                self._strike("create", path)
                self._require_space(path)
                made = node
                self._change(lambda: parent.change(**{path.name: made}))
            else:
                self._strike("open", path)
            return self._opened(node, path)

    def restrict(self, fd: int) -> None:
        pass  # nobody else is here

    def close(self, fd: int) -> None:
        with self._lock:
            self._close(fd)

    def _close(self, fd: int) -> None:
        descriptor = self._open.pop(fd, None)
        if descriptor is not None and self._locked.get(descriptor.node) == fd:
            del self._locked[descriptor.node]

    def lock_directory(self, path: Path) -> int | None:
        self._take_time("open", path)
        with self._lock:
            self._check()
            node = self._directory(path)
            if node in self._locked:
                return None
            fd = self._opened(node, path)
            self._locked[node] = fd
            return fd

    def lock(self, fd: int) -> bool:
        with self._lock:
            node, _ = self._described(fd)
            return self._locked.setdefault(node, fd) == fd

    # Files ---------------------------------------------------------------------------------------------------------

    def size(self, path: Path) -> int:
        with self._lock:
            return len(self._file(path).data)

    def space(self, path: Path) -> tuple[int, int]:
        with self._lock:
            self._directory(path)
            total = DISK_BYTES if self.capacity is None else self.capacity
            return total, max(total - self.used, 0)

    def modified_ms(self, path: Path) -> int:
        with self._lock:
            return int(self._file(path).modified * 1000)

    def read(self, fd: int, size: int, position: int) -> bytes:
        self._take_time("read", fd)
        with self._lock:
            self._check()
            node, path = self._described(fd)
            self._strike("read", path)
            return bytes(node.data[position : position + size])

    def read_cached(self, path: Path, size: int, position: int) -> bytearray | None:
        if self._remembers.random() >= self._cached:
            return None
        with self._lock:
            self._check()
            data = self._file(path).data[position : position + size]
            return bytearray(data) if len(data) == size else None

    def write(self, fd: int, buffers: Sequence[Buffer], position: int) -> None:
        data = b"".join(buffers)
        self._take_time("write", fd)
        if self._pause is not None and len(data) > 1 and self._random.random() < SPLIT_WRITES:
            half = self._random.randint(1, len(data) - 1)
            self._write(fd, data[:half], position)
            data, position = data[half:], position + half
            self._take_time("write", fd)
        self._write(fd, data, position)

    def _write(self, fd: int, data: bytes, position: int) -> None:
        with self._lock:
            node, path = self._described(fd)
            if self._step():
                node.write(position, data[: self._random.randint(0, len(data))])
            self._check()
            try:
                self._strike("write", path)
            except OSError:
                node.write(position, data[: self._random.randint(0, len(data))])
                raise
            more = max(position + len(data) - len(node.data), 0)
            if more and (missing := more - self._space()) > 0:
                node.write(position, data[: max(len(data) - missing, 0)])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            node.write(position, data)

    def truncate(self, fd: int, size: int) -> None:
        self._take_time("truncate", fd)
        with self._lock:
            node, path = self._described(fd)
            self._strike("truncate", path)
            self._change(lambda: node.truncate(size))

    def sync(self, fd: int) -> None:
        self._take_time("sync", fd)
        with self._lock:
            node, path = self._described(fd)
            try:
                self._strike("sync", path)
            except OSError:
                node.fail_to_sync(self._random)
                self.on_refused_sync(path)
                raise
            self._change(node.sync)

    # Names ---------------------------------------------------------------------------------------------------------

    def sync_directory(self, path: Path) -> None:
        self._take_time("sync_directory", path)
        with self._lock:
            node = self._directory(path)
            self._strike("sync_directory", path)
            self._change(node.sync)

    def names(self, path: Path) -> list[str]:
        with self._lock:
            self._check()
            return sorted(self._directory(path).names)

    def make_directory(self, path: Path) -> None:
        self._take_time("make_directory", path)
        with self._lock:
            parent = self._directory(path.parent)
            if path.name in parent.names:
                raise FileExistsError(errno.EEXIST, "it exists", str(path))
            self._strike("make_directory", path)
            self._require_space(path)
            self._change(lambda: parent.change(**{path.name: Directory()}))

    def make_directories(self, path: Path) -> None:
        with self._lock:
            node = self._root
            for name in path.parts[1:]:
                if name not in node.names:
                    node.change(**{name: Directory()})
                    node.sync()
                found = node.names[name]
                if not isinstance(found, Directory):
                    raise FileExistsError(errno.EEXIST, "it exists", str(path))
                node = found

    def is_directory(self, path: Path) -> bool:
        with self._lock:
            try:
                return isinstance(self._node(path), Directory)
            except OSError:
                return False

    def rename(self, source: Path, target: Path) -> None:
        self._take_time("rename", source)
        with self._lock:
            node, parent = self._node(source), self._directory(source.parent)
            assert source.parent == target.parent
            self._strike("rename", source)
            self._change(lambda: parent.change(**{source.name: None, target.name: node}))

    def remove(self, path: Path) -> None:
        self._file(path)
        self._remove(path)

    def _remove(self, path: Path) -> None:
        self._take_time("remove", path)
        with self._lock:
            self._node(path)
            self._strike("remove", path)
            self._change(lambda: self._directory(path.parent).change(**{path.name: None}))

    def remove_tree(self, path: Path) -> None:
        if self.is_directory(path):
            for name in self.names(path):
                self.remove_tree(path / name)
        self._remove(path)


def _files(directory: Directory) -> Iterator[File]:
    for node in directory.names.values():
        if isinstance(node, File):
            yield node
        else:
            yield from _files(node)


def path_on_disk() -> Path:
    """Where a broker keeps its data on such a disk."""
    return Path("/disk/data")
