"""Observations and verdicts as Arrow tables. Imports pyarrow: loaded where tables are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from tagwire.capture.census import Census, Offers, Use, client_of
from tagwire.capture.connections import Speaker
from tagwire.capture.observation import Losses, Observation, Place
from tagwire.capture.requests import Requests, Seen, gathered
from tagwire.capture.verdicts import Verdict
from tagwire.extras import Needs
from tagwire.kernel.number_columns import number_column
from tagwire.rpc.names import api_name

with Needs("arrow"):
    import pyarrow as pa
    import pyarrow.compute as pc

_TIME: Final = pa.timestamp("us", "UTC")

OBSERVATIONS: Final = pa.schema(
    [
        pa.field("time", _TIME),
        pa.field("client_address", pa.string(), nullable=False),
        pa.field("client_port", pa.int32(), nullable=False),
        pa.field("broker_address", pa.string(), nullable=False),
        pa.field("broker_port", pa.int32(), nullable=False),
        pa.field("client_id", pa.string()),
        pa.field("software_name", pa.string(), nullable=False),
        pa.field("software_version", pa.string(), nullable=False),
        pa.field("principal", pa.string(), nullable=False),
        pa.field("listener", pa.string(), nullable=False),
        pa.field("api_key", pa.int16(), nullable=False),
        pa.field("api", pa.string(), nullable=False),
        pa.field("api_version", pa.int16(), nullable=False),
        pa.field("count", pa.int64(), nullable=False),
        pa.field("request_bytes", pa.int64()),
        pa.field("response_bytes", pa.int64()),
        pa.field("error_codes", pa.list_(pa.int16())),
        pa.field("highest_offered", pa.int16()),
        pa.field("file", pa.string(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
    ]
)
"""One row for each observation; see `Observation`. `time` is null where the capture has none; `highest_offered` is the
newest version of the API that a broker had offered the client by then."""

VERDICTS: Final = pa.schema(
    [
        pa.field("software_name", pa.string(), nullable=False),
        pa.field("software_version", pa.string(), nullable=False),
        pa.field("client_id", pa.string()),
        pa.field("principal", pa.string(), nullable=False),
        pa.field("address", pa.string(), nullable=False),
        pa.field("target", pa.string(), nullable=False),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("works_until", pa.string()),
        pa.field("upgrade", pa.string()),
        pa.field("api_key", pa.int16()),
        pa.field("api", pa.string()),
        pa.field("api_version", pa.int16()),
        pa.field("cause", pa.string()),
        pa.field("count", pa.int64()),
        pa.field("first", _TIME),
        pa.field("last", _TIME),
        pa.field("file", pa.string()),
        pa.field("position", pa.int64()),
    ]
)
"""One row for each version that a target does not serve, or one without an API where there is none such."""


_PLACE: Final = [pa.field("file", pa.string()), pa.field("position", pa.int64())]
_CENSUS_ROWS: Final = 20_000

CENSUS: Final = pa.schema(
    [
        pa.field("software_name", pa.string()),
        pa.field("software_version", pa.string()),
        pa.field("client_id", pa.string()),
        pa.field("principal", pa.string()),
        pa.field("address", pa.string()),
        pa.field("api_key", pa.int32()),
        pa.field("api_version", pa.int32()),
        pa.field("count", pa.int64()),
        pa.field("first", pa.struct([pa.field("unknown", pa.bool_()), pa.field("time", pa.int64()), *_PLACE])),
        pa.field("last", pa.struct([pa.field("time", pa.int64()), *_PLACE])),
        pa.field("highest_offered", pa.int32()),
        pa.field("error_codes", pa.list_(pa.struct([pa.field("code", pa.int32()), pa.field("count", pa.int64())]))),
        pa.field("minute", pa.int64()),
        pa.field("loss", pa.string()),
        pa.field("place", pa.struct(_PLACE)),
        pa.field(
            "connection",
            pa.struct(
                [
                    pa.field("client_port", pa.int32()),
                    pa.field("broker_address", pa.string()),
                    pa.field("broker_port", pa.int32()),
                ]
            ),
        ),
    ]
)
"""Rows of four kinds: a client's use of a version of an API (see `Use`); requests in a minute since 1970 UTC, which
has `minute`; something not understood, which has `loss`, and `place`, where it was met first; a connection, from the
client's address, which has `connection`, who sent on it first, and `place`, where that was."""


def observation_batch(seen: Seen, offers: Offers) -> pa.RecordBatch:
    """What was seen as a batch of `OBSERVATIONS`.

    Args:
        offers: what was told of everything that was seen before; it is told of this.
    """
    if isinstance(seen, Requests):
        return _request_batch(seen, offers)
    return pa.RecordBatch.from_pylist([_row(one, offers.highest(client_of(one), one)) for one in seen], OBSERVATIONS)


def _request_batch(found: Requests, offers: Offers) -> pa.RecordBatch:
    rows, count = found.rows, found.rows.count
    numbers = number_column(count)
    group_of = _numbers(numbers, count, pa.int64())  # which `gathered` fills
    highest = [
        pa.array([group.highest_offered for group in groups], pa.int16()).take(group_of.slice(start, stop - start))
        for start, stop, groups in gathered(found, offers, numbers)
    ]
    who = _numbers(rows.speaker_numbers, count, pa.int64())
    speakers: list[Speaker] = rows.speakers
    apis = _numbers(rows.apis, count, pa.int16())
    names = apis.dictionary_encode()
    codes = found.error_codes
    columns = {
        "time": _numbers(rows.times, count, _TIME, unknown=True),
        "client_address": pa.array([one.client.address for one in speakers], pa.string()).take(who),
        "client_port": pa.array([one.client.port for one in speakers], pa.int32()).take(who),
        "broker_address": pa.array([one.broker.address for one in speakers], pa.string()).take(who),
        "broker_port": pa.array([one.broker.port for one in speakers], pa.int32()).take(who),
        "client_id": pa.array([one.client_id for one in speakers], pa.string()).take(who),
        "software_name": pa.array([one.software_name for one in speakers], pa.string()).take(who),
        "software_version": pa.array([one.software_version for one in speakers], pa.string()).take(who),
        "principal": pa.array([one.principal for one in speakers], pa.string()).take(who),
        "listener": pa.repeat("", count),
        "api_key": apis,
        "api": pa.array([api_name(api) for api in names.dictionary.to_pylist()], pa.string()).take(names.indices),
        "api_version": _numbers(rows.versions, count, pa.int16()),
        "count": pa.repeat(1, count),
        "request_bytes": _numbers(rows.request_bytes, count, pa.int64()),
        "response_bytes": _numbers(rows.response_bytes, count, pa.int64(), unknown=True),
        "error_codes": pa.nulls(count, OBSERVATIONS.field("error_codes").type)
        if codes is None
        else pa.array([codes.get(row) for row in range(count)], OBSERVATIONS.field("error_codes").type),
        "highest_offered": pa.concat_arrays(highest),
        "file": pa.repeat(found.file, count),
        "position": _numbers(rows.positions, count, pa.int64()),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in OBSERVATIONS.names], schema=OBSERVATIONS)


def _numbers(column: memoryview, count: int, kind: pa.DataType, *, unknown: bool = False) -> pa.Array:
    """The first `count` numbers of a column; with `unknown`, -1 is null."""
    numbers = pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(column)])
    if unknown:
        numbers = pc.if_else(pc.equal(numbers, -1), pa.scalar(None, pa.int64()), numbers)
    return numbers.cast(kind)


def census_batches(census: Census, losses: Losses) -> Iterator[pa.RecordBatch]:
    """A census, and what was not understood, as batches of `CENSUS`, for gathering them elsewhere."""
    rows = _census_rows(census, losses)
    while batch := list(islice(rows, _CENSUS_ROWS)):
        yield pa.RecordBatch.from_pylist(batch, CENSUS)


def _census_rows(census: Census, losses: Losses) -> Iterator[dict[str, Any]]:
    for client, api, version, use in census.uses():
        yield {
            **client._asdict(),
            "api_key": api,
            "api_version": version,
            "count": use.count,
            "first": {"unknown": use.first < 0, "time": use.first, **_place(use.places[0])},
            "last": {"time": use.last, **_place(use.places[-1])},
            "highest_offered": use.highest_offered,
            "error_codes": [{"code": code, "count": count} for code, count in use.error_codes.items()],
        }
    for api, versions in census.timeline.items():
        for version, minutes in versions.items():
            for minute, count in minutes.items():
                yield {"api_key": api, "api_version": version, "minute": minute, "count": count}
    for reason, count in losses.counts.items():
        yield {"loss": reason, "count": count, "place": _place(losses.first[reason])}


def connection_batches(census: Census) -> Iterator[pa.RecordBatch]:
    """The connections that a census has kept, as batches of `CENSUS`; they are kept no longer."""
    begun = iter(census.begun.items() if census.begun is not None else ())
    while batch := list(islice(begun, _CENSUS_ROWS)):
        rows = [
            {
                **client._asdict(),
                "address": ends[0].address,
                "place": _place(place),
                "connection": {
                    "client_port": ends[0].port,
                    "broker_address": ends[1].address,
                    "broker_port": ends[1].port,
                },
            }
            for ends, (client, place) in batch
        ]
        yield pa.RecordBatch.from_pylist(rows, CENSUS)
    if census.begun is not None:
        census.begun.clear()


def _place(place: Place) -> dict[str, Any]:
    return {"file": place.file, "position": place.position}


def loss_batch(losses: Losses) -> pa.RecordBatch:
    """What was not understood, as rows with the columns loss, count, file and position."""
    reasons = list(losses.counts)
    columns = {
        "loss": reasons,
        "count": [losses.counts[reason] for reason in reasons],
        "file": [losses.first[reason].file for reason in reasons],
        "position": [losses.first[reason].position for reason in reasons],
    }
    return pa.RecordBatch.from_pydict(columns)


def verdict_table(verdicts: Iterable[Verdict]) -> pa.Table:
    """Verdicts as a table of `VERDICTS`."""
    return pa.Table.from_pylist([row for verdict in verdicts for row in _verdict_rows(verdict)], VERDICTS)


def _row(seen: Observation, highest_offered: int | None) -> dict[str, Any]:
    return {
        "time": None if seen.time < 0 else seen.time,
        "client_address": seen.client.address,
        "client_port": seen.client.port,
        "broker_address": seen.broker.address,
        "broker_port": seen.broker.port,
        "client_id": seen.client_id,
        "software_name": seen.software_name,
        "software_version": seen.software_version,
        "principal": seen.principal,
        "listener": seen.listener,
        "api_key": seen.api_key,
        "api": api_name(seen.api_key),
        "api_version": seen.api_version,
        "count": seen.count,
        "request_bytes": seen.request_bytes,
        "response_bytes": seen.response_bytes,
        "error_codes": seen.error_codes,
        "highest_offered": highest_offered,
        "file": seen.place.file,
        "position": seen.place.position,
    }


def _verdict_rows(verdict: Verdict) -> Iterator[dict[str, Any]]:
    whole = {
        **verdict.client._asdict(),
        "target": verdict.target,
        "outcome": verdict.outcome.value,
        "works_until": verdict.works_until,
        "upgrade": verdict.upgrade,
    }
    if not verdict.findings:
        yield whole
    for finding in verdict.findings:
        for version, use in finding.versions.items():
            api = {"api_key": finding.api, "api": api_name(finding.api), "api_version": version}
            yield {**whole, **api, "cause": finding.cause.value, **_use(use)}


def _use(use: Use) -> dict[str, Any]:
    return {
        "count": use.count,
        "first": None if use.first < 0 else use.first,
        "last": None if use.last < 0 else use.last,
        "file": use.places[0].file,
        "position": use.places[0].position,
    }
