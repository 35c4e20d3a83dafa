"""Requests to a registry over HTTP: failover, retries, redirects, and a bound for all that the other side may do.

A response may come slowly, a byte a second, and never be silent for long: a request as a whole has its time, at the end
of which its connections are shut.
"""

from __future__ import annotations

import json
import random
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin, urlsplit

from tagwire.errors import SchemaRegistryError, SchemaRegistryUnavailableError
from tagwire.escaping import told
from tagwire.extras import Needs
from tagwire.values.registry.connections import Pools, Watch
from tagwire.values.registry.settings import RegistrySettings

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

_RETRIED: Final = frozenset({408, 429, 500, 502, 503, 504})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS: Final = 5
_TOLD: Final = 200
_ACCEPTED: Final = "application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json, application/json"
_SENT: Final = "application/vnd.schemaregistry.v1+json"


class Transport:
    """What sends requests to the nodes of one registry. Threads may share it."""

    def __init__(self, settings: RegistrySettings) -> None:
        with Needs("registry"):
            import urllib3  # noqa: F401
        self._settings = settings
        self._pools = Pools(settings)
        self._first = 0  # the node that answered last

    def request(self, method: str, path: str, body: object = None) -> Any:
        """What a registry responds to a request, JSON as Python has it.

        Args:
            path: behind the base URL, beginning with a slash, quoted.
            body: sent as JSON; None sends none.

        Raises:
            SchemaRegistryUnavailableError: no node responds in time, or none can now. SchemaRegistryError: it refuses,
                or responds what no registry does.
        """
        settings = self._settings
        data = None if body is None else json.dumps(body).encode()
        deadline = time.monotonic() + settings.timeout
        with Watch(deadline) as watch:
            for round_ in range(settings.retries + 1):
                failures: list[SchemaRegistryError] = []
                wanted = 0.0
                first = self._first  # another thread may find another while this one asks
                for at in range(len(settings.urls)):
                    node = (first + at) % len(settings.urls)
                    try:
                        found = self._ask(settings.urls[node], method, path, data, watch)
                    except _TryAgainError as failure:
                        failures.append(failure.error)
                        wanted = max(wanted, failure.after)
                        if watch.over():
                            break
                    else:
                        self._first = node
                        return found
                pause = self._pause(round_, wanted)
                if round_ == settings.retries or time.monotonic() + pause >= deadline:
                    break
                time.sleep(pause)
        raise _together(failures)

    def _pause(self, round_: int, wanted: float) -> float:
        backoff = min(self._settings.backoff * 2**round_, self._settings.backoff_max)
        return min(max(wanted, backoff * (0.5 + random.random() / 2)), self._settings.backoff_max)

    def _ask(self, base: str, method: str, path: str, data: bytes | None, watch: Watch) -> Any:
        """One node's response, redirects followed."""
        url = base + path
        for _ in range(_MOST_REDIRECTS + 1):
            status, headers, content = self._exchange(base, url, method, data, watch)
            location = headers.get("Location")
            if status not in _REDIRECTS or not location:
                return self._content(base, url, status, headers, content)
            url = self._redirected(base, url, location, method, status)
        raise SchemaRegistryError(f"{base}: it redirects again and again, at last from {_shown(url)}")

    def _redirected(self, base: str, url: str, location: str, method: str, status: int) -> str:
        """Where a response sends us, if that is where we go."""
        try:
            target = urljoin(url, location)
            before, after = urlsplit(url), urlsplit(target)
            usable = after.scheme in ("http", "https") and bool(after.hostname) and after.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise SchemaRegistryError(f"{base}: it redirects to what is no URL of HTTP", status=status)
        if before.scheme == "https" and after.scheme == "http":
            raise SchemaRegistryError(f"{base}: it redirects from https to http, {_shown(target)}", status=status)
        if method != "GET" and status not in (307, 308):
            raise SchemaRegistryError(
                f"{base}: it redirects a {method} to {_shown(target)}; give that as the URL", status=status
            )
        return target

    def _exchange(self, base: str, url: str, method: str, data: bytes | None, watch: Watch) -> tuple[int, Any, bytes]:
        """Status, headers and content of one response."""
        import urllib3

        settings = self._settings
        home = _origin(url) == _origin(base)
        left = watch.left()
        if left <= 0:
            raise _TryAgainError(self._late(base))
        pool = self._pools.home if home else self._pools.elsewhere
        try:
            response = pool.request(
                method,
                url,
                body=data,
                headers=self._headers(home, data),
                redirect=False,
                retries=False,
                preload_content=False,
                decode_content=False,
                timeout=urllib3.Timeout(
                    connect=min(settings.connect_timeout, left), read=min(settings.read_timeout, left)
                ),
            )
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise self._failed(base, error, watch) from None
        try:
            content = self._read(base, response, watch)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            response.close()
            raise self._failed(base, error, watch) from None
        except BaseException:
            response.close()
            raise
        response.release_conn()
        return response.status, response.headers, content

    def _read(self, base: str, response: BaseHTTPResponse, watch: Watch) -> bytes:
        limit = self._settings.max_response
        if response.headers.get("Content-Encoding", "identity") != "identity":
            # Nobody asked for it, and a small one may unpack to anything.
            raise SchemaRegistryError(f"{base}: its response is compressed", status=response.status)
        content = bytearray()
        for piece in response.stream(64 * 1024, decode_content=False):
            content += piece
            if len(content) > limit:
                raise SchemaRegistryError(
                    f"{base}: its response is longer than {limit} bytes (max.response.bytes)", status=response.status
                )
            if watch.over():
                raise _TryAgainError(self._late(base))
        return bytes(content)

    def _headers(self, home: bool, data: bytes | None) -> dict[str, str]:
        import urllib3

        settings = self._settings
        headers = {"Accept": _ACCEPTED, "User-Agent": "tagwire"}
        if data is not None:
            headers["Content-Type"] = _SENT
        if not home:
            return headers  # another host has no claim to what proves who we are
        if settings.token is not None:
            headers["Authorization"] = f"Bearer {settings.token}"
            if settings.cluster:
                headers["target-sr-cluster"] = settings.cluster
            if settings.identity_pool:
                headers["Confluent-Identity-Pool-Id"] = settings.identity_pool
        elif settings.user is not None:
            pair = f"{settings.user}:{settings.password or ''}"
            basic = urllib3.util.make_headers(basic_auth=pair.encode().decode("latin-1"))
            headers["Authorization"] = basic["authorization"]
        return headers

    def _content(self, base: str, url: str, status: int, headers: Any, content: bytes) -> Any:
        """The JSON of a response that is one of a registry's."""
        try:
            found = json.loads(content) if content else None
            json_there = bool(content)
        except (ValueError, RecursionError):
            found, json_there = None, False
        if 200 <= status < 300:
            if not json_there:
                raise SchemaRegistryError(f"{base}: its response is no JSON: {_excerpt(content)}", status=status)
            return found
        code = found.get("error_code") if isinstance(found, dict) else None
        said = found.get("message") if isinstance(found, dict) else None
        code = code if isinstance(code, int) and not isinstance(code, bool) else None
        error = SchemaRegistryError(f"{base}: {_reason(status, code, said, content)}", status=status, error_code=code)
        if status in _RETRIED:
            raise _TryAgainError(error, _seconds(headers.get("Retry-After")))
        raise error

    def _failed(self, base: str, error: Exception, watch: Watch) -> _TryAgainError:
        return _TryAgainError(self._late(base) if watch.over() else SchemaRegistryError(f"{base}: {_why(error)}"))

    def _late(self, base: str) -> SchemaRegistryError:
        return SchemaRegistryError(f"{base}: no response within {self._settings.timeout:g} s")


class _TryAgainError(Exception):
    """What another node, or the same one later, may not fail with; `after` is what the node asks to wait, seconds."""

    def __init__(self, error: SchemaRegistryError, after: float = 0.0) -> None:
        super().__init__()
        self.error = error
        self.after = after


def _together(failures: list[SchemaRegistryError]) -> SchemaRegistryUnavailableError:
    last = failures[-1]
    said = "; ".join(dict.fromkeys(map(str, failures)))
    return SchemaRegistryUnavailableError(f"schema registry: {said}", status=last.status, error_code=last.error_code)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _shown(url: str) -> str:
    """A URL without what may be secret in it."""
    parts = urlsplit(url)
    return told(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}", _TOLD)


def _reason(status: int, code: int | None, said: object, content: bytes) -> str:
    number = f"HTTP {status}" if code in (None, status) else f"HTTP {status}, error code {code}"
    text = told(said, _TOLD) if isinstance(said, str) and said else _excerpt(content)
    if status == 401:
        return f"{number}: it wants other credentials (basic.auth.user.info or bearer.auth.token)"
    if status == 403:
        return f"{number}: it does not allow that to these credentials"
    if status == 404 and code in (None, 404):
        return f"{number}: there is no such path, is it a schema registry's URL? {text}"
    return f"{number}: {text}"


def _excerpt(content: bytes) -> str:
    return told(content[:_TOLD].decode("utf-8", "replace").strip(), _TOLD) if content else "an empty response"


def _seconds(text: str | None) -> float:
    """A Retry-After in seconds; its other form, a date, is passed over."""
    return float(text) if text is not None and text.strip().isdecimal() and len(text) < 10 else 0.0


def _why(error: Exception) -> str:
    import ssl

    import urllib3

    cause: BaseException = error
    for _ in range(5):
        if not isinstance(cause, urllib3.exceptions.HTTPError):
            break  # what it was raised amid may be the caller's own
        inner = getattr(cause, "reason", None)
        inner = inner if isinstance(inner, BaseException) else cause.__cause__ or cause.__context__
        if inner is None:
            break
        cause = inner
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {cause.verify_message}"
    if isinstance(cause, ssl.SSLError):
        return f"TLS: {cause.reason or cause}"
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    if isinstance(error, urllib3.exceptions.TimeoutError) or isinstance(cause, TimeoutError):
        return "no response in time"
    if isinstance(cause, urllib3.exceptions.HTTPError):
        return type(cause).__name__
    return told(f"{type(cause).__name__}: {cause}", _TOLD)
