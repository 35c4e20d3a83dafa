"""Records as objects in the client: interceptors and header (de)serializers, on their way out and in."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tagwire import records
from tagwire.client import EARLIEST, Producer, Reader
from tagwire.errors import ConfigError, CorruptRecordError, DecodeError, EncodeError, ReadOnlyError
from tagwire.records import HeaderEntry, HeaderKeys, HeaderRegister, HeaderSerdes, Record

from .fake_broker import FakeCluster, FakePartition
from .logs import batch_of, fill

SERDES = HeaderSerdes(
    {"attempt": (lambda number: b"%d" % number, int), "tags": (lambda t: json.dumps(t).encode(), json.loads)}
)


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as one:
        yield one


def stored(partition: FakePartition) -> list[Record]:
    return [record for _, _, data in partition.batches for batch in records.read(data) for record in batch.records()]


def reader(cluster: FakeCluster, **options: Any) -> Reader:
    return Reader(cluster.bootstrap, {("t", 0): EARLIEST}, stop_at_end=True, **options)


# Out ----------------------------------------------------------------------------------------------------------------


def test_interceptors_see_a_record_one_after_the_other_before_it_is_encoded(cluster: FakeCluster) -> None:
    seen = []

    def count(topic: str, record: Record) -> None:
        seen.append((topic, record.value, record.headers))
        record.set_header("hops", b"1")

    def shout(topic: str, record: Record) -> Record:
        return record.replace(value=record.value.upper() if record.value else None)

    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap, interceptors=[count, shout, count]) as producer:
        producer.send("t", b"value", b"key", [("a", b"b")], timestamp=5)
    assert seen == [("t", b"value", (("a", b"b"),)), ("t", b"VALUE", (("a", b"b"), ("hops", b"1")))]
    assert stored(log) == [Record(b"key", b"VALUE", (("a", b"b"), ("hops", b"1")), 5, 0)]


def test_the_key_that_an_interceptor_gives_decides_about_the_partition(cluster: FakeCluster) -> None:
    cluster.topic("t", 20)
    with Producer(cluster.bootstrap, interceptors=[lambda topic, record: record.replace(key=b"k")]) as producer:
        given = producer.send("t", b"v", b"other").partition
    with Producer(cluster.bootstrap) as producer:
        assert producer.send("t", b"v", b"k").partition == given


@pytest.mark.parametrize("result", [RuntimeError("no"), "not a record"])
def test_an_interceptor_that_fails_is_logged_and_the_record_goes_on_as_it_was(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture, result: object
) -> None:
    def fail(topic: str, record: Record) -> Any:
        record.set_header("half", b"done")
        if isinstance(result, Exception):
            raise result
        return result

    log = cluster.topic("t")[0]
    with (
        caplog.at_level(logging.WARNING, "tagwire.client"),
        Producer(cluster.bootstrap, interceptors=[fail]) as producer,
    ):
        producer.send("t", b"v", timestamp=5)
    assert stored(log) == [Record(None, b"v", (), 5, 0)]
    (said,) = caplog.messages
    assert "fail" in said
    assert said.endswith("the record goes on as it was")


def test_header_values_are_made_bytes_also_those_of_interceptors(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]

    def tag(topic: str, record: Record) -> Record:
        return record.replace(headers=[*record.headers, ("tags", ["x"])])

    with Producer(cluster.bootstrap, interceptors=[tag], header_serdes=SERDES) as producer:
        producer.send("t", b"v", headers=[("attempt", 3), ("plain", b"p"), ("attempt", None)])
    (record,) = stored(log)
    assert record.headers == (("attempt", b"3"), ("plain", b"p"), ("attempt", None), ("tags", b'["x"]'))


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("three", "header 'attempt': its serializer failed: TypeError"),
        (b"3", "header 'attempt': its serializer failed"),
    ],
)
def test_a_header_that_cannot_be_serialized_is_named(cluster: FakeCluster, value: Any, error: str) -> None:
    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap, header_serdes=SERDES) as producer, pytest.raises(EncodeError, match=error):
        producer.send("t", b"v", headers=[("attempt", value)])
    assert stored(log) == []


def test_a_serializer_has_to_give_bytes() -> None:
    with pytest.raises(EncodeError, match="header 7: its serializer gave str, not bytes"):
        HeaderSerdes({7: (str, bytes)}).serialized([(7, 1)])


def test_int_keys_become_names_where_a_register_intercepts(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    register = HeaderRegister([HeaderEntry(1114000, "app.name")])
    to_names = [lambda topic, record: register.record_to_strings(record)]
    with Producer(cluster.bootstrap, interceptors=to_names) as producer:
        producer.send("t", b"v", headers=[(HeaderKeys.CLIENT_ID, b"me"), (1114000, b"ig")])
    (record,) = stored(log)
    assert record.headers == (("client.id", b"me"), ("app.name", b"ig"))
    with Producer(cluster.bootstrap) as producer, pytest.raises(EncodeError, match=r"pairs of str .* a key is int"):
        producer.send("t", b"v", headers=[(1, b"me")])


# In -----------------------------------------------------------------------------------------------------------------


def test_records_come_once_in_order_and_know_where_they_were_read() -> None:
    with FakeCluster(nodes=2) as cluster:
        for index, log in enumerate(cluster.topic("t", 3)):
            fill(log, batches=index * 3)
        starts = {("t", index): EARLIEST for index in range(3)}
        with Reader(cluster.bootstrap, starts, stop_at_end=True) as several:
            found = [(record.topic, record.partition, record.offset) for record in several.records()]
            assert [several.position(("t", index)) for index in range(3)] == [0, 30, 60]
    assert [place for place in found if place[1] == 2] == [("t", 2, offset) for offset in range(60)]
    assert sorted(found) == sorted({("t", index, offset) for index in range(3) for offset in range(30 * index)})


def test_records_start_and_end_where_they_are_asked_to(cluster: FakeCluster) -> None:
    fill(cluster.topic("t")[0], batches=5)
    with Reader(cluster.bootstrap, {("t", 0): 13}, end_offsets={("t", 0): 37}) as bounded:
        offsets = []
        for record in bounded.records():
            offsets.append(record.offset)
            assert bounded.position(("t", 0)) == record.offset + 1
    assert offsets == list(range(13, 37))
    assert bounded.position(("t", 0)) == 37


def test_control_records_are_left_out(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    log.append(records.write([Record(None, b"first")]))
    log.append(
        records.write_end_transaction(commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=5)
    )
    log.append(records.write([Record(None, b"last")]))
    with reader(cluster) as whole:
        assert [(record.offset, record.value) for record in whole.records()] == [(0, b"first"), (2, b"last")]
        assert whole.position(("t", 0)) == 3


def test_records_before_a_broken_batch_come_first(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    fill(log, batches=2)
    broken = bytearray(batch_of(20, 10))
    broken[-1] ^= 1
    log.put(bytes(broken))
    with reader(cluster) as whole:
        found = []
        with pytest.raises(CorruptRecordError, match=r"^t-0@20: .*checksum"):
            found.extend(record.offset for record in whole.records())
        assert whole.position(("t", 0)) == 20


def test_header_values_become_objects_and_interceptors_see_them(cluster: FakeCluster) -> None:
    headers = [("attempt", b"3"), ("plain", b"p"), ("attempt", None)]
    cluster.topic("t")[0].append(records.write([Record(b"k", b"v", headers, 5), Record(None, b"bare")]))
    seen = []

    def look(record: Record) -> None:
        seen.append(record.headers)

    with reader(cluster) as whole:
        first, bare = whole.records(interceptors=[look], header_serdes=SERDES)
    assert seen == [(("attempt", 3), ("plain", b"p"), ("attempt", None)), ()]
    assert (first.headers, first.key, first.value, first.timestamp) == (seen[0], b"k", b"v", 5)
    assert (first.topic, first.partition, first.consumed, bare.headers) == ("t", 0, True, ())


def test_a_header_that_cannot_be_deserialized_names_record_and_header(cluster: FakeCluster) -> None:
    rows = [Record(None, None, [("attempt", value)]) for value in (b"1", b"one", b"2")]
    cluster.topic("t")[0].append(records.write(rows))
    with reader(cluster) as whole:
        found = whole.records(header_serdes=SERDES)
        assert next(found).get_header("attempt") == 1
        with pytest.raises(DecodeError, match=r"^t-0@1: header 'attempt': its deserializer failed: ValueError"):
            next(found)
        assert whole.position(("t", 0)) == 1


def test_a_consumers_interceptor_may_give_another_record_but_not_change_headers(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.topic("t")[0].append(records.write([Record(None, b"v", [("a", b"b")])]))

    def change(record: Record) -> None:
        record.set_header("a", b"c")

    with reader(cluster) as whole, caplog.at_level(logging.WARNING, "tagwire.client"):
        (record,) = whole.records(interceptors=[change, lambda record: record.replace(value=b"other")])
    assert (record.value, record.headers) == (b"other", (("a", b"b"),))
    assert (record.topic, record.partition, record.consumed) == ("t", 0, False)
    (logged,) = caplog.records
    assert logged.exc_info is not None
    assert logged.exc_info[0] is ReadOnlyError


def test_a_reader_is_read_as_batches_or_as_records(cluster: FakeCluster) -> None:
    for log in cluster.topic("t", 2):
        fill(log, batches=30)
    with Reader(cluster.bootstrap, {("t", 0): 0, ("t", 1): 0}, batch_rows=10, max_partition_bytes=2000) as mixed:
        next(mixed)
        with pytest.raises(ConfigError, match="make another reader"):
            next(mixed.records())
