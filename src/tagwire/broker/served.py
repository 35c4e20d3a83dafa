"""What the broker serves: each handler says which API and versions it is for, and nothing else does.

    @handles(messages.MetadataRequest, versions="0-12")
    async def metadata(call: Call) -> MetadataResponse: ...

The answer to ApiVersions, and what a connection lets through, are both built from these registrations.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tagwire.codec.classes import MessageObject
from tagwire.rpc import Gate, Range

if TYPE_CHECKING:
    from tagwire.broker.node import Node


class HangUp(Exception):
    """Raised by a handler that refuses a request in the one way its client will notice: the connection is closed."""


@dataclass(slots=True, eq=False)
class Session:
    """What is known of one connection, from one request to the next.

    Attributes:
        client_host, client_port: the address it comes from.
        host, port: the address of this broker that clients are told on this connection.
        gate: who has to authenticate before anything else is answered; None where nobody has to.
        answer_bytes: how many bytes of records an answer should hold at most just now, of all that clients read.
        software, software_version: what the client says it is, "" for nothing.
    """

    client_host: str
    client_port: int
    host: str
    port: int
    answer_bytes: Callable[[], int]
    gate: Gate | None = None
    software: str = ""
    software_version: str = ""

    @property
    def address(self) -> str:
        """Where it comes from, "host:port"."""
        return f"{self.client_host}:{self.client_port}"

    @property
    def is_known(self) -> bool:
        """Whether it may ask for anything."""
        return self.gate is None or self.gate.username is not None

    @property
    def user(self) -> str:
        """Who has authenticated, "" for nobody."""
        return (self.gate.username if self.gate is not None else None) or ""


RequestT = TypeVar("RequestT", bound=MessageObject)
RequestT_co = TypeVar("RequestT_co", bound=MessageObject, covariant=True)


@dataclass(frozen=True, slots=True)
class Call(Generic[RequestT_co]):
    """One request to be answered.

    Attributes:
        request: the decoded message.
        version: in which version it came, and the answer goes.
        client_id: the client's name for itself, "" for none.
        session: the connection it came on.
        broker: what to answer from.
    """

    request: RequestT_co
    version: int
    client_id: str
    session: Session
    broker: Node


Answered = MessageObject | None
"""A response, or None where there is to be no answer."""

Handler = Callable[[Call[RequestT]], Awaitable[Answered]]


@dataclass(frozen=True, slots=True)
class Served:
    """An API that is served.

    Attributes:
        versions: the lowest and the highest version that are answered, as ApiVersions tells.
        overlaps: whether a request may be begun while others of its kind, on the same connection, are still under way.
        most_bytes: the largest request that is handled; a larger one closes the connection. None leaves it to the limit
            of all frames.
        waits: whether the answer may wait for what other clients do; a broker that stops does not wait for it then.
        handler: answers a call with a response object, or None where there is to be no answer.
    """

    versions: Range
    overlaps: bool
    waits: bool
    most_bytes: int | None
    handler: Handler[Any]


SERVED: dict[int, Served] = {}

MOST_BYTES = 1 << 20
"""The largest request that carries no records. Tens of thousands of names fit, and no more: a list is worked through
while other clients wait."""

MOST_BYTES_OF_GROUPS = 16 << 20
"""The largest request that carries what members of a group tell each other, or all their offsets."""


def handles(
    message: type[RequestT],
    *,
    versions: str,
    overlaps: bool = False,
    waits: bool = False,
    most_bytes: int | None = MOST_BYTES,
) -> Callable[[Handler[RequestT]], Handler[RequestT]]:
    """Register a handler for the requests of class `message` in `versions`, such as "3-12"; see `Served`."""
    lowest, _, highest = versions.partition("-")

    def register(handler: Handler[RequestT]) -> Handler[RequestT]:
        SERVED[message.api_key] = Served((int(lowest), int(highest)), overlaps, waits, most_bytes, handler)
        return handler

    return register
