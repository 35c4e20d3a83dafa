"""Requests as they were seen, many at a time: out of packets in columns, out of logs as observations."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from tagwire.capture.bodies import BAD_RESPONSE, codes_in, listed, response_in
from tagwire.capture.census import MINUTE, Census, Client, Offers, Use, client_of, is_follower
from tagwire.capture.exchange import body_of
from tagwire.capture.observation import Endpoint, Losses, Observation, Place
from tagwire.kernel.number_columns import number_column
from tagwire.kernel.request_rows import Rows
from tagwire.kernel.row_groups import Group, count_minutes, group_rows
from tagwire.rpc.ranges import Range
from tagwire.spec.api_keys import ApiKey


@dataclass(slots=True)
class Requests:
    """Requests that were seen, one a row.

    Attributes:
        rows: the columns; what `Observation` says of a request, by their names.
        file: the capture's path.
        offered: {row: what the broker listed}, of ApiVersions that got a response.
        error_codes: {row: codes}, of responses that were read; None where bodies are not wanted.
    """

    rows: Rows
    file: str
    offered: dict[int, dict[int, Range]] = field(default_factory=dict)
    error_codes: dict[int, tuple[int, ...]] | None = None

    def observations(self) -> Iterator[Observation]:
        """The rows one by one."""
        rows = self.rows
        for row in range(rows.count):
            speaker = rows.speakers[rows.speaker_numbers[row]]
            yield Observation(
                time=rows.times[row],
                client=speaker.client,
                broker=speaker.broker,
                client_id=speaker.client_id,
                software_name=speaker.software_name,
                software_version=speaker.software_version,
                principal=speaker.principal,
                listener="",
                api_key=rows.apis[row],
                api_version=rows.versions[row],
                place=Place(self.file, rows.positions[row]),
                request_bytes=rows.request_bytes[row],
                response_bytes=None if rows.response_bytes[row] < 0 else rows.response_bytes[row],
                error_codes=None if self.error_codes is None else self.error_codes.get(row),
                offered=self.offered.get(row),
            )


Seen = Requests | list[Observation]
"""What was seen, many at a time: packets as columns, the lines of a log one by one."""


def requests_of(rows: Rows, file: str, losses: Losses, *, bodies: bool) -> Requests:
    """Rows of the kernel with what their responses say."""
    found = Requests(rows, file, error_codes={} if bodies else None)
    for row in rows.responses:
        body, api = body_of(rows, row), rows.apis[row]
        if body is None:
            continue
        response = response_in(body, api, rows.versions[row])
        if response is None:
            losses.add(BAD_RESPONSE, Place(file, rows.positions[row]))
            continue
        if api == ApiKey.API_VERSIONS and (ranges := listed(response)) is not None:
            found.offered[row] = ranges
        if found.error_codes is not None:
            found.error_codes[row] = codes_in(response)
    return found


class Gathered(NamedTuple):
    """Rows of one speaker, API and version.

    Attributes:
        highest_offered: the newest version of the API that a broker had offered by then; None where no offer was seen.
        is_new: whether its connection was not seen before.
    """

    group: Group
    client: Client
    highest_offered: int | None
    is_new: bool


def gathered(found: Requests, offers: Offers, numbers: memoryview) -> Iterator[tuple[int, int, list[Gathered]]]:
    """The rows by speaker, API and version: (first row, row after the last, groups), anew wherever a response changes
    what is known of a client.

    Args:
        offers: told of all, in their order.
        numbers: a column as long as the rows', for the number of each row's group.
    """
    rows = found.rows
    clients = [client_of(speaker) for speaker in rows.speakers]
    begun: dict[tuple[Endpoint, Endpoint], int] = {}  # with which row
    for speaker, first in zip(rows.speakers, rows.first_rows):
        begun.setdefault((speaker.client, speaker.broker), first)
    fresh: set[tuple[Endpoint, Endpoint]] = set()

    def groups(start: int, stop: int) -> Iterator[Gathered]:
        for group in group_rows(rows, start, stop, numbers):
            client, speaker = clients[group.speaker], rows.speakers[group.speaker]
            connection = (speaker.client, speaker.broker)
            is_new = offers.is_new(speaker) or connection in fresh
            fresh.discard(connection)
            yield Gathered(group, client, offers.known(client, speaker, group.api), is_new)

    start = 0
    for row, ranges in sorted(found.offered.items()):
        number = rows.speaker_numbers[row]
        client, speaker = clients[number], rows.speakers[number]
        begins = offers.is_new(speaker) and begun[speaker.client, speaker.broker] == row
        if row > start and offers.changes(client, speaker, ranges, begins=begins):
            yield start, row, list(groups(start, row))
            start = row
        if begins:
            fresh.add((speaker.client, speaker.broker))
        offers.told(client, speaker, ranges)
    if rows.count > start:
        yield start, rows.count, list(groups(start, rows.count))


def take_census(census: Census, seen: Seen) -> None:
    """Gathers what was seen together, as `Census.add` would one by one, in their order."""
    if isinstance(seen, Requests):
        _take_requests(census, seen)
    else:
        _take_lines(census, seen)


def _take_requests(census: Census, found: Requests) -> None:
    rows, file = found.rows, found.file
    numbers = number_column(rows.count)
    coded = deque((row, codes) for row, codes in (found.error_codes or {}).items() if codes)
    for _, stop, groups in gathered(found, census.offers, numbers):
        errors: dict[int, Counter[int]] = {}
        while coded and coded[0][0] < stop:
            row, codes = coded.popleft()
            errors.setdefault(numbers[row], Counter()).update(codes)
        for group, client, highest, is_new in groups:
            places = dict.fromkeys((Place(file, group.first_position), Place(file, group.last_position)))
            counts = dict(errors.get(group.number, ()))
            use = Use(group.count, group.first, group.last, tuple(places), highest, counts)
            if is_new:
                census.add_connection(client, rows.speakers[group.speaker], use.places[0])
            census.add_use(client, group.api, group.version, use)
    for (api, version, minute), count in _minutes(rows).items():
        census.add_minute(api, version, minute, count)


def _minutes(rows: Rows) -> dict[tuple[int, int, int], int]:
    """{(API, version, minute): requests}, without those of followers."""
    counts: dict[tuple[int, int, int], int] = count_minutes(rows, MINUTE)
    followers = {number for number, speaker in enumerate(rows.speakers) if is_follower(client_of(speaker))}
    for row in range(rows.count) if followers else ():
        if rows.speaker_numbers[row] in followers and rows.times[row] >= 0:
            counts[rows.apis[row], rows.versions[row], rows.times[row] // MINUTE] -= 1
    return {key: count for key, count in counts.items() if count}


def _take_lines(census: Census, seen: Iterable[Observation]) -> None:
    """Alike ones are gathered together, anew from each on that tells what a broker offers."""
    alike: dict[tuple[object, ...], list[Observation]] = {}
    for one in seen:
        if one.offered is not None:
            _take_alike(census, alike.values())
            alike.clear()
            census.add(one)
            continue
        # Ends are told apart by which object they are: a log's reader makes each once, and to hash them takes long.
        ends = (id(one.client), id(one.broker))
        who = (one.client_id, one.software_name, one.software_version, one.principal)
        alike.setdefault((*ends, *who, one.api_key, one.api_version, one.error_codes), []).append(one)
    _take_alike(census, alike.values())


_when = attrgetter("time")


def _take_alike(census: Census, alike: Iterable[list[Observation]]) -> None:
    """Each list is of one speaker, API and version, with one outcome, of one file and in its order."""
    for group in alike:
        timed = [one for one in group if one.time >= 0]
        first, last = min(timed or group, key=_when), max(reversed(timed or group), key=_when)
        count = sum(one.count for one in group)
        client, api, version = client_of(first), first.api_key, first.api_version
        if census.offers.is_new(first):
            census.add_connection(client, first, group[0].place)
        highest = census.offers.known(client, first, api)
        errors = dict.fromkeys(first.error_codes or (), count)
        places = tuple(dict.fromkeys((first.place, last.place)))
        use = Use(count, first.time, last.time, places, highest, errors)
        census.add_use(client, api, version, use)
        minutes: Counter[int] = Counter()
        for one in timed:
            minutes[one.time // MINUTE] += one.count
        for minute, requests in minutes.items() if not is_follower(client) else ():
            census.add_minute(api, version, minute, requests)
