"""A disk in memory that loses power: what was not synced is then lost, in part or whole, and a write may be torn.

Names are as unsafe as bytes: a file that was created, renamed or removed is so after the loss only if its directory was
synced, or by chance. A rename is one change. Files that were synced are whole, under the names that are safe.
"""

from __future__ import annotations

import errno
import threading
import time
from pathlib import Path
from random import Random

from tagwire.broker.storage.files import Files


class _File:
    def __init__(self):
        self.data = bytearray()
        self.safe = b""
        self.pending = []

    def write(self, position, data):
        _overwrite(self.data, position, data)
        self.pending.append((position, data))

    def truncate(self, size):
        _resize(self.data, size)
        self.pending.append((size, None))

    def sync(self):
        self.safe = bytes(self.data)
        self.pending = []

    def lose(self, random):
        """Keep of what is not safe nothing, all, its beginning, or any part."""
        fate = random.choice(["nothing", "beginning", "beginning", "any", "all"])
        data = bytearray(self.safe)
        count = random.randint(0, len(self.pending))
        for number, (position, written) in enumerate(self.pending):
            if fate == "nothing" or (fate == "any" and random.random() < 0.5):
                continue
            if fate == "beginning" and number >= count:
                if number == count and written:  # torn
                    _overwrite(data, position, written[: random.randint(0, len(written))])
                break
            if written is None:
                _resize(data, position)
            else:
                _overwrite(data, position, written)
        self.data = data
        self.sync()


class _Directory:
    def __init__(self):
        self.names = {}
        self.safe = {}
        self.pending = []

    def change(self, **names):
        self.apply(self.names, names)
        self.pending.append(names)

    @staticmethod
    def apply(names, change):
        for name, node in change.items():
            if node is None:
                names.pop(name, None)
            else:
                names[name] = node

    def sync(self):
        self.safe = dict(self.names)
        self.pending = []

    def lose(self, random):
        keep = random.choice([0.0, 0.5, 1.0])
        self.names = dict(self.safe)
        for change in self.pending:
            if random.random() < keep:
                self.apply(self.names, change)
        self.sync()
        for node in self.names.values():
            node.lose(random)


def _overwrite(data, position, written):
    if len(data) < position:
        data.extend(bytes(position - len(data)))
    data[position : position + len(written)] = written


def _resize(data, size):
    del data[size:]
    data.extend(bytes(size - len(data)))


class SimulatedDisk(Files):
    """Loses power at a step: that operation is done in part or not at all, and every later one fails.

    Attributes:
        steps: how many operations have changed something since power came.
        crash_at: the step at which power is lost; None for never.
        is_dead: whether it was.
    """

    def __init__(self, seed):
        self._random = Random(seed)
        self._root = _Directory()
        self._open = {}
        self._next = 1000
        self._lock = threading.Lock()
        self.steps = 0
        self.crash_at = None
        self.is_dead = False

    def lose_power(self):
        """Come back with what a loss of power leaves."""
        with self._lock:
            self._root.lose(self._random)
            self._open.clear()
            self.steps, self.crash_at, self.is_dead = 0, None, False

    def _step(self):
        self._check()
        self.steps += 1
        if self.crash_at is not None and self.steps >= self.crash_at:
            self.is_dead = True
            return True
        return False

    def _check(self):
        if self.is_dead:
            raise OSError(errno.EIO, "there is no power")

    def _change(self, act):
        """Do what is one step; when power is lost at it, perhaps."""
        dies = self._step()
        if not dies or self._random.random() < 0.5:
            act()
        self._check()

    def _node(self, path):
        node = self._root
        for name in path.parts[1:]:
            node = node.names.get(name) if isinstance(node, _Directory) else None
            if node is None:
                raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
        return node

    def open(self, path, *, write=False):
        with self._lock:
            self._check()
            try:
                node = self._node(path)
            except FileNotFoundError:
                if not write:
                    raise
                node, parent = _File(), self._node(path.parent)
                self._change(lambda: parent.change(**{path.name: node}))
            self._next += 1
            self._open[self._next] = node
            return self._next

    def close(self, fd):
        with self._lock:
            self._open.pop(fd, None)

    def size(self, path):
        with self._lock:
            return len(self._node(path).data)

    def modified_ms(self, path):
        return time.time_ns() // 1_000_000

    def read(self, fd, size, position):
        with self._lock:
            self._check()
            return bytes(self._open[fd].data[position : position + size])

    def write(self, fd, buffers, position):
        with self._lock:
            data = b"".join(buffers)
            if self._step():
                self._open[fd].write(position, data[: self._random.randint(0, len(data))])
            self._check()
            self._open[fd].write(position, data)

    def truncate(self, fd, size):
        with self._lock:
            self._change(lambda: self._open[fd].truncate(size))

    def sync(self, fd):
        with self._lock:
            self._change(self._open[fd].sync)

    def sync_directory(self, path):
        with self._lock:
            self._change(self._node(path).sync)

    def names(self, path):
        with self._lock:
            self._check()
            return sorted(self._node(path).names)

    def make_directory(self, path):
        with self._lock:
            parent = self._node(path.parent)
            if path.name in parent.names:
                raise FileExistsError(errno.EEXIST, "it exists", str(path))
            self._change(lambda: parent.change(**{path.name: _Directory()}))

    def make_directories(self, path):
        with self._lock:
            node = self._root
            for name in path.parts[1:]:
                if name not in node.names:
                    node.change(**{name: _Directory()})
                    node.sync()
                node = node.names[name]

    def is_directory(self, path):
        with self._lock:
            return isinstance(self._node(path), _Directory)

    def lock_directory(self, path):
        return -1

    def lock(self, fd):
        return True

    def rename(self, source, target):
        with self._lock:
            node, parent = self._node(source), self._node(source.parent)
            assert source.parent == target.parent
            self._change(lambda: parent.change(**{source.name: None, target.name: node}))

    def remove(self, path):
        with self._lock:
            self._node(path)
            self._change(lambda: self._node(path.parent).change(**{path.name: None}))

    def remove_tree(self, path):
        for name in self.names(path):
            self.remove(path / name)
        self.remove(path)


def path_on_disk():
    """Where a broker keeps its data on such a disk."""
    return Path("/disk/data")
