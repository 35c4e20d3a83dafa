"""How much memory connections may hold together: unfinished requests, waiting ones, and answers that nobody reads.

Each connection has bounds of its own, but ten thousand of them at their bounds would be too much. When all the room is
taken, the connection that holds the most by being slow, in an unfinished request, one that waits for what other clients
do, or an unread answer, is closed; only while nobody is slow, and requests are simply many, is reading put off. So a
client that sends half a request for ever costs itself its connection, and never keeps another one waiting.
"""

from __future__ import annotations

import logging
from typing import Protocol

logger = logging.getLogger("tagwire.broker")

LEAST_ANSWER_BYTES = 1 << 20
"""What an answer may hold even when there is no room left."""

SHARE_OF_AN_ANSWER = 4
"""An answer takes at most this part of the room that is left, so that others find some."""

WORTH_CLOSING_BYTES = 64 << 10
"""Who holds less than this is not closed for the room it gives."""


class Holder(Protocol):
    """A connection, as far as room goes."""

    def hang_up(self) -> None: ...

    def room_is_free(self) -> None: ...


class Room:
    """Bytes held by the connections of one broker.

    Args:
        most: how many there may be.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[Holder, tuple[int, int]] = {}
        self._waiting: set[Holder] = set()
        self.taken = 0

    def hold(self, holder: Holder, slow: int, busy: int) -> None:
        """Note what a connection holds: `slow` bytes that wait for its client or others, `busy` ones that wait for the
        broker."""
        before = sum(self._held.get(holder, (0, 0)))
        if slow or busy:
            self._held[holder] = slow, busy
        else:
            self._held.pop(holder, None)
        self.taken += slow + busy - before
        while self.taken > self._most and self._close_the_slowest():
            pass
        if self.taken <= self._most and self._waiting:
            waiting, self._waiting = self._waiting, set()
            for other in waiting:
                other.room_is_free()

    def is_full_for(self, holder: Holder) -> bool:
        """Whether a connection has to stop reading; it is told when it may go on."""
        if self.taken <= self._most:
            return False
        self._waiting.add(holder)
        return True

    def for_an_answer(self) -> int:
        """How many bytes of records the next answer should hold at most. Any thread may ask."""
        return max((self._most - self.taken) // SHARE_OF_AN_ANSWER, LEAST_ANSWER_BYTES)

    def leave(self, holder: Holder) -> None:
        """Note that a connection is gone."""
        self._waiting.discard(holder)
        self.hold(holder, 0, 0)

    def _close_the_slowest(self) -> bool:
        holder, (slow, _) = max(self._held.items(), key=lambda item: item[1][0], default=(None, (0, 0)))
        if holder is None or slow < WORTH_CLOSING_BYTES:
            return False
        logger.warning("the connections hold %d bytes: the one that is slowest, with %d, is closed", self.taken, slow)
        self.taken -= sum(self._held.pop(holder))
        holder.hang_up()
        return True
