"""In which order callers append to a topic who had to wait before: for its partitions, for a schema, for room."""

from __future__ import annotations

from types import TracebackType
from typing import Any


class Place:
    """Where a caller stands, until the end of the `with` block."""

    __slots__ = ()

    def __enter__(self) -> Place:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    async def turn(self) -> None:
        """Waits until everybody before has appended, or given up."""


_PLACE = Place()


class SendLine:
    """Of threads: each has an order of its own, and none with others, so that nobody waits for anybody.

    Attributes:
        topics: those that somebody stands in line for; what is sent to one of them comes behind.
    """

    def __init__(self) -> None:
        self.topics: dict[str, Any] = {}

    def place(self, topic: str) -> Place:
        """One behind all others of the topic."""
        return _PLACE

    def has_passed(self, topic: str) -> bool:
        """Whether the caller has had its turn already, of all who stand in line, and need not do so again."""
        return False
