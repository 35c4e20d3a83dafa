"""The broker that coordinates a group, on a connection of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.coordinator_client import CoordinatorClient
from tagwire.client.coordinators import GROUP
from tagwire.client.network_client import NetworkClient
from tagwire.codec import RequestMessage
from tagwire.errors import TagwireError

logger = logging.getLogger("tagwire.client")

Response = TypeVar("Response")


class GroupCoordinator(CoordinatorClient):
    """The coordinator of a group, which is found again where it has moved. `send` is for commits: it tries again what
    may succeed later; `request` is for members, who have to look first at what became of them meanwhile.

    A broker responds to the requests of one connection in their order, so that a fetch which waits for records would
    hold up heartbeats, and a JoinGroup which waits for the others every fetch: this has connections of its own, as
    Kafka's client has.

    Args:
        network: the consumer's. group: its `group.id`.
    """

    def __init__(self, network: NetworkClient, group: str) -> None:
        super().__init__(network.sibling(network.driver), GROUP, group)

    @property
    def is_known(self) -> bool:
        """Whether it is known who coordinates the group; they may have changed since."""
        return self._node is not None

    async def request(
        self, message: Callable[[BrokerConnection], RequestMessage[Response]], deadline: float
    ) -> Response:
        """The response to a request that is sent once, whatever error code is in it.

        Args:
            message: the request, as it is for the broker of a connection.

        Raises:
            RequestTimeoutError, ConnectError, ConnectionLostError, KafkaError, ...: the coordinator is not known, or
                its connection broke; it is found anew for the next request.
        """
        try:
            connection = await self.connection(min(deadline, self._network.deadline()))
            return await self._network.request(connection, message(connection), deadline)
        except TagwireError:
            self._node = None
            raise

    def mark_unknown(self, reason: str) -> None:
        """Has the coordinator found anew before the next request."""
        if self._node is not None:
            logger.info("group %r: broker %d is not asked any more: %s", self._key, self._node, reason)
            self._node = None

    def close(self) -> None:
        """Closes its connections, also where a response is due. They are opened again by the next request."""
        self._network.close()
