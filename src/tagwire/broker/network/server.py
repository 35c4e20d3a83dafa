"""A broker of one node: opened, served and closed in order."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

from tagwire.broker.apis import Apis
from tagwire.broker.hooks import Hooks
from tagwire.broker.network.socket_server import SocketServer
from tagwire.broker.node import Node
from tagwire.broker.settings import Settings
from tagwire.broker.store import Store
from tagwire.broker.telemetry.statistics import statistics
from tagwire.errors import ConfigError


class Server:
    """A running broker, on the event loop it was started on: `async with Server(settings) as server: ...`.

    Args:
        settings: how it is to run.
        hooks: what the program can reach while it runs.
        apis: what it serves; None as the settings say.
    """

    def __init__(self, settings: Settings, hooks: Hooks | None = None, apis: Apis | None = None) -> None:
        self._settings = settings
        self._hooks = hooks or Hooks()
        self._apis = apis or Apis(settings.as_release)
        self._started = time.time()

    @property
    def addresses(self) -> list[str]:
        """ "host:port" of each listener, in their order."""
        return self._sockets.addresses

    @property
    def bootstrap(self) -> str:
        return self.addresses[0]

    def stats(self) -> dict[str, Any]:
        """How it is, in numbers: see `statistics`."""
        return statistics(self._node, self._started, self._sockets.connections())

    async def __aenter__(self) -> Server:
        """Open the data directory and listen.

        Raises:
            StorageError: the data directory is not ours, is in use, or cannot be read or written.
            ConfigError: an address cannot be listened on.
        """
        self._store = Store(self._settings, self._hooks.files)
        self._node = Node(self._store, self._store.node_id, self._hooks)
        self._sockets = SocketServer(self._node, self._apis, self._settings.listeners)
        self._store.start_scheduler()  # what transactions have left goes before the first request
        try:
            await self._sockets.start()
        except ConfigError:
            await self._store.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Let nobody in, send the responses to what is under way, hang up, then bring everything to the disk."""
        await self._sockets.stop()
        await self._store.close()
