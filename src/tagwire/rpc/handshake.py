"""ApiVersions first: what a client asks on every new connection, and how it takes a refusal (KIP-35, KIP-511; facts
9).

The newest version is asked first. A broker that does not know it answers with error 35 and the range it has; the
client asks once more, at the lower of that maximum and its own, or at 0 where nothing is listed. A second refusal is
an error.
"""

from __future__ import annotations

from typing import Any

import tagwire
from tagwire import messages
from tagwire.errors import Error, KafkaError, ProtocolError, UnsupportedVersionError
from tagwire.rpc.connection import Connection
from tagwire.rpc.events import Response, Unsupported
from tagwire.rpc.headers import API_VERSIONS
from tagwire.rpc.negotiation import Range, range_text

SOFTWARE_NAME = "tagwire"


class Handshake:
    """The exchange that opens a connection, without the socket.

        handshake = Handshake(connection, broker="broker 1 at kafka-1:9092")
        send(handshake.request())
        while not handshake.done:
            send(handshake.answer(event))     # event: from connection.next_event()

    Attributes:
        done: whether the ranges are known.
        ranges: {API key: (lowest, highest)} as the broker answered, keys that tagwire does not know included.
        response: the whole answer, with the broker's features.
    """

    def __init__(self, connection: Connection, *, broker: str = "the broker") -> None:
        self.done = False
        self.ranges: dict[int, Range] = {}
        self.response: Any = None
        self._connection = connection
        self._broker = broker
        self._highest = messages.ApiVersionsRequest.valid_versions.highest
        self._refused = False

    def request(self) -> bytes:
        """The first request's frame."""
        return self._ask(self._highest)

    def answer(self, event: Response | Unsupported) -> bytes:
        """Takes the broker's answer; returns the frame to send next, empty when the exchange is done.

        Raises:
            UnsupportedVersionError: no version of ApiVersions in common, or refused twice.
            KafkaError: any other error the broker answered with.
            ProtocolError: the event answers another request.
        """
        if event.api_key != API_VERSIONS or self.done:
            raise ProtocolError(f"{self._broker}: an answer to API {event.api_key} where ApiVersions was due")
        if isinstance(event, Unsupported):
            raise UnsupportedVersionError(f"{self._broker} does not support ApiVersions")
        error = event.message.error_code
        listed = {entry.api_key: (entry.min_version, entry.max_version) for entry in event.message.api_keys}
        if error == Error.NONE:
            self.done, self.ranges, self.response = True, listed, event.message
            return b""
        if error != Error.UNSUPPORTED_VERSION:
            raise KafkaError(error, f"{self._broker} refused ApiVersions")
        return self._ask(self._lower(listed.get(API_VERSIONS)))

    def _lower(self, listed: Range | None) -> int:
        own = (0, self._highest)
        version = 0 if listed is None else min(listed[1], own[1])
        if self._refused:
            raise UnsupportedVersionError(
                f"{self._broker} refused ApiVersions twice, the second time in a version it listed"
            )
        if version < 0 or (listed is not None and listed[0] > version):
            raise UnsupportedVersionError(
                f"{self._broker} serves ApiVersions {range_text(listed or own)}; tagwire needs {range_text(own)}"
            )
        self._refused = True
        return version

    def _ask(self, version: int) -> bytes:
        request = messages.ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=tagwire.__version__
        )
        return self._connection.send(request, version)
