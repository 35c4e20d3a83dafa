"""What runs the core of a producer or a consumer all the time: a thread of its own, or the event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from tagwire.client.scheduling import Work
from tagwire.errors import TagwireError

Result = TypeVar("Result")


def broken_down(owner: str, error: BaseException) -> TagwireError:
    """What calls of a producer or a consumer raise after its work went wrong as none should.

    Args:
        owner: "producer" or "consumer".
    """
    found = TagwireError(f"the {owner} broke down: {type(error).__name__}: {error}")
    found.__cause__ = error
    return found


class CoreWork(Protocol):
    """What the host does all the time."""

    def step(self) -> None:
        """Does what can be done now."""

    def until(self) -> float:
        """When the next step is due, should nothing happen on a connection before (seconds of the driver's clock)."""

    def failed(self, error: BaseException) -> None:
        """A step went wrong as none should: nothing more will be done."""

    def close(self) -> None:
        """The last thing that the host calls."""


class CoreHost(Protocol):
    """What the faces of a producer or a consumer ask of it."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or is about to."""

    def require_waitable(self) -> None:
        """Raises TagwireError where waiting for it would not end."""

    def wakeup(self) -> None:
        """Lets the work look for something to do."""

    async def wait_for(self, is_ready: Callable[[], bool], until: float) -> None:
        """Waits until the work has made `is_ready` true, or until a time (seconds of the driver's clock). It is looked
        at in the host after every step, and has the work do nothing. It may return before."""

    async def aside(self, call: Callable[[], None]) -> None:
        """Has something done that may wait for others than brokers, or take long, without keeping anybody else."""

    async def result(self, function: Callable[[], Work[Result]], deadline: float) -> Result:
        """What the coroutine that `function` begins gives or raises. It goes on where whoever waits for it gives up.

        Raises:
            RequestTimeoutError: it was not begun or not ended by the deadline.
        """
