"""One broker without its sockets, as the requests that reach it see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tagwire.broker.fetch_sessions import FetchSessions
from tagwire.broker.hooks import Hooks
from tagwire.broker.quotas.throttles import Throttles
from tagwire.broker.store import Store

if TYPE_CHECKING:
    from tagwire.broker.groups.coordinator import Groups


class Node:
    """The state that every request to one node is served from: what all nodes share, and what is its own.

    Args:
        store: what all nodes of the process share.
        node_id: which of them it is.
        hooks: what the program that runs it can reach.

    Attributes:
        settings, cluster_id, data_path, files, topics, transactions, producer_ids, scram_users, quotas, disk,
            image, controller, authorizer, room_for, creations: the store's.
        node_id, hooks: as given.
        fetch_sessions: of its readers that have one (KIP-227).
        throttles: slow down who takes more than the quotas.
    """

    def __init__(self, store: Store, node_id: int, hooks: Hooks) -> None:
        self.settings = store.settings
        self._store = store
        self.cluster_id = store.cluster_id
        self.data_path = store.data_path
        self.files = store.files
        self.topics = store.topics
        self.transactions = store.transactions
        self.producer_ids = store.producer_ids
        self.scram_users = store.scram_users
        self.quotas = store.quotas
        self.disk = store.disk
        self.image = store.image
        self.controller = store.controller
        self.authorizer = store.authorizer
        self.room_for = store.room_for
        self.creations = store.creations
        self.node_id = node_id
        self.hooks = hooks
        self._mutations = store.mutations
        self.restart()

    @property
    def groups(self) -> Groups:
        """The store's, loaded when they are first asked for."""
        return self._store.groups

    def coordinates(self, kind: int, key: str) -> bool:
        """Whether it coordinates a group or a transactional id."""
        return self.image.coordinator_of(kind, key) == self.node_id

    def restart(self) -> None:
        """Forget what a node does not know any more that has ended."""
        self.fetch_sessions = FetchSessions()
        self.throttles = Throttles(self.quotas, self._mutations)
