"""What a rule of an API may be made of: what the whole request needs, what each item of it needs, and what is shown.

A request of which a part is refused goes on to its handler without that part, whose outcomes are added to the response.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tagwire.broker.authorization.access import REFUSED, Access, AnyCall, Handle
from tagwire.broker.authorization.acls import Operation, ResourceType
from tagwire.broker.session import AnyResponse
from tagwire.errors import Error


class Rule(Protocol):
    """What an API asks for."""

    async def respond(self, call: AnyCall, access: Access, handle: Handle) -> AnyResponse:
        """The response: what `handle` gives, of what is allowed."""


class Need(Protocol):
    """What a whole request needs."""

    def refusal(self, call: AnyCall, access: Access) -> Error | None:
        """Why it is refused."""


@dataclass(frozen=True, slots=True)
class Open:
    """Whoever is let in may."""

    async def respond(self, call: AnyCall, access: Access, handle: Handle) -> AnyResponse:
        """As `Rule`."""
        return await handle(call)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Any one of operations on the cluster."""

    operations: tuple[Operation, ...]

    def refusal(self, call: AnyCall, access: Access) -> Error | None:
        """As `Need`."""
        allowed = any(access.may_to_cluster(each) for each in self.operations)
        return None if allowed else REFUSED[ResourceType.CLUSTER]


@dataclass(frozen=True, slots=True)
class Named:
    """An operation on the resource that a field of the request names."""

    operation: Operation
    kind: ResourceType
    field: str

    def refusal(self, call: AnyCall, access: Access) -> Error | None:
        """As `Need`."""
        allowed = access.may(self.operation, self.kind, getattr(call.request, self.field))
        return None if allowed else REFUSED[self.kind]


Refuse = Callable[[AnyCall, Error], AnyResponse]
"""Makes the response that refuses a whole request."""


@dataclass(frozen=True, slots=True)
class Whole:
    """The request needs all of something, and is refused for the first that it lacks; then comes another rule.

    Attributes:
        needs: in the order in which Kafka asks.
        refuse: makes the refusal.
        then: what else is asked.
    """

    needs: tuple[Need, ...]
    refuse: Refuse
    then: Rule = Open()

    async def respond(self, call: AnyCall, access: Access, handle: Handle) -> AnyResponse:
        """As `Rule`."""
        for need in self.needs:
            error = need.refusal(call, access)
            if error is not None:
                return self.refuse(call, error)
        return await self.then.respond(call, access, handle)


Name = Callable[[AnyCall, Any], str | None]
"""The name of the resource that an item is about; None for what is left to the handler to answer."""


def by(field: str) -> Name:
    """The name that a field of an item has."""
    return lambda call, item: str(getattr(item, field))


def itself(call: AnyCall, item: str) -> str:
    """An item that is a name."""
    return item


@dataclass(frozen=True, slots=True)
class Each:
    """Each item of a request needs an operation on what it names; those that lack it are refused, each for itself.

    Attributes:
        operation, kind: what is needed.
        items: the request's field that lists them.
        name: what an item is about.
        results: the response's field that lists the outcomes.
        refuse: makes the outcome of an item that is refused.
        unless: an operation on the cluster that makes up for all; None where there is none.
        once: whether an item that is named twice is left to the handler, which refuses it for that.
    """

    operation: Operation
    kind: ResourceType
    items: str
    name: Name
    results: str
    refuse: Callable[[AnyCall, Any, Error], object]
    unless: Operation | None = None
    once: bool = False

    async def respond(self, call: AnyCall, access: Access, handle: Handle) -> AnyResponse:
        """As `Rule`."""
        refused = self.take_refused(call, access)
        response = await handle(call)
        # A request that failed as a whole is told of nothing else: Kafka's OffsetDeleteResponse.Builder.
        if refused and not getattr(response, "error_code", Error.NONE):
            getattr(response, self.results).extend(refused)
        return response

    def take_refused(self, call: AnyCall, access: Access) -> list[object]:
        """Leave in the request what is allowed; the outcomes of the rest."""
        if self.unless is not None and access.may_to_cluster(self.unless):
            return []
        items: Sequence[Any] = getattr(call.request, self.items)
        names = [self.name(call, item) for item in items]
        decided: dict[str, bool] = {}
        for name, times in Counter(name for name in names if name is not None).items():
            left_to_handler = self.once and times > 1
            decided[name] = left_to_handler or access.may(self.operation, self.kind, name)
        if all(decided.values()):
            return []
        allowed = [item for item, name in zip(items, names) if name is None or decided[name]]
        refused = [item for item, name in zip(items, names) if name is not None and not decided[name]]
        setattr(call.request, self.items, allowed)
        return [self.refuse(call, item, REFUSED[self.kind]) for item in refused]


@dataclass(frozen=True, slots=True)
class Shown:
    """Of what a response lists, what the client lacks an operation on is left out.

    Attributes:
        operation, kind: what is needed.
        results: the response's field that lists it.
        field: the field of a result that names what it is about.
        unless: an operation on the cluster by which everything is shown; None where there is none.
    """

    operation: Operation
    kind: ResourceType
    results: str
    field: str
    unless: Operation | None = None

    async def respond(self, call: AnyCall, access: Access, handle: Handle) -> AnyResponse:
        """As `Rule`."""
        response = await handle(call)
        if self.unless is None or not access.may_to_cluster(self.unless):
            listed = getattr(response, self.results)
            shown = [one for one in listed if access.may(self.operation, self.kind, getattr(one, self.field))]
            setattr(response, self.results, shown)
        return response


@dataclass(frozen=True, slots=True)
class Special:
    """What takes steps of its own.

    Attributes:
        asks: what it asks for, for whoever reads the table.
        step: takes them, as `Rule.respond`.
    """

    asks: str
    step: Handler

    async def respond(self, call: AnyCall, access: Access, handle: Handle) -> AnyResponse:
        """As `Rule`."""
        return await self.step(call, access, handle)


class Handler(Protocol):
    """The steps of a special rule."""

    async def __call__(self, call: AnyCall, access: Access, handle: Handle) -> AnyResponse: ...
