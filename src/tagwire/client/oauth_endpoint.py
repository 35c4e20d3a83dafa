"""A token from an OAuth 2.0 token endpoint, by client credentials over HTTP (RFC 6749, section 4.4; KIP-768).

Blocking, and bounded in everything: time, bytes, attempts. The client's secret goes to the endpoint and nowhere else:
no redirect is followed, and no text has it, nor what the endpoint says beyond a status and a code.
"""

from __future__ import annotations

import base64
import io
import json
import math
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import SplitResult, urlencode, urlsplit

from tagwire.client.oauth_token import DEFAULT_CLOCK_SKEW, OAuthToken, UsableToken, usable
from tagwire.client.option_types import of_type
from tagwire.client.pem import why
from tagwire.client.trust import trusting
from tagwire.errors import ConfigError, ConnectError, TokenError
from tagwire.escaping import told
from tagwire.rpc.addresses import address_text
from tagwire.rpc.oauthbearer import extensions_fault
from tagwire.rpc.sasl import credential_fault

if TYPE_CHECKING:
    from http.client import HTTPConnection

MAX_RESPONSE: Final = 1024 * 1024
"""Bytes of an endpoint's response that are read; honest ones have a few thousand."""

_GIVEN: Final = (200, 201)  # with a token. Source: Kafka's HttpJwtRetriever

# What another attempt does not change. Source: Kafka's HttpJwtRetriever.
_FINAL: Final = frozenset({*range(400, 408), *range(409, 416), 501, 505})

_ERROR_CODE: Final = re.compile(r"[a-z_]{1,40}")  # of RFC 6749, section 5.2
_TIMES: Final = {
    "clock_skew": (0.0, 3600.0),
    "connect_timeout": (0.001, 3600.0),
    "read_timeout": (0.001, 3600.0),
    "retry_backoff": (0.001, 3600.0),
    "retry_backoff_max": (0.001, 3600.0),
}


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """How a client has its tokens from an endpoint. Times in seconds.

    Attributes:
        token_endpoint_url: http or https (sasl.oauthbearer.token.endpoint.url). Over http whoever listens has the
            secret.
        client_id, client_secret: who asks (sasl.oauthbearer.client.credentials.*), as HTTP's Basic authentication.
        scope: what the token is to be good for (sasl.oauthbearer.scope); None leaves it to the endpoint.
        extensions: {name: value} for the broker beside each token (KIP-342).
        cafile: PEM file of the certificates that an https endpoint is trusted by, read for each token; None trusts
            those of the system.
        expected_audience: which a token has to be for (its claim `aud`); None takes any.
        clock_skew: by how much a token may have expired by this machine's clock (sasl.oauthbearer.clock.skew.seconds).
        connect_timeout: for a connection with its TLS handshake (sasl.login.connect.timeout.ms).
        read_timeout: for a whole response (sasl.login.read.timeout.ms).
        retry_backoff, retry_backoff_max: the pause before the second attempt, which doubles with each one more; and
            how long new attempts are begun for (sasl.login.retry.backoff.ms, sasl.login.retry.backoff.max.ms).

    Raises:
        ConfigError: one of them is wrong. The text never holds the secret.
    """

    token_endpoint_url: str
    client_id: str
    client_secret: str
    scope: str | None = None
    extensions: Mapping[str, str] = field(default_factory=dict)
    cafile: str | PathLike[str] | None = None
    expected_audience: str | None = None
    clock_skew: float = DEFAULT_CLOCK_SKEW
    connect_timeout: float = 10.0
    read_timeout: float = 10.0
    retry_backoff: float = 0.1
    retry_backoff_max: float = 10.0

    def __post_init__(self) -> None:
        for name in ("token_endpoint_url", "client_id", "client_secret"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value:
                raise ConfigError(f"{name}: needs text")
            if (problem := credential_fault(value)) is not None:
                raise ConfigError(f"{name}: {problem}")
        for name in ("scope", "expected_audience"):
            of_type(name, getattr(self, name), str, "text")
        if (problem := credential_fault(self.scope)) is not None:
            raise ConfigError(f"scope: {problem}")
        of_type("cafile", self.cafile, (str, PathLike), "a path")
        of_type("extensions", self.extensions, Mapping, "a dict")
        for name, (low, high) in _TIMES.items():
            of_type(name, getattr(self, name), (int, float), "a number of seconds")
            if not low <= getattr(self, name) <= high:
                raise ConfigError(f"{name}={getattr(self, name)}: allowed is {low:g} to {high:g} seconds")
        if fault := extensions_fault(self.extensions):
            raise ConfigError(f"extensions: {fault}")
        if ":" in self.client_id:
            raise ConfigError("client_id: has a colon, which HTTP's Basic authentication cannot send")
        url = self._url
        if url.scheme not in ("http", "https") or not url.hostname or url.fragment:
            raise ConfigError("token_endpoint_url: needs http://HOST/PATH or https://HOST/PATH")
        if url.username is not None or url.password is not None:
            raise ConfigError("token_endpoint_url: holds credentials; give them as client_id and client_secret")
        if self.cafile is not None and url.scheme == "http":
            raise ConfigError("cafile: has no effect with an endpoint of http")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {told(self.client_id, 200)} at {self.name}>"

    @property
    def name(self) -> str:
        """The endpoint, as errors call it: without the query of its URL."""
        url = self._url
        return told(f"token endpoint {url.scheme}://{address_text((url.hostname or '', self._port))}{url.path}", 200)

    def token(
        self,
        clock: Callable[[], float],
        tell: Callable[[ConnectError], None] = lambda failure: None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> UsableToken:
        """A new token. Blocks.

        Args:
            clock: seconds since 1970 UTC.
            tell: takes why an attempt failed that is not the last one.

        Raises:
            ConnectError: the endpoint cannot be reached, or cannot answer for now, after all attempts.
            TokenError: it refuses, redirects, or what it gives is no token, has expired, or is for another audience.
            ConfigError: `cafile` cannot be read.
        """
        until = monotonic() + self.retry_backoff_max
        pause = self.retry_backoff
        while True:
            try:
                return self._attempt(clock)
            except ConnectError as error:
                if monotonic() + pause >= until:
                    raise
                tell(error)
            sleep(pause)
            pause *= 2

    @property
    def _url(self) -> SplitResult:
        try:
            found = urlsplit(self.token_endpoint_url)
            _ = found.port
        except ValueError:
            raise ConfigError("token_endpoint_url: is no URL") from None
        if any(character <= " " for character in found.hostname or ""):
            raise ConfigError("token_endpoint_url: is no URL")
        return found

    @property
    def _port(self) -> int:
        return self._url.port or (443 if self._url.scheme == "https" else 80)

    def _attempt(self, clock: Callable[[], float]) -> UsableToken:
        status, kind, body = self._exchange()
        if 300 <= status < 400:
            raise TokenError(f"{self.name}: redirects ({status}), which is not followed with a secret")
        if status not in _GIVEN:
            said = f"{self.name}: status {status}{_error_code(body)}"
            raise TokenError(said) if status in _FINAL else ConnectError(said)
        if len(body) > MAX_RESPONSE:
            raise TokenError(f"{self.name}: the response has more than {MAX_RESPONSE} bytes")
        found = _json_object(body)
        if found is None:
            raise TokenError(f"{self.name}: the response ({told(kind, 60) or 'of no type'}) is no JSON object")
        value = found.get("access_token")
        if not isinstance(value, str):
            raise TokenError(f"{self.name}: the response has no access_token")
        now = clock()
        lifetime = found.get("expires_in")
        if not isinstance(lifetime, int | float) or isinstance(lifetime, bool) or not 0 <= lifetime < 1e12:
            lifetime = math.inf
        token = usable(
            OAuthToken(value, None, self.extensions),
            now,
            self.name,
            clock_skew=self.clock_skew,
            expected_audience=self.expected_audience,
            ends=now + lifetime,
        )
        if math.isinf(token.expires_at):
            raise TokenError(f"{self.name}: nothing tells when the token ends: no claim 'exp', and no expires_in")
        return token

    def _exchange(self) -> tuple[int, str, bytes]:
        """Status, type and the first bytes of a response."""
        from http.client import (  # few clients need it
            HTTPConnection,
            HTTPException,
            HTTPResponse,
            HTTPSConnection,
            IncompleteRead,
        )

        url = self._url
        assert url.hostname is not None
        connection: HTTPConnection
        if url.scheme == "https":
            try:
                context = trusting(self.cafile)
            except (OSError, ValueError) as error:
                raise ConfigError(f"cafile={str(self.cafile)!r}: {why(error)}") from None
            connection = HTTPSConnection(url.hostname, self._port, timeout=self.connect_timeout, context=context)
        else:
            connection = HTTPConnection(url.hostname, self._port, timeout=self.connect_timeout)
        try:
            connection.connect()
            sock = connection.sock
            sock.settimeout(self.read_timeout)
            connection.request("POST", self._path, self._form, self._headers)
            response = HTTPResponse(_Bounded(sock, time.monotonic() + self.read_timeout), method="POST")  # type: ignore[arg-type]
            response.begin()
            body = response.read(MAX_RESPONSE + 1)
            if response.length and len(body) <= MAX_RESPONSE:
                raise IncompleteRead(body)  # which a read of so many bytes does not tell
            return response.status, response.getheader("content-type") or "", body
        except ssl.SSLCertVerificationError as error:
            raise TokenError(f"{self.name}: its certificate is not trusted: {error.verify_message}") from None
        except TimeoutError:
            raise ConnectError(f"{self.name}: timed out") from None
        except ssl.SSLError as error:
            raise ConnectError(f"{self.name}: no TLS: {error.reason or error}") from None
        except OSError as error:
            raise ConnectError(f"{self.name}: {error.strerror or error}") from None
        except (HTTPException, ValueError) as error:
            raise ConnectError(f"{self.name}: no response of HTTP ({type(error).__name__})") from None
        finally:
            connection.close()

    @property
    def _path(self) -> str:
        url = self._url
        return (url.path or "/") + (f"?{url.query}" if url.query else "")

    @property
    def _form(self) -> str:
        form = {"grant_type": "client_credentials"}
        return urlencode(form if self.scope is None else {**form, "scope": self.scope})

    @property
    def _headers(self) -> dict[str, str]:
        basic = base64.b64encode(f"{self.client_id}:{self.client_secret}".encode()).decode()
        return {
            "Accept": "application/json",
            "Authorization": f"Basic {basic}",
            "Cache-Control": "no-cache",
            "Content-Type": "application/x-www-form-urlencoded",
        }


class _Bounded(io.RawIOBase):
    """What comes from a socket, as far as it comes by a time (`time.monotonic`): a bound for each read alone lets a
    server drip for ever."""

    def __init__(self, sock: socket.socket, until: float) -> None:
        self._sock = sock
        self._until = until

    def makefile(self, mode: str) -> io.BufferedReader:
        """What `HTTPResponse` asks a socket for."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        return self._sock.recv_into(buffer)


def _json_object(body: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _error_code(body: bytes) -> str:
    """The code of a refusal; its description may hold anything."""
    code = (_json_object(body) or {}).get("error")
    return f" ({code})" if isinstance(code, str) and _ERROR_CODE.fullmatch(code) else ""
