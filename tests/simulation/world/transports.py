"""What a simulated event loop has of sockets: readers and writers, accepting, and transports."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from selectors import EVENT_READ, EVENT_WRITE, SelectorKey
from typing import Any, Final

from .selecting import SimulatedSelector
from .socket_module import SocketModule
from .sockets import Address, SimulatedSocket, StreamSocket

HIGH_WATER_BYTES: Final = 64 << 10
"""What asyncio's own transports take before they say `pause_writing`."""

READ_BYTES: Final = 256 << 10


class SocketLoop:
    """For a loop that derives from `asyncio.BaseEventLoop` too.

    Attributes:
        sockets: what names are looked up with.
    """

    _selector: SimulatedSelector
    sockets: SocketModule

    # Readiness -----------------------------------------------------------------------------------------------------

    def add_reader(self, fd: SimulatedSocket, callback: Callable[..., object], *args: object) -> None:
        self._watch(fd, EVENT_READ, asyncio.Handle(callback, args, self, None))  # type: ignore[arg-type]

    def remove_reader(self, fd: SimulatedSocket) -> bool:
        return self._watch(fd, EVENT_READ, None)

    def add_writer(self, fd: SimulatedSocket, callback: Callable[..., object], *args: object) -> None:
        self._watch(fd, EVENT_WRITE, asyncio.Handle(callback, args, self, None))  # type: ignore[arg-type]

    def remove_writer(self, fd: SimulatedSocket) -> bool:
        return self._watch(fd, EVENT_WRITE, None)

    def _watch(self, sock: SimulatedSocket, event: int, handle: asyncio.Handle | None) -> bool:
        """Calls `handle` for an event from now on; whether another was called before."""
        key = self._selector.get_map().get(sock)
        handles: dict[int, asyncio.Handle] = {} if key is None else key.data
        old = handles.pop(event, None)
        if old is not None:
            old.cancel()
        if handle is not None:
            handles[event] = handle
        events = sum(handles)
        if key is None:
            if events:
                self._selector.register(sock, events, handles)
        elif events:
            self._selector.modify(sock, events, handles)
        else:
            self._selector.unregister(sock)
        return old is not None

    def _process_events(self, event_list: list[tuple[SelectorKey, int]]) -> None:
        for key, events in event_list:
            for event in (EVENT_READ, EVENT_WRITE):
                if events & event and (handle := key.data.get(event)) is not None:
                    self._ready.append(handle)  # type: ignore[attr-defined]

    # What BaseEventLoop has for those who derive from it -------------------------------------------------------------

    def _make_socket_transport(
        self, sock: StreamSocket, protocol: Any, waiter: Any = None, *, extra: Any = None, server: Any = None
    ) -> SimulatedTransport:
        return SimulatedTransport(self, sock, protocol, waiter)

    async def sock_accept(self, sock: StreamSocket) -> tuple[StreamSocket, Address]:
        while True:
            try:
                return sock.accept()
            except BlockingIOError:
                arrived = self.create_future()  # type: ignore[attr-defined]
                self.add_reader(sock, lambda told=arrived: told.done() or told.set_result(None))
                try:
                    await arrived
                finally:
                    self.remove_reader(sock)

    async def getaddrinfo(
        self, host: str | None, port: Any, *, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> list[tuple[Any, ...]]:
        return self.sockets.getaddrinfo(host, port, family, type, proto, flags)


class SimulatedTransport(asyncio.Transport):
    """A connection on an event loop, as asyncio's own transports are."""

    def __init__(self, loop: Any, sock: StreamSocket, protocol: Any, waiter: Any) -> None:
        super().__init__({"socket": sock, "sockname": sock.getsockname(), "peername": sock.remote})
        self._loop = loop
        self._sock = sock
        self._protocol = protocol
        self._output = bytearray()
        self._high, self._low = HIGH_WATER_BYTES, HIGH_WATER_BYTES // 4
        self._is_closing = False
        self._is_lost = False
        self._is_reading = True
        self._reader_ended = False
        self._ends = False
        self._is_full = False
        loop.call_soon(self._begin, waiter)

    def _begin(self, waiter: Any) -> None:
        self._protocol.connection_made(self)
        self._watch_input()
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def get_protocol(self) -> Any:
        return self._protocol

    def is_closing(self) -> bool:
        return self._is_closing

    # Input ---------------------------------------------------------------------------------------------------------

    def is_reading(self) -> bool:
        return self._is_reading and not self._is_closing

    def pause_reading(self) -> None:
        if self.is_reading():
            self._is_reading = False
            self._loop.remove_reader(self._sock)

    def resume_reading(self) -> None:
        if not self._is_closing and not self._is_reading:
            self._is_reading = True
            self._watch_input()

    def _watch_input(self) -> None:
        if self.is_reading() and not self._reader_ended:
            self._loop.add_reader(self._sock, self._read)

    def _read(self) -> None:
        if self._is_lost:
            return
        try:
            if isinstance(self._protocol, asyncio.BufferedProtocol):
                size = self._sock.recv_into(self._protocol.get_buffer(-1))
            else:
                data = self._sock.recv(READ_BYTES)
                size = len(data)
        except BlockingIOError:
            return
        except OSError as error:
            self._end(error)
            return
        if not size:
            self._read_end()
        elif isinstance(self._protocol, asyncio.BufferedProtocol):
            self._protocol.buffer_updated(size)
        else:
            self._protocol.data_received(data)

    def _read_end(self) -> None:
        keeps_open = self._protocol.eof_received()
        if keeps_open:
            self._reader_ended = True
            self._loop.remove_reader(self._sock)
        else:
            self.close()

    # Output --------------------------------------------------------------------------------------------------------

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = HIGH_WATER_BYTES if low is None else 4 * low
        self._high, self._low = high, high // 4 if low is None else low
        self._tell_if_full()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def get_write_buffer_size(self) -> int:
        return len(self._output)

    def write(self, data: Any) -> None:
        if self._ends:
            raise RuntimeError("Cannot call write() after write_eof()")
        if self._is_lost or not data:
            return
        if self._output:
            self._output += data
        else:
            self._output += data
            self._send()
            if self._output and not self._is_lost:
                self._loop.add_writer(self._sock, self._write_ready)
        self._tell_if_full()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self._is_closing and not self._ends:
            self._ends = True
            if not self._output:
                self._shut_down()

    def _shut_down(self) -> None:
        self._sock.shutdown(socket.SHUT_WR)

    def _send(self) -> None:
        try:
            del self._output[: self._sock.send(bytes(self._output))]
        except BlockingIOError:
            return
        except OSError as error:
            self._end(error)

    def _write_ready(self) -> None:
        if self._is_lost:
            return
        self._send()
        if self._is_lost:
            return
        self._tell_if_full()
        if not self._output:
            self._loop.remove_writer(self._sock)
            if self._is_closing:
                self._is_lost = True
                self._lost(None)
            elif self._ends:
                self._shut_down()

    def _tell_if_full(self) -> None:
        size = len(self._output)
        if size > self._high and not self._is_full:
            self._is_full = True
            self._protocol.pause_writing()
        elif size <= self._low and self._is_full:
            self._is_full = False
            self._protocol.resume_writing()

    # The end -------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends when what was written is sent."""
        if self._is_closing:
            return
        self._is_closing = True
        self._loop.remove_reader(self._sock)
        if not self._output:
            self._is_lost = True
            self._loop.call_soon(self._lost, None)

    def abort(self) -> None:
        self._end(None)

    def _end(self, error: OSError | None) -> None:
        if self._is_lost:
            return
        self._is_lost = self._is_closing = True
        self._output.clear()
        self._loop.remove_reader(self._sock)
        self._loop.remove_writer(self._sock)
        self._loop.call_soon(self._lost, error)

    def _lost(self, error: OSError | None) -> None:
        try:
            self._protocol.connection_lost(error)
        finally:
            self._sock.close()
