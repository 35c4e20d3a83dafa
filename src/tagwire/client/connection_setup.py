"""What is requested on a connection before it is ready: ApiVersions, SASL, and ApiVersions once more; and what is
requested when its session is about to end: SASL again (KIP-368)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import TypeVar

from tagwire.client.aside import Aside, AsideCall
from tagwire.client.connection_settings import ConnectionSettings, ConnectionState
from tagwire.errors import AuthenticationError, TagwireError
from tagwire.rpc import (
    Authentication,
    BrokerFeatures,
    ClientMechanism,
    Connection,
    Handshake,
    OAuthBearerClient,
    Range,
    Ranges,
    Response,
    Unsupported,
)

Result = TypeVar("Result")

Step = tuple[str, bytes] | Aside
"""A request by name and frame, whose response is due; or what has to be had elsewhere before."""

Steps = Generator[Step, Response | Unsupported | None, None]


class ConnectionSetup:
    """The requests of one connection, one at a time, without the socket.

    Attributes:
        state: API_VERSIONS or AUTHENTICATING.
        ranges: {API key: (lowest, highest)} as the broker told, or as they are assumed to be.
        features: what the broker told of features.
        session_lifetime_ms: after how many milliseconds the broker wants to be authenticated to again; 0 for never.

    Args:
        protocol: what encodes the requests.
        host: where the broker is.
        broker: how errors call the other side.
        assumed: ranges to take for granted instead of requesting them.
        identity: (cluster id, node id) of the broker that is meant, where they are known (KIP-1242).
    """

    def __init__(
        self,
        protocol: Connection,
        settings: ConnectionSettings,
        *,
        host: str,
        broker: str,
        assumed: Ranges | None,
        identity: tuple[str, int] | None,
    ) -> None:
        self.state = ConnectionState.API_VERSIONS
        self.ranges: dict[int, Range] = dict(assumed or {})
        self.features = BrokerFeatures()
        self.session_lifetime_ms = 0
        self._protocol = protocol
        self._settings = settings
        self._host = host
        self._broker = broker
        self._is_assumed = assumed is not None
        self._identity = identity

    def requests(self) -> Steps:
        """Gives the name and the frame of each request, and takes its response.

        Raises:
            KafkaError, AuthenticationError, UnsupportedVersionError: as `Handshake` and `Authentication`.
            ConnectError: where a token was to come from cannot be reached.
        """
        if not self._is_assumed:
            yield from self._negotiate()
        if self._settings.security.uses_sasl:
            yield from self.authentication()
            if not self._is_assumed:
                yield from self._negotiate()  # a broker may tell more to somebody it knows

    def authentication(self) -> Steps:
        """The part of it that is done again before the session ends. What is had elsewhere comes before the first
        request."""
        self.state = ConnectionState.AUTHENTICATING
        mechanism = yield from self._mechanism()
        excluded = self._settings.versions.excluded
        exchange = Authentication(self._protocol, mechanism, self.ranges, broker=self._broker, excluded=excluded)
        data = exchange.request()
        while not exchange.done:
            event = yield "SaslAuthenticate", data
            assert event is not None
            call = partial(_foreign, partial(exchange.respond, exchange.challenge(event)), self._broker)
            if getattr(mechanism, "blocks", False):
                token = yield from _aside(AsideCall(call, f"the token of {mechanism.mechanism}"))
            else:
                token = call()
            data = exchange.answer(token)
        self.session_lifetime_ms = exchange.session_lifetime_ms

    def _mechanism(self) -> Generator[Step, Response | Unsupported | None, ClientMechanism]:
        login = self._settings.security.login
        if login is None:
            return _foreign(partial(self._settings.security.mechanism, self._host), self._broker)
        request = login.request()
        if not request.is_done:
            yield request
        token = request.result()
        return OAuthBearerClient(token.value, token.extensions)

    def _negotiate(self) -> Steps:
        self.state = ConnectionState.API_VERSIONS
        excluded = self._settings.versions.excluded
        handshake = Handshake(self._protocol, broker=self._broker, excluded=excluded, identity=self._identity)
        data = handshake.request()
        while not handshake.done:
            event = yield "ApiVersions", data
            assert event is not None
            data = handshake.receive(event)
        self.ranges, self.features = handshake.ranges, handshake.features


def _aside(call: AsideCall[Result]) -> Generator[Step, Response | Unsupported | None, Result]:
    yield call
    return call.result()


def _foreign(call: Callable[[], Result], broker: str) -> Result:
    """What a mechanism gives that may be anybody's. Raises AuthenticationError for whatever else it raises, so that it
    ends this connection and no more."""
    try:
        return call()
    except TagwireError:
        raise
    except Exception as error:
        raise AuthenticationError(f"{broker}: the mechanism raised {type(error).__name__}") from error
