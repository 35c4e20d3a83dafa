"""ApiVersions first: what a client sends first on every new connection, and how it takes a refusal (KIP-35, KIP-511,
docs/wire-format.md#apiversions).

The newest version comes first. A broker that does not know it responds with error 35 and the range it has; the
client sends it once more, at the lower of that maximum and its own, or at 0 where nothing is listed. A second refusal
is an error.
"""

from __future__ import annotations

import re
from typing import Final

import tagwire
from tagwire import messages
from tagwire.errors import ConfigError, Error, KafkaError, LocalProtocolError, UnsupportedVersionError
from tagwire.rpc.broker_features import BrokerFeatures
from tagwire.rpc.connection import Connection
from tagwire.rpc.events import Response, Unsupported
from tagwire.rpc.negotiation import Excluded, choose
from tagwire.rpc.ranges import Range, Ranges, range_text
from tagwire.spec.api_keys import ApiKey

SOFTWARE_NAME: Final = "tagwire"

# A name and a version of client software (KIP-511); the response to anything else is INVALID_REQUEST.
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_NOTHING: Excluded = {}


def is_software_text(text: str) -> bool:
    """Whether brokers take `text` as a client software's name, or as its version (KIP-511)."""
    return _SOFTWARE.fullmatch(text) is not None


class Handshake:
    """The exchange that opens a connection, without the socket.

        handshake = Handshake(connection, broker="broker 1 at kafka-1:9092")
        send(handshake.request())
        while not handshake.done:
            send(handshake.receive(event))     # event: from connection.next_event()

    Args:
        connection: a new one, of the role "client".
        broker: how errors call the other side.
        software: the client software's name and version, which brokers keep for their statistics.
        excluded: versions of ApiVersions not to send, as `exclusions` gives it.
        identity: (cluster id, node id) of the broker that is meant; another one responds
            REBOOTSTRAP_REQUIRED (KIP-1242). None means whichever broker responds.

    Raises:
        ConfigError: brokers would refuse `software`.

    Attributes:
        done: whether the ranges are known.
        ranges: {API key: (lowest, highest)} as the broker told, keys that tagwire does not know included.
        features: what the broker tells of features.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        broker: str = "the broker",
        software: tuple[str, str] = (SOFTWARE_NAME, tagwire.__version__),
        excluded: Excluded = _NOTHING,
        identity: tuple[str, int] | None = None,
    ) -> None:
        for text in software:
            if not is_software_text(text):
                raise ConfigError(f"software={text!r}: allowed are letters, digits, and - and . between them")
        self.done = False
        self.ranges: dict[int, Range] = {}
        self.features = BrokerFeatures()
        self._connection = connection
        self._broker = broker
        self._software = software
        self._identity = identity
        valid = messages.ApiVersionsRequest.valid_versions
        self._own = valid.lowest, valid.highest
        self._excluded = excluded
        self._tried: list[int] = []

    def request(self) -> bytes:
        """The first request's frame. Raises UnsupportedVersionError where every version is excluded."""
        return self._ask(self._choose(self._own))

    def receive(self, event: Response | Unsupported) -> bytes:
        """Takes the broker's response; returns the frame to send next, empty when the exchange is done.

        Raises:
            UnsupportedVersionError: no version of ApiVersions in common, or refused twice.
            KafkaError: any other error in the response.
            LocalProtocolError: the event is the response to another request.
        """
        if event.api_key != ApiKey.API_VERSIONS or self.done:
            raise LocalProtocolError(f"{self._broker}: a response to API {event.api_key} where ApiVersions was due")
        if isinstance(event, Unsupported):
            raise UnsupportedVersionError(event.told_by(self._broker))
        response: messages.ApiVersionsResponse = event.message
        error = response.error_code
        listed = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
        if error == Error.NONE:
            self.done, self.ranges, self.features = True, listed, BrokerFeatures.of(response)
            return b""
        if error != Error.UNSUPPORTED_VERSION:
            raise KafkaError(error, f"{self._broker} refused ApiVersions v{event.version}")
        if len(self._tried) > 1:
            lists = (
                f"lists {range_text(listed[ApiKey.API_VERSIONS])}" if ApiKey.API_VERSIONS in listed else "lists none"
            )
            raise UnsupportedVersionError(
                f"{self._broker} refused ApiVersions {' and then '.join(map(str, self._tried))}; it {lists}, tagwire "
                f"needs {range_text(self._own)}"
            )
        return self._ask(self._choose(listed.get(ApiKey.API_VERSIONS, (0, 0))))

    def _choose(self, theirs: Range) -> int:
        ours: Ranges = {ApiKey.API_VERSIONS: self._own}
        both: Ranges = {ApiKey.API_VERSIONS: theirs}
        return choose(ApiKey.API_VERSIONS, ours, both, broker=self._broker, excluded=self._excluded)

    def _ask(self, version: int) -> bytes:
        name, number = self._software
        request = messages.ApiVersionsRequest(client_software_name=name, client_software_version=number)
        if self._identity is not None:
            request.cluster_id, request.node_id = self._identity
        self._tried.append(version)
        return self._connection.send(request, version)
