"""What every driver over sockets does alike: it resolves, connects, writes and reads for connections, without waiting.

A host's name is resolved in a thread of its own, since the system's resolver blocks: one that is slow holds up the
connection that needs it and no other.
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
from selectors import EVENT_READ, EVENT_WRITE
from typing import TYPE_CHECKING

from tagwire.client.aside import Aside
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.connection_settings import ConnectionState, ResolvedAddress

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


@dataclass(slots=True, eq=False)
class Channel:
    """What a connection has of the system.

    `attempt` is the connection's, for which the socket is; `events` are those that it is watched for.
    """

    connection: BrokerConnection
    attempt: int = -1
    sock: socket.socket | None = None
    is_connected: bool = False
    events: int = 0


class SocketDriver:
    """The sockets of connections. What waits for them, a thread or an event loop, derives from it.

    Attributes:
        random: where the core draws jitter from.
        loop: the event loop that it runs in; None where it has none.
    """

    loop: AbstractEventLoop | None = None

    def __init__(self) -> None:
        self.random = Random()
        self._channels: dict[BrokerConnection, Channel] = {}
        self._changed: dict[Channel, None] = {}  # in the order in which they changed
        self._resolved: deque[tuple[Channel, int, list[ResolvedAddress] | str]] = deque()
        self._asides: deque[tuple[BrokerConnection, Aside]] = deque()  # those that are done

    def wall_clock(self) -> float:
        """`time.time`."""
        return time.time()

    def register(self, connection: BrokerConnection) -> None:
        """Resolves, connects, writes and reads for `connection` until it is closed."""
        self._channels[connection] = Channel(connection)
        connection.attach(self._notified, self._begin_aside)

    def wakeup(self) -> None:
        """Has whoever waits look for what there is to do. From any thread."""
        raise NotImplementedError

    def _watch(self, channel: Channel, sock: socket.socket, events: int) -> None:
        """Waits for other events than `channel.events` from now on; for 0, for none."""
        raise NotImplementedError

    def _attend_soon(self) -> None:
        """`_attend` is to be called before anything is waited for."""

    def _close_channels(self) -> None:
        """Closes the sockets of every connection."""
        for channel in list(self._channels.values()):
            channel.connection.close()
            self._forget(channel)  # which was interrupted, where the connection was closed already
        self._changed.clear()
        self._resolved.clear()
        self._asides.clear()

    def _notified(self, connection: BrokerConnection) -> None:
        """What is new is written at once; what takes several steps is done by `_attend`."""
        channel = self._channels.get(connection)
        if channel is None:
            return
        if connection.state is ConnectionState.CLOSED:
            self._forget(channel)
        elif channel.is_connected and channel.attempt == connection.attempt:
            self._write(channel)
        else:
            self._changed[channel] = None
            self._attend_soon()

    def _attend(self) -> bool:
        """Begins what connections need that are being opened; whether there was any such thing."""
        if not (self._asides or self._resolved or self._changed):
            return False
        happened = False
        while self._asides:
            happened = True
            connection, aside = self._asides.popleft()
            connection.aside_done(aside)
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

    def _begin_aside(self, connection: BrokerConnection, aside: Aside) -> None:
        def done() -> None:
            self._asides.append((connection, aside))
            self.wakeup()

        aside.begin(done, self.loop)

    def _take_addresses(self) -> None:
        channel, attempt, found = self._resolved.popleft()
        connection = channel.connection
        if connection.state is not ConnectionState.RESOLVING or connection.attempt != attempt:
            return  # it took so long that it was given up
        if isinstance(found, str):
            connection.not_resolved(found)
        else:
            connection.resolved(found)

    def _attend_opening(self, channel: Channel) -> None:
        connection = channel.connection
        if connection.attempt == channel.attempt:
            return
        self._close_socket(channel)
        channel.attempt = connection.attempt
        if connection.state is ConnectionState.RESOLVING:
            self._resolve(channel)
        elif connection.state is ConnectionState.CONNECTING:
            self._connect(channel)

    def _resolve(self, channel: Channel) -> None:
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

    def _connect(self, channel: Channel) -> None:
        connection = channel.connection
        family, address = connection.address
        try:
            channel.sock = sock = socket.socket(family, socket.SOCK_STREAM)
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            sock.connect(address)
        except (BlockingIOError, InterruptedError):
            self._watch_for(channel, EVENT_WRITE)
        except OSError as error:
            self._close_socket(channel)
            connection.not_connected(error.strerror or str(error))
        else:
            self._watch_for(channel, EVENT_WRITE)

    def _attend_socket(self, channel: Channel, events: int) -> None:
        connection = channel.connection
        if connection.state is ConnectionState.CLOSED:
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

    def _finish_connect(self, channel: Channel, sock: socket.socket) -> None:
        connection = channel.connection
        if failure := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._close_socket(channel)
            connection.not_connected(os.strerror(failure))
            return
        channel.is_connected = True
        self._watch_for(channel, EVENT_READ)
        connection.connected()

    def _read(self, connection: BrokerConnection, sock: socket.socket) -> None:
        try:
            connection.received(sock.recv_into(connection.space()))
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            connection.lost(error.strerror or str(error))

    def _write(self, channel: Channel) -> None:
        """Writes what the broker takes now; the rest when it takes more."""
        connection, sock = channel.connection, channel.sock
        if sock is None:
            return
        try:
            while (data := connection.output()) and connection.written(sock.send(data)):
                pass
        except (BlockingIOError, InterruptedError):
            self._watch_for(channel, EVENT_READ | EVENT_WRITE)
        except OSError as error:
            connection.lost(error.strerror or str(error))
        except BaseException:
            connection.interrupted()
            raise
        else:
            if channel.events != EVENT_READ and not connection.closed:
                self._watch_for(channel, EVENT_READ)

    def _forget(self, channel: Channel) -> None:
        """Ends what a closed connection had."""
        connection, sock = channel.connection, channel.sock
        self._channels.pop(connection, None)
        self._changed.pop(channel, None)
        if sock is not None and connection.failed_at is ConnectionState.TLS:
            with suppress(OSError):
                sock.send(connection.output())  # why, to the broker
        self._close_socket(channel)

    def _close_socket(self, channel: Channel) -> None:
        sock, channel.sock, channel.is_connected = channel.sock, None, False
        if sock is None:
            return
        if channel.events:
            self._watch(channel, sock, 0)
            channel.events = 0
        sock.close()

    def _watch_for(self, channel: Channel, events: int) -> None:
        if channel.events == events or channel.sock is None:
            return
        self._watch(channel, channel.sock, events)
        channel.events = events


def _addresses(host: str, port: int, flags: int = 0) -> list[ResolvedAddress] | str:
    """The addresses of a host; or why it has none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    except (OSError, UnicodeError) as error:
        return getattr(error, "strerror", None) or str(error)
    return [ResolvedAddress(family, address) for family, _, _, _, address in found] or "no address"
