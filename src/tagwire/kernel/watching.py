"""All connections of a capture, followed at a time: TCP segments in, rows of requests out.

Which end is the client is told by who connects, or by the first request that is seen. What is kept of all connections
together is bounded, whatever the packets claim: past the bound, those that were silent longest keep nothing any longer.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.tagwire.kernel.conversations import Capture, Connection
    from cython.cimports.tagwire.kernel.packets import Segments
    from cython.cimports.tagwire.kernel.raw_bytes import memory_of
    from cython.cimports.tagwire.kernel.streams import Stream
else:
    from tagwire.kernel.conversations import Capture, Connection
    from tagwire.kernel.packets import Segments
    from tagwire.kernel.raw_bytes import memory_of
    from tagwire.kernel.streams import Stream

from tagwire.kernel.conversations import LET_GO, NOT_KAFKA, TLS

COMPILED: bool = cython.compiled

_tls = cython.declare(cython.int, TLS)
_not_kafka = cython.declare(cython.int, NOT_KAFKA)
_let_go = cython.declare(cython.int, LET_GO)

# After so many segments that are nothing of Kafka's, a connection that was met in the middle is left alone.
_strange_segments = cython.declare(cython.int, 20)
_least_request = cython.declare(cython.longlong, 14)  # a frame's size, and a header whose client id is empty or null

# What a connection is.
_unknown = cython.declare(cython.int, 0)
_followed = cython.declare(cython.int, 1)
_left_alone = cython.declare(cython.int, 2)

_fin = cython.declare(cython.int, 0x01)
_syn = cython.declare(cython.int, 0x02)
_rst = cython.declare(cython.int, 0x04)
_ack = cython.declare(cython.int, 0x10)
_by_higher_flag = cython.declare(cython.int, 0x100)


@cython.cclass
class Watcher:
    """Follows all connections of a capture.

    Args:
        listener: is told, and says, in Python:
            `met(ends, by_higher)`: what it wants to know a connection by, at its first request; not None.
            `learn(told, frame)`, `token(told, data)`: whether a request that tells of its client (ApiVersions,
                SaslHandshake, SaslAuthenticate), or a token of SASL outside of requests, tells something new.
            `speaker(told, client_id)`: what it wants to know requests with this client id by.
            `lost(reason, position, count)`: that something was not understood.
        apis: for each API key from 0 on 0 where there is no such API, else 1 and the first version whose header has a
            client id.
        max_frame: what claims to be longer is no frame.
        keep: how many bytes of a frame are kept, where it is not kept whole.
        requests, responses: whether rows have the requests, and all responses, whole.
        max_connections: followed at a time; those that have been silent longest are then taken as ended.
        max_held: bytes that may be kept of what is not yet understood, of all connections together.
    """

    def __init__(
        self,
        listener: object,
        apis: bytes,
        max_frame: int,
        keep: int,
        requests: bool,
        responses: bool,
        max_connections: int,
        max_held: int,
    ) -> None:
        self._capture = Capture(listener, apis, max_frame, keep, requests, responses)
        self._max_connections = max_connections
        self._max_held = max_held
        self._known = {}
        self._clock = 0

    @property
    def done(self) -> list:
        """Rows that are ready, for the caller to take and clear."""
        return self._capture.done

    @property
    def held(self) -> int:
        """Bytes that are kept of what is not yet understood."""
        return self._capture.held.size

    def take(self, data: memoryview, segments: Segments) -> None:
        """Takes in segments, in the order they were captured; their payloads are in `data`."""
        src: cython.pointer[cython.const[cython.uchar]] = memory_of(data)
        index: cython.Py_ssize_t
        flags: cython.int
        by_higher: cython.bint
        ends_here: cython.bint
        length: cython.longlong
        sequence: cython.longlong
        position: cython.longlong
        start: cython.Py_ssize_t
        connection: Connection
        stream: Stream
        ends: bytes
        for index in range(segments.count):
            ends = segments.ends[index]
            flags = cython.cast(cython.int, segments._flags[index])
            by_higher = (flags & _by_higher_flag) != 0
            start = segments._starts[index]
            length = segments._lengths[index]
            position = segments._positions[index]
            sequence = segments._sequences[index]
            connection = self._known.get(ends)
            self._clock += 1
            if flags & _syn and not flags & _ack:
                if connection is None:
                    connection = self._begin(ends, by_higher, True)
                elif not self._begins_again(connection, by_higher, sequence + 1):
                    self._end(connection)  # the same ends again, for a new connection
                    connection = self._begin(ends, by_higher, True)
            elif connection is None:
                if not length and not segments._missing[index]:
                    continue  # it ends one that is not known
                connection = self._begin(ends, by_higher, False)
            connection.used = self._clock
            if flags & _fin:
                connection.is_closing = True
            if connection.state == _unknown and length:
                self._judge(connection, src, start, length, by_higher, position)
            if connection.state != _followed:
                continue
            if not connection.has_requested and length and by_higher == connection.by_higher:
                connection.has_requested = True
                if self._is_strange(connection, src, start, length, sequence, position):
                    continue
            stream = connection.requests if by_higher == connection.by_higher else connection.responses
            if flags & _syn:
                sequence += 1  # it counts as a byte
                stream.begin(sequence)
            ends_here = (flags & _rst) != 0 and stream.may_end_at(sequence)
            if length or segments._missing[index]:
                stream.add(src, start, length, segments._missing[index], sequence, segments._times[index], position)
            if ends_here:
                self._end(connection)
            if self._capture.held.size > self._max_held:
                self._let_go()

    def finish(self) -> None:
        """The capture has ended: so have all connections, and `done` has the last rows."""
        connections: list = list(self._known.values())
        self._known = {}
        connection: Connection
        for connection in connections:
            connection.finish()
        self._capture.finish()

    @cython.cfunc
    def _begin(self, ends: bytes, by_higher: cython.bint, begun: cython.bint) -> Connection:
        connection: Connection = Connection(self._capture, ends)
        connection.used = self._clock
        self._known[ends] = connection
        if begun:
            self._follow(connection, by_higher, True)
        if len(self._known) > self._max_connections:
            self._forget_oldest()
        return connection

    @cython.cfunc
    def _begins_again(self, connection: Connection, by_higher: cython.bint, sequence: cython.longlong) -> cython.bint:
        """Whether a SYN, after which `sequence` is next, is one more copy of the one that has begun a connection. What
        is not captured but written down may begin each of them at the same sequence: a FIN comes before it then."""
        return (
            connection.state == _followed
            and not connection.is_closing
            and by_higher == connection.by_higher
            and connection.requests.begins_again(sequence)
        )

    @cython.cfunc
    def _follow(self, connection: Connection, by_higher: cython.bint, begun: cython.bint) -> cython.int:
        connection.state = _followed
        connection.by_higher = by_higher
        connection.has_requested = not begun
        connection.requests = self._capture.requests(connection)
        connection.responses = self._capture.responses(connection)
        if begun:
            connection.requests.begin_frames()
            connection.responses.begin_frames()
        return 0

    @cython.cfunc
    def _judge(
        self,
        connection: Connection,
        src: cython.pointer[cython.const[cython.uchar]],
        start: cython.Py_ssize_t,
        length: cython.longlong,
        by_higher: cython.bint,
        position: cython.longlong,
    ) -> cython.int:
        """What a segment tells of a connection that was met in the middle."""
        likely: bytes = connection.likely
        nameless: bytes
        if _is_tls(src, start, length):
            self._capture.lose(_tls, position, 1)
            connection.state = _left_alone
        elif self._capture.looks_like_request(src, start, length):
            nameless = self._capture.nameless_request(src, start, by_higher)
            # Requests go on in the same version; of responses the number that was taken for it counts up.
            if nameless is None or (likely is not None and nameless[:5] == likely[:5] and nameless != likely):
                self._follow(connection, by_higher, False)
            connection.likely = nameless
        else:
            connection.strange += 1
            if connection.strange >= _strange_segments:
                self._capture.lose(_not_kafka, position, 1)
                connection.state = _left_alone
        return 0

    @cython.cfunc
    def _is_strange(
        self,
        connection: Connection,
        src: cython.pointer[cython.const[cython.uchar]],
        start: cython.Py_ssize_t,
        length: cython.longlong,
        sequence: cython.longlong,
        position: cython.longlong,
    ) -> cython.bint:
        """Whether the first thing that the client of a new connection says is nothing of Kafka's, which leaves it
        alone. What is seen first need not be it: it may be late, or lost."""
        if _is_tls(src, start, length):
            self._capture.lose(_tls, position, 1)
        elif (
            length >= _least_request
            and sequence == connection.requests._next
            and not self._capture.looks_like_request(src, start, length)
        ):
            self._capture.lose(_not_kafka, position, 1)
        else:
            return False
        connection.finish()
        connection.state = _left_alone
        return True

    @cython.cfunc
    def _end(self, connection: Connection) -> cython.int:
        del self._known[connection.ends]
        return connection.finish()

    @cython.cfunc
    def _silent(self) -> list:
        """All connections, those first that have been silent longest."""
        connection: Connection
        order: list = []
        for connection in self._known.values():
            order.append((connection.used, connection.ends))
        order.sort()
        return [self._known[ends] for _, ends in order]

    @cython.cfunc
    def _forget_oldest(self) -> cython.int:
        connection: Connection
        for connection in self._silent()[: max(1, len(self._known) // 16)]:
            self._end(connection)
        return 0

    @cython.cfunc
    def _let_go(self) -> cython.int:
        connection: Connection
        held: cython.longlong
        for connection in self._silent():
            if self._capture.held.size <= self._max_held // 4 * 3:
                break
            held = connection.kept()
            connection.let_go()
            if held:
                self._capture.lose(_let_go, connection.last_position, held)
        return 0


@cython.cfunc
@cython.exceptval(check=False)
def _is_tls(
    src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, length: cython.longlong
) -> cython.bint:
    """Whether a record of TLS begins here, with a handshake or with data."""
    return length >= 2 and (src[at] == 0x16 or src[at] == 0x17) and src[at + 1] == 3
