"""The conversations in a capture file: which packets belong together, and who is the client."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final

from tagwire.capture.conversation import (
    MIN_REQUEST_BYTES,
    NOT_KAFKA,
    STRANGE_SEGMENTS,
    TLS,
    Conversation,
    Exchange,
    looks_like_request,
)
from tagwire.capture.observation import Losses, Place
from tagwire.capture.packets import Packet
from tagwire.capture.segments import ACK, RST, SYN, Raw, Segment, endpoint, segment
from tagwire.capture.streams import Stream

MAX_CONNECTIONS: Final = 65_536
"""Connections followed at a time; the one that has been silent longest is then taken as ended."""

_TLS_RECORD: Final = (b"\x16\x03", b"\x17\x03")


class _Connection:
    """Both directions of a connection, once it is known which end is the client."""

    def __init__(self, conversation: Conversation, client: Raw) -> None:
        self.conversation = conversation
        self.client = client
        self.up = Stream(conversation.requests)
        self.down = Stream(conversation.responses)
        self.asked = False

    def add(self, found: Segment, packet: Packet) -> None:
        stream = self.up if found.source == self.client else self.down
        sequence = found.sequence
        if found.flags & SYN:
            sequence += 1  # it counts as a byte
            stream.begin(sequence)
        if found.payload or found.missing:
            stream.add(sequence, found.payload, found.missing, packet.time, packet.position)

    def finish(self) -> None:
        self.up.finish()
        self.down.finish()
        self.conversation.finish()


class _Unknown:
    """A connection of which nothing has told yet who is the client, or whether it is Kafka's at all."""

    def __init__(self) -> None:
        self.strange = 0


def exchanges(packets: Iterable[Packet], file: str, losses: Losses, *, bodies: bool = False) -> Iterator[Exchange]:
    """The requests in a capture, with their answers, as the answers come.

    Args:
        packets: in the order they were captured.
        file: the capture's path, for the evidence.
        losses: counts what is not understood.
        bodies: whether bodies are kept whole.
    """
    done: list[Exchange] = []
    follower = _Follower(file, losses, done, bodies=bodies)
    for packet in packets:
        follower.packet(packet)
        if done:
            yield from done
            done.clear()
    follower.finish()
    yield from done


class _Follower:
    def __init__(self, file: str, losses: Losses, done: list[Exchange], *, bodies: bool) -> None:
        self._file = file
        self._losses = losses
        self._done = done
        self._bodies = bodies
        self._known: OrderedDict[tuple[Raw, Raw], _Connection | _Unknown | None] = OrderedDict()

    def packet(self, packet: Packet) -> None:
        found = segment(packet.link_type, packet.data, packet.size)
        if found is None:
            return
        if isinstance(found, str):
            self._losses.add(found, Place(self._file, packet.position))
            return
        ends = (found.source, found.target) if found.source < found.target else (found.target, found.source)
        if found.flags & SYN and not found.flags & ACK:
            self._end(ends)  # the same ends again, for a new connection
            self._known[ends] = self._follow(found.source, found.target, begun=True)
        elif ends in self._known:
            self._known.move_to_end(ends)
        else:
            self._known[ends] = _Unknown()
        if len(self._known) > MAX_CONNECTIONS:
            self._end(next(iter(self._known)))
        connection = self._known[ends]
        if isinstance(connection, _Unknown):
            connection = self._judge(ends, connection, found, packet)
        if connection is None:
            return
        if isinstance(connection, _Connection):
            strange = self._strange(connection, found)
            if strange is not None:
                self._losses.add(strange, Place(self._file, packet.position))
                self._known[ends] = None
                return
            connection.add(found, packet)
            if found.flags & RST:
                self._end(ends)

    def finish(self) -> None:
        while self._known:
            self._end(next(iter(self._known)))

    def _end(self, ends: tuple[Raw, Raw]) -> None:
        connection = self._known.pop(ends, None)
        if isinstance(connection, _Connection):
            connection.finish()

    def _follow(self, client: Raw, broker: Raw, *, begun: bool) -> _Connection:
        conversation = Conversation(
            endpoint(client), endpoint(broker), self._done.append, self._losses, self._file, bodies=self._bodies
        )
        if begun:
            conversation.begin()
        return _Connection(conversation, client)

    def _strange(self, connection: _Connection, found: Segment) -> str | None:
        """What a new connection is instead of Kafka's, told by the first thing that its client says."""
        if connection.asked or found.source != connection.client or not found.payload:
            return None
        connection.asked = True
        if found.payload.startswith(_TLS_RECORD):
            return TLS
        return NOT_KAFKA if len(found.payload) >= MIN_REQUEST_BYTES and not looks_like_request(found.payload) else None

    def _judge(
        self, ends: tuple[Raw, Raw], unknown: _Unknown, found: Segment, packet: Packet
    ) -> _Connection | _Unknown | None:
        """What a segment tells of a connection that was met in the middle."""
        if not found.payload:
            return unknown
        place = Place(self._file, packet.position)
        if found.payload.startswith(_TLS_RECORD):
            self._losses.add(TLS, place)
            self._known[ends] = None
        elif looks_like_request(found.payload):
            self._known[ends] = self._follow(found.source, found.target, begun=False)
        else:
            unknown.strange += 1
            if unknown.strange < STRANGE_SEGMENTS:
                return unknown
            self._losses.add(NOT_KAFKA, place)
            self._known[ends] = None
        return self._known[ends]
