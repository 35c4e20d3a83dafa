"""What is requested on a new connection before it is ready: ApiVersions, SASL, and ApiVersions once more."""

from __future__ import annotations

from collections.abc import Generator

from tagwire.client.connection_settings import ConnectionSettings, ConnectionState
from tagwire.rpc import Authentication, BrokerFeatures, Connection, Handshake, Range, Ranges, Response, Unsupported


class ConnectionSetup:
    """The requests of one connection, one at a time, without the socket.

    Attributes:
        state: API_VERSIONS or AUTHENTICATING.
        ranges: {API key: (lowest, highest)} as the broker told, or as they are assumed to be.
        features: what the broker told of features.

    Args:
        protocol: what encodes the requests.
        broker: how errors call the other side.
        assumed: ranges to take for granted instead of requesting them.
        identity: (cluster id, node id) of the broker that is meant, where they are known (KIP-1242).
    """

    def __init__(
        self,
        protocol: Connection,
        settings: ConnectionSettings,
        *,
        broker: str,
        assumed: Ranges | None,
        identity: tuple[str, int] | None,
    ) -> None:
        self.state = ConnectionState.API_VERSIONS
        self.ranges: dict[int, Range] = dict(assumed or {})
        self.features = BrokerFeatures()
        self._protocol = protocol
        self._settings = settings
        self._broker = broker
        self._is_assumed = assumed is not None
        self._identity = identity

    def requests(self) -> Generator[tuple[str, bytes], Response | Unsupported, None]:
        """Gives the name and the frame of each request, and takes its response.

        Raises:
            KafkaError, AuthenticationError, UnsupportedVersionError: as `Handshake` and `Authentication`.
        """
        if not self._is_assumed:
            yield from self._negotiate()
        security = self._settings.security
        if security.uses_sasl:
            self.state = ConnectionState.AUTHENTICATING
            excluded = self._settings.versions.excluded
            mechanism = security.mechanism()
            exchange = Authentication(self._protocol, mechanism, self.ranges, broker=self._broker, excluded=excluded)
            yield from _requests("SaslAuthenticate", exchange)
            if not self._is_assumed:
                yield from self._negotiate()  # a broker may tell more to somebody it knows

    def _negotiate(self) -> Generator[tuple[str, bytes], Response | Unsupported, None]:
        self.state = ConnectionState.API_VERSIONS
        excluded = self._settings.versions.excluded
        handshake = Handshake(self._protocol, broker=self._broker, excluded=excluded, identity=self._identity)
        yield from _requests("ApiVersions", handshake)
        self.ranges, self.features = handshake.ranges, handshake.features


def _requests(
    name: str, exchange: Handshake | Authentication
) -> Generator[tuple[str, bytes], Response | Unsupported, None]:
    """One request at a time until the exchange is done."""
    data = exchange.request()
    while not exchange.done:
        event = yield name, data
        data = exchange.receive(event)
