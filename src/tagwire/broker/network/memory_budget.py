"""How much memory connections may hold together: unfinished requests, waiting ones, and responses that nobody reads.

Each connection has bounds of its own, but ten thousand of them at their bounds would be too much. When all of it is
taken, the connection that holds the most by being slow, in an unfinished request, one that waits for what other clients
do, or an unread response, is closed; only while nobody is slow, and requests are simply many, is reading put off. Many
that are slow with little each are closed as well, where they alone take all of it: who is busy is not read from, and
nobody would make room any more. So a
client that sends half a request for ever costs itself its connection, and never keeps another one waiting.
"""

from __future__ import annotations

import logging
from typing import Protocol

logger = logging.getLogger("tagwire.broker")

LEAST_RESPONSE_BYTES = 1 << 20
"""What a response may hold even when nothing is left."""

SHARE_OF_A_RESPONSE = 4
"""A response takes at most this part of what is left, so that others find some."""

WORTH_CLOSING_BYTES = 64 << 10
"""Who holds less than this is not closed for the memory it gives, while the busy alone make room when they are done."""


class Holder(Protocol):
    """A connection, as far as memory goes."""

    def held(self) -> tuple[int, int]:
        """What it holds now, as `MemoryBudget.hold` has it: less than it said last where its client has read since."""

    def hang_up(self) -> None: ...

    def memory_is_free(self) -> None: ...


class MemoryBudget:
    """Bytes held by the connections of one broker.

    Args:
        most: how many there may be.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[Holder, tuple[int, int]] = {}
        self._waiting: dict[Holder, None] = {}  # in the order in which they came
        self.taken = 0
        self._slow = 0  # of it, what waits for clients or others

    def hold(self, holder: Holder, slow: int, busy: int) -> None:
        """Note what a connection holds: `slow` bytes that wait for its client or others, `busy` ones that wait for the
        broker."""
        self._note(holder, slow, busy)
        while self.taken > self._most and self._close_the_slowest():
            pass
        if self.taken <= self._most and self._waiting:
            waiting, self._waiting = self._waiting, {}
            for other in waiting:
                other.memory_is_free()

    def recount(self) -> int:
        """How many bytes are held now, asking those that hold any: nobody is told when a client reads the last of a
        response."""
        for holder in list(self._held):
            self._note(holder, *holder.held())
        return self.taken

    def _note(self, holder: Holder, slow: int, busy: int) -> None:
        slow_before, busy_before = self._held.get(holder, (0, 0))
        if slow or busy:
            self._held[holder] = slow, busy
        else:
            self._held.pop(holder, None)
        self._slow += slow - slow_before
        self.taken += slow + busy - slow_before - busy_before

    def is_full_for(self, holder: Holder) -> bool:
        """Whether a connection has to stop reading; it is told when it may go on."""
        if self.taken <= self._most:
            return False
        self._waiting[holder] = None
        return True

    def for_a_response(self) -> int:
        """How many bytes of records the next response should hold at most. Any thread may ask."""
        return max((self._most - self.taken) // SHARE_OF_A_RESPONSE, LEAST_RESPONSE_BYTES)

    def leave(self, holder: Holder) -> None:
        """Note that a connection is gone."""
        self._waiting.pop(holder, None)
        self.hold(holder, 0, 0)

    def _close_the_slowest(self) -> bool:
        """Whether there is more room than before, or it is known better who holds what."""
        holder, (slow, _) = max(self._held.items(), key=lambda item: item[1][0], default=(None, (0, 0)))
        if holder is None or (slow < WORTH_CLOSING_BYTES and self._slow <= self._most):
            return False  # who is busy makes room
        now = holder.held()
        if now != self._held[holder]:
            self._note(holder, *now)
            return True  # its client has read meanwhile
        logger.warning("the connections hold %d bytes: the one that is slowest, with %d, is closed", self.taken, slow)
        self.taken -= sum(self._held.pop(holder))
        self._slow -= slow
        holder.hang_up()
        return True
