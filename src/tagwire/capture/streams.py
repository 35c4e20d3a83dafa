"""One direction of a TCP connection put in order: retransmissions dropped, what came early kept until its turn.

What never comes is told as a gap, as soon as more waits behind it than `MAX_WAITING_BYTES` or `MAX_WAITING_SEGMENTS`:
memory follows those bounds, never what the packets claim.
"""

from __future__ import annotations

from typing import Final, Protocol

MAX_WAITING_BYTES: Final = 1 << 20
MAX_WAITING_SEGMENTS: Final = 256

_SEQUENCES: Final = 1 << 32
_HALF: Final = 1 << 31


class Sink(Protocol):
    """Where the bytes of a direction go, in their order."""

    def data(self, data: bytes, time: int, position: int) -> None:
        """The next bytes; `time` and `position` are their packet's."""

    def gap(self, size: int) -> None:
        """Bytes that were not captured; 0 where nobody knows how many."""


class Stream:
    """The segments of one direction, given as they were captured, handed to a sink in their order."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._next: int | None = None
        self._waiting: dict[int, tuple[bytes, int, int, int]] = {}
        self._waiting_bytes = 0

    @property
    def begun(self) -> bool:
        """Whether a segment was seen."""
        return self._next is not None

    def begin(self, sequence: int) -> None:
        """A SYN: the next byte is `sequence`. What waited for an earlier connection of the same ends is forgotten."""
        self._next = sequence % _SEQUENCES
        self._waiting.clear()
        self._waiting_bytes = 0

    def add(self, sequence: int, payload: bytes, missing: int, time: int, position: int) -> None:
        """A segment with a payload; `missing` bytes at its end were not kept by the capture."""
        if self._next is None:
            self._next = sequence
        ahead = self._ahead(sequence)
        if ahead == 0 and not self._waiting:  # nearly all of them
            self._hand_over(payload, missing, time, position)
        elif ahead > 0:
            self._wait(sequence, payload, missing, time, position)
        else:
            self._hand_over_unseen(-ahead, payload, missing, time, position)
            self._take_waiting()

    def finish(self) -> None:
        """Nothing more comes: hands over what still waits, with the gaps before it."""
        while self._waiting:
            self._skip_gap()

    def _hand_over(self, payload: bytes, missing: int, time: int, position: int) -> None:
        assert self._next is not None
        self._next = (self._next + len(payload) + missing) % _SEQUENCES
        if payload:
            self._sink.data(payload, time, position)
        if missing:
            self._sink.gap(missing)

    def _wait(self, sequence: int, payload: bytes, missing: int, time: int, position: int) -> None:
        known = self._waiting.get(sequence)
        if known is not None:
            if len(known[0]) >= len(payload):
                return
            self._waiting_bytes -= len(known[0])
        self._waiting[sequence] = (payload, missing, time, position)
        self._waiting_bytes += len(payload)
        while self._waiting_bytes > MAX_WAITING_BYTES or len(self._waiting) > MAX_WAITING_SEGMENTS:
            self._skip_gap()

    def _hand_over_unseen(self, seen: int, payload: bytes, missing: int, time: int, position: int) -> None:
        if seen < len(payload) + missing:
            self._hand_over(payload[seen:], missing - max(0, seen - len(payload)), time, position)

    def _take_waiting(self) -> None:
        """Hands over what is next of what waits, for as long as there is no gap."""
        while self._waiting:
            sequence = min(self._waiting, key=self._ahead)
            ahead = self._ahead(sequence)
            if ahead > 0:
                return
            payload, missing, time, position = self._waiting.pop(sequence)
            self._waiting_bytes -= len(payload)
            self._hand_over_unseen(-ahead, payload, missing, time, position)

    def _skip_gap(self) -> None:
        sequence = min(self._waiting, key=self._ahead)
        self._sink.gap(self._ahead(sequence))
        self._next = sequence
        self._take_waiting()

    def _ahead(self, sequence: int) -> int:
        """How far a sequence is ahead of the next byte; negative where it is behind it."""
        assert self._next is not None
        return (sequence - self._next + _HALF) % _SEQUENCES - _HALF
