"""Rows of requests gathered: by speaker, API and version, and by minute."""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.tagwire.kernel.number_columns import numbers_of
    from cython.cimports.tagwire.kernel.request_rows import Rows
else:
    from tagwire.kernel.number_columns import numbers_of
    from tagwire.kernel.request_rows import Rows

COMPILED: bool = cython.compiled


@cython.cclass
class Group:
    """Rows of one speaker, API and version.

    number: its index among the groups. speaker: its number in the rows. count: how many rows. first, last: their
    earliest and latest time, -1 where none is known. first_position, last_position: of those rows; the lower, or the
    higher, of equal times.
    """

    def __init__(self, number: int, speaker: int, api: int, version: int) -> None:
        self.number = number
        self.speaker = speaker
        self.api = api
        self.version = version
        self.count = 0
        self.first = self.last = -1
        self.first_position = self.last_position = 0


@cython.cdivision(True)
def group_rows(rows: Rows, start: cython.Py_ssize_t, stop: cython.Py_ssize_t, numbers: memoryview | None) -> list:
    """The groups of rows `start` to `stop`, in the order of their first rows. Fills `numbers`, a column, with the
    number of each row's group."""
    groups: list = []
    known: dict = {}
    row: cython.Py_ssize_t
    key: cython.longlong
    group: Group
    time: cython.longlong
    position: cython.longlong
    out: cython.p_longlong = numbers_of(numbers)
    for row in range(start, stop):
        key = rows._speaker_numbers[row] << 32 | (rows._apis[row] & 0xFFFF) << 16 | rows._versions[row] & 0xFFFF
        time = rows._times[row]
        position = rows._positions[row]
        found = known.get(key)
        if found is None:
            group = Group(len(groups), rows._speaker_numbers[row], rows._apis[row], rows._versions[row])
            group.first = group.last = time
            group.first_position = group.last_position = position
            known[key] = group
            groups.append(group)
        else:
            group = found
        group.count += 1
        if time >= 0 and (
            group.first < 0 or time < group.first or (time == group.first and position < group.first_position)
        ):
            group.first, group.first_position = time, position
        elif time < 0 and group.first < 0 and position < group.first_position:
            group.first_position = position
        if time > group.last or (time == group.last and position > group.last_position):
            group.last, group.last_position = time, position
        if numbers is not None:
            out[row] = group.number
    return groups


@cython.cdivision(True)
def count_minutes(rows: Rows, minute: cython.longlong) -> dict:
    """{(API, version, minute since 1970): rows}, of rows whose time is known; `minute` is its length in the times'
    unit."""
    counts: dict = {}
    row: cython.Py_ssize_t
    pending: cython.longlong = 0
    api: cython.longlong = -1
    version: cython.longlong = -1
    when: cython.longlong = -1
    for row in range(rows.count):
        if rows._times[row] < 0:
            continue
        if pending and not (
            api == rows._apis[row] and version == rows._versions[row] and when == rows._times[row] // minute
        ):
            counts[api, version, when] = counts.get((api, version, when), 0) + pending
            pending = 0
        api, version, when = rows._apis[row], rows._versions[row], rows._times[row] // minute
        pending += 1
    if pending:
        counts[api, version, when] = counts.get((api, version, when), 0) + pending
    return counts
