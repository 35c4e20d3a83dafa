"""What the broker serves: each handler says which API and versions it is for, and nothing else does.

    @handles(messages.MetadataRequest, versions="0-12")
    async def metadata(call: Call) -> MetadataResponse: ...

The answer to ApiVersions, and what a connection lets through, are both built from these registrations.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tagwire.rpc import Range

if TYPE_CHECKING:
    from tagwire.broker.node import Node


class HangUp(Exception):
    """Raised by a handler that refuses a request in the one way its client will notice: the connection is closed."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request to be answered.

    Attributes:
        request: the decoded message.
        version: in which version it came, and the answer goes.
        client_id: the client's name for itself, "" for none.
        client_host: the address it comes from.
        host, port: the address of this broker that the client reached.
        broker: what to answer from.
    """

    request: Any
    version: int
    client_id: str
    client_host: str
    host: str
    port: int
    broker: Node


Handler = Callable[[Call], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Served:
    """An API that is served.

    Attributes:
        versions: the lowest and the highest version that are answered, as ApiVersions tells.
        overlaps: whether a request may be begun while others of its kind, on the same connection, are still under way.
        handler: answers a call with a response object, or None where there is to be no answer.
    """

    versions: Range
    overlaps: bool
    handler: Handler


SERVED: dict[int, Served] = {}


def handles(message: Any, *, versions: str, overlaps: bool = False) -> Callable[[Handler], Handler]:
    """Register a handler for the requests of class `message` in `versions`, such as "3-12"."""
    lowest, _, highest = versions.partition("-")

    def register(handler: Handler) -> Handler:
        SERVED[message.api_key] = Served((int(lowest), int(highest)), overlaps, handler)
        return handler

    return register
