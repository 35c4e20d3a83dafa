"""Several nodes over one store: opened, served and closed in order, and each stopped, killed and cut off alone."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from tagwire.broker.apis import Apis
from tagwire.broker.cluster_image import ClusterImage
from tagwire.broker.hooks import Hooks
from tagwire.broker.network.admission import Together
from tagwire.broker.network.listener import Listener
from tagwire.broker.network.socket_server import SocketServer
from tagwire.broker.node import Node
from tagwire.broker.settings import Settings
from tagwire.broker.storage.data_directory import NODE_ID
from tagwire.broker.storage.files import Files
from tagwire.broker.store import Store
from tagwire.broker.telemetry.statistics import statistics
from tagwire.errors import ConfigError


class ClusterServer:
    """A running cluster, on the event loop it was started on.

    Args:
        settings: how its nodes are to run.
        listeners: those of each node, by the place of the node.
        hooks: of each node, what the program can reach while it runs.
        files: the file operations of all.
        apis: what the nodes serve.
        replication_factor: how many nodes hold a partition where nobody says otherwise.
        racks: of each node; None where it is in none.
    """

    def __init__(
        self,
        settings: Settings,
        listeners: Sequence[Sequence[Listener]],
        hooks: Sequence[Hooks],
        files: Files,
        apis: Apis,
        replication_factor: int,
        racks: Sequence[str | None],
    ) -> None:
        self._settings = settings
        self._listeners = listeners
        self._hooks = hooks
        self._files = files
        self._apis = apis
        self._replication_factor = replication_factor
        self._racks = racks

    async def __aenter__(self) -> ClusterServer:
        """Open the data directory and let every node listen.

        Raises:
            StorageError, ConfigError: as `Server`.
        """
        self.store = Store(self._settings, self._files, self._image)
        self.image = self.store.image
        self._started = time.time()
        self.nodes: dict[int, Node] = {}
        self.sockets: dict[int, SocketServer] = {}
        together = Together()
        self.store.start_scheduler()  # what transactions have left goes before the first request
        try:
            for node_id, listeners, hooks in zip(self.image.node_ids, self._listeners, self._hooks):
                node = Node(self.store, node_id, hooks)
                sockets = SocketServer(node, self._apis, listeners, together)
                await sockets.start()
                self.nodes[node_id], self.sockets[node_id] = node, sockets
        except ConfigError:
            await self._stop_all()
            raise
        return self

    def _image(self, _: int) -> ClusterImage:
        racks: Mapping[int, str | None] = dict(enumerate(self._racks, NODE_ID))
        return ClusterImage(NODE_ID, len(self._listeners), self._replication_factor, racks)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Let nobody in, send the responses to what is under way, hang up, then bring everything to the disk."""
        await self._stop_all()

    async def _stop_all(self) -> None:
        for sockets in self.sockets.values():
            await sockets.stop()
        await self.store.close()

    def stats(self, node_id: int) -> dict[str, Any]:
        """How a node is, in numbers: see `statistics`."""
        return statistics(self.nodes[node_id], self._started, self.sockets[node_id].connections())

    async def stop(self, node_id: int) -> None:
        """A clean shutdown: others lead what the node led, then it responds to what is under way and goes."""
        await self._leave(node_id)
        await self.sockets[node_id].stop(hold_ports=True)

    async def kill(self, node_id: int) -> None:
        """An unclean end: connections are reset, whatever was under way; then others lead what the node led."""
        await self.sockets[node_id].kill()
        await self._leave(node_id)

    async def start(self, node_id: int) -> None:
        """Let a node that has ended run again, at its old addresses. Does nothing while it runs.

        Raises:
            ConfigError: its addresses cannot be listened on any more.
        """
        sockets = self.sockets[node_id]
        if not sockets.is_running:
            self.nodes[node_id].restart()
            await sockets.start()
        if not sockets.is_isolated:
            await self._join(node_id)

    async def isolate(self, node_id: int, *, fenced: bool) -> None:
        """Neither read nor send anything on a node's connections; `fenced`: others notice, and lead what it led."""
        self.sockets[node_id].isolate()
        if fenced:
            await self._leave(node_id)

    async def heal(self, node_id: int) -> None:
        """Go on with an isolated node."""
        sockets = self.sockets[node_id]
        sockets.heal()
        if sockets.is_running:
            await self._join(node_id)

    async def _leave(self, node_id: int) -> None:
        await self.store.controller.set_live(lambda live: [each for each in live if each != node_id])

    async def _join(self, node_id: int) -> None:
        await self.store.controller.set_live(lambda live: {*live, node_id})
