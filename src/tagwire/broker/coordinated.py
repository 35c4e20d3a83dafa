"""Requests that one node of a cluster serves, and the others refuse: NOT_COORDINATOR, NOT_CONTROLLER.

A handler says by which of its request's fields it is routed, and how a refusal looks; here it is seen to that the right
node serves it, and that whoever waits hears when that is another one.

    @handles(messages.HeartbeatRequest, versions="0-4", coordinated=one_key(GROUP, "group_id", refused))
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from tagwire.broker.busy_time import counted
from tagwire.broker.cluster_image import ClusterImage
from tagwire.broker.session import AnyResponse
from tagwire.codec.classes import MessageObject
from tagwire.errors import Error


class RoutedCall(Protocol):
    """A request, as far as its way goes; see `Call`."""

    @property
    def request(self) -> MessageObject: ...
    @property
    def version(self) -> int: ...
    @property
    def broker(self) -> RoutingNode: ...


class RoutingNode(Protocol):
    """A node, as far as it routes."""

    node_id: int
    image: ClusterImage


Handle = Callable[[Any], Awaitable[AnyResponse]]


class Coordinated(Protocol):
    """How a request finds its coordinator."""

    async def respond(self, call: RoutedCall, handle: Handle) -> AnyResponse:
        """The response: what `handle` gives where this node coordinates, a refusal elsewhere."""


@dataclass(frozen=True, slots=True)
class OneKey:
    """A request about one group or transactional id.

    Attributes:
        kind: GROUP or TRANSACTION.
        key: the field with its name; null there needs no coordinator.
        refuse: makes the response that tells an error.
    """

    kind: int
    key: str
    refuse: Callable[[Any, Error], MessageObject]

    async def respond(self, call: RoutedCall, handle: Handle) -> AnyResponse:
        """As `Coordinated`; whoever waits for others is refused as soon as another node coordinates."""
        key: str | None = getattr(call.request, self.key)
        node = call.broker
        if key is None:
            return await handle(call)
        if node.image.coordinator_of(self.kind, key) != node.node_id:
            return self.refuse(call, Error.NOT_COORDINATOR)

        async def response() -> AnyResponse:
            return await handle(call)

        handled = asyncio.ensure_future(counted(response()))
        moved = asyncio.ensure_future(node.image.until_moved(self.kind, key, node.node_id))
        try:
            await asyncio.wait([handled, moved], return_when=asyncio.FIRST_COMPLETED)
            return handled.result() if handled.done() else self.refuse(call, Error.NOT_COORDINATOR)
        finally:
            handled.cancel()
            moved.cancel()


@dataclass(frozen=True, slots=True)
class ManyKeys:
    """A request about several, each with its own outcome.

    Attributes:
        kind: GROUP or TRANSACTION.
        items: the request's field that lists them.
        key: what an item is of.
        results: the response's field that lists the outcomes.
        refuse: makes an outcome, of a key and an error.
    """

    kind: int
    items: str
    key: Callable[[Any], str]
    results: str
    refuse: Callable[[str, Error], object]

    async def respond(self, call: RoutedCall, handle: Handle) -> AnyResponse:
        """As `Coordinated`."""
        node, own, others = call.broker, [], dict[str, None]()
        for item in getattr(call.request, self.items):
            key = self.key(item)
            if node.image.coordinator_of(self.kind, key) == node.node_id:
                own.append(item)
            else:
                others[key] = None
        setattr(call.request, self.items, own)
        response = await handle(call)
        getattr(response, self.results).extend(self.refuse(key, Error.NOT_COORDINATOR) for key in others)
        return response


@dataclass(frozen=True, slots=True)
class ByVersion:
    """A request about one until it could be about several."""

    before: Coordinated
    from_version: int
    since: Coordinated

    async def respond(self, call: RoutedCall, handle: Handle) -> AnyResponse:
        """As `Coordinated`."""
        routed = self.since if call.version >= self.from_version else self.before
        return await routed.respond(call, handle)
