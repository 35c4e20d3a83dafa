"""One node on its listeners: accepts connections, looks after them, and stops in order."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
import time
from collections import Counter
from collections.abc import Coroutine, Sequence
from typing import Any, Final

from tagwire.broker.apis import Apis
from tagwire.broker.cluster_image import Reached
from tagwire.broker.network.admission import Admission, Together, within_files
from tagwire.broker.network.connection import ClientConnection
from tagwire.broker.network.listener import Listener
from tagwire.broker.network.memory_budget import MemoryBudget
from tagwire.broker.network.users import Users
from tagwire.broker.node import Node
from tagwire.errors import ConfigError
from tagwire.rpc.addresses import Address, address_text

logger = logging.getLogger("tagwire.broker")

BACKLOG = 1024
TLS_GREETING_S = 10.0
NO_FILES_LEFT_S = 0.5

_GONE_ALREADY: Final = frozenset(
    {
        errno.ECONNABORTED,
        errno.ECONNRESET,
        errno.EPERM,
        errno.EPROTO,
        errno.ENOPROTOOPT,
        errno.EOPNOTSUPP,
        errno.ENETDOWN,
        errno.ENETUNREACH,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
    }
)
"""What accept(2) says of one connection, which ended before it was taken or may not be; the next one may be taken."""

STALE_EVERY_S = 1.0

ADDRESSES_TOLD = 100

STOP_WITHIN_S = 5.0
"""How long a broker that stops waits for what is under way."""


class SocketServer:
    """The listeners of a node and the connections they took, on the event loop it is used on.

    Args:
        node: what serves the requests.
        apis: what it serves.
        listeners: where clients connect.
        together: counts the connections of other nodes, too; None where there are none.

    Attributes:
        addresses: "host:port" of each listener, in their order.
        is_running: whether it listens.
    """

    def __init__(self, node: Node, apis: Apis, listeners: Sequence[Listener], together: Together | None = None) -> None:
        settings = node.settings
        self._broker = node
        self._apis = apis
        self._listeners = listeners
        self._users = Users(settings, node.scram_users)
        self._budget = MemoryBudget(settings.max_in_flight_bytes)
        self._admission = Admission(
            within_files(settings.max_connections), settings.max_connections_per_address, together
        )
        # Both in the order in which they came: no address of an object decides who is first.
        self._connections: dict[ClientConnection, None] = {}
        self._sockets: list[socket.socket] = []
        self._tasks: dict[asyncio.Task[None], None] = {}
        # Admitted, and the tasks that see to them have not begun: one that is cancelled by then cleans nothing up.
        self._arrived: dict[socket.socket, str] = {}
        # Of a node that has ended and is to have its ports again: bound, so that nobody else takes them.
        self._held: list[socket.socket] = []
        self.is_running = False
        self._reached = asyncio.Event()
        self._reached.set()
        self.addresses: list[str] = []

    @property
    def is_isolated(self) -> bool:
        """Whether it neither reads nor sends anything."""
        return not self._reached.is_set()

    def connections(self) -> dict[str, Any]:
        """How many connections there are, from whom, and what they hold."""
        clients = Counter(connection.session.client_host for connection in self._connections)
        return {
            "open": len(self._connections),
            "held_bytes": self._budget.recount(),
            "by_address": dict(clients.most_common(ADDRESSES_TOLD)),
        }

    async def start(self) -> None:
        """Listen, and tell the other nodes where.

        Raises:
            ConfigError: an address cannot be listened on.
        """
        try:
            if self._held:
                self._listen_again()
            else:
                for listener in self._listeners:
                    self._sockets.append(await _bound(listener))
        except ConfigError:
            self._close_sockets()
            raise
        self._broker.image.listeners[self._broker.node_id] = [
            Reached(listener.advertise, listening.getsockname()[1])
            for listener, listening in zip(self._listeners, self._sockets)
        ]
        self.addresses = [address_text(listening.getsockname()[:2]) for listening in self._sockets]
        self.is_running = True
        for number, listening in enumerate(self._sockets):
            self._spawn(self._accept(number, listening))
        self._spawn(self._close_stale())

    def _listen_again(self) -> None:
        while self._held:
            listening = self._held.pop(0)
            self._sockets.append(listening)
            try:
                listening.listen(BACKLOG)
            except OSError as error:
                where = address_text(listening.getsockname()[:2])
                raise ConfigError(f"cannot listen on {where} again: {error.strerror or error}") from error

    async def stop(self, *, hold_ports: bool = False) -> None:
        """Let nobody in, send the responses to what is under way, hang up; `hold_ports`: be able to start again."""
        await self._let_nobody_in(hold_ports)
        leaving = list(self._connections)
        for connection in leaving:
            connection.drain()
        if leaving:
            await asyncio.wait([connection.closed for connection in leaving], timeout=STOP_WITHIN_S)
        for connection in list(self._connections):
            connection.hang_up()

    async def kill(self) -> None:
        """End as a process that is killed: every connection is reset, whatever is under way. It may start again."""
        for connection in list(self._connections):
            connection.reset()
        await self._let_nobody_in(hold_ports=True)
        for connection in list(self._connections):  # who came in meanwhile
            connection.reset()

    async def _let_nobody_in(self, hold_ports: bool) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        while self._arrived:
            client, host = self._arrived.popitem()
            client.close()
            self._admission.leave(host)
        self.is_running = False
        addresses = [(listening.family, listening.getsockname()) for listening in self._sockets]
        self._close_sockets()
        if hold_ports:
            self._held += [_held(family, address) for family, address in addresses]
        else:
            while self._held:
                self._held.pop().close()

    def isolate(self) -> None:
        """Neither read nor send anything from now on, as when the network between a node and the others is gone.

        Connections are made, as far as the system makes them by itself. What is under way goes on.
        """
        self._reached.clear()
        for connection in self._connections:
            connection.freeze()

    def heal(self) -> None:
        """Go on where `isolate` stopped."""
        if not self.is_isolated:
            return
        self._reached.set()
        for connection in list(self._connections):
            connection.thaw()

    def _close_sockets(self) -> None:
        while self._sockets:
            self._sockets.pop().close()

    def _spawn(self, work: Coroutine[object, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)

    async def _accept(self, number: int, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, address = await loop.sock_accept(listening)
            except OSError as error:
                if error.errno in _GONE_ALREADY:
                    logger.info("a connection was gone before it was taken: %s", error)
                    continue
                # No file left for it, or no memory: others will be closed, and it waits in the backlog.
                logger.error("no connection can be taken: %s", error)
                await asyncio.sleep(NO_FILES_LEFT_S)
                continue
            try:
                await self._reached.wait()  # what was accepted just now hangs as well: to cancel could lose it
            except asyncio.CancelledError:
                client.close()
                raise
            if not self._admission.enter(address[0]):
                client.close()
                continue
            self._arrived[client] = address[0]
            if wait_ms := self._broker.throttles.connected(address[0]):
                self._spawn(self._hold(client, address[0], wait_ms))
            else:
                self._spawn(self._let_in(number, client, address[:2]))

    async def _hold(self, client: socket.socket, host: str, wait_ms: int) -> None:
        """Keep a connection that came too soon waiting, and close it then: closed at once, its client would be back."""
        del self._arrived[client]
        try:
            await asyncio.sleep(wait_ms / 1000)
        finally:
            client.close()
            self._admission.leave(host)

    async def _let_in(self, number: int, client: socket.socket, address: Address) -> None:
        host, _ = address
        del self._arrived[client]
        listener = self._listeners[number]
        connection = ClientConnection(
            self._broker, self._apis, listener, number, address, self._users, self._budget, self._connections
        )
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                client,
                ssl=listener.tls.context if listener.tls is not None else None,
                ssl_handshake_timeout=TLS_GREETING_S if listener.tls is not None else None,
            )
        except (OSError, ssl.SSLError, ConnectionError) as error:
            logger.info("%s: closed: no TLS: %s", host, error)
            client.close()
            self._admission.leave(host)
            return
        except BaseException:
            if connection not in self._connections:
                client.close()
                self._admission.leave(host)
                raise
            # It is made already, and its transport owns the socket. uvloop closes that without telling the connection.
            connection.closed.add_done_callback(lambda _: self._admission.leave(host))
            connection.hang_up()
            connection.connection_lost(None)
            raise
        if self.is_isolated:
            connection.freeze()  # it came in just before
        connection.closed.add_done_callback(lambda _: self._admission.leave(host))

    async def _close_stale(self) -> None:
        every = min(STALE_EVERY_S, self._broker.settings.idle_timeout_s / 4)
        while True:
            await asyncio.sleep(every)
            now = time.monotonic()
            for connection in [one for one in self._connections if one.is_stale(now)]:
                logger.info("%s: closed: it has been idle for too long", connection.session.address)
                connection.hang_up()


async def _bound(listener: Listener) -> socket.socket:
    """A socket that listens where it should, on IPv4 where there is a choice."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            listener.host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, _, _, _, address = min(found, key=lambda info: info[0] != socket.AF_INET)
        listening = socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        where = address_text((listener.host, listener.port))
        raise ConfigError(f"cannot listen on {where}: {error.strerror or error}") from error
    listening.setblocking(False)
    return listening


def _held(family: socket.AddressFamily, address: Address) -> socket.socket:
    """A socket that has an address and does not listen: connections to it are refused."""
    held = socket.socket(family)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(address)
    held.setblocking(False)
    return held
