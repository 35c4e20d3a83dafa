"""Who closes a client, on an event loop: what AsyncProducer, AsyncReader and AsyncAdmin do alike."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from tagwire.at_exit import quiet_at_exit
from tagwire.client.aio.client import AsyncClient
from tagwire.client.aio.unclosed import warn_unclosed
from tagwire.client.client_core import no_security_beside
from tagwire.client.config import Bootstrap


class AsyncClientOwner:
    """Works with a client that it was given, which stays open, or with one of its own, which ends with it.

    Args:
        client: a client, or what one is made of: see `AsyncClient`.
        security: `SecurityOptions` of the client that is made.

    Raises:
        ConfigError: one is wrong, or stands beside a client that has its own.
    """

    def __init__(self, client: AsyncClient | Bootstrap, security: Mapping[str, Any]) -> None:
        self._owns_client = not isinstance(client, AsyncClient)
        if isinstance(client, AsyncClient):
            no_security_beside(client, security)
            self._client = client
        else:
            self._client = AsyncClient(client, **security)
        self._driver = self._client._driver
        if not self._owns_client:
            self._driver.require_loop()

    async def close(self) -> None:
        """Closes the connections, where this object opened them."""
        if self._owns_client:
            await self._client.close()

    @quiet_at_exit
    def __del__(self) -> None:
        if getattr(self, "_owns_client", False) and hasattr(self, "_client"):  # they are not there where one was wrong
            warn_unclosed(self, self._client._core.network, self._driver)

    async def __aenter__(self) -> Self:
        self._driver.require_loop()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
