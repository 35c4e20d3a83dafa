"""What our clients measure is what Java's measure: the same names, and the same counts for the same work."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tagwire.broker import Broker
from tagwire.client import Admin, Consumer, Producer

from .peer import NotRunError, Peer
from .real_broker import RELEASES

RECORDS = 100

Groups = Mapping[str, Mapping[str, float | None]]

# What only Java's clients have, by docs/metrics.md#not-there; and those of a transaction that is not begun here.
NOT_OURS = ("io-", "select-")
NOT_OURS_EITHER = {
    "successful-authentication-no-reauth-total",
    "record-size-avg",
    "record-size-max",
    "metadata-age",
    "txn-prepare-time-ns-total",
    "waiting-threads",
}
EQUAL = {
    "producer": {
        "producer-metrics": (
            "record-send-total",
            "record-error-total",
            "record-retry-total",
            "batch-split-total",
            "buffer-exhausted-total",
            "buffer-total-bytes",
            "requests-in-flight",
        ),
        "producer-topic-metrics.flights": ("record-send-total", "record-error-total", "record-retry-total"),
    },
    "consumer": {
        "consumer-coordinator-metrics": ("assigned-partitions", "commit-total", "join-total", "sync-total"),
        "consumer-fetch-manager-metrics": ("records-consumed-total", "records-lag-max", "records-lead-min"),
        "consumer-fetch-manager-metrics.flights": ("records-consumed-total",),
        "consumer-fetch-manager-metrics.flights-0": ("records-lag", "records-lead"),
    },
}


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap


@pytest.fixture(scope="module")
def java(bootstrap: str) -> Mapping[str, Groups]:
    try:
        peer = Peer.fetch(RELEASES[-1], ())
    except NotRunError as error:
        pytest.skip(f"NOT RUN: {error}")
    with Admin(bootstrap) as admin:
        admin.create_topics("flights")
    (told,) = peer.ask("ClientMetrics", [f"{bootstrap} flights java {RECORDS}"])
    found: Mapping[str, Groups] = json.loads(told)
    return found


@pytest.fixture(scope="module")
def ours(java: Mapping[str, Groups], bootstrap: str) -> Mapping[str, Any]:
    """The same work, on a topic of the same name as Java's."""
    with Admin(bootstrap) as admin:
        admin.delete_topics("flights")
        admin.create_topics("flights")
    with Producer(bootstrap) as producer:
        for _ in range(RECORDS):
            producer.send("flights", bytes(100))
        producer.flush()
        produced = producer.metrics()
    with Consumer(bootstrap, group="ours", offset_reset="earliest", auto_commit=False) as consumer:
        consumer.subscribe("flights")
        seen = 0
        while seen < RECORDS:
            seen += len(consumer.poll(1.0))
        consumer.commit()
        return {"producer": produced, "consumer": consumer.metrics()}


@pytest.mark.parametrize("kind", ["producer", "consumer"])
def test_names_are_those_of_javas_clients(kind: str, java: Mapping[str, Groups], ours: Mapping[str, Groups]) -> None:
    for group, values in java[kind].items():
        if group in ("app-info", "kafka-metrics-count") or "-node-metrics" in group:
            continue
        names = {name for name in values if not name.startswith(NOT_OURS) and name not in NOT_OURS_EITHER}
        assert set(ours[kind][group]) == names, group
    nodes = f"{kind}-node-metrics.node-1"
    assert set(ours[kind][nodes]) == set(java[kind][nodes])


@pytest.mark.parametrize("kind", ["producer", "consumer"])
def test_the_same_work_gives_the_same_counts(kind: str, java: Mapping[str, Groups], ours: Mapping[str, Groups]) -> None:
    for group, names in EQUAL[kind].items():
        assert {name: ours[kind][group][name] for name in names} == {name: java[kind][group][name] for name in names}
