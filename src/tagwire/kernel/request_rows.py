"""Requests that a watcher saw, with their responses, as columns; and who made them."""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.tagwire.kernel.number_columns import numbers_of
else:
    from tagwire.kernel.number_columns import numbers_of

from tagwire.kernel.number_columns import number_column

COMPILED: bool = cython.compiled

ROWS = 32_768
"""Rows that are handed over together."""


@cython.cclass
class Speaker:
    """Who makes requests on a connection, for as long as nothing else is learnt of it.

    told: what the listener said. client_id: its bytes, None for null.
    """

    def __init__(self, told: object, client_id: object) -> None:
        self.told = told
        self.client_id = client_id
        self._number = 0
        self._serial = -1  # of the rows where the number counts


@cython.cclass
class Rows:
    """Requests, with their responses, as columns, in the order the responses came.

    times, responded: microseconds since 1970 UTC, -1 where not recorded, `responded` also where there was no response.
    speaker_numbers: which of `speakers` sent each, whose first rows are `first_rows`. apis, versions,
    correlation_ids: the header's. request_bytes, response_bytes: whole frames with their sizes, -1 where there was no
    response. positions: of the packets that requests begin in. requests, responses: {row: frame after its size}, of
    those that were kept whole: all where they are wanted, else the responses to ApiVersions.
    """

    def __init__(self, room: int, serial: int) -> None:
        self.room = room
        self._serial = serial
        self.count = 0
        self.speakers, self.first_rows = [], []
        self.requests, self.responses = {}, {}
        self._kept = 0
        self.times, self.responded, self.speaker_numbers = number_column(room), number_column(room), number_column(room)
        self.apis, self.versions, self.correlation_ids = number_column(room), number_column(room), number_column(room)
        self.request_bytes, self.response_bytes = number_column(room), number_column(room)
        self.positions = number_column(room)
        self._times, self._responded = numbers_of(self.times), numbers_of(self.responded)
        self._speaker_numbers, self._apis = numbers_of(self.speaker_numbers), numbers_of(self.apis)
        self._versions, self._correlation_ids = numbers_of(self.versions), numbers_of(self.correlation_ids)
        self._request_bytes, self._response_bytes = numbers_of(self.request_bytes), numbers_of(self.response_bytes)
        self._positions = numbers_of(self.positions)
