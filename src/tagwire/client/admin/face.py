"""What the parts of Admin stand on: a client, and the core whose coroutines it runs."""

from __future__ import annotations

from typing import Unpack

from tagwire.client.admin.core import AdminCore
from tagwire.client.client import Client
from tagwire.client.config import Bootstrap
from tagwire.client.owning import ClientOwner
from tagwire.client.security import SecurityOptions


class AdminFace(ClientOwner):
    """Works with a client, as `Admin` is given one."""

    def __init__(self, client: Client | Bootstrap, **security: Unpack[SecurityOptions]) -> None:
        super().__init__(client, security)
        self._core = AdminCore(self._network.core, self._client.fetch_settings.isolation)
