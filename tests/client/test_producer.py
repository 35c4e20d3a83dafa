"""The producer: where records go, in which order, what is tried again, and what becomes of failures."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from tagwire import messages, records
from tagwire.client import Client, Producer, RecordMetadata, partition_of
from tagwire.errors import (
    ConfigError,
    ConnectError,
    EncodeError,
    Error,
    KafkaError,
    ProtocolError,
    RequestTimeoutError,
    UnsupportedVersionError,
)
from tagwire.records import Record

from ..limits import wait_until
from .fake_broker import SERVED, Close, FakeCluster, Late, LostResponse, Silence
from .produce_responses import refusing
from .stored import headers_in, stored_in, values_in


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as one:
        yield one


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_record_arrives_as_it_was_sent(cluster: FakeCluster, compression: str) -> None:
    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap, compression=compression) as producer:
        delivery = producer.send("t", b"v", b"k", [("h", b"1"), ("h", None), ("", b"")], 1234)
        empty = producer.send("t", None, timestamp=-1)
        assert not delivery.done()
        producer.flush()
        assert (delivery.done(), delivery.exception(0), delivery.partition) == (True, None, 0)
        assert (delivery.result(0), empty.result(0)) == (RecordMetadata("t", 0, 0), RecordMetadata("t", 0, 1))
    assert stored_in(log) == [
        Record(b"k", b"v", [("h", b"1"), ("h", None), ("", b"")], 1234, 0),
        Record(None, None, [], -1, 1),
    ]
    assert [batch.compression for batch in records.read(log.batches[0][2])] == [compression]


def test_headers_are_those_of_the_call_whatever_becomes_of_the_list(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    headers = [("h", b"1")]
    with Producer(cluster.bootstrap, linger=60) as producer:
        producer.send("t", b"v", headers=headers)
        headers.clear()
        producer.send("t", b"w", headers=((name, b"2") for name in "gh"))  # type: ignore[arg-type]
    assert [list(record.headers) for record in stored_in(log)] == [[("h", b"1")], [("g", b"2"), ("h", b"2")]]


def test_a_key_goes_to_its_partition(cluster: FakeCluster) -> None:
    logs = cluster.topic("t", 5)
    with Producer(cluster.bootstrap) as producer:
        deliveries = [producer.send("t", b"", key) for key in (b"a", b"b", b"c", b"d")]
        producer.flush()
    for key, delivery in zip((b"a", b"b", b"c", b"d"), deliveries):
        assert delivery.partition == partition_of(key, 5)
        assert key in [record.key for record in stored_in(logs[delivery.partition])]


def test_records_without_a_key_fill_one_batch_after_the_other(cluster: FakeCluster) -> None:
    logs = cluster.topic("t", 3)
    with Producer(cluster.bootstrap, batch_bytes=1000) as producer:
        deliveries = [producer.send("t", b"x" * 64) for _ in range(100)]
    runs = [deliveries[0].partition]
    for before, after in pairwise(deliveries):
        if after.partition != before.partition:
            runs.append(after.partition)
    # Eleven batches; by how far brokers are behind the next one may be of the same partition.
    assert 5 <= len(runs) <= 12
    assert sum(len(stored_in(log)) for log in logs) == 100


def test_a_partition_can_be_named(cluster: FakeCluster) -> None:
    logs = cluster.topic("t", 3)
    with Producer(cluster.bootstrap) as producer:
        producer.send("t", b"v", key=b"k", partition=2)
    assert values_in(logs[2]) == [b"v"]


def test_batches_are_bounded_and_stay_in_order(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap, batch_bytes=2000) as producer:
        deliveries = [producer.send("t", b"%d" % i, b"k") for i in range(500)]
    assert values_in(log) == [b"%d" % i for i in range(500)]
    assert [delivery.result(0).offset for delivery in deliveries] == list(range(500))
    assert len(log.batches) > 5
    assert max(len(data) for _, _, data in log.batches) <= 2100


def test_a_record_larger_than_a_batch_goes_alone(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap, batch_bytes=100) as producer:
        producer.send("t", b"x" * 5000)
        producer.send("t", b"y")
    assert [len(value or b"") for value in values_in(log)] == [5000, 1]


def test_an_old_batch_goes_out_with_the_next_record(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap, linger=0) as producer:
        first = producer.send("t", b"first")
        count = 1
        while not first.done():
            producer.send("t", b"other")
            count += 1
    assert values_in(log) == [b"first", *[b"other"] * (count - 1)]


def test_an_encoded_batch_is_sent_as_it_is_and_in_its_turn(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    data = records.write([Record(b"k", b"2"), Record(b"k", b"3")], compression="lz4")
    with Producer(cluster.bootstrap, idempotence=False) as producer:
        producer.send("t", b"1")
        delivery = producer.send_batch("t", 0, data)
        producer.send("t", b"4")
        producer.flush()
        assert delivery.result(0).offset == 1
    assert values_in(log) == [b"1", b"2", b"3", b"4"]
    assert log.batches[1][2][12:16] + log.batches[1][2][16:] == b"\0\0\0\0" + data[16:]


@pytest.mark.parametrize("idempotence", [True, False])
def test_an_encoded_batch_that_was_another_producers_is_so_no_longer(cluster: FakeCluster, idempotence: bool) -> None:
    log = cluster.topic("t")[0]
    rows = [Record(b"k", b"1"), Record(b"k", b"2")]
    data = records.write(rows, producer_id=7, producer_epoch=3, base_sequence=40, transactional=True)
    with Producer(cluster.bootstrap, idempotence=idempotence) as producer:
        producer.send_batch("t", 0, data)
    (header,) = records.batch_headers(log.batches[0][2], verify=True)
    assert (header.producer_id == 7, header.is_transactional, header.crc_ok) == (False, False, True)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) in [(-1, -1, -1), (100, 0, 0)]
    assert values_in(log) == [b"1", b"2"]


NO_BATCHES = [
    ("nothing", b""),
    ("garbage", b"\0" * 100),
    ("two batches", records.write([Record(None, b"1")]) * 2),
    ("a batch cut short", records.write([Record(None, b"1")])[:-1]),
    ("a batch whose bytes have changed", records.write([Record(None, b"1234")]).replace(b"1234", b"1334")),
]


@pytest.mark.parametrize(("name", "data"), NO_BATCHES, ids=[row[0] for row in NO_BATCHES])
def test_what_is_not_one_batch_is_refused(cluster: FakeCluster, name: str, data: bytes) -> None:
    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap) as producer, pytest.raises(EncodeError, match="batch for t-0"):
        producer.send_batch("t", 0, data)
    assert not log.batches


BAD_RECORDS: list[tuple[str, dict[str, Any], str]] = [
    ("a value that is text", {"value": "text"}, "value must be bytes or None, not str"),
    ("a key that is a number", {"value": b"", "key": 7}, "key must be bytes or None, not int"),
    ("a header value that is text", {"value": b"", "headers": [("h", "text")]}, "value of a header must be bytes"),
    ("a header key that is bytes", {"value": b"", "headers": [(b"h", b"")]}, "headers of a record must be pairs"),
    ("headers that are a number", {"value": b"", "headers": 5}, "record for t: headers are int, not"),
    ("headers that are no pairs", {"value": b"", "headers": ["h"]}, "headers of a record must be pairs"),
    ("a header key of half a character", {"value": b"", "headers": [("\ud800", b"")]}, "headers of a record must be"),
    ("a time before time", {"value": b"", "timestamp": -2}, "timestamp -2"),
    ("a time past int64", {"value": b"", "timestamp": 2**63}, "timestamp 9223372036854775808"),
]


@pytest.mark.parametrize(("name", "record", "says"), BAD_RECORDS, ids=[row[0] for row in BAD_RECORDS])
def test_a_record_that_cannot_be_written_is_refused_by_send(
    cluster: FakeCluster, name: str, record: dict[str, Any], says: str
) -> None:
    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap) as producer:
        with pytest.raises(EncodeError, match=says):
            producer.send("t", **record)
        producer.send("t", b"good")
    assert values_in(log) == [b"good"]


def test_without_acks_nothing_is_waited_for_and_no_offset_known(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    with Client(cluster.bootstrap) as client:
        with Producer(client, acks=0) as producer:
            delivery = producer.send("t", b"v")
            producer.flush()
            assert delivery.done()
            assert delivery.result(0).offset == -1
        client.metadata()
    assert values_in(log) == [b"v"]


@pytest.mark.parametrize(("acks", "wire"), [("all", -1), (-1, -1), (1, 1), ("1", 1)])
def test_acks_are_told_to_the_broker(cluster: FakeCluster, acks: str | int, wire: int) -> None:
    cluster.topic("t")
    with Producer(cluster.bootstrap, acks=acks) as producer:
        producer.send("t", b"v")
    assert cluster.requests("Produce")[0].acks == wire


def test_one_request_carries_the_batches_of_a_leader() -> None:
    with FakeCluster(nodes=2) as cluster, Producer(cluster.bootstrap) as producer:
        cluster.topic("t", 6)
        for partition in range(6):
            producer.send("t", b"v", partition=partition)
        producer.flush()
        assert [len(message.topic_data[0].partition_data) for message in cluster.requests("Produce")] == [3, 3]


@pytest.mark.parametrize(("highest", "spoken"), [(3, 3), (8, 8), (9, 9), (12, 12), (13, 13)])
def test_the_highest_produce_in_common_is_spoken(highest: int, spoken: int) -> None:
    with FakeCluster(served={**SERVED, 0: (0, highest)}) as cluster:
        log = cluster.topic("t")[0]
        with Producer(cluster.bootstrap) as producer:
            producer.send("t", b"v")
        assert values_in(log) == [b"v"]
        assert cluster.requested_versions("Produce") == [spoken]


# Retries ------------------------------------------------------------------------------------------------------------

PASSING_TROUBLES = [
    ("a leader that moved", refusing(Error.NOT_LEADER_OR_FOLLOWER)),
    ("too few replicas", refusing(Error.NOT_ENOUGH_REPLICAS)),
    ("a topic that is not there yet", refusing(Error.UNKNOWN_TOPIC_OR_PARTITION)),
    ("a connection that ends", Close()),
]


@pytest.mark.parametrize(("name", "action"), PASSING_TROUBLES, ids=[row[0] for row in PASSING_TROUBLES])
def test_what_may_pass_is_tried_again_in_order(cluster: FakeCluster, name: str, action: Any) -> None:
    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap, batch_bytes=300) as producer:
        producer.send("t", b"first")
        cluster.script("Produce", action, action)
        deliveries = [producer.send("t", b"%d" % i, b"k") for i in range(50)]
        producer.flush()
    assert values_in(log) == [b"first", *(b"%d" % i for i in range(50))]
    assert [delivery.result(0).offset for delivery in deliveries] == list(range(1, 51))


def test_a_partition_that_a_broker_lacks_for_a_moment_is_waited_for(cluster: FakeCluster) -> None:
    log = cluster.topic("t", 2)[1]

    def older(message: Any) -> Any:
        """Metadata as it was before the topic had more partitions, without an id by which it is the same topic."""
        response = cluster.respond("Metadata", message, 0)
        for topic in response.topics:
            topic.topic_id, topic.partitions = type(topic)().topic_id, topic.partitions[:1]
        return response

    with Producer(cluster.bootstrap) as producer:
        producer.send("t", b"first", partition=1).result(30)
        cluster.script("Produce", refusing(Error.NOT_LEADER_OR_FOLLOWER))
        cluster.script("Metadata", older, older)
        producer.send("t", b"second", partition=1)
    assert values_in(log) == [b"first", b"second"]


@pytest.mark.parametrize("was_known", [True, False])
@pytest.mark.parametrize("way", ["send", "send_batch", "send_arrow"])
def test_a_partition_that_was_just_added_is_waited_for_while_brokers_lag_behind(
    cluster: FakeCluster, way: str, was_known: bool
) -> None:
    log = cluster.topic("t", 2)[1]

    def older(message: Any) -> Any:
        response = cluster.respond("Metadata", message, 0)
        for topic in response.topics:
            topic.partitions = topic.partitions[:1]
        return response

    cluster.script("Metadata", older, older, older, older)
    with Producer(cluster.bootstrap) as producer:
        if was_known:
            producer.send("t", b"first", partition=0).result(30)
        if way == "send":
            producer.send("t", b"new", partition=1)
        elif way == "send_batch":
            producer.send_batch("t", 1, records.write([Record(None, b"new")]))
        else:
            producer.send_arrow("t", pa.table({"value": pa.array([b"new"], pa.binary())}), partition=1)
    assert values_in(log) == [b"new"]


def test_a_record_waits_for_its_topic_for_as_long_as_it_has_time(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tagwire.client.network_client.UNKNOWN_TOPIC_PATIENCE", 0.0)
    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap) as producer:
        producer.send("t", b"first").result(30)
        known = cluster.topics.pop("t")
        second = producer.send("t", b"second")
        asked = len(cluster.requests("Metadata"))
        wait_until(lambda: second.done() or len(cluster.requests("Metadata")) > asked + 3)
        assert all(request.topics is not None for request in cluster.requests("Metadata")), "all topics were listed"
        cluster.topics["t"] = known
        producer.flush()
    assert values_in(log) == [b"first", b"second"]


def test_a_record_whose_topic_stays_away_fails_for_that_when_its_time_is_up(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tagwire.client.network_client.UNKNOWN_TOPIC_PATIENCE", 0.0)
    cluster.topic("t")
    with Producer(cluster.bootstrap, timeout=1) as producer:
        producer.send("t", b"first").result(30)
        del cluster.topics["t"]
        began = time.monotonic()
        with pytest.raises(KafkaError, match=r"UNKNOWN_TOPIC_OR_PARTITION .*'t'"):
            producer.send("t", b"second").result(30)
        assert time.monotonic() - began >= 1
        with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            producer.flush()


def test_a_leader_that_moved_is_followed() -> None:
    with FakeCluster(nodes=2) as cluster, Producer(cluster.bootstrap) as producer:
        log = cluster.topic("t")[0]
        for number in range(3):
            log.leader = number % 2
            producer.send("t", b"%d" % number)
            producer.flush()
        assert values_in(log) == [b"0", b"1", b"2"]


@pytest.mark.parametrize(("idempotence", "stored"), [(True, [b"v"]), (False, [b"v", b"v"])])
def test_a_batch_whose_answer_is_lost_stands_once_unless_nobody_numbers_it(
    cluster: FakeCluster, idempotence: bool, stored: list[bytes]
) -> None:
    log = cluster.topic("t")[0]
    cluster.script("Produce", LostResponse())
    with Producer(cluster.bootstrap, idempotence=idempotence) as producer:
        delivery = producer.send("t", b"v")
    assert values_in(log) == stored
    assert delivery.result(0).offset == len(stored) - 1


def test_a_broker_that_comes_back_gets_what_is_waiting(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap) as producer:
        producer.send("t", b"1")
        producer.flush()
        cluster.brokers[0].stop()
        producer.send("t", b"2")
        cluster.brokers[0].start()
        producer.flush()
    assert values_in(log) == [b"1", b"2"]


FAILURES: list[tuple[str, Any, type[Exception], str]] = [
    (
        "not wanted",
        refusing(Error.INVALID_RECORD, "no"),
        KafkaError,
        r"^INVALID_RECORD \(87\): 2 records, \d+ bytes, for t-0; no$",
    ),
    ("not allowed", refusing(Error.TOPIC_AUTHORIZATION_FAILED), KafkaError, "TOPIC_AUTHORIZATION_FAILED"),
    ("no word about the partition", lambda _: messages.ProduceResponse(), ProtocolError, "what became of t-0"),
]


@pytest.mark.parametrize(("name", "action", "kind", "says"), FAILURES, ids=[row[0] for row in FAILURES])
def test_what_will_not_pass_shows_on_the_delivery_and_in_flush(
    cluster: FakeCluster, name: str, action: Any, kind: type[Exception], says: str
) -> None:
    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap) as producer:
        cluster.script("Produce", action)
        deliveries = [producer.send("t", b"1"), producer.send("t", b"2")]
        with pytest.raises(kind, match=says):
            producer.flush()
        for delivery in deliveries:
            assert delivery.done()
            assert isinstance(delivery.exception(0), kind)
            with pytest.raises(kind):
                _ = delivery.result(0).offset
        good = producer.send("t", b"3")
        producer.flush()
        assert good.result(0).offset == 0
    assert values_in(log) == [b"3"]


def test_retries_are_counted(cluster: FakeCluster) -> None:
    cluster.topic("t")
    cluster.script("Produce", *[refusing(Error.NOT_ENOUGH_REPLICAS)] * 3)
    with Producer(cluster.bootstrap, retries=2) as producer:
        producer.send("t", b"v")
        with pytest.raises(KafkaError, match="NOT_ENOUGH_REPLICAS"):
            producer.flush()
    assert len(cluster.requests("Produce")) == 3


@pytest.mark.parametrize("is_reachable", [True, False], ids=["being elected", "not reachable"])
def test_waiting_for_a_leader_uses_no_retries_up(is_reachable: bool) -> None:
    with FakeCluster(nodes=2) as cluster:
        log = cluster.topic("t", 2)[1]
        leader = cluster.brokers[log.leader]
        with Producer(cluster.bootstrap, retries=1, linger=0) as producer:
            producer.send("t", b"v", partition=1).result(10)
            if is_reachable:
                log.leader = -1
                leader.drop()
            else:
                leader.stop()
            delivery = producer.send("t", b"w", partition=1)
            time.sleep(0.7)
            assert not delivery.done()
            if is_reachable:
                log.leader = leader.node
            else:
                leader.start()
            assert delivery.result(10).offset == 1


def test_a_batch_is_failed_when_its_time_is_over(cluster: FakeCluster) -> None:
    cluster.topic("t")
    with Producer(cluster.bootstrap, timeout=0.4) as producer:
        cluster.script("Produce", *[refusing(Error.NOT_LEADER_OR_FOLLOWER)] * 1000)
        producer.send("t", b"v")
        with pytest.raises(KafkaError, match="NOT_LEADER_OR_FOLLOWER"):
            producer.flush()


def test_a_broker_that_does_not_answer_is_asked_once_more_on_a_new_connection(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    cluster.script("Produce", Silence())
    with Client(cluster.bootstrap, timeout=0.6) as client, Producer(client) as producer:
        producer.send("t", b"v")
        producer.flush()
        cluster.script("Produce", Silence())
        with pytest.raises(RequestTimeoutError, match="did not answer Produce v12"), Producer(client, retries=0) as one:
            one.send("t", b"w")
    assert values_in(log) == [b"v"]


def test_an_unreachable_broker_is_told_by_send() -> None:
    producer = Producer("127.0.0.1:1")
    with pytest.raises(ConnectError, match=r"127\.0\.0\.1:1"):
        producer.send("t", b"v")
    producer.close()


def test_a_topic_that_does_not_exist_is_told_by_send(cluster: FakeCluster) -> None:
    with (
        Client(cluster.bootstrap, timeout=0.6) as client,
        Producer(client) as producer,
        pytest.raises(KafkaError, match="topic 'missing'") as caught,
    ):
        producer.send("missing", b"v")
    assert caught.value.error is Error.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_is_created_where_brokers_do_that(cluster: FakeCluster) -> None:
    cluster.auto_create = True
    with Producer(cluster.bootstrap) as producer:
        producer.send("fresh", b"v", partition=1)
    assert values_in(cluster.topics["fresh"][1]) == [b"v"]


@pytest.mark.parametrize("partition", [1, -1])
def test_a_partition_that_does_not_exist_is_told_by_send(cluster: FakeCluster, partition: int) -> None:
    cluster.topic("t")
    with (
        Producer(cluster.bootstrap) as producer,
        pytest.raises(KafkaError, match=f"partition t-{partition}: topic 't'"),
    ):
        producer.send("t", b"v", partition=partition)


def test_zstd_is_not_sent_to_a_broker_that_cannot_take_it() -> None:
    with FakeCluster(served={**SERVED, 0: (3, 6)}) as cluster:
        log = cluster.topic("t")[0]
        producer = Producer(cluster.bootstrap, compression="zstd")
        producer.send("t", b"v")
        with pytest.raises(UnsupportedVersionError, match="serves Produce up to v6; zstd needs v7"):
            producer.close()
        assert not log.batches


def test_an_error_in_the_body_of_with_is_not_covered_by_one_of_flush(cluster: FakeCluster) -> None:
    cluster.topic("t")
    cluster.script("Produce", refusing(Error.MESSAGE_TOO_LARGE))

    def fail() -> None:
        with Producer(cluster.bootstrap) as producer:
            producer.send("t", b"v")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()


def test_send_waits_when_too_much_is_on_its_way(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    cluster.script("Produce", Late(0.2))
    with Producer(cluster.bootstrap, batch_bytes=4_000_000) as producer:
        first = producer.send("t", b"x" * 5_000_000)
        while not first.done():
            assert len(log.batches) < 2
            producer.send("t", b"x" * 5_000_000)
    assert log.end >= 7


@pytest.mark.parametrize(
    "option",
    [{"acks": 2}, {"acks": "some"}, {"compression": "brotli"}, {"batch_bytes": 0}, {"linger": -1}, {"retries": -1}],
)
def test_a_wrong_option_is_refused(option: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(option))):
        Producer("127.0.0.1:1", **option)


def test_a_topic_that_is_not_sent_to_any_more_is_not_asked_for_for_ever(cluster: FakeCluster) -> None:
    (old,), _ = cluster.topic("old"), cluster.topic("t")
    with Producer(cluster.bootstrap, linger=0, metadata_max_age=0.1, metadata_max_idle=0.5) as producer:
        producer.send("old", b"0").result(10)

        def asked() -> list[list[str]]:
            return [[topic.name for topic in message.topics] for message in cluster.requests("Metadata")]

        until = time.monotonic() + 30
        while not (["old", "t"] in asked() and asked()[-1] == ["t"]) and time.monotonic() < until:
            producer.send("t", b"v").result(10)
        before = len(asked())
        while len(asked()) < before + 3:
            producer.send("t", b"v").result(10)
        assert asked()[before:][:3] == [["t"]] * 3
        producer.send("old", b"1").result(10)
    assert values_in(old) == [b"0", b"1"]
    assert [header.base_sequence for header in headers_in(old)] == [0, 1]
