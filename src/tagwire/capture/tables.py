"""Observations and verdicts as Arrow tables. Imports pyarrow: loaded where tables are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from tagwire.capture.census import Offers, Use, client_of
from tagwire.capture.observation import Losses, Observation
from tagwire.capture.verdicts import Verdict
from tagwire.rpc.names import api_name

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

BATCH_ROWS: Final = 20_000


def observation_batches(
    observations: Iterable[Observation], offers: Offers | None = None, *, rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Observations, in the order they were seen, as batches of `OBSERVATIONS`, of `rows` rows but the last.

    Args:
        offers: what was told of observations before these.
    """
    known = Offers() if offers is None else offers
    remaining = iter(observations)
    while found := list(islice(remaining, rows)):
        told = [_row(one, known.highest(client_of(one), one)) for one in found]
        yield pa.RecordBatch.from_pylist(told, OBSERVATIONS)


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
