"""Who closes a client: what Producer, Reader and Admin do alike when they are given one, or the address of one."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from tagwire.client.client import Client


class ClientOwner:
    """Works with a client that it was given, which stays open, or with one of its own, which ends with it.

    Args:
        client: a client, or bootstrap addresses, "HOST:PORT,HOST:PORT".
    """

    def __init__(self, client: Client | str | Sequence[str]) -> None:
        self._owns_client = not isinstance(client, Client)
        if isinstance(client, Client):
            self._client = client
        else:
            self._client = Client(client if isinstance(client, str) else ",".join(client))

    def close(self) -> None:
        """Closes the connections, where this object opened them."""
        if self._owns_client:
            self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
