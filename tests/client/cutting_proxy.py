"""A connection in between that breaks when it is told to: answers get lost after the broker has done what was asked."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class CuttingProxy:
    """Forwards to a broker, which must advertise this proxy's address: start it on `port` first, the broker then.

    Attributes:
        cuts: how many more answers to requests of more than `over` bytes are swallowed, their connection closed.
    """

    def __init__(self, over: int = 1000) -> None:
        self.cuts = 0
        self.over = over
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._target = ("127.0.0.1", 0)
        self._sockets: list[socket.socket] = []

    def forward_to(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for sock in [self._listener, *self._sockets]:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
            except OSError:
                return
            self._sockets += [near, far]
            state = {"large": False}
            threading.Thread(target=self._pump, args=(near, far, state, True), daemon=True).start()
            threading.Thread(target=self._pump, args=(far, near, state, False), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, state: dict[str, bool], outward: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 20):
                if outward:
                    state["large"] = state["large"] or len(data) > self.over
                elif state["large"] and self.cuts > 0:
                    self.cuts -= 1
                    break
                sink.sendall(data)
        for sock in (source, sink):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
