"""The broker on its listeners: accepts connections, looks after them, and stops in order."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections import Counter
from collections.abc import Coroutine
from types import TracebackType
from typing import Any

from tagwire.broker.apis import Apis
from tagwire.broker.hooks import Hooks
from tagwire.broker.network.admission import Admission, within_files
from tagwire.broker.network.connection import ClientConnection
from tagwire.broker.network.listener import Listener
from tagwire.broker.network.memory_budget import MemoryBudget
from tagwire.broker.network.users import Users
from tagwire.broker.node import Node
from tagwire.broker.settings import Settings
from tagwire.broker.telemetry.statistics import statistics
from tagwire.errors import ConfigError
from tagwire.rpc.addresses import Address, address_text

logger = logging.getLogger("tagwire.broker")

BACKLOG = 1024
TLS_GREETING_S = 10.0
NO_FILES_LEFT_S = 0.5
STALE_EVERY_S = 1.0

ADDRESSES_TOLD = 100

STOP_WITHIN_S = 5.0
"""How long a broker that stops waits for what is under way."""


class Server:
    """A running broker, on the event loop it was started on: `async with Server(settings) as server: ...`.

    Args:
        settings: how it is to run.
        hooks: what the program can reach while it runs.
        apis: what it serves; None as the settings say.

    Attributes:
        addresses: "host:port" of each listener, in their order; `bootstrap` is the first.
    """

    def __init__(self, settings: Settings, hooks: Hooks | None = None, apis: Apis | None = None) -> None:
        self._settings = settings
        self._hooks = hooks or Hooks()
        self._apis = apis or Apis(settings.as_release)
        self._users = Users(settings.users)
        self._budget = MemoryBudget(settings.max_in_flight_bytes)
        self._admission = Admission(within_files(settings.max_connections), settings.max_connections_per_address)
        self._connections: set[ClientConnection] = set()
        self._sockets: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._started = time.time()
        self.addresses: list[str] = []

    @property
    def bootstrap(self) -> str:
        return self.addresses[0]

    def stats(self) -> dict[str, Any]:
        """How it is, in numbers: see `statistics`."""
        clients = Counter(connection.session.client_host for connection in self._connections)
        connections = {
            "open": len(self._connections),
            "held_bytes": self._budget.taken,
            "by_address": dict(clients.most_common(ADDRESSES_TOLD)),
        }
        return statistics(self._broker, self._started, connections)

    async def __aenter__(self) -> Server:
        """Open the data directory and listen.

        Raises:
            StorageError: the data directory is not ours, is in use, or cannot be read or written.
            ConfigError: an address cannot be listened on.
        """
        self._broker = Node(self._settings, self._hooks)
        try:
            self._sockets = [await _bound(listener) for listener in self._settings.listeners]
        except ConfigError:
            await self._broker.close()
            raise
        for listener, listening in zip(self._settings.listeners, self._sockets):
            self.addresses.append(address_text(listening.getsockname()[:2]))
            self._spawn(self._accept(listener, listening))
        self._spawn(self._close_stale())
        self._broker.start_scheduler()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Let nobody in, send the responses to what is under way, hang up, then bring everything to the disk."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for listening in self._sockets:
            listening.close()
        leaving = list(self._connections)
        for connection in leaving:
            connection.drain()
        if leaving:
            await asyncio.wait([connection.closed for connection in leaving], timeout=STOP_WITHIN_S)
        for connection in list(self._connections):
            connection.hang_up()
        await self._broker.close()

    def _spawn(self, work: Coroutine[object, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, listener: Listener, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, address = await loop.sock_accept(listening)
            except OSError as error:  # no file left for it: others will be closed, and it waits in the backlog
                logger.error("no connection can be taken: %s", error)
                await asyncio.sleep(NO_FILES_LEFT_S)
                continue
            if self._admission.enter(address[0]):
                self._spawn(self._let_in(listener, client, address[:2]))
            else:
                client.close()

    async def _let_in(self, listener: Listener, client: socket.socket, address: Address) -> None:
        host, _ = address
        connection = ClientConnection(
            self._broker, self._apis, listener, address, self._users, self._budget, self._connections
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
            client.close()
            self._admission.leave(host)
            raise
        connection.closed.add_done_callback(lambda _: self._admission.leave(host))

    async def _close_stale(self) -> None:
        every = min(STALE_EVERY_S, self._settings.idle_timeout_s / 4)
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
