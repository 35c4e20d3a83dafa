"""Who closes a client: what Producer, Reader and Admin do alike when they are given one, or the address of one."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from tagwire.at_exit import quiet_at_exit
from tagwire.client.client import Client
from tagwire.client.client_core import no_security_beside
from tagwire.client.config import Bootstrap
from tagwire.client.unclosed import warn_unclosed


class ClientOwner:
    """Works with a client that it was given, which stays open, or with one of its own, which ends with it.

    Args:
        client: a client, or what one is made of: see `Client`.
        security: `SecurityOptions` of the client that is made.

    Raises:
        ConfigError: one is wrong, or stands beside a client that has its own.
    """

    def __init__(self, client: Client | Bootstrap, security: Mapping[str, Any]) -> None:
        self._owns_client = not isinstance(client, Client)
        if isinstance(client, Client):
            no_security_beside(client, security)
            self._client = client
        else:
            self._client = Client(client, **security)
        self._network = self._client.network

    def close(self) -> None:
        """Closes the connections, where this object opened them."""
        if self._owns_client:
            self._client.close()

    @quiet_at_exit
    def __del__(self) -> None:
        if getattr(self, "_owns_client", False) and hasattr(self, "_client"):  # they are not there where one was wrong
            warn_unclosed(self, self._client.network)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
