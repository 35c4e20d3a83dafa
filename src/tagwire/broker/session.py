"""What is known of one connection, from one request to the next, and how a request on it may end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tagwire.codec.classes import MessageObject
from tagwire.rpc import Gate, Range

AnyResponse = MessageObject | None
"""A response, or None where there is to be no response."""


ANONYMOUS: Final = "User:ANONYMOUS"
"""The principal of whoever has not authenticated; the name is Kafka's. Source: Kafka's KafkaPrincipal."""


class HangUp(Exception):
    """Raised by a handler that refuses a request in the one way its client will notice: the connection is closed."""


@dataclass(slots=True, eq=False)
class Session:
    """What is known of one connection, from one request to the next.

    Attributes:
        client_host, client_port: the address it comes from; the host is what ACLs call the host.
        host, port: the address of this broker that clients are told on this connection.
        listener: the number of the listener it came in by.
        gate: who has to authenticate before anything else is served; None where nobody has to.
        advertised: the versions that ApiVersions tells, by API key.
        response_bytes: how many bytes of records a response should hold at most just now, of all that clients read.
        software, software_version: what the client says it is, "" for nothing.
        principal: who the client is, "type:name", as ACLs name it.
        muted_ms: for how many milliseconds nothing more is to be served on it, from its next response on.
    """

    client_host: str
    client_port: int
    host: str
    port: int
    advertised: Mapping[int, Range]
    response_bytes: Callable[[], int]
    listener: int
    gate: Gate | None = None
    software: str = ""
    software_version: str = ""
    principal: str = ANONYMOUS
    muted_ms: int = 0

    @property
    def address(self) -> str:
        """Where it comes from, "host:port"."""
        return f"{self.client_host}:{self.client_port}"

    @property
    def is_known(self) -> bool:
        """Whether it may send any request."""
        return self.gate is None or self.gate.username is not None

    @property
    def user(self) -> str:
        """Who has authenticated, by password, token or certificate; "" for nobody."""
        return "" if self.principal == ANONYMOUS else self.principal.partition(":")[2]
