"""What clients measure: by Kafka's names, in Kafka's windows, over a network in memory with a clock that is made up."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tagwire import messages
from tagwire.broker import Broker
from tagwire.client import Admin, Client, Producer, Reader
from tagwire.client.connection_settings import ConnectionSettings
from tagwire.client.metrics import (
    ConnectionMetrics,
    ConsumerMetrics,
    CoordinatorMetrics,
    FetchMetrics,
    Metrics,
    ProducerMetrics,
)
from tagwire.client.network_client import NetworkClient
from tagwire.partitions import TopicPartition

from .fake_broker import FakeCluster
from .memory_network import MemoryDriver


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def metrics(clock: Clock) -> Metrics:
    return Metrics(clock)


STATS = {
    "rate": "r",
    "count_rate": "cr",
    "per_hour": "h",
    "total": "t",
    "count": "c",
    "avg": "a",
    "max": "x",
    "min": "n",
    "value": "v",
}


def test_a_rate_of_a_few_seconds_is_taken_over_a_full_sample_as_kafkas_are(clock: Clock, metrics: Metrics) -> None:
    sensor = metrics.sensor("g", **STATS)
    sensor.record(600)
    assert metrics.values("client")["g"]["r"] == 600 / 30
    clock.seconds += 10
    assert metrics.values("client")["g"]["r"] == 600 / 40
    clock.seconds += 25
    sensor.record(300)
    assert metrics.values("client")["g"] == {
        "r": 900 / 35,
        "cr": 2 / 35,
        "h": 2 / 35 * 3600,
        "t": 900,
        "c": 2,
        "a": 450,
        "x": 600,
        "n": 300,
        "v": 300,
    }


def test_what_is_older_than_both_samples_counts_in_totals_alone(clock: Clock, metrics: Metrics) -> None:
    sensor = metrics.sensor("g", **STATS)
    sensor.record(600)
    clock.seconds += 31
    sensor.record(10)
    clock.seconds += 31
    sensor.record(20)
    found = metrics.values("client")["g"]
    assert (found["x"], found["n"], found["a"], found["r"]) == (20, 10, 15, 30 / (31 + 0))
    assert (found["t"], found["c"]) == (630, 3)
    clock.seconds += 60
    assert metrics.values("client")["g"] == {
        "r": 0,
        "cr": 0,
        "h": 0,
        "t": 630,
        "c": 3,
        "a": None,
        "x": None,
        "n": None,
        "v": 20,
    }


def test_a_group_of_any_client_is_named_by_the_kind_of_client(metrics: Metrics, clock: Clock) -> None:
    metrics.sensor("-metrics", count="one").record()
    metrics.gauge("-node-metrics", "two", lambda: 2.0, tag="node-1")
    other = Metrics(clock)
    other.gauge("producer-metrics", "three", lambda: 3.0)
    found = metrics.values("producer", other)
    assert found == {"producer-metrics": {"one": 1, "three": 3}, "producer-node-metrics.node-1": {"two": 2}}
    assert json.loads(json.dumps(found)) == found
    metrics.remove("-node-metrics", "node-1")
    assert "producer-node-metrics.node-1" not in metrics.values("producer")


def test_connections_requests_and_bytes_are_counted_in_all_and_by_broker() -> None:
    driver = MemoryDriver(FakeCluster())
    client = NetworkClient([("kafka-0", 9092)], ConnectionSettings("core"), 30.0, driver)
    connection = driver.run(client.connection(None, client.deadline()))
    driver.run(client.request(connection, messages.MetadataRequest(topics=None), client.deadline()))
    found = client.metrics.values("admin-client")
    one = found["admin-client-metrics"]
    assert (one["connection-creation-total"], one["connection-count"], one["connection-close-total"]) == (1, 1, 0)
    assert (one["request-total"], one["response-total"]) == (2, 2)  # ApiVersions, Metadata
    assert one["request-rate"] == pytest.approx(2 / 30, rel=0.01)
    assert one["network-io-total"] > 2  # type: ignore[operator]
    node = found["admin-client-node-metrics.node--1"]
    assert node["outgoing-byte-total"] == one["outgoing-byte-total"] == 2 * one["request-size-avg"]  # type: ignore[operator]
    assert node["incoming-byte-total"] == one["incoming-byte-total"] > 0  # type: ignore[operator]
    assert 0 < node["request-latency-avg"] <= node["request-latency-max"] < 1000  # type: ignore[operator]
    client.close()
    one = client.metrics.values("admin-client")["admin-client-metrics"]
    assert (one["connection-count"], one["connection-close-total"]) == (0, 1)


def test_what_is_fetched_is_told_in_all_by_topic_and_by_partition(metrics: Metrics) -> None:
    fetch = FetchMetrics(metrics)
    partition = TopicPartition("flights", 2)
    fetch.responded(0.25, 0)
    fetch.consumed([(partition, 600, 6), (TopicPartition("delays", 0), 500, 5), (TopicPartition("flights", 3), 400, 4)])
    fetch.at(partition, 40, 100, 30)
    fetch.at(partition, 60, 100, -1)
    group = "consumer-fetch-manager-metrics"
    found = metrics.values("consumer")
    assert found[group]["bytes-consumed-total"] == 1500
    assert (found[group]["records-per-request-avg"], found[group]["fetch-size-max"]) == (15, 1500)
    assert (found[group]["fetch-latency-avg"], found[group]["fetch-total"]) == (250, 1)
    assert (found[group]["records-lag-max"], found[group]["records-lead-min"]) == (60, 10)
    assert found[f"{group}.delays"]["records-consumed-total"] == 5
    assert found[f"{group}.flights-2"] == {
        "records-lag": 40,
        "records-lag-avg": 50,
        "records-lag-max": 60,
        "records-lead": 10,
        "records-lead-avg": 10,
        "records-lead-min": 10,
        "preferred-read-replica": -1,
    }
    fetch.removed(partition)
    assert f"{group}.flights-2" not in metrics.values("consumer")


def test_a_partition_that_goes_takes_nothing_of_a_topic_that_is_called_as_it_is(metrics: Metrics) -> None:
    fetch = FetchMetrics(metrics)
    fetch.consumed([(TopicPartition("flights-2", 0), 600, 6)])
    fetch.at(TopicPartition("flights", 2), 40, 100, 30)
    fetch.removed(TopicPartition("flights", 2))
    fetch.consumed([(TopicPartition("flights-2", 0), 600, 6)])
    found = metrics.values("consumer")["consumer-fetch-manager-metrics.flights-2"]
    assert found["records-consumed-total"] == 12
    assert "records-lag" not in found


def test_a_member_tells_of_heartbeats_and_rebalances(metrics: Metrics, clock: Clock) -> None:
    member = CoordinatorMetrics(metrics, lambda: 3)
    before = metrics.values("consumer")["consumer-coordinator-metrics"]
    assert (before["last-heartbeat-seconds-ago"], before["last-rebalance-seconds-ago"]) == (-1, -1)
    member.joined(0.5)
    member.synced(0.1)
    member.rebalanced(2.0)
    member.heartbeat_sent()
    member.heartbeat(0.004)
    clock.seconds += 7.5
    found = metrics.values("consumer")["consumer-coordinator-metrics"]
    assert (found["assigned-partitions"], found["last-heartbeat-seconds-ago"]) == (3, 7)
    assert (found["heartbeat-response-time-max"], found["heartbeat-total"]) == (4, 1)
    assert (found["rebalance-total"], found["rebalance-latency-total"]) == (1, 2000)
    assert found["rebalance-rate-per-hour"] == 3600 / 37.5
    assert found["failed-rebalance-total"] == 0


def test_another_membership_of_the_same_consumer_begins_anew(metrics: Metrics) -> None:
    CoordinatorMetrics(metrics, lambda: 3).joined(0.5)
    CoordinatorMetrics(metrics, lambda: 1).joined(0.25)
    found = metrics.values("consumer")["consumer-coordinator-metrics"]
    assert (found["join-total"], found["join-time-max"], found["assigned-partitions"]) == (1, 250, 1)
    assert len(metrics._sensors["consumer-coordinator-metrics", ""]) == 9


def test_a_consumer_tells_of_its_polls(metrics: Metrics, clock: Clock) -> None:
    consumer = ConsumerMetrics(metrics)
    for _ in range(2):
        consumer.poll_began()
        clock.seconds += 1
        consumer.poll_ended()
        clock.seconds += 3
    found = metrics.values("consumer")["consumer-metrics"]
    assert (found["last-poll-seconds-ago"], found["time-between-poll-max"]) == (4, 4000)
    assert found["poll-idle-ratio-avg"] == (1 + 0.25) / 2


def test_every_client_gives_plain_values_and_a_reader_those_of_what_it_read() -> None:
    with Broker() as broker, Client(broker.bootstrap) as client:
        Admin(client).create_topics("flights")
        with Producer(client) as producer:
            for number in range(10):
                producer.send("flights", b"%d" % number)
            producer.flush()
            produced = producer.metrics()
        with Reader(client, "flights", stop_at_end=True) as reader:
            assert sum(batch.num_rows for batch in reader) == 10
            read = reader.metrics()
        for values in (produced, read, client.metrics(), Admin(client).metrics()):
            assert json.loads(json.dumps(values)) == values
    assert produced["producer-metrics"]["record-send-total"] == 10
    assert produced["producer-topic-metrics.flights"]["record-send-total"] == 10
    assert produced["producer-metrics"]["record-error-total"] == 0
    assert produced["producer-metrics"]["flush-time-ns-total"] > 0  # type: ignore[operator]
    assert produced["producer-metrics"]["buffer-available-bytes"] == produced["producer-metrics"]["buffer-total-bytes"]
    assert produced["producer-metrics"]["connection-count"] > 0  # type: ignore[operator]
    assert read["consumer-fetch-manager-metrics"]["records-consumed-total"] == 10
    assert read["consumer-fetch-manager-metrics.flights-0"]["records-lag"] == 0
    assert read["consumer-metrics"]["connection-count"] == 1


def told() -> set[str]:
    """The metrics that docs/metrics.md names in its tables, but for those that it says are not there."""
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8").partition("## Not there")[0]
    rows = re.findall(r"^\| ([a-z0-9, -]+?) \|", page, re.MULTILINE)
    return {name for row in rows if row != "metric" for name in row.split(", ") if set(name) != {"-"}}


def test_the_page_names_every_metric_that_there_is_and_no_other(metrics: Metrics) -> None:
    ConsumerMetrics(metrics)
    CoordinatorMetrics(metrics, lambda: 0)
    fetch = FetchMetrics(metrics)
    fetch.consumed([(TopicPartition("t", 0), 1, 1)])
    fetch.at(TopicPartition("t", 0), 1, 1, 1)
    connections = ConnectionMetrics(metrics)
    connections.responded(1, 0.1)
    producer = ProducerMetrics(metrics, 1, lambda: 0, lambda: 0)
    producer.retried("t", 1)
    assert {name for values in metrics.values("client").values() for name in values} == told()
