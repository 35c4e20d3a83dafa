"""Conversations between clients and brokers: frames in, rows of requests with their responses out.

Responses come in the order of the requests, but not every request has one (Produce with acks=0), and a capture may lack
either. So a response belongs to the oldest request with its correlation id; older requests then had none.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.libc.string import memcmp
    from cython.cimports.tagwire.kernel.raw_bytes import int32_at
    from cython.cimports.tagwire.kernel.request_rows import Rows, Speaker
    from cython.cimports.tagwire.kernel.streams import Held, Stream
else:
    from tagwire.kernel.raw_bytes import int32_at
    from tagwire.kernel.request_rows import Rows, Speaker
    from tagwire.kernel.streams import Held, Stream

from tagwire.kernel.request_rows import ROWS

COMPILED: bool = cython.compiled

NO_HEADER, UNMATCHED, OUT_OF_STEP, TLS, NOT_KAFKA, LET_GO = range(6)
"""What a listener is told was lost: a request whose header cannot be read; a response to no request that was seen;
bytes between frames; a connection under TLS; one that does not speak Kafka's protocol; bytes let go for want of
room."""

_no_header = cython.declare(cython.int, NO_HEADER)
_unmatched = cython.declare(cython.int, UNMATCHED)
_out_of_step = cython.declare(cython.int, OUT_OF_STEP)

_room = cython.declare(cython.Py_ssize_t, ROWS)
# Of bodies in the rows that are handed over together.
_max_body_bytes = cython.declare(cython.longlong, 16 << 20)
# Requests waiting for their responses on one connection; the oldest is then taken to have none.
_max_open = cython.declare(cython.Py_ssize_t, 4096)
# Responses captured before their requests, as captures of several network queues have them.
_max_early = cython.declare(cython.Py_ssize_t, 1000)
# What a request that waits takes beside its body, about; a response, too.
_in_flight_bytes = cython.declare(cython.longlong, 256)
_top_version = cython.declare(cython.longlong, 40)  # above any version that an API has
_least_request = cython.declare(cython.longlong, 14)  # a size, and a header whose client id is empty or null

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


@cython.freelist(512)
@cython.cclass
class InFlightRequest:
    """A request, for as long as its response is awaited."""


@cython.cclass
class Side(Stream):
    """What one end of a connection sends."""

    def __init__(self, connection: Connection, held: Held, keep: int, max_frame: int) -> None:
        Stream.__init__(self, held, keep, max_frame)
        self._connection = connection

    @cython.cfunc
    def _lost(self, size: cython.longlong) -> cython.int:
        return self._connection._capture.lose(_out_of_step, self._connection.last_position, max(size, 1))


@cython.cclass
class Requests(Side):
    """What the client sends."""

    @cython.cfunc
    def _begins(
        self, src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.bint:
        return self._connection._capture.looks_like_request(src, at, end - at)

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
class Responses(Side):
    """What the broker sends."""

    @cython.cfunc
    def _begins(
        self, src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.bint:
        if end - at < 8 or not 4 <= int32_at(src, at) <= self._max_frame:
            return False
        return self._connection._awaits(int32_at(src, at + 4))

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
        return self._connection._response(src, at, kept, size, time, position)


@cython.cclass
class Connection:
    """One connection. Until something tells which end is the client, there is nothing of it but its ends.

    told: the listener's, to whom it is handed back.
    """

    def __init__(self, capture: Capture, ends: bytes) -> None:
        self._capture = capture
        self.ends = ends
        self.told = None
        self.state = 0  # the watcher's word for what it is
        self.by_higher = False  # whether the client is the higher of the ends
        self.has_requested = False
        self.is_closing = False
        self.strange = 0
        self.likely = None  # what may have been a request, before it is known which end is the client
        self.raw_tokens = False
        self.used = 0
        self.last_position = 0
        self.requests = None
        self.responses = None
        self._open = []
        self._first = 0  # of the open ones; those before it have their responses
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
        request: InFlightRequest
        capture: Capture = self._capture
        api: cython.int
        version: cython.int
        length: cython.longlong = -1
        self.last_position = position
        if self.told is None:
            self.told = capture.listener.met(self.ends, self.by_higher)
        if self.raw_tokens:
            if not capture.looks_like_header(src, at, kept, size):
                if capture.listener.token(self.told, _bytes(src, at, kept)):
                    self._speaker = None
                return 0
            self._take_tokens(False)
        if kept < 8:
            return capture.lose(_no_header, position, 1)
        api = _int16(src, at)
        version = _int16(src, at + 2)
        if capture.has_client_id(api, version):
            if kept < 10:
                return capture.lose(_no_header, position, 1)
            length = _int16(src, at + 8)
            if length > kept - 10:
                return capture.lose(_no_header, position, 1)
        if kept == size and (api == _api_versions or api == _sasl_handshake or api == _sasl_authenticate):
            if capture.listener.learn(self.told, _bytes(src, at, size)):
                self._speaker = None
        if self._speaker is None or not _equals(src, at + 10, length, self._speaker.client_id):
            client_id = None if length < 0 else _bytes(src, at + 10, length)
            self._speaker = Speaker(capture.listener.speaker(self.told, client_id), client_id)
        request = InFlightRequest()
        request._time = time
        request._position = position
        request._request_bytes = size + 4
        request._correlation_id = int32_at(src, at + 4)
        request._api = api
        request._version = version
        request._speaker = self._speaker
        request._request = _bytes(src, at, size) if capture.whole_requests and kept == size else None
        if self._early is not None and request._correlation_id in self._early:
            return self._responded_early(request, self._early.pop(request._correlation_id))
        self._open.append(request)
        capture.held.size += _in_flight_bytes + (0 if request._request is None else size)
        if len(self._open) - self._first > _max_open:
            capture.emit(self._pop(), -1, -1, None)
        return 0

    @cython.cfunc
    def _responded_early(self, request: InFlightRequest, early: tuple) -> cython.int:
        response: bytes
        time, size, response, _ = early
        self._capture.held.size -= _in_flight_bytes + (0 if response is None else len(response))
        return self._capture.emit(request, time, size + 4, response)

    @cython.cfunc
    def _response(
        self,
        src: cython.pointer[cython.const[cython.uchar]],
        at: cython.Py_ssize_t,
        kept: cython.longlong,
        size: cython.longlong,
        time: cython.longlong,
        position: cython.longlong,
    ) -> cython.int:
        request: InFlightRequest
        capture: Capture = self._capture
        response: bytes = None
        correlation_id: cython.longlong
        if self.raw_tokens:
            return 0
        if kept < 4:  # which the capture lacks
            return capture.lose(_unmatched, position, 1)
        correlation_id = int32_at(src, at)
        if not self._awaits(correlation_id):
            if kept == size:
                response = _bytes(src, at, size)
            if self._early is None:
                self._early = {}
            known = self._early.pop(correlation_id, None)
            self._early[correlation_id] = (time, size, response, position)
            capture.held.size += _in_flight_bytes + (0 if response is None else size)
            if known is None and len(self._early) > _max_early:
                known = self._early.pop(next(iter(self._early)))
            if known is not None:
                capture.held.size -= _in_flight_bytes + (0 if known[2] is None else len(known[2]))
                capture.lose(_unmatched, known[3], 1)
            return 0
        request = self._pop()
        while request._correlation_id != correlation_id:
            capture.emit(request, -1, -1, None)
            request = self._pop()
        if kept == size and (capture.whole_responses or request._api == _api_versions):
            response = _bytes(src, at, size)
        if request._api == _sasl_handshake and request._version == 0:
            self._take_tokens(True)
        return capture.emit(request, time, size + 4, response)

    @cython.cfunc
    def _take_tokens(self, bare: cython.bint) -> cython.int:
        self.raw_tokens = bare
        self.requests.take_tokens(bare)
        return self.responses.take_tokens(bare)

    @cython.cfunc
    def _awaits(self, correlation_id: cython.longlong) -> cython.bint:
        """Whether a request with this correlation id is open."""
        request: InFlightRequest
        index: cython.Py_ssize_t
        for index in range(self._first, len(self._open)):
            request = self._open[index]
            if request._correlation_id == correlation_id:
                return True
        return False

    @cython.cfunc
    def _pop(self) -> InFlightRequest:
        """The oldest open request, which is open no longer."""
        request: InFlightRequest = self._open[self._first]
        self._open[self._first] = None
        self._first += 1
        if self._first == len(self._open) or self._first >= 1024:
            del self._open[: self._first]
            self._first = 0
        self._capture.held.size -= _in_flight_bytes + (0 if request._request is None else len(request._request))
        return request

    @cython.cfunc
    def finish(self) -> cython.int:
        """It has ended, or the capture: what is unanswered stays so."""
        if self.requests is not None:
            self.requests.finish()
            self.responses.finish()
            self.requests = self.responses = None  # which know it
        while self._open:
            self._capture.emit(self._pop(), -1, -1, None)
        return self._forget_early()

    @cython.cfunc
    def let_go(self) -> cython.int:
        """Keeps nothing any longer of what was not yet understood."""
        if self.requests is not None:
            self.requests.let_go()
            self.responses.let_go()
        while self._open:
            self._capture.emit(self._pop(), -1, -1, None)
        return self._forget_early()

    @cython.cfunc
    def _forget_early(self) -> cython.int:
        if self._early is not None:
            for _, _, response, position in self._early.values():
                self._capture.held.size -= _in_flight_bytes + (0 if response is None else len(response))
                self._capture.lose(_unmatched, position, 1)
            self._early = None
        return 0

    @cython.cfunc
    def kept(self) -> cython.longlong:
        """What its streams keep, in bytes."""
        if self.requests is None:
            return 0
        return (
            self.requests.waiting_bytes
            + self.requests.kept_bytes
            + self.responses.waiting_bytes
            + self.responses.kept_bytes
        )


@cython.cclass
class Capture:
    """What all connections of a capture share: what is wanted, the listener, the rows that are being filled.

    held: what is kept of what is not yet understood. done: rows that are full.
    """

    def __init__(
        self, listener: object, apis: bytes, max_frame: int, keep: int, requests: bool, responses: bool
    ) -> None:
        self.listener = listener
        self.whole_requests = requests
        self.whole_responses = responses
        self.held = Held()
        self.done = []
        self._apis = apis
        self._max_frame = max_frame
        self._keep = keep
        self._rows = Rows(_room, 0)

    @cython.cfunc
    def requests(self, connection: Connection) -> Requests:
        keep: cython.longlong = self._max_frame if self.whole_requests else self._keep
        return Requests(connection, self.held, keep, self._max_frame)

    @cython.cfunc
    def responses(self, connection: Connection) -> Responses:
        keep: cython.longlong = self._max_frame if self.whole_responses else self._keep
        return Responses(connection, self.held, keep, self._max_frame)

    @cython.cfunc
    def has_client_id(self, api: cython.int, version: cython.int) -> cython.bint:
        """Whether the header of a request has a client id; every header but the oldest has."""
        return not 0 <= api < len(self._apis) or version >= self._apis[api] - 1

    @cython.cfunc
    def nameless_request(
        self, src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, by_higher: cython.bint
    ) -> bytes:
        """Of what looks like a request without the name of its client: who sent it, its API and version, its
        correlation id; None where it has a name. A response looks the same where its correlation id is one of few
        numbers: that stands where a request has API and version, and is followed by zeros."""
        if not self.has_client_id(_int16(src, at + 4), _int16(src, at + 6)) or _int16(src, at + 12) > 0:
            return None
        return (b"h" if by_higher else b"l") + _bytes(src, at + 4, 8)

    @cython.cfunc
    def looks_like_request(
        self, src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, length: cython.longlong
    ) -> cython.bint:
        """Whether these bytes begin with a request's frame, as far as anybody can tell."""
        if length < _least_request:
            return False
        return self.looks_like_header(src, at + 4, length - 4, int32_at(src, at))

    @cython.cfunc
    def looks_like_header(
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
        if not self.has_client_id(api, _int16(src, at + 2)):
            return True
        client_id = _int16(src, at + 8)
        if client_id < -1 or 10 + client_id > size:
            return False
        data: bytes = _bytes(src, at + 10, min(max(client_id, 0), length - 10))
        try:
            return data.decode().isprintable()
        except UnicodeDecodeError as error:
            return error.end == len(data)  # a character that the packet's end cuts

    @cython.cfunc
    def emit(
        self, request: InFlightRequest, responded: cython.longlong, response_bytes: cython.longlong, response: bytes
    ) -> cython.int:
        """Adds a row: a request whose response came, or is known not to come."""
        rows: Rows = self._rows
        speaker: Speaker = request._speaker
        row: cython.Py_ssize_t = rows.count
        if speaker._serial != rows._serial:
            speaker._serial = rows._serial
            speaker._number = len(rows.speakers)
            rows.speakers.append(speaker.told)
            rows.first_rows.append(row)
        rows._times[row] = request._time
        rows._responded[row] = responded
        rows._speaker_numbers[row] = speaker._number
        rows._apis[row] = request._api
        rows._versions[row] = request._version
        rows._correlation_ids[row] = request._correlation_id
        rows._request_bytes[row] = request._request_bytes
        rows._response_bytes[row] = response_bytes
        rows._positions[row] = request._position
        if request._request is not None:
            rows.requests[row] = request._request
            rows._kept += len(request._request)
        if response is not None and (self.whole_responses or request._api == _api_versions):
            rows.responses[row] = response
            rows._kept += len(response)
        rows.count = row + 1
        if rows.count == rows.room or rows._kept > _max_body_bytes:
            self.finish()
        return 0

    @cython.cfunc
    def finish(self) -> cython.int:
        """The rows so far are done."""
        if self._rows.count:
            self.done.append(self._rows)
            self._rows = Rows(_room, self._rows._serial + 1)
        return 0

    @cython.cfunc
    def lose(self, reason: cython.int, position: cython.longlong, count: cython.longlong) -> cython.int:
        self.listener.lost(reason, position, count)
        return 0
