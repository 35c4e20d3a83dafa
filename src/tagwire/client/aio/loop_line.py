"""In which order the tasks of an event loop append to a topic: in that of their calls."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from types import TracebackType
from typing import Any

from tagwire.client.aio.loop_completion import wake
from tagwire.client.producing.send_line import Place, SendLine


class LoopLine(SendLine):
    """Who waits before a record is appended keeps tasks behind that call later: the loop that runs all of them has told
    all of an order.

    A task that sends again and again does so at once after its first turn: between two loops there is no order, and
    nobody would ever be without somebody before it.
    """

    def __init__(self) -> None:
        self.topics: dict[str, _TopicLine] = {}

    def place(self, topic: str) -> Place:
        line = self.topics.get(topic)
        if line is None:
            line = self.topics[topic] = _TopicLine()
        return _LoopPlace(self.topics, topic, line)

    def has_passed(self, topic: str) -> bool:
        return asyncio.current_task() in self.topics[topic].passed


class _TopicLine:
    """Of one topic, as long as somebody stands in it.

    Attributes:
        places: in order. waiting: of those who have found somebody before them when they were to append.
        passed: tasks that have had their turn.
    """

    __slots__ = ("passed", "places", "waiting")

    def __init__(self) -> None:
        self.places: OrderedDict[_LoopPlace, None] = OrderedDict()
        self.waiting: dict[asyncio.Future[None], None] = {}
        self.passed: set[asyncio.Task[Any] | None] = set()


class _LoopPlace(Place):
    __slots__ = ("_line", "_topic", "_topics")

    def __init__(self, topics: dict[str, _TopicLine], topic: str, line: _TopicLine) -> None:
        self._topics = topics
        self._topic = topic
        self._line = line
        line.places[self] = None

    @property
    def _is_first(self) -> bool:
        return next(iter(self._line.places)) is self

    async def turn(self) -> None:
        line = self._line
        while not self._is_first:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            line.waiting[future] = None
            try:
                await future
            finally:
                line.waiting.pop(future, None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        line, was_first = self._line, self._is_first
        del line.places[self]
        if not line.places:
            del self._topics[self._topic]
            return
        line.passed.add(asyncio.current_task())
        if was_first:
            # All of them, since they go on in order: each finds that nobody is before it, unless one has to wait again.
            waiting, line.waiting = line.waiting, {}
            for future in waiting:
                wake(future)
