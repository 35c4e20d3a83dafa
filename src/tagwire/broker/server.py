"""The broker on its port: accepts connections, and stops in order."""

from __future__ import annotations

import asyncio
import logging
from types import TracebackType

from tagwire.broker.connection import ClientConnection
from tagwire.broker.node import Node
from tagwire.broker.settings import Settings
from tagwire.broker.storage.files import Files
from tagwire.errors import ConfigError

logger = logging.getLogger("tagwire.broker")

BACKLOG = 1024


class Server:
    """A running broker, on the event loop it was started on: `async with Server(settings) as server: ...`.

    Attributes:
        bootstrap: "host:port", where clients find it.
    """

    def __init__(self, settings: Settings, files: Files | None = None) -> None:
        self._settings = settings
        self._files = files or Files()
        self._connections: set[ClientConnection] = set()
        self.bootstrap = ""

    async def __aenter__(self) -> Server:
        """Open the data directory and listen.

        Raises:
            StorageError: the data directory is not ours, is in use, or cannot be read or written.
            ConfigError: the address cannot be listened on.
        """
        settings = self._settings
        self._broker = Node(settings, self._files)
        loop = asyncio.get_running_loop()
        try:
            self._listener = await loop.create_server(
                lambda: ClientConnection(self._broker, self._connections),
                settings.host,
                settings.port,
                backlog=BACKLOG,
            )
        except OSError as error:
            await self._broker.close()
            raise ConfigError(f"cannot listen on {settings.host}:{settings.port}: {error.strerror or error}") from error
        host, port = self._listener.sockets[0].getsockname()[:2]
        self.bootstrap = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._broker.start_upkeep()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Hang up on every client, then bring everything to the disk."""
        self._listener.close()
        for connection in list(self._connections):
            connection.hang_up()
        await self._listener.wait_closed()
        await self._broker.close()
