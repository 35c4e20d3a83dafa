"""The blocking driver of the client's core: sockets, the clock, and whoever waits for them, in one thread.

It runs coroutines of the core in the calling thread, and meanwhile resolves, connects, writes and reads for every
connection that was registered with it. A host's name is resolved in a thread of its own, since the system's resolver
blocks: one that is slow holds up the connection that needs it and no other.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from selectors import EVENT_READ, EVENT_WRITE, PollSelector
from typing import Final

from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.connection_settings import ConnectionState, ResolvedAddress
from tagwire.client.scheduling import NEVER, Result, Work

# Seconds that one wait for sockets takes at most: more milliseconds than an int holds are an error of the system's.
_LONGEST_POLL: Final = 3600.0

# How often what has arrived is looked for, where that is not waited for: bytes, and the end of the connection after
# them.
_LOOKS: Final = 4


@dataclass(slots=True, eq=False)
class _Channel:
    """What a connection has of the system.

    `attempt` is the connection's, for which the socket is; `events` are those that the selector watches it for.
    """

    connection: BrokerConnection
    attempt: int = -1
    sock: socket.socket | None = None
    is_connected: bool = False
    events: int = 0


class BlockingDriver:
    """Runs the core in the thread that calls it; `wakeup` is for any thread.

    Attributes:
        random: where the core draws jitter from.
    """

    def __init__(self) -> None:
        self.random = Random()
        self._selector: PollSelector | None = None
        self._wakeup_sockets: tuple[socket.socket, socket.socket] | None = None
        self._is_woken = False
        self._channels: dict[BrokerConnection, _Channel] = {}
        self._changed: dict[_Channel, None] = {}  # in the order in which they changed
        self._resolved: deque[tuple[_Channel, int, list[ResolvedAddress] | str]] = deque()

    # What the core calls -------------------------------------------------------------------------------------------

    def now(self) -> float:
        """`time.monotonic` seconds."""
        return time.monotonic()

    def register(self, connection: BrokerConnection) -> None:
        """Resolves, connects, writes and reads for `connection` until it is closed."""
        self._channels[connection] = _Channel(connection)
        connection.attach(self._notified)

    # What runs the core --------------------------------------------------------------------------------------------

    def run(self, work: Work[Result]) -> Result:
        """What `work` gives or raises. Blocks meanwhile."""
        try:
            if self._channels:
                self.look()
            while True:
                wait = work.send(None)
                while not wait.is_over(time.monotonic()):
                    self.poll(wait.until)
        except StopIteration as end:
            result: Result = end.value
            return result
        finally:
            work.close()

    def look(self) -> None:
        """Takes what has arrived, without waiting."""
        for _ in range(_LOOKS):
            if not self.poll(0.0):
                return

    def poll(self, until: float) -> bool:
        """Waits until something has happened on a connection, `wakeup` is called or a time has come (`time.monotonic`
        seconds), and does what there is to do then. Whether anything happened."""
        selector = self._open_selector()
        happened = self._attend()
        if self._is_woken or happened:
            until = 0.0
        deadline = min((connection.deadline for connection in self._channels), default=NEVER)
        timeout = min(until, deadline) - time.monotonic() if until else 0.0
        ready = selector.select(min(max(timeout, 0.0), _LONGEST_POLL))
        for key, events in ready:
            channel: _Channel | None = key.data
            if channel is None:
                self._take_wakeups()
            else:
                self._attend_socket(channel, events)
        self._is_woken = False
        if deadline <= time.monotonic():
            for connection in list(self._channels):
                connection.expire_setup()
        return self._attend() or happened or bool(ready)

    def wakeup(self) -> None:
        """Has the `poll` that waits, or else the next one, return at once. From any thread."""
        if self._is_woken:
            return
        self._is_woken = True
        if (sockets := self._wakeup_sockets) is not None:
            try:
                sockets[1].send(b"\0")
            except OSError:  # it is full of wake-ups already, or nobody listens any more
                return

    def close(self) -> None:
        """Closes the sockets of every connection. The driver may be used again."""
        for channel in list(self._channels.values()):
            channel.connection.close()
            self._forget(channel)  # which was interrupted, where the connection was closed already
        self._changed.clear()
        self._resolved.clear()
        selector, self._selector = self._selector, None
        if selector is not None:
            selector.close()
        sockets, self._wakeup_sockets = self._wakeup_sockets, None
        for sock in sockets or ():
            sock.close()

    def _open_selector(self) -> PollSelector:
        if self._selector is None:
            ours, theirs = socket.socketpair()
            ours.setblocking(False)
            theirs.setblocking(False)
            # Not epoll: what it watches is the kernel's, so that a process that is forked off and closes its copies of
            # the sockets would take them from its parent's, too.
            selector = PollSelector()
            selector.register(ours, EVENT_READ, None)
            # In this order: who calls `wakeup` sets the flag first, and then looks for the sockets.
            self._wakeup_sockets = ours, theirs
            self._selector = selector
        return self._selector

    def _take_wakeups(self) -> None:
        assert self._wakeup_sockets is not None
        try:
            self._wakeup_sockets[0].recv(4096)
        except OSError:
            return

    # What becomes of a connection ----------------------------------------------------------------------------------

    def _notified(self, connection: BrokerConnection) -> None:
        """What is new is written at once; what takes several steps is done by `_attend`."""
        channel = self._channels.get(connection)
        if channel is None:
            return
        if connection.closed:
            self._forget(channel)
        elif channel.is_connected and channel.attempt == connection.attempt:
            self._write(channel)
        else:
            self._changed[channel] = None

    def _attend(self) -> bool:
        """Begins what connections need that are being opened; whether there was any such thing."""
        happened = False
        while self._resolved or self._changed:
            happened = True
            channel = self._resolved[0][0] if self._resolved else next(iter(self._changed))
            try:
                if self._resolved:
                    self._take_addresses()
                else:
                    del self._changed[channel]
                    self._attend_opening(channel)
            except BaseException:
                channel.connection.interrupted()
                raise
        return happened

    def _take_addresses(self) -> None:
        channel, attempt, found = self._resolved.popleft()
        connection = channel.connection
        if connection.state is not ConnectionState.RESOLVING or connection.attempt != attempt:
            return  # it took so long that it was given up
        if isinstance(found, str):
            connection.not_resolved(found)
        else:
            connection.resolved(found)

    def _attend_opening(self, channel: _Channel) -> None:
        connection = channel.connection
        if connection.attempt == channel.attempt:
            return
        self._close_socket(channel)
        channel.attempt = connection.attempt
        if connection.state is ConnectionState.RESOLVING:
            self._resolve(channel)
        elif connection.state is ConnectionState.CONNECTING:
            self._connect(channel)

    def _resolve(self, channel: _Channel) -> None:
        connection, attempt = channel.connection, channel.attempt

        def resolve() -> None:
            self._resolved.append((channel, attempt, _addresses(connection.host, connection.port)))
            self.wakeup()

        found = _addresses(connection.host, connection.port, flags=socket.AI_NUMERICHOST)
        if not isinstance(found, str):
            self._resolved.append((channel, attempt, found))
            return
        try:
            threading.Thread(target=resolve, name=f"tagwire-resolver {connection.host}", daemon=True).start()
        except RuntimeError:  # as many threads as the system allows, or the interpreter is about to end: others wait
            resolve()

    def _connect(self, channel: _Channel) -> None:
        connection = channel.connection
        family, address = connection.address
        try:
            channel.sock = sock = socket.socket(family, socket.SOCK_STREAM)
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            sock.connect(address)
        except (BlockingIOError, InterruptedError):
            self._watch(channel, EVENT_WRITE)
        except OSError as error:
            self._close_socket(channel)
            connection.not_connected(error.strerror or str(error))
        else:
            self._watch(channel, EVENT_WRITE)

    def _attend_socket(self, channel: _Channel, events: int) -> None:
        connection = channel.connection
        if connection.closed:
            self._forget(channel)  # it was closed by what came of another one, or its end was interrupted
        if channel.sock is None:
            return
        try:
            if not channel.is_connected:
                self._finish_connect(channel, channel.sock)
                return
            if events & EVENT_READ:
                self._read(connection, channel.sock)
            if events & EVENT_WRITE and not connection.closed:
                self._write(channel)
        except BaseException:
            connection.interrupted()
            raise

    def _finish_connect(self, channel: _Channel, sock: socket.socket) -> None:
        connection = channel.connection
        if failure := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._close_socket(channel)
            connection.not_connected(os.strerror(failure))
            return
        channel.is_connected = True
        self._watch(channel, EVENT_READ)
        connection.connected()

    def _read(self, connection: BrokerConnection, sock: socket.socket) -> None:
        try:
            connection.received(sock.recv_into(connection.space()))
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            connection.lost(error.strerror or str(error))

    def _write(self, channel: _Channel) -> None:
        """Writes what the broker takes now; the rest when it takes more."""
        connection, sock = channel.connection, channel.sock
        if sock is None:
            return
        try:
            while data := connection.output():
                connection.written(sock.send(data))
        except (BlockingIOError, InterruptedError):
            self._watch(channel, EVENT_READ | EVENT_WRITE)
        except OSError as error:
            connection.lost(error.strerror or str(error))
        except BaseException:
            connection.interrupted()
            raise
        else:
            if channel.events != EVENT_READ and not connection.closed:
                self._watch(channel, EVENT_READ)

    def _watch(self, channel: _Channel, events: int) -> None:
        if channel.events == events or channel.sock is None:
            return
        selector = self._open_selector()
        if channel.events:
            selector.modify(channel.sock, events, channel)
        else:
            selector.register(channel.sock, events, channel)
        channel.events = events

    def _forget(self, channel: _Channel) -> None:
        """Ends what a closed connection had."""
        connection, sock = channel.connection, channel.sock
        self._channels.pop(connection, None)
        self._changed.pop(channel, None)
        if sock is not None and connection.failed_at is ConnectionState.TLS:
            with suppress(OSError):
                sock.send(connection.output())  # why, to the broker
        self._close_socket(channel)

    def _close_socket(self, channel: _Channel) -> None:
        sock, channel.sock, channel.is_connected = channel.sock, None, False
        if sock is None:
            return
        if channel.events and self._selector is not None:
            channel.events = 0
            self._selector.unregister(sock)
        sock.close()


def _addresses(host: str, port: int, flags: int = 0) -> list[ResolvedAddress] | str:
    """The addresses of a host; or why it has none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    except (OSError, UnicodeError) as error:
        return getattr(error, "strerror", None) or str(error)
    return [ResolvedAddress(family, address) for family, _, _, _, address in found] or "no address"
