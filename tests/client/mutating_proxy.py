"""A broker in between that changes an answer when it is told to, and leaves all others as they are."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple


class Asked(NamedTuple):
    """What an answer is to."""

    api_key: int
    version: int


Change = Callable[[Asked, bytes], bytes]
"""From an answer's frame, after its size, to what is sent instead."""


class MutatingProxy:
    """Forwards to a broker, which must advertise this proxy's address: start it on `port` first, the broker then.

    Attributes:
        asked: what was asked since the last `arm`, in the order of the answers.
        changed: the answer that was changed since: what it was to, and what was sent instead.
    """

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.changed: tuple[Asked, bytes] | None = None
        self._skip = 0
        self._change: Change | None = None
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._target = ("127.0.0.1", 0)
        self._sockets: list[socket.socket] = []

    def forward_to(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, skip: int, change: Change) -> None:
        """Lets `skip` answers pass, and changes the one after them; the connections so far are ended."""
        with self._lock:
            self._skip, self._change, self.changed, self.asked = skip, change, None, []
            ended, self._sockets = self._sockets, []
        _end(ended)

    def close(self) -> None:
        _end([self._listener, *self._sockets])

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
                far = socket.socket()
                far.connect(self._target)
            except OSError:
                return
            with self._lock:
                self._sockets += [near, far]
            due: dict[bytes, Asked] = {}
            threading.Thread(target=self._requests, args=(near, far, due), daemon=True).start()
            threading.Thread(target=self._answers, args=(far, near, due), daemon=True).start()

    def _requests(self, source: socket.socket, sink: socket.socket, due: dict[bytes, Asked]) -> None:
        with suppress(OSError):
            while (frame := _frame(source)) is not None:
                asked = Asked(int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big"))
                due[frame[4:8]] = asked
                sink.sendall(len(frame).to_bytes(4, "big") + frame)
        _end([source, sink])

    def _answers(self, source: socket.socket, sink: socket.socket, due: dict[bytes, Asked]) -> None:
        with suppress(OSError):
            while (frame := _frame(source)) is not None:
                frame = self._changed(due.pop(frame[:4]), frame)
                sink.sendall(len(frame).to_bytes(4, "big") + frame)
        _end([source, sink])

    def _changed(self, asked: Asked, frame: bytes) -> bytes:
        with self._lock:
            self.asked.append(asked)
            if self._change is None or self.changed is not None:
                return frame
            if self._skip:
                self._skip -= 1
                return frame
            frame = self._change(asked, frame)
            self.changed = asked, frame
            return frame


def _frame(source: socket.socket) -> bytes | None:
    """The next frame without its size; None at the end."""
    size = _exactly(source, 4)
    return None if size is None else _exactly(source, int.from_bytes(size, "big"))


def _exactly(source: socket.socket, size: int) -> bytes | None:
    found = b""
    while len(found) < size:
        more = source.recv(size - len(found))
        if not more:
            return None
        found += more
    return found


def _end(sockets: list[socket.socket]) -> None:
    for sock in sockets:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()
