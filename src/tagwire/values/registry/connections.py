"""The connections to a registry: pools with TLS, and the watch that shuts them when a request's time is over."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from tagwire.errors import ConfigError
from tagwire.values.registry.settings import RegistrySettings

if TYPE_CHECKING:
    import ssl

    from urllib3 import PoolManager

_watching = threading.local()


class Watch:
    """Shuts whatever the thread that made it connects to when `deadline`, as `time.monotonic` counts, is over."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._has_shut = False
        self._timer = threading.Timer(max(0.0, deadline - time.monotonic()), self._shut)
        self._timer.daemon = True

    def left(self) -> float:
        """Seconds until the deadline; may be below zero."""
        return self._deadline - time.monotonic()

    def over(self) -> bool:
        return self.left() <= 0

    def watch(self, sock: socket.socket) -> None:
        with self._lock:
            self._sockets.append(sock)
            if self._has_shut:  # a name that took long to be resolved, or several addresses
                _shut(sock)

    def _shut(self) -> None:
        with self._lock:
            self._has_shut = True
            for sock in self._sockets:
                _shut(sock)

    def __enter__(self) -> Watch:
        _watching.watch = self
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _watching.watch = None
        self._timer.cancel()


def _shut(sock: socket.socket) -> None:
    """Wakes who waits for it. The descriptor stays its owner's to close."""
    with suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _watched(sock: Any) -> None:
    watch: Watch | None = getattr(_watching, "watch", None)
    if watch is not None and sock is not None:
        watch.watch(sock)


class Pools:
    """Connections, made when they are needed. Reading all certificates that a machine trusts takes long, and is left
    out where nothing has TLS.

    Attributes:
        home: to the registry itself.

    Raises:
        ConfigError: certificates or keys cannot be read.
    """

    def __init__(self, settings: RegistrySettings) -> None:
        self._settings = settings
        urls = [*settings.urls, *([settings.proxy] if settings.proxy else [])]
        secure = any(url.startswith("https:") for url in urls)
        self.home = _pool(settings, _context(settings, own=True) if secure else None)

    @cached_property
    def elsewhere(self) -> PoolManager:
        """To where the registry redirects: without the client's certificate."""
        return _pool(self._settings, _context(self._settings, own=False))


def _pool(settings: RegistrySettings, context: ssl.SSLContext | None) -> PoolManager:
    import urllib3
    from urllib3.connection import HTTPConnection, HTTPSConnection
    from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

    class WatchedConnection(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            sock = super()._new_conn()
            _watched(sock)
            return sock

        def request(self, *args: Any, **kwargs: Any) -> None:
            _watched(self.sock)
            super().request(*args, **kwargs)

    class WatchedTlsConnection(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            sock = super()._new_conn()
            _watched(sock)
            return sock

        def connect(self) -> None:
            super().connect()
            _watched(self.sock)  # the handshake took over the descriptor

        def request(self, *args: Any, **kwargs: Any) -> None:
            _watched(self.sock)
            super().request(*args, **kwargs)

    class WatchedPool(HTTPConnectionPool):
        ConnectionCls = WatchedConnection

    class WatchedTlsPool(HTTPSConnectionPool):
        ConnectionCls = WatchedTlsConnection

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            # urllib3 compares the name itself where the context does not, unless it is told.
            if context is not None and not context.check_hostname:
                kwargs["assert_hostname"] = False
            super().__init__(*args, **kwargs)

    options: dict[str, Any] = {"maxsize": 4, "ssl_context": context}
    if settings.proxy is None:
        manager = urllib3.PoolManager(**options)
    else:
        auth = urllib3.util.parse_url(settings.proxy).auth
        # As the bytes that it spells, UTF-8 among them: urllib3 takes a character for each.
        pair = unquote_to_bytes(auth).decode("latin-1") if auth else None
        headers = urllib3.util.make_headers(proxy_basic_auth=pair) if pair else None
        manager = urllib3.ProxyManager(settings.proxy, proxy_headers=headers, **options)
    manager.pool_classes_by_scheme = {"http": WatchedPool, "https": WatchedTlsPool}
    return manager


def _context(settings: RegistrySettings, own: bool) -> ssl.SSLContext:
    import ssl

    name = "ssl.ca.location"
    try:
        context = ssl.create_default_context(cadata=settings.ca_text) if settings.ca_text else _trusting(settings)
        if not settings.check_hostname or not settings.verify:
            context.check_hostname = False
        if not settings.verify:
            context.verify_mode = ssl.CERT_NONE
        if own and settings.certificate_file:
            name = "ssl.certificate.location"
            context.load_cert_chain(settings.certificate_file, settings.key_file, lambda: settings.key_password or "")
    except ssl.SSLError as error:
        raise ConfigError(
            f"{name}: cannot be used: {error.reason or 'it is no PEM file, or its password is wrong'}"
        ) from None
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise ConfigError(f"{name}: cannot be used: {error}") from None
    return context


def _trusting(settings: RegistrySettings) -> ssl.SSLContext:
    import ssl
    from pathlib import Path

    place = settings.ca_file
    if place is not None and Path(place).is_dir():
        return ssl.create_default_context(capath=place)
    return ssl.create_default_context(cafile=place)
