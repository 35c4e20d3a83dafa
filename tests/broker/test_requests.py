"""Who asked what: the log of requests."""

from __future__ import annotations

import time

from tagwire import messages
from tagwire.broker import Broker
from tagwire.broker.telemetry import requests
from tagwire.broker.telemetry.requests import OTHERS


def say_hello(wire, name="billing", version="7.1"):
    wire.ask(messages.ApiVersionsRequest(client_software_name=name, client_software_version=version), 3)


def test_a_request_is_logged_with_who_asked(broker, connect):
    before = time.time()
    wire = connect(broker.bootstrap, client_id="invoices")
    say_hello(wire)
    wire.metadata(version=9)
    (entry,) = broker.requests.select("Metadata")
    assert (entry.api, entry.api_key, entry.version, entry.client_id) == ("Metadata", 3, 9, "invoices")
    assert (entry.software, entry.software_version, entry.user) == ("billing", "7.1", "")
    host, port = wire.socket.getsockname()
    assert entry.address == f"{host}:{port}"
    assert before <= entry.at <= time.time()
    assert entry.seconds > 0
    assert entry.request_bytes > 0
    assert entry.response_bytes > entry.request_bytes


def test_requests_are_found_by_what_they_are(broker, connect):
    for client_id, versions in (("a", (9, 12)), ("b", (12,))):
        wire = connect(broker.bootstrap, client_id=client_id)
        say_hello(wire, name=f"lib-{client_id}")
        for version in versions:
            wire.metadata(version=version)
    log = broker.requests
    assert log.count() == len(log) == len(list(log)) == 5
    assert log.count("Metadata") == log.count(3) == 3
    assert log.count("Metadata", client_id="a") == 2
    assert log.count(version=12, software="lib-b") == 1
    assert log.count("Fetch") == 0
    assert [entry.version for entry in log.select("Metadata")] == [9, 12, 12]
    log.clear()
    assert (log.count(), log.totals()) == (0, [])


def test_what_is_not_answered_is_logged_too(broker, wire):
    wire.send(messages.DescribeQuorumRequest(), 1)
    assert wire.is_closed()
    (entry,) = broker.requests
    assert (entry.api, entry.version, entry.seconds) == ("DescribeQuorum", 1, None)


def test_requests_are_counted_by_client_api_and_version(broker, connect):
    wire = connect(broker.bootstrap, client_id="old")
    for _ in range(3):
        wire.metadata(version=1)
    connect(broker.bootstrap, client_id="new").metadata(version=12)
    assert [(t.api, t.version, t.client_id, t.count) for t in broker.requests.totals()] == [
        ("Metadata", 1, "old", 3),
        ("Metadata", 12, "new", 1),
    ]
    assert all(total.request_bytes and total.response_bytes for total in broker.requests.totals())


def test_the_log_is_bounded_however_many_clients_ask(tmp_path, connect, monkeypatch):
    monkeypatch.setattr(requests, "MAX_TOTALS", 5)
    with Broker(tmp_path / "data", requests_kept=10) as broker:
        for number in range(20):
            connect(broker.bootstrap, client_id=f"{number}-" + "x" * 30_000).metadata()
        assert len(broker.requests) == 10
        assert max(len(entry.client_id) for entry in broker.requests) == 200
        totals = broker.requests.totals()
        assert len(totals) == 6
        (others,) = [total for total in totals if total.client_id == OTHERS]
        assert others.count == 15
        assert sum(total.count for total in totals) == 20
