"""Requests to the broker that coordinates a group or a transactional id, until it responds without an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.coordinators import coordinators
from tagwire.client.network_client import UNKNOWN_TOPIC_PATIENCE, NetworkClient
from tagwire.client.scheduling import NEVER, sleep
from tagwire.codec import RequestMessage
from tagwire.errors import Error, KafkaError, RequestTimeoutError, TagwireError

_LOST_COORDINATOR: Final = (Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE)

Response = TypeVar("Response")


class CoordinatorClient:
    """The connection to one coordinator, which is found again where it has moved.

    Args:
        kind: `coordinators.GROUP` or `TRANSACTION`. key: the group or the transactional id.
        node: who coordinates it, where that was found out just now.
    """

    def __init__(self, network: NetworkClient, kind: int, key: str, node: int | None = None) -> None:
        self._network = network
        self._kind = kind
        self._key = key
        self._node = node

    async def connection(self, deadline: float) -> BrokerConnection:
        """The connection."""
        if self._node is None:
            self._node = (await coordinators(self._network, [self._key], self._kind, deadline))[self._key]
        return await self._network.connection(self._node, deadline)

    async def send(
        self,
        request: Callable[[BrokerConnection], RequestMessage[Response]],
        errors: Callable[[Response], Iterable[int]],
        deadline: float,
        what: str,
        *,
        highest: int | None = None,
        once: bool = False,
        gives_topics_up: bool = False,
    ) -> Response:
        """The response without an error in it. What may succeed later, and a lost connection, is tried again: the
        request must be one that can be sent twice.

        Args:
            errors: the error codes in the response, 0 for none. what: how errors call the request.
            highest: the highest version that may be spoken.
            once: not again when it may have been sent and was not answered: it may come late, after the second.
            gives_topics_up: whether what is refused for unknown topics or partitions alone is tried again for as long
                as `NetworkClient.topic` waits for one, and no longer: they are gone.

        Raises:
            KafkaError: the broker refuses. RequestTimeoutError, ConnectError, ...: no response by the deadline.
        """
        retry = self._network.retry(deadline)
        missing_until = None if gives_topics_up else NEVER
        while True:
            is_sent = False
            soon = min(deadline, self._network.deadline())
            try:
                connection = await self.connection(soon)
                message = request(connection)
                version = connection.version(message.api_key, highest)
                is_sent = True
                found = await self._network.request(connection, message, soon, version)
            except TagwireError as error:
                self._node = None
                if once and is_sent:
                    raise
                # An attempt may take less time than all of them, and may be over before it began: to be left alone for
                # longer is an error at once.
                await sleep(retry.pause_until(error, anyway=isinstance(error, RequestTimeoutError)))
                continue
            refusals = [KafkaError(code, what) for code in errors(found) if code]
            if not refusals:
                return found
            if any(refusal.error in _LOST_COORDINATOR for refusal in refusals):
                self._node = None
            worst = next((refusal for refusal in refusals if not refusal.retriable), refusals[0])
            if all(refusal.error is Error.UNKNOWN_TOPIC_OR_PARTITION for refusal in refusals):
                now = self._network.now()
                missing_until = now + UNKNOWN_TOPIC_PATIENCE if missing_until is None else missing_until
                if now >= missing_until:
                    raise worst
            await sleep(retry.pause_until(worst))
