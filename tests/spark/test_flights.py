"""The demonstration's records: real departures, the same every time."""

from __future__ import annotations

import json
from datetime import datetime
from itertools import islice

import pytest

from tagwire.spark.jobs.flights import departures


@pytest.fixture(scope="module")
def some():
    return list(islice(departures(), 1000))


def test_a_departure_is_keyed_by_carrier_and_flight(some):
    assert some[0].key == b"UA-1545"
    value = json.loads(some[0].value)
    assert (value["carrier"], value["flight"], value["dep_delay"], value["origin"]) == ("UA", 1545, 2, "EWR")


def test_the_timestamp_is_the_scheduled_departure_in_new_york(some):
    for record in some:
        value = json.loads(record.value)
        hour = datetime.fromisoformat(value["time_hour"])  # the data's own hour, in UTC
        assert record.timestamp == int(hour.timestamp()) * 1000 + value["minute"] * 60_000


def test_numbers_are_numbers_and_what_is_missing_is_null(some):
    cancelled = [json.loads(record.value) for record in some if b'"dep_time":null' in record.value]
    assert cancelled
    assert all(value["dep_delay"] is None and isinstance(value["distance"], int) for value in cancelled)
    assert not any(b"NaN" in record.value for record in some)


def test_headers_are_the_origin_the_version_and_a_trace_of_its_own(some):
    assert [name for name, _ in some[0].headers] == ["origin", "schema-version", "trace-id"]
    assert some[0].headers[:2] == (("origin", b"EWR"), ("schema-version", b"1"))
    assert len({record.headers[2][1] for record in some}) == len(some)


def test_departures_are_the_same_every_time(some):
    assert list(islice(departures(), 1000)) == some
