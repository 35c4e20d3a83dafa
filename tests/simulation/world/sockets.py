"""Simulated sockets, as the client's drivers and the broker's listeners use those of the system.

None of them blocks: what cannot be done now raises BlockingIOError, and `watchers` are called when it may have become
possible.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from selectors import EVENT_READ, EVENT_WRITE
from typing import TYPE_CHECKING, Any, Final

from .flow import Flow

if TYPE_CHECKING:
    from .network import Connection, Host, Network

Address = tuple[str, int]

FIRST_CONNECT_RETRY_S: Final = 1.0
CONNECT_RETRIES: Final = 6
"""As Linux has it with its tcp_syn_retries: 127 seconds in all."""

PAIR_BUFFER_BYTES: Final = 64 << 10


def os_error(number: int) -> OSError:
    """An error of the system's, of the class that Python gives it."""
    return OSError(number, os.strerror(number))


@dataclass(frozen=True, eq=False)
class Party:
    """Whose an end of a connection is.

    Attributes:
        host: the process.
        serves: where the other end has connected to; None where this one did.
    """

    host: Host
    serves: Address | None


class SimulatedSocket:
    """What all sockets have.

    Attributes:
        watchers: called when `events` may have more than before.
    """

    proto = 0

    def __init__(self, host: Host, family: int, kind: int) -> None:
        self.host = host
        self.family = socket.AddressFamily(family)
        self.type = socket.SocketKind(kind)
        self.watchers: dict[Callable[[], None], None] = {}
        self.options: dict[tuple[int, int], object] = {}
        self._number = host.network.next_number()
        self.is_gone = False
        host.opened(self)

    def __enter__(self) -> SimulatedSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        """Its number; -1 when it is closed."""
        return -1 if self.is_gone else self._number

    def setblocking(self, flag: bool) -> None:
        """Says nothing new: none of them blocks."""

    def gettimeout(self) -> float:
        return 0.0

    def setsockopt(self, level: int, option: int, value: object) -> None:
        self._check()
        self.options[level, option] = value

    def getsockopt(self, level: int, option: int) -> object:
        self._check()
        return self.options.get((level, option), 0)

    def close(self) -> None:
        if not self.is_gone:
            self.is_gone = True
            self.host.closed(self)
            self.watchers.clear()

    def events(self) -> int:
        """What it is ready for: EVENT_READ, EVENT_WRITE."""
        return 0

    def changed(self) -> None:
        for watcher in list(self.watchers):
            watcher()

    def _check(self) -> None:
        if self.is_gone:
            raise os_error(errno.EBADF)


class PairedSocket(SimulatedSocket):
    """One of two that `socketpair` gives: inside of a process, so that no network is between them."""

    def __init__(self, host: Host) -> None:
        super().__init__(host, socket.AF_UNIX, socket.SOCK_STREAM)
        self.other: PairedSocket
        self._received = bytearray()

    def send(self, data: Any, flags: int = 0) -> int:
        self._check()
        if self.other.is_gone:
            raise os_error(errno.EPIPE)
        data = bytes(data)[: PAIR_BUFFER_BYTES - len(self.other._received)]
        if not data:
            raise os_error(errno.EAGAIN)
        self.other._received += data
        self.other.changed()
        return len(data)

    def recv(self, size: int, flags: int = 0) -> bytes:
        self._check()
        if not self._received and not self.other.is_gone:
            raise os_error(errno.EAGAIN)
        data = bytes(self._received[:size])
        del self._received[:size]
        self.other.changed()
        return data

    def events(self) -> int:
        reads = EVENT_READ if self._received or self.other.is_gone else 0
        return reads | (EVENT_WRITE if len(self.other._received) < PAIR_BUFFER_BYTES else 0)

    def close(self) -> None:
        super().close()
        self.other.changed()


class StreamSocket(SimulatedSocket):
    """A socket of TCP: it listens, or is one end of a connection."""

    proto = socket.IPPROTO_TCP

    def __init__(self, host: Host, family: int = socket.AF_INET, kind: int = socket.SOCK_STREAM) -> None:
        super().__init__(host, family, kind)
        self.local: Address | None = None
        self.remote: Address | None = None
        self.connection: Connection | None = None
        self.peer: StreamSocket | None = None
        self.party = Party(host, None)
        self._sends: Flow | None = None
        self._receives: Flow | None = None
        self._backlog: deque[StreamSocket] | None = None
        self._most_waiting = 0
        self._is_connecting = False
        self._error = 0
        self.is_broken = False
        self.is_mute = False  # it does not even say that it is gone
        self._has_shut_down = False
        self.has_closed = False

    def __repr__(self) -> str:
        return f"{self.host.name} {self.local} to {self.remote}"

    @property
    def network(self) -> Network:
        return self.host.network

    # Listening -----------------------------------------------------------------------------------------------------

    def bind(self, address: Address) -> None:
        self._check()
        self.local = self.network.bind(self, address)

    def listen(self, backlog: int = 128) -> None:
        self._check()
        if self.local is None:
            self.bind(("0.0.0.0", 0))
        self._backlog = deque() if self._backlog is None else self._backlog
        self._most_waiting = max(backlog, 1)
        self.network.listens(self)

    def accept(self) -> tuple[StreamSocket, Address]:
        self._check()
        if self._backlog is None:
            raise os_error(errno.EINVAL)
        if not self._backlog:
            raise os_error(errno.EAGAIN)
        accepted = self._backlog.popleft()
        assert accepted.remote is not None
        self.network.tell(f"{self.host.name} accepts {accepted.connection}")
        return accepted, accepted.remote

    @property
    def is_listening(self) -> bool:
        return self._backlog is not None and not self.is_gone

    def greeted(self, accepted: StreamSocket) -> bool:
        """Whether there is room for one more to be accepted."""
        assert self._backlog is not None
        if len(self._backlog) >= self._most_waiting:
            return False
        self._backlog.append(accepted)
        self.changed()
        return True

    @property
    def has_room(self) -> bool:
        return self._backlog is not None and len(self._backlog) < self._most_waiting

    # Connecting ----------------------------------------------------------------------------------------------------

    def connect(self, address: Address) -> None:
        self._check()
        if self.remote is not None:
            raise os_error(errno.EALREADY if self._is_connecting else errno.EISCONN)
        self._is_connecting = True
        self.network.connects(self, address)
        raise BlockingIOError(errno.EINPROGRESS, os.strerror(errno.EINPROGRESS))

    def connect_ex(self, address: Address) -> int:
        try:
            self.connect(address)
        except OSError as error:
            return error.errno or 0
        return 0

    def joined(self, sends: Flow, receives: Flow) -> None:
        self._sends, self._receives = sends, receives

    @property
    def receives(self) -> Flow:
        """What the other end of its connection sends."""
        assert self._receives is not None
        return self._receives

    def connected(self) -> None:
        """The other end has answered."""
        if self.is_gone:
            self._send_reset()
        elif self._is_connecting:
            self._is_connecting = False
            self.changed()

    @property
    def is_connecting(self) -> bool:
        return self._is_connecting and not self.is_gone

    # Bytes ---------------------------------------------------------------------------------------------------------

    def send(self, data: Any, flags: int = 0) -> int:
        self._check()
        self._raise_error()
        if self._is_connecting:
            raise os_error(errno.EAGAIN)
        if self._sends is None:
            raise os_error(errno.ENOTCONN)
        if self.is_broken or self._has_shut_down:
            raise os_error(errno.EPIPE)
        size = min(len(memoryview(data).cast("B")) if len(data) else 0, self._sends.space)
        if not size:
            if len(data):
                raise os_error(errno.EAGAIN)
            return 0
        size = self._part(size)
        given = bytes(memoryview(data).cast("B")[:size])
        self.network.bytes_sent(self, given)
        self._sends.give(given)
        return size

    def sendmsg(self, buffers: Any) -> int:
        return self.send(b"".join(bytes(buffer) for buffer in buffers))

    def recv(self, size: int, flags: int = 0) -> bytes:
        self._check()
        if self._receives is None or self._is_connecting:
            self._raise_error()
            raise os_error(errno.EAGAIN if self._is_connecting else errno.ENOTCONN)
        if self._receives.received:
            return self._receives.take(self._part(min(size, len(self._receives.received))))
        self._raise_error()
        if self._receives.has_ended or self.is_broken:
            return b""
        raise os_error(errno.EAGAIN)

    def recv_into(self, buffer: Any, size: int = 0, flags: int = 0) -> int:
        view = memoryview(buffer).cast("B")
        data = self.recv(size or len(view))
        view[: len(data)] = data
        return len(data)

    def shutdown(self, how: int) -> None:
        self._check()
        if self._sends is None or self.is_broken:
            raise os_error(errno.ENOTCONN)
        if how != socket.SHUT_RD:
            self._has_shut_down = True
            self._sends.end()

    def _part(self, size: int) -> int:
        """Any part of what could be sent or read, as the system may do at any time."""
        random = self.network.random
        return random.randint(1, size) if size > 1 and random.random() < self.network.conditions.fragments else size

    def _raise_error(self) -> None:
        if self._error:
            number, self._error = self._error, 0
            raise os_error(number)

    # What others ask and tell --------------------------------------------------------------------------------------

    def events(self) -> int:
        if self._backlog is not None:
            return EVENT_READ if self._backlog else 0
        if self._error or self.is_broken:
            return EVENT_READ | EVENT_WRITE
        if self._is_connecting or self._sends is None or self._receives is None:
            return 0
        reads = EVENT_READ if self._receives.received or self._receives.has_ended else 0
        # As Linux: a third of the buffer has to be free for a socket to be ready.
        is_writable = 3 * self._sends.space >= self.network.conditions.send_buffer or self._has_shut_down
        return reads | (EVENT_WRITE if is_writable else 0)

    def getsockopt(self, level: int, option: int) -> object:
        if (level, option) == (socket.SOL_SOCKET, socket.SO_ERROR):
            self._check()
            number, self._error = self._error, 0
            return number
        return super().getsockopt(level, option)

    def getsockname(self) -> Address:
        self._check()
        return self.local or ("0.0.0.0", 0)

    def getpeername(self) -> Address:
        self._check()
        if self.remote is None or self._is_connecting or self.is_broken:
            raise os_error(errno.ENOTCONN)
        return self.remote

    def answers_reach(self) -> bool:
        """Whether what the other end sends back gets here."""
        if self._receives is None or self.peer is None:
            return True
        return not self._receives.is_lost and self.network.passes(self.peer.party, self.party)

    def broken(self, number: int) -> None:
        """The connection has ended with an error of the system's."""
        if self.is_broken:
            return
        self._error, self.is_broken, self._is_connecting = number, True, False
        if self._sends is not None:
            self._sends.stop()
        # Systems differ in whether what has arrived can be read after a reset.
        if self._receives is not None and self.network.random.random() < 0.5:
            self._receives.received.clear()
        if not self.is_gone:
            self.network.tell(f"{self.host.name} sees {errno.errorcode[number]} on {self.connection or self.remote}")
        self.network.ended(self)
        self.changed()

    def refuse_bytes(self) -> None:
        """Bytes came for a socket that nobody has open any more."""
        if not self.is_mute:
            self._send_reset()

    def _send_reset(self) -> None:
        peer = self.peer
        if peer is not None and self._sends is not None:
            self._sends.carry(lambda: peer.broken(errno.ECONNRESET))

    # Closing -------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        if self.is_gone:
            return
        lingers = self.options.get((socket.SOL_SOCKET, socket.SO_LINGER))
        unread = self._receives is not None and bool(self._receives.received)
        self._leave(resets=unread or (isinstance(lingers, bytes) and struct.unpack("ii", lingers) == (1, 0)))

    def _leave(self, *, resets: bool) -> None:
        super().close()
        self.network.unbind(self)
        for waiting in self._backlog or ():
            waiting._leave(resets=True)
        if self._sends is None or self.is_broken or self._is_connecting:
            self.network.ended(self)
        elif resets:
            self.network.tell(f"{self.host.name} resets {self.connection}")
            self._send_reset()
            self._sends.stop()
            self.network.ended(self)
        else:
            self.network.tell(f"{self.host.name} closes {self.connection}")
            self.has_closed = True
            self._sends.end()
            self.network.ended(self)

    def killed(self) -> None:
        """The process that had it was killed; the system closes it, and hurries or not."""
        if not self.is_gone:
            self._leave(resets=self.network.random.random() < 0.5 or bool(self._receives and self._receives.received))

    def vanished(self) -> None:
        """The machine that had it is gone."""
        super().close()
        self.network.unbind(self)
        for waiting in self._backlog or ():
            waiting.vanished()
        if self._sends is not None:
            self._sends.stop()
        self.network.ended(self)
