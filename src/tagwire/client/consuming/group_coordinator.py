"""The broker that coordinates a group, on a connection of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.coordinator_client import CoordinatorClient
from tagwire.client.coordinators import GROUP
from tagwire.client.network_client import NetworkClient
from tagwire.codec import RequestMessage
from tagwire.errors import TagwireError

logger = logging.getLogger("tagwire.client")

Response = TypeVar("Response")

# Seconds that a member which leaves has to say so: where the coordinator has just moved it is found anew, and where no
# broker responds the session's end tells the group.
LEAVE_PATIENCE: Final = 3.0


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

    async def leave(
        self,
        message: Callable[[BrokerConnection], RequestMessage[Response]],
        errors: Callable[[Response], Iterable[int]],
        deadline: float,
        what: str,
    ) -> None:
        """Tells the coordinator, wherever it is by now, that a member leaves; within `LEAVE_PATIENCE` at most. No error
        is raised, for nobody could do more about it than wait for the end of the session.

        Args:
            errors, what: as of `send`.
        """
        try:
            await self.send(message, errors, min(deadline, self._network.now() + LEAVE_PATIENCE), what)
        except TagwireError as error:
            logger.info("group %r: the member could not say that it leaves: %s", self._key, error)

    def mark_unknown(self, reason: str) -> None:
        """Has the coordinator found anew before the next request."""
        if self._node is not None:
            logger.info("group %r: broker %d is not asked any more: %s", self._key, self._node, reason)
            self._node = None

    def close(self) -> None:
        """Closes its connections, also where a response is due. They are opened again by the next request."""
        self._network.close()
