"""The registry of APIs: each handler says which API and versions it is for, and nothing else does.

    @handles(messages.MetadataRequest, versions="0-12")
    async def metadata(call: Call) -> MetadataResponse: ...

`tagwire.broker.served_apis` has the same versions, from which the response to ApiVersions and what a connection lets
through are built. A handler's module is imported when its API is first asked for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, TypeVar

from tagwire.broker.coordinated import Coordinated
from tagwire.broker.node import Node
from tagwire.broker.served_apis import SERVED
from tagwire.broker.session import AnyResponse, Session
from tagwire.codec.classes import MessageObject
from tagwire.rpc import Range, RequestHeader
from tagwire.spec.api_keys import ApiKey

RequestT = TypeVar("RequestT", bound=MessageObject)
RequestT_co = TypeVar("RequestT_co", bound=MessageObject, covariant=True)


@dataclass(frozen=True, slots=True)
class Call(Generic[RequestT_co]):
    """One request to be served.

    Attributes:
        request: the decoded message.
        version: in which version it came, and the response goes.
        client_id: the client's name for itself, "" for none.
        session: the connection it came on.
        broker: what serves it.
        header: what stood before the request.
    """

    request: RequestT_co
    version: int
    client_id: str
    session: Session
    broker: Node
    header: RequestHeader


Handler = Callable[[Call[RequestT]], Awaitable[AnyResponse]]


AddedHandler = Callable[[Call[Any]], AnyResponse | Awaitable[AnyResponse]]
"""What a program serves an API of its own with: a function or a coroutine function."""


@dataclass(frozen=True, slots=True)
class Registration:
    """An API with its handler.

    Attributes:
        versions: the lowest and the highest version that are served, as ApiVersions tells.
        overlaps: whether a request may be begun while others of its kind, on the same connection, are still under way.
        most_bytes: the largest request that is handled; a larger one closes the connection. None leaves it to the limit
            of all frames.
        waits: whether the response may wait for what other clients do; a broker that stops does not wait for it then.
        coordinated: which node of a cluster serves it; None for any.
        handler: returns the response object to a call, or None where there is to be no response.
    """

    versions: Range
    overlaps: bool
    waits: bool
    most_bytes: int | None
    handler: Handler[Any]
    coordinated: Coordinated | None = None


class _Handlers(dict[int, Registration]):
    """Holds what is loaded; whoever asks for another that is served has it loaded."""

    def __missing__(self, key: int) -> Registration:
        if key not in SERVED:
            raise KeyError(key)
        import_module(f"tagwire.broker.handlers.{ApiKey(key).name.lower()}")
        return self[key]


HANDLERS: dict[int, Registration] = _Handlers()
"""The handlers by API key: `HANDLERS[key]` loads what is not loaded yet."""


def load_handlers() -> Iterator[int]:
    """Loads a handler at each step, and tells the key of its API: for whoever wants them before there is a request."""
    for key in SERVED:
        HANDLERS[key]
        yield key


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
    coordinated: Coordinated | None = None,
) -> Callable[[Handler[RequestT]], Handler[RequestT]]:
    """Register a handler for the requests of class `message` in `versions`, such as "3-12"; see `Registration`."""
    lowest, _, highest = versions.partition("-")

    def register(handler: Handler[RequestT]) -> Handler[RequestT]:
        HANDLERS[message.api_key] = Registration(
            (int(lowest), int(highest)), overlaps, waits, most_bytes, handler, coordinated
        )
        return handler

    return register
