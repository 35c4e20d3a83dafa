"""Who closes a client: what Producer, Reader and Admin do alike when they are given one, or the address of one."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from tagwire.client.client import Client
from tagwire.client.config import Bootstrap
from tagwire.client.unclosed import warn_unclosed


class ClientOwner:
    """Works with a client that it was given, which stays open, or with one of its own, which ends with it.

    Args:
        client: a client, or what one is made of: see `Client`.
    """

    def __init__(self, client: Client | Bootstrap) -> None:
        self._owns_client = not isinstance(client, Client)
        self._client = client if isinstance(client, Client) else Client(client)
        self._network = self._client.network

    def close(self) -> None:
        """Closes the connections, where this object opened them."""
        if self._owns_client:
            self._client.close()

    def __del__(self) -> None:
        if getattr(self, "_owns_client", False) and hasattr(self, "_client"):  # they are not there where one was wrong
            warn_unclosed(self, self._client.network)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
