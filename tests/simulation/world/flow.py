"""One direction of a simulated TCP connection: bytes arrive in order and once, or not at all.

What the network loses is sent again, later and later, until it is given up. Only the sender gets to know: a receiver
that hears nothing more is told nothing. Acknowledgements take no time of their own, but are lost where nothing gets
back.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .network import Network, Timer
    from .sockets import StreamSocket

FIRST_RETRY_S: Final = 0.2
LONGEST_RETRY_S: Final = 120.0
GIVEN_UP_AFTER_S: Final = 924.0
"""As Linux has it with its tcp_retries2 of 15."""

MAX_SEGMENT_BYTES: Final = 64 << 10


class Flow:
    """What `sender` sends to `receiver`.

    Attributes:
        received: what has arrived and nobody has read.
        has_ended: whether the sender's end of its bytes has arrived.
        held: what the sender has given and the receiver has not acknowledged.
    """

    def __init__(self, network: Network, sender: StreamSocket, receiver: StreamSocket) -> None:
        self._network = network
        self._sender = sender
        self._receiver = receiver
        self.held = bytearray()
        self._acknowledged = 0  # of the stream, where `held` begins
        self._next = 0  # of the stream, what is sent next
        self._ends = False
        self._end_is_sent = False
        self._stopped = False
        self.received = bytearray()
        self._arrived = 0
        self.has_ended = False
        self._last_arrival = 0.0
        self._under_way: deque[Callable[[], None]] = deque()
        self._retry: Timer | None = None
        self._retry_after = FIRST_RETRY_S
        self._lost_since: float | None = None
        self.is_lost = False
        """Whether nothing of this direction arrives, whatever the network is like."""

    @property
    def space(self) -> int:
        """How many bytes the sender may give now."""
        return max(self._network.conditions.send_buffer - len(self.held), 0)

    def give(self, data: bytes) -> None:
        self.held += data
        self._transmit()

    def end(self) -> None:
        """Nothing more comes after what was given."""
        if not self._ends:
            self._ends = True
            self._transmit()

    def stop(self) -> None:
        """Send nothing any more, not even what was given. What is on its way arrives."""
        self._stopped = True
        self.held.clear()
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    def take(self, size: int) -> bytes:
        """What has arrived, up to `size` bytes, for who reads."""
        data = bytes(self.received[:size])
        del self.received[:size]
        if self._sender.answers_reach():
            self._transmit()
        else:
            self._retry_later()
        return data

    def carry(self, act: Callable[[], None]) -> None:
        """Something that is neither bytes nor their end, such as a reset: arrives after what was sent before, or is
        lost."""
        if not self._is_passable():
            return
        self._schedule(0, lambda: act() if self._is_passable() else None)

    def _transmit(self) -> None:
        conditions, random = self._network.conditions, self._network.random
        while not self._stopped and not self._end_is_sent:
            waiting = self._acknowledged + len(self.held) - self._next
            window = conditions.receive_buffer - len(self.received) - (self._next - self._arrived)
            size = max(min(waiting, window, MAX_SEGMENT_BYTES), 0)
            if waiting and not size:
                return
            if size > 1 and random.random() < conditions.fragments:
                size = random.randint(1, size)
            begin = self._next - self._acknowledged
            is_last = self._ends and size == waiting
            if not size and not is_last:
                return
            data, at = bytes(self.held[begin : begin + size]), self._next
            self._next += size
            self._end_is_sent = is_last
            self._send(at, data, is_last)

    def _send(self, at: int, data: bytes, is_last: bool) -> None:
        if self._is_passable():
            self._schedule(len(data), lambda: self._arrive(at, data, is_last))
        else:
            self._retry_later()

    def _schedule(self, size: int, act: Callable[[], None]) -> None:
        network = self._network
        due = network.scheduler.now + network.transit_s(self._sender.party, self._receiver.party, size)
        # Never before what was sent earlier on the same connection; connections overtake each other. What is due at one
        # time may be called in any order, since times are rounded.
        self._last_arrival = due = max(due, self._last_arrival)
        self._under_way.append(act)
        network.scheduler.after(due - network.scheduler.now, self._next_comes)

    def _next_comes(self) -> None:
        self._under_way.popleft()()

    def _is_passable(self) -> bool:
        return not self.is_lost and self._network.passes(self._sender.party, self._receiver.party)

    def _arrive(self, at: int, data: bytes, is_last: bool) -> None:
        if not self._is_passable():
            self._retry_later()
            return
        if at > self._arrived:
            return  # what is missing before it is sent again, and this too
        new = data[self._arrived - at :]
        if self._receiver.is_broken or (self._receiver.is_gone and (new or not self._receiver.has_closed)):
            self._receiver.refuse_bytes()
            self._retry_later()  # the refusal may be lost
            return
        if new:
            self.received += new
            self._arrived += len(new)
        if is_last:
            self.has_ended = True
        if new or is_last:
            self._receiver.changed()
        self._acknowledge()

    def _acknowledge(self) -> None:
        if not self._sender.answers_reach():
            self._retry_later()
            return
        del self.held[: self._arrived - self._acknowledged]
        self._acknowledged = self._arrived
        self._retry_after, self._lost_since = FIRST_RETRY_S, None
        if self._retry is not None and self._next == self._acknowledged and self._end_is_sent == self.has_ended:
            self._retry.cancel()
            self._retry = None
        self._sender.changed()
        self._transmit()

    def _retry_later(self) -> None:
        if self._retry is not None or self._stopped:
            return
        scheduler = self._network.scheduler
        if self._lost_since is None:
            self._lost_since = scheduler.now
        elif scheduler.now - self._lost_since > GIVEN_UP_AFTER_S:
            self._sender.broken(errno.ETIMEDOUT)
            return
        self._retry = scheduler.after(self._retry_after, self._retry_now)
        self._retry_after = min(2 * self._retry_after, LONGEST_RETRY_S)

    def _retry_now(self) -> None:
        self._retry = None
        self._next = self._acknowledged
        self._end_is_sent = False
        if self.held or (self._ends and not self.has_ended):
            self._transmit()
