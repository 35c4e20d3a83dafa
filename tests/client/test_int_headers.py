"""Topics of the int-headers format: header keys are names where a register knows them, and ints for brokers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from tagwire import records
from tagwire.client import EARLIEST, Producer, Reader
from tagwire.errors import ConfigError, CorruptRecordError, EncodeError
from tagwire.records import HeaderEntry, HeaderRegister, Record

from .fake_broker import FakeCluster, FakePartition

DIALECT = "int-headers"
REGISTER = HeaderRegister([HeaderEntry(1_114_000, "app.name")], name="headers.toml")


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as one:
        yield one


@pytest.fixture
def log(cluster: FakeCluster) -> FakePartition:
    (found,) = cluster.topic("t")
    found.dialect = DIALECT
    return found


def stored(log: FakePartition) -> list[tuple[int, bytes | None, list[Any]]]:
    return [
        (record.offset, record.value, list(record.headers))
        for _, _, data in log.batches
        for batch in records.read(data, DIALECT)
        for record in batch.records()
    ]


def reader(cluster: FakeCluster, **options: Any) -> Reader:
    return Reader(cluster.bootstrap, {("t", 0): EARLIEST}, stop_at_end=True, dialect=DIALECT, **options)


@pytest.mark.parametrize("codec", records.CODECS)
def test_a_topic_is_written_from_names_and_read_with_them(cluster: FakeCluster, log: FakePartition, codec: str) -> None:
    with Producer(cluster.bootstrap, dialect=DIALECT, register=REGISTER, compression=codec) as producer:
        deliveries = [
            producer.send("t", b"1", headers=[("app.name", b"ig"), ("7", b"")], timestamp=5),
            producer.send("t", b"2", timestamp=6),
            producer.send("t", b"3", headers=[(-1, b"x")], timestamp=7),
        ]
        assert [delivery.result().offset for delivery in deliveries] == [0, 1, 2]
    assert stored(log) == [(0, b"1", [(7, b""), (1_114_000, b"ig")]), (1, b"2", []), (2, b"3", [(-1, b"x")])]
    named = [[("7", b""), ("app.name", b"ig")], [], [("-1", b"x")]]
    with reader(cluster, register=REGISTER) as read:
        found = list(read.records())
    assert [list(record.headers) for record in found] == named
    assert [(record.topic, record.partition, record.offset) for record in found] == [
        ("t", 0, 0),
        ("t", 0, 1),
        ("t", 0, 2),
    ]
    with reader(cluster, register=REGISTER, columns=("headers",)) as read:
        columns = [row["headers"] or [] for batch in read for row in batch.to_pylist()]
    assert [[(pair["key"], pair["value"]) for pair in row] for row in columns] == named
    with reader(cluster) as read:
        assert [list(record.headers) for record in read.records()] == [row[2] for row in stored(log)]


def test_rows_are_written_from_names(cluster: FakeCluster, log: FakePartition) -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    headers = pa.array([[{"key": "app.name", "value": b"ig"}], None, [{"key": "9", "value": b""}]], kind)
    rows = pa.table({"value": pa.array([b"1", b"2", b"3"]), "headers": headers})
    with Producer(cluster.bootstrap, dialect=DIALECT, register=REGISTER) as producer:
        producer.send_arrow("t", rows)
        producer.flush()
    assert stored(log) == [(0, b"1", [(1_114_000, b"ig")]), (1, b"2", []), (2, b"3", [(9, b"")])]


def test_message_sets_that_are_encoded_already_are_sent(cluster: FakeCluster, log: FakePartition) -> None:
    data = records.write(
        [Record(b"k", b"1", [(7, b"")], 5), Record(b"k", b"2", (), 6)], dialect=DIALECT, base_offset=40
    )
    with Producer(cluster.bootstrap, dialect=DIALECT) as producer:
        assert producer.send_batch("t", 0, data).result().offset == 0
        with pytest.raises(EncodeError, match="are not whole messages"):
            producer.send_batch("t", 0, data[:-1])
    assert stored(log) == [(0, b"1", [(7, b"")]), (1, b"2", [])]


def test_a_message_set_that_shrinks_a_hundredfold_is_sent(cluster: FakeCluster, log: FakePartition) -> None:
    values = [bytes(3 << 20), b"last"]
    data = records.write([Record(None, value) for value in values], dialect=DIALECT, compression="zstd")
    with Producer(cluster.bootstrap, dialect=DIALECT) as producer:
        assert producer.send_batch("t", 0, data).result().offset == 0
        assert producer.send_batch("t", 0, data).result().offset == 2
    entries = [entry for _, _, data in log.batches for entry in records.read(data, DIALECT)]
    found = [record for entry in entries for record in entry.records(max_decompressed=1 << 24)]
    assert [record.value for record in found] == values * 2


def test_what_cannot_be_bridged_is_refused_at_once_and_named(cluster: FakeCluster, log: FakePartition) -> None:
    with Producer(cluster.bootstrap, dialect=DIALECT, register=REGISTER) as producer:
        with pytest.raises(
            EncodeError, match=r"record for t: header 'trace' is neither in headers\.toml nor a decimal"
        ):
            producer.send("t", b"v", headers=[("trace", b"")])
        with pytest.raises(EncodeError, match=r"'1114000' stands there twice, as 'app.name'"):
            producer.send("t", b"v", headers=[("app.name", b""), ("1114000", b"")])
    with (
        Producer(cluster.bootstrap, dialect=DIALECT) as producer,
        pytest.raises(EncodeError, match=r"must be pairs of int and bytes"),
    ):
        producer.send("t", b"v", headers=[("app.name", b"")])
    assert stored(log) == []


def test_messages_before_a_broken_one_are_read(cluster: FakeCluster, log: FakePartition) -> None:
    log.append(records.write([Record(None, b"%d" % number, timestamp=5) for number in range(3)], dialect=DIALECT))
    base, after, data = log.batches[-1]
    log.batches[-1] = (base, after, data[:-1] + b"!")
    with reader(cluster) as read:
        found = read.records()
        assert [next(found).value, next(found).value] == [b"0", b"1"]
        with pytest.raises(CorruptRecordError, match=r"t-0@2.*checksum"):
            next(found)


def test_options_that_contradict_the_dialect_are_refused(cluster: FakeCluster) -> None:
    for options in ({"idempotence": True}, {"transactional_id": "mover"}):
        with pytest.raises(ConfigError, match="dialect int-headers: it has no room for sequence numbers"):
            Producer(cluster.bootstrap, dialect=DIALECT, **options)
    with pytest.raises(ConfigError, match="no dialect is given"):
        Producer(cluster.bootstrap, register=REGISTER)
    with pytest.raises(ConfigError, match="no dialect is given"):
        Reader(cluster.bootstrap, {("t", 0): 0}, register=REGISTER)
    with pytest.raises(ConfigError, match="dialect 'x' is unknown"):
        Producer(cluster.bootstrap, dialect="x")
