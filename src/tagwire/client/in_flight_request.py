"""A request that was sent and has no response yet (Kafka's NetworkClient.InFlightRequest)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from tagwire.client.scheduling import Wait
from tagwire.errors import RequestTimeoutError, TagwireError

ResponseMessage = TypeVar("ResponseMessage")


class Expirable(Protocol):
    """The connection of a request, as far as the request needs it."""

    broker: str

    def expire(self, request: InFlightRequest[Any]) -> TagwireError: ...


class InFlightRequest(Generic[ResponseMessage]):
    """A request on its way.

    Attributes:
        connection: where it was sent.
        name: the request and its version, such as "Fetch v12".
        sent_at: when it was sent (seconds of the driver's clock).
        is_written: whether all of it was handed to the system: before, the broker cannot have read it.
        has_response: False for a request without a response, which is done when it is written.
        done: whether its response is there, or will never be.
        on_settled: called when it is done, by one who waits for that.
    """

    __slots__ = (
        "_error",
        "_response",
        "connection",
        "done",
        "has_response",
        "is_written",
        "name",
        "on_settled",
        "sent_at",
        "version",
    )

    def __init__(self, connection: Expirable, name: str, version: int, sent_at: float) -> None:
        self.connection = connection
        self.name = name
        self.version = version
        self.sent_at = sent_at
        self.is_written = False
        self.has_response = True
        self.done = False
        self.on_settled: Callable[[], None] | None = None
        self._response: Any = None
        self._error: TagwireError | None = None

    def settle(self, response: Any = None, error: TagwireError | None = None) -> None:
        """Called once, by the connection."""
        self.done, self._response, self._error = True, response, error
        if self.on_settled is not None:
            self.on_settled()

    async def response(self, deadline: float) -> ResponseMessage:
        """Waits for the response; None for a request that has none.

        Raises:
            RequestTimeoutError: not before the deadline; the connection is closed.
            ConnectionLostError, ProtocolError, DecodeError: the connection is closed.
            UnsupportedVersionError: the broker says that it does not support the request.
        """
        await Wait(lambda: self.done, deadline, (self,))
        if not self.done:
            raise self.connection.expire(self)
        return self.result()

    def result(self) -> ResponseMessage:
        """The response; None for a request that has none. Raises what went wrong instead."""
        if self._error is not None:
            raise self._error
        response: ResponseMessage = self._response
        return response

    def late(self, now: float) -> RequestTimeoutError:
        """The error that says how long it was waited for."""
        failed = "answer" if self.is_written else "take"
        waited = now - self.sent_at
        return RequestTimeoutError(f"{self.connection.broker} did not {failed} {self.name} within {waited:.1f} s")
