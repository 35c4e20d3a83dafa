"""A connection of one principal to any broker, and what of an answer is compared."""

from __future__ import annotations

import json
import socket
from typing import Any, Final

from tagwire import messages
from tagwire.errors import ConnectionLostError
from tagwire.rpc import NEED_DATA, Connection

from .authorization_people import PASSWORDS

SECONDS: Final = 20

KEPT: Final = frozenset(
    {
        "errorCode",
        "partitionErrorCode",
        "topicConfigErrorCode",
        "error",
        "name",
        "topic",
        "topicName",
        "groupId",
        "key",
        "transactionalId",
        "resourceName",
        "resourceType",
        "partitionIndex",
        "partition",
        "partitionId",
        "index",
        "user",
        "topicAuthorizedOperations",
        "clusterAuthorizedOperations",
        "authorizedOperations",
        "numPartitions",
        "committedOffset",
        "groupState",
    }
)
"""The fields that say what is refused, and what is seen."""

COUNTED: Final = frozenset({"configs", "supportedFeatures", "finalizedFeatures"})
"""Lists of which there is something or nothing: what is in them, releases and brokers differ in."""

HUNG_UP: Final = "hung up"

Told = Any


class Wire:
    """A connection of a principal that has logged in; a new one where the last was closed.

    Args:
        source: the address that it comes from; empty for any.
    """

    def __init__(self, bootstrap: str, name: str, source: str = "") -> None:
        self._address = bootstrap.rpartition(":")
        self._source = source
        self._name = name
        self._open()

    def _open(self) -> None:
        host, _, port = self._address
        self._socket = socket.create_connection((host, int(port)), SECONDS, (self._source, 0))
        self._rpc = Connection("client", client_id="matrix")
        assert self.ask(messages.SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
        token = f"\0{self._name}\0{PASSWORDS[self._name]}".encode()
        assert self.ask(messages.SaslAuthenticateRequest(auth_bytes=token), 2).error_code == 0

    def ask(self, request: Any, version: int) -> Any:
        """The answer."""
        self._socket.sendall(self._rpc.send(request, version))
        while (event := self._rpc.next_event()) is NEED_DATA:
            self._rpc.receive(self._socket.recv(1 << 16))
        return event.message  # type: ignore[union-attr]

    def told(self, request: Any, version: int) -> Told:
        """What of the answer is compared; that there was none, where the connection was closed."""
        try:
            return seen(self.ask(request, version).to_json(version))
        except (OSError, ConnectionLostError):
            self.close()
            self._open()
            return HUNG_UP

    def close(self) -> None:
        self._socket.close()


def seen(answer: Any) -> Told:
    """What an answer refuses and shows: error codes and names. What Kafka keeps for itself, __name, is left out."""
    if isinstance(answer, list):
        entries = [seen(one) for one in answer if not _is_internal(one)]
        return sorted((one for one in entries if one not in ({}, [], None)), key=json.dumps)
    if isinstance(answer, dict):
        found = {}
        for name, value in answer.items():
            if name in COUNTED:
                found[name] = bool(value)
            elif isinstance(value, (list, dict)):
                inner = seen(value)
                if inner:
                    found[name] = inner
            elif name in KEPT:
                found[name] = value
        return found
    return None


def _is_internal(one: Any) -> bool:
    return isinstance(one, dict) and any(str(one.get(name)).startswith("__") for name in ("name", "topic", "topicName"))
