"""Connections between clients and brokers as a watcher sees them: TCP segments in, rows of requests out.

Which end is the client is told by who connects, or by the first request that is seen. Answers come in the order of
the requests, but not every request has one (Produce with acks=0), and a capture may lack either. So an answer belongs
to the oldest request with its correlation id; older requests then had none.

What is kept of all connections together is bounded, whatever the packets claim: past the bound, those that were silent
longest keep nothing any longer.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.libc.string import memcmp
    from cython.cimports.tagwire.kernel.number_columns import numbers_of
    from cython.cimports.tagwire.kernel.packets import Segments
    from cython.cimports.tagwire.kernel.raw_bytes import int32_at, memory_of
    from cython.cimports.tagwire.kernel.streams import Held, Stream
else:
    from tagwire.kernel.number_columns import numbers_of
    from tagwire.kernel.packets import Segments
    from tagwire.kernel.raw_bytes import int32_at, memory_of
    from tagwire.kernel.streams import Held, Stream

from tagwire.kernel.number_columns import number_column

COMPILED: bool = cython.compiled

NO_HEADER, UNMATCHED, OUT_OF_STEP, TLS, NOT_KAFKA, LET_GO = range(6)
"""What a listener is told was lost: a request whose header cannot be read; an answer to no request that was seen; bytes
between frames; a connection under TLS; one that does not speak Kafka's protocol; bytes let go for want of room."""

ROWS = 32_768
"""Rows that are handed over together."""

_no_header = cython.declare(cython.int, NO_HEADER)
_unmatched = cython.declare(cython.int, UNMATCHED)
_out_of_step = cython.declare(cython.int, OUT_OF_STEP)
_tls = cython.declare(cython.int, TLS)
_not_kafka = cython.declare(cython.int, NOT_KAFKA)
_let_go = cython.declare(cython.int, LET_GO)

_room = cython.declare(cython.Py_ssize_t, ROWS)
# Of bodies in the rows that are handed over together.
_max_body_bytes = cython.declare(cython.longlong, 16 << 20)
# Requests waiting for their answers on one connection; the oldest is then taken as never answered.
_max_open = cython.declare(cython.Py_ssize_t, 4096)
# Answers captured before their requests, as captures of several network queues have them.
_max_early = cython.declare(cython.Py_ssize_t, 1000)
# What a request that waits takes beside its body, about; an answer, too.
_asked_bytes = cython.declare(cython.longlong, 256)
# After so many segments that are nothing of Kafka's, a connection that was met in the middle is left alone.
_strange_segments = cython.declare(cython.int, 20)
_top_version = cython.declare(cython.longlong, 40)  # above any version that an API has
_least_request = cython.declare(cython.longlong, 14)  # a size, and a header whose client id is empty or null

_unknown = cython.declare(cython.int, 0)
_followed = cython.declare(cython.int, 1)
_left_alone = cython.declare(cython.int, 2)

_syn = cython.declare(cython.int, 0x02)
_rst = cython.declare(cython.int, 0x04)
_ack = cython.declare(cython.int, 0x10)
_by_higher_flag = cython.declare(cython.int, 0x100)

_controlled_shutdown = cython.declare(cython.int, 7)
_sasl_handshake = cython.declare(cython.int, 17)
_api_versions = cython.declare(cython.int, 18)
_sasl_authenticate = cython.declare(cython.int, 36)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _int16(src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t) -> cython.int:
    number: cython.int = src[at] << 8 | src[at + 1]
    return number - 0x10000 if number & 0x8000 else number


@cython.cfunc
@cython.inline
def _bytes(src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, size: cython.longlong) -> bytes:
    if cython.compiled:
        return PyBytes_FromStringAndSize(cython.cast(cython.p_char, src + at), size)
    else:
        return bytes(src[at : at + size])


@cython.cfunc
@cython.inline
def _equals(
    src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, size: cython.longlong, known: object
) -> cython.bint:
    """Whether the `size` bytes at `at` are those of `known`; -1 is None."""
    if size < 0 or known is None:
        return size < 0 and known is None
    if cython.compiled:
        data: bytes = known
        return len(data) == size and memcmp(src + at, PyBytes_AS_STRING(data), size) == 0
    else:
        return src[at : at + size] == known


@cython.cclass
class Speaker:
    """Who makes requests on a connection, for as long as nothing else is learnt of it.

    told: what the listener said. client_id: its bytes, None for null.
    """

    def __init__(self, told: object, client_id: object) -> None:
        self.told = told
        self.client_id = client_id
        self._number = 0
        self._rows = None  # where the number counts


@cython.cclass
class Rows:
    """Requests, with their answers, as columns, in the order the answers came.

    times, answered: microseconds since 1970 UTC, -1 where not recorded, `answered` also where there was no answer.
    speaker_numbers: which of `speakers` asked, whose first rows are `first_rows`. apis, versions, correlation_ids: the
    header's. request_bytes, response_bytes: whole frames with their sizes, -1 where there was no answer. positions: of
    the packets that requests begin in. requests, answers: {row: frame after its size}, of those that were kept whole:
    all where bodies are asked for, else the answers to ApiVersions.
    """

    def __init__(self, room: int) -> None:
        self.room = room
        self.count = 0
        self.speakers, self.first_rows = [], []
        self.requests, self.answers = {}, {}
        self._kept = 0
        self.times, self.answered, self.speaker_numbers = number_column(room), number_column(room), number_column(room)
        self.apis, self.versions, self.correlation_ids = number_column(room), number_column(room), number_column(room)
        self.request_bytes, self.response_bytes = number_column(room), number_column(room)
        self.positions = number_column(room)
        self._times, self._answered = numbers_of(self.times), numbers_of(self.answered)
        self._speaker_numbers, self._apis = numbers_of(self.speaker_numbers), numbers_of(self.apis)
        self._versions, self._correlation_ids = numbers_of(self.versions), numbers_of(self.correlation_ids)
        self._request_bytes, self._response_bytes = numbers_of(self.request_bytes), numbers_of(self.response_bytes)
        self._positions = numbers_of(self.positions)


@cython.freelist(512)
@cython.cclass
class Asked:
    """A request, for as long as its answer is awaited."""


@cython.cclass
class Requests(Stream):
    """What the client sends."""

    def __init__(self, connection: Connection, held: Held, keep: int, max_frame: int) -> None:
        Stream.__init__(self, held, keep, max_frame)
        self._connection = connection

    @cython.cfunc
    def _begins(
        self, src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.bint:
        return self._connection._watcher._looks_like_request(src, at, end - at)

    @cython.cfunc
    def _lost(self, size: cython.longlong) -> cython.int:
        return self._connection._watcher._lose(_out_of_step, self._connection._last_position, max(size, 1))

    @cython.cfunc
    def _frame(
        self,
        src: cython.pointer[cython.const[cython.uchar]],
        at: cython.Py_ssize_t,
        kept: cython.longlong,
        size: cython.longlong,
        time: cython.longlong,
        position: cython.longlong,
    ) -> cython.int:
        return self._connection._request(src, at, kept, size, time, position)


@cython.cclass
class Answers(Stream):
    """What the broker sends."""

    def __init__(self, connection: Connection, held: Held, keep: int, max_frame: int) -> None:
        Stream.__init__(self, held, keep, max_frame)
        self._connection = connection

    @cython.cfunc
    def _begins(
        self, src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.bint:
        if end - at < 8 or not 4 <= int32_at(src, at) <= self._max_frame:
            return False
        return self._connection._awaits(int32_at(src, at + 4))

    @cython.cfunc
    def _lost(self, size: cython.longlong) -> cython.int:
        return self._connection._watcher._lose(_out_of_step, self._connection._last_position, max(size, 1))

    @cython.cfunc
    def _frame(
        self,
        src: cython.pointer[cython.const[cython.uchar]],
        at: cython.Py_ssize_t,
        kept: cython.longlong,
        size: cython.longlong,
        time: cython.longlong,
        position: cython.longlong,
    ) -> cython.int:
        return self._connection._answer(src, at, kept, size, time, position)


@cython.cclass
class Connection:
    """One connection. Until something tells which end is the client, there is nothing of it but its ends.

    told: the listener's, to whom it is handed back.
    """

    def __init__(self, watcher: Watcher, ends: bytes) -> None:
        self._watcher = watcher
        self.ends = ends
        self.told = None
        self._state = _unknown
        self._by_higher = False  # whether the client is the higher of the ends
        self._asked = False
        self._strange = 0
        self.raw_tokens = False
        self._used = 0
        self._last_position = 0
        self._requests = None
        self._answers = None
        self._open = []
        self._first = 0  # of the open ones; those before it are answered
        self._early = None
        self._speaker = None

    @cython.cfunc
    def _request(
        self,
        src: cython.pointer[cython.const[cython.uchar]],
        at: cython.Py_ssize_t,
        kept: cython.longlong,
        size: cython.longlong,
        time: cython.longlong,
        position: cython.longlong,
    ) -> cython.int:
        asked: Asked
        watcher: Watcher = self._watcher
        api: cython.int
        version: cython.int
        length: cython.longlong = -1
        self._last_position = position
        if self.raw_tokens:
            if not watcher._looks_like_header(src, at, kept, size):
                if watcher._listener.token(self.told, _bytes(src, at, kept)):
                    self._speaker = None
                return 0
            self.raw_tokens = False
        if kept < 8:
            return watcher._lose(_no_header, position, 1)
        api = _int16(src, at)
        version = _int16(src, at + 2)
        if api != _controlled_shutdown or version != 0:
            if kept < 10:
                return watcher._lose(_no_header, position, 1)
            length = _int16(src, at + 8)
            if length > kept - 10:
                return watcher._lose(_no_header, position, 1)
        if kept == size and (api == _api_versions or api == _sasl_handshake or api == _sasl_authenticate):
            if watcher._listener.learn(self.told, _bytes(src, at, size)):
                self._speaker = None
        if self._speaker is None or not _equals(src, at + 10, length, self._speaker.client_id):
            client_id = None if length < 0 else _bytes(src, at + 10, length)
            self._speaker = Speaker(watcher._listener.speaker(self.told, client_id), client_id)
        asked = Asked()
        asked._time = time
        asked._position = position
        asked._request_bytes = size + 4
        asked._correlation_id = int32_at(src, at + 4)
        asked._api = api
        asked._version = version
        asked._speaker = self._speaker
        asked._request = _bytes(src, at, size) if watcher._bodies and kept == size else None
        if self._early is not None and asked._correlation_id in self._early:
            return self._answered_early(asked, self._early.pop(asked._correlation_id))
        self._open.append(asked)
        watcher._held.size += _asked_bytes + (0 if asked._request is None else size)
        if len(self._open) - self._first > _max_open:
            watcher._emit(self._pop(), -1, -1, None)
        return 0

    @cython.cfunc
    def _answered_early(self, asked: Asked, early: tuple) -> cython.int:
        answer: bytes
        time, size, answer, _ = early
        self._watcher._held.size -= _asked_bytes + (0 if answer is None else len(answer))
        return self._watcher._emit(asked, time, size + 4, answer)

    @cython.cfunc
    def _answer(
        self,
        src: cython.pointer[cython.const[cython.uchar]],
        at: cython.Py_ssize_t,
        kept: cython.longlong,
        size: cython.longlong,
        time: cython.longlong,
        position: cython.longlong,
    ) -> cython.int:
        asked: Asked
        watcher: Watcher = self._watcher
        answer: bytes = None
        correlation_id: cython.longlong
        if self.raw_tokens:
            return 0
        if kept < 4:  # which the capture lacks
            return watcher._lose(_unmatched, position, 1)
        correlation_id = int32_at(src, at)
        if not self._awaits(correlation_id):
            if kept == size:
                answer = _bytes(src, at, size)
            if self._early is None:
                self._early = {}
            known = self._early.pop(correlation_id, None)
            self._early[correlation_id] = (time, size, answer, position)
            watcher._held.size += _asked_bytes + (0 if answer is None else size)
            if known is None and len(self._early) > _max_early:
                known = self._early.pop(next(iter(self._early)))
            if known is not None:
                watcher._held.size -= _asked_bytes + (0 if known[2] is None else len(known[2]))
                watcher._lose(_unmatched, known[3], 1)
            return 0
        asked = self._pop()
        while asked._correlation_id != correlation_id:
            watcher._emit(asked, -1, -1, None)
            asked = self._pop()
        if kept == size and (watcher._bodies or asked._api == _api_versions):
            answer = _bytes(src, at, size)
        if asked._api == _sasl_handshake and asked._version == 0:
            self.raw_tokens = True
        return watcher._emit(asked, time, size + 4, answer)

    @cython.cfunc
    def _awaits(self, correlation_id: cython.longlong) -> cython.bint:
        """Whether a request with this correlation id is open."""
        asked: Asked
        index: cython.Py_ssize_t
        for index in range(self._first, len(self._open)):
            asked = self._open[index]
            if asked._correlation_id == correlation_id:
                return True
        return False

    @cython.cfunc
    def _pop(self) -> Asked:
        """The oldest open request, which is open no longer."""
        asked: Asked = self._open[self._first]
        self._open[self._first] = None
        self._first += 1
        if self._first == len(self._open) or self._first >= 1024:
            del self._open[: self._first]
            self._first = 0
        self._watcher._held.size -= _asked_bytes + (0 if asked._request is None else len(asked._request))
        return asked

    @cython.cfunc
    def _finish(self) -> cython.int:
        """It has ended, or the capture: what is unanswered stays so."""
        if self._requests is not None:
            self._requests.finish()
            self._answers.finish()
            self._requests = self._answers = None  # which know it
        while self._open:
            self._watcher._emit(self._pop(), -1, -1, None)
        return self._forget_early()

    @cython.cfunc
    def _let_go(self) -> cython.int:
        """Keeps nothing any longer of what was not yet understood."""
        if self._requests is not None:
            self._requests.let_go()
            self._answers.let_go()
        while self._open:
            self._watcher._emit(self._pop(), -1, -1, None)
        return self._forget_early()

    @cython.cfunc
    def _forget_early(self) -> cython.int:
        if self._early is not None:
            for _, _, answer, position in self._early.values():
                self._watcher._held.size -= _asked_bytes + (0 if answer is None else len(answer))
                self._watcher._lose(_unmatched, position, 1)
            self._early = None
        return 0

    @cython.cfunc
    def _held(self) -> cython.longlong:
        """What its streams keep, in bytes."""
        if self._requests is None:
            return 0
        return (
            self._requests.waiting_bytes
            + self._requests.kept_bytes
            + self._answers.waiting_bytes
            + self._answers.kept_bytes
        )


@cython.cclass
class Watcher:
    """Follows all connections of a capture.

    Args:
        listener: is told, and says, in Python:
            `met(ends, by_higher)`: what it wants to know a connection by, now that it is known which end is the client.
            `learn(told, frame)`, `token(told, data)`: whether a request that tells of its client (ApiVersions,
                SaslHandshake, SaslAuthenticate), or a token of SASL outside of requests, tells something new.
            `speaker(told, client_id)`: what it wants to know requests with this client id by.
            `lost(reason, position, count)`: that something was not understood.
        apis: for each API key from 0 on whether there is such an API.
        max_frame: what claims to be longer is no frame.
        keep: how many bytes of a frame are kept.
        bodies: whether rows have requests and answers whole.
        max_connections: followed at a time; those that have been silent longest are then taken as ended.
        max_held: bytes that may be kept of what is not yet understood, of all connections together.

    Attributes:
        done: rows that are ready, for the caller to take and clear.
    """

    def __init__(
        self,
        listener: object,
        apis: bytes,
        max_frame: int,
        keep: int,
        bodies: bool,
        max_connections: int,
        max_held: int,
    ) -> None:
        self._listener = listener
        self._apis = apis
        self._max_frame = max_frame
        self._keep = keep
        self._bodies = bodies
        self._max_connections = max_connections
        self._max_held = max_held
        self._held = Held()
        self._known = {}
        self._clock = 0
        self._rows = Rows(_room)
        self.done = []

    @property
    def held(self) -> int:
        """Bytes that are kept of what is not yet understood."""
        return self._held.size

    def take(self, data: memoryview, segments: Segments) -> None:
        """Takes in segments, in the order they were captured; their payloads are in `data`."""
        src: cython.pointer[cython.const[cython.uchar]] = memory_of(data)
        index: cython.Py_ssize_t
        flags: cython.int
        by_higher: cython.bint
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
            connection = self._known.get(ends)
            self._clock += 1
            if flags & _syn and not flags & _ack:
                if connection is not None:  # the same ends again, for a new connection
                    self._end(connection)
                connection = self._begin(ends, by_higher, True)
            elif connection is None:
                connection = self._begin(ends, by_higher, False)
            connection._used = self._clock
            if connection._state == _unknown and length:
                self._judge(connection, src, start, length, by_higher, position)
            if connection._state != _followed:
                continue
            if not connection._asked and length and by_higher == connection._by_higher:
                connection._asked = True
                if self._is_strange(connection, src, start, length, position):
                    continue
            stream = connection._requests if by_higher == connection._by_higher else connection._answers
            sequence = segments._sequences[index]
            if flags & _syn:
                sequence += 1  # it counts as a byte
                stream.begin(sequence)
            if length or segments._missing[index]:
                stream.add(src, start, length, segments._missing[index], sequence, segments._times[index], position)
            if flags & _rst:
                self._end(connection)
            if self._held.size > self._max_held:
                self._let_go()

    def finish(self) -> None:
        """The capture has ended: so have all connections, and `done` has the last rows."""
        connections: list = list(self._known.values())
        self._known = {}
        connection: Connection
        for connection in connections:
            connection._finish()
        if self._rows.count:
            self.done.append(self._rows)
            self._rows = Rows(_room)

    @cython.cfunc
    def _begin(self, ends: bytes, by_higher: cython.bint, begun: cython.bint) -> Connection:
        connection: Connection = Connection(self, ends)
        connection._used = self._clock
        self._known[ends] = connection
        if begun:
            self._follow(connection, by_higher, True)
        if len(self._known) > self._max_connections:
            self._forget_oldest()
        return connection

    @cython.cfunc
    def _follow(self, connection: Connection, by_higher: cython.bint, begun: cython.bint) -> cython.int:
        connection._state = _followed
        connection._by_higher = by_higher
        connection._asked = not begun
        connection.told = self._listener.met(connection.ends, by_higher)
        connection._requests = Requests(connection, self._held, self._keep, self._max_frame)
        connection._answers = Answers(connection, self._held, self._keep, self._max_frame)
        if begun:
            connection._requests.begin_frames()
            connection._answers.begin_frames()
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
        if _is_tls(src, start, length):
            self._lose(_tls, position, 1)
            connection._state = _left_alone
        elif self._looks_like_request(src, start, length):
            self._follow(connection, by_higher, False)
        else:
            connection._strange += 1
            if connection._strange >= _strange_segments:
                self._lose(_not_kafka, position, 1)
                connection._state = _left_alone
        return 0

    @cython.cfunc
    def _is_strange(
        self,
        connection: Connection,
        src: cython.pointer[cython.const[cython.uchar]],
        start: cython.Py_ssize_t,
        length: cython.longlong,
        position: cython.longlong,
    ) -> cython.bint:
        """Whether the first thing that the client of a new connection says is nothing of Kafka's, which leaves it
        alone."""
        if _is_tls(src, start, length):
            self._lose(_tls, position, 1)
        elif length >= _least_request and not self._looks_like_request(src, start, length):
            self._lose(_not_kafka, position, 1)
        else:
            return False
        connection._finish()
        connection._state = _left_alone
        return True

    @cython.cfunc
    def _end(self, connection: Connection) -> cython.int:
        del self._known[connection.ends]
        return connection._finish()

    @cython.cfunc
    def _silent(self) -> list:
        """All connections, those first that have been silent longest."""
        connection: Connection
        order: list = []
        for connection in self._known.values():
            order.append((connection._used, connection.ends))
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
            if self._held.size <= self._max_held // 4 * 3:
                break
            held = connection._held()
            connection._let_go()
            if held:
                self._lose(_let_go, connection._last_position, held)
        return 0

    @cython.cfunc
    def _looks_like_request(
        self, src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, length: cython.longlong
    ) -> cython.bint:
        """Whether these bytes begin with a request's frame, as far as anybody can tell."""
        if length < _least_request:
            return False
        return self._looks_like_header(src, at + 4, length - 4, int32_at(src, at))

    @cython.cfunc
    def _looks_like_header(
        self,
        src: cython.pointer[cython.const[cython.uchar]],
        at: cython.Py_ssize_t,
        length: cython.longlong,
        size: cython.longlong,
    ) -> cython.bint:
        """Whether `length` bytes, of `size` that a frame has, begin with a request's header: an API there is, a version
        it may have, a client id that is text."""
        api: cython.int
        client_id: cython.longlong
        if length < _least_request - 4 or not 8 <= size <= self._max_frame:
            return False
        api = _int16(src, at)
        if not 0 <= api < len(self._apis) or not self._apis[api] or not 0 <= _int16(src, at + 2) <= _top_version:
            return False
        client_id = _int16(src, at + 8)
        if client_id < -1 or 10 + client_id > size:
            return False
        data: bytes = _bytes(src, at + 10, min(max(client_id, 0), length - 10))
        try:
            return data.decode().isprintable()
        except UnicodeDecodeError as error:
            return error.end == len(data)  # a character that the packet's end cuts

    @cython.cfunc
    def _emit(
        self, asked: Asked, answered: cython.longlong, response_bytes: cython.longlong, answer: bytes
    ) -> cython.int:
        """Adds a row: a request whose answer came, or is known not to come."""
        rows: Rows = self._rows
        speaker: Speaker = asked._speaker
        row: cython.Py_ssize_t = rows.count
        if speaker._rows is not rows:
            speaker._rows = rows
            speaker._number = len(rows.speakers)
            rows.speakers.append(speaker.told)
            rows.first_rows.append(row)
        rows._times[row] = asked._time
        rows._answered[row] = answered
        rows._speaker_numbers[row] = speaker._number
        rows._apis[row] = asked._api
        rows._versions[row] = asked._version
        rows._correlation_ids[row] = asked._correlation_id
        rows._request_bytes[row] = asked._request_bytes
        rows._response_bytes[row] = response_bytes
        rows._positions[row] = asked._position
        if asked._request is not None:
            rows.requests[row] = asked._request
            rows._kept += len(asked._request)
        if answer is not None and (self._bodies or asked._api == _api_versions):
            rows.answers[row] = answer
            rows._kept += len(answer)
        rows.count = row + 1
        if rows.count == rows.room or rows._kept > _max_body_bytes:
            self.done.append(rows)
            self._rows = Rows(_room)
        return 0

    @cython.cfunc
    def _lose(self, reason: cython.int, position: cython.longlong, count: cython.longlong) -> cython.int:
        self._listener.lost(reason, position, count)
        return 0


@cython.cfunc
@cython.exceptval(check=False)
def _is_tls(
    src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, length: cython.longlong
) -> cython.bint:
    """Whether a record of TLS begins here, with a handshake or with data."""
    return length >= 2 and (src[at] == 0x16 or src[at] == 0x17) and src[at + 1] == 3
