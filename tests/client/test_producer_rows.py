"""Arrow rows in: where each goes, in which batches, and what becomes of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire import records
from tagwire.client import Producer, RowsDelivery, RowsMetadata, TopicPartition, partition_of
from tagwire.errors import EncodeError, Error, KafkaError, TransactionStateError
from tagwire.kernel import partitioning
from tagwire.records import Record

from .fake_broker import FakeCluster
from .produce_responses import refusing
from .stored import stored_in

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as one:
        yield one


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_rows_arrive_as_they_were_sent(cluster: FakeCluster, compression: str) -> None:
    log = cluster.topic("t")[0]
    rows = pa.record_batch(
        {
            "ignored": [1, 2, 3],
            "key": pa.array([b"k", None, b""]),
            "value": pa.array(["text", None, ""]),
            "headers": pa.array([[{"key": "h", "value": b"1"}, {"key": "h", "value": None}], None, []], HEADERS),
            "timestamp": pa.array([1000, 2000, 3000], pa.timestamp("us", "UTC")),
        }
    )
    with Producer(cluster.bootstrap, compression=compression) as producer:
        told = producer.send_arrow("t", rows).result(10)
    assert stored_in(log) == [
        Record(b"k", b"text", [("h", b"1"), ("h", None)], 1, 0),
        Record(None, None, [], 2, 1),
        Record(b"", b"", [], 3, 2),
    ]
    assert told == RowsMetadata(3, {TopicPartition("t", 0): (0, 2)})


@pytest.mark.parametrize("kind", [pa.binary(), pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
@pytest.mark.parametrize("sliced", [False, True])
def test_keys_go_where_send_puts_them_and_keep_their_order(cluster: FakeCluster, kind: Any, sliced: bool) -> None:
    logs = cluster.topic("t", 5)
    keys = [None if number % 7 == 0 else f"key-{number % 13}" for number in range(500)]
    values = [b"%d" % number for number in range(500)]
    table = pa.table({"key": pa.array(keys, pa.string()).cast(kind), "value": values})
    pieces = [table.slice(3, 300), table.slice(303)] if sliced else [table]
    with Producer(cluster.bootstrap) as producer:
        for piece in pieces:
            producer.send_arrow("t", piece)
    for index, log in enumerate(logs):
        found = [record for record in stored_in(log) if record.key is not None]
        wanted = [
            value
            for key, value in list(zip(keys, values))[3 if sliced else 0 :]
            if key is not None and partition_of(key.encode(), 5) == index
        ]
        assert [record.value for record in found] == wanted
    assert sum(log.end for log in logs) == 500 - (3 if sliced else 0)


def test_a_partition_column_says_where_and_nulls_in_it_go_by_key(cluster: FakeCluster) -> None:
    logs = cluster.topic("t", 3)
    rows = {"partition": [2, None, 0, None], "key": [b"a", b"b", b"c", b"d"], "value": [b"0", b"1", b"2", b"3"]}
    with Producer(cluster.bootstrap) as producer:
        producer.send_arrow("t", pa.record_batch(rows)).result(10)
        everything = producer.send_arrow("t", pa.record_batch(rows), partition=1).result(10)
        unkeyed = pa.record_batch({"partition": pa.array([0, None], pa.int64()), "value": [b"x", b"y"]})
        producer.send_arrow("t", unkeyed).result(10)
    assert list(everything.offsets) == [("t", 1)]
    wanted: list[list[bytes]] = [[b"2", b"x"], [b"0", b"1", b"2", b"3"], [b"0"]]
    for key, value in ((b"b", b"1"), (b"d", b"3")):
        wanted[partition_of(key, 3)].append(value)
    found = [[record.value or b"" for record in stored_in(log) if record.value != b"y"] for log in logs]
    assert [sorted(values) for values in found] == [sorted(values) for values in wanted]
    assert sum(log.end for log in logs) == 10


def test_rows_without_keys_fill_one_partition_after_another(cluster: FakeCluster) -> None:
    logs = cluster.topic("t", 3)
    rows = pa.record_batch({"value": [b"x" * 1000] * 20_000})
    with Producer(cluster.bootstrap) as producer:
        told = producer.send_arrow("t", rows).result(20)
    assert sum(log.end for log in logs) == 20_000
    assert sum(len(log.batches) for log in logs) == 20
    assert set(told.offsets) == {("t", index) for index, log in enumerate(logs) if log.end}
    assert len(told.offsets) > 1
    assert max(len(data) for log in logs for _, _, data in log.batches) <= 1 << 20


def test_rows_without_a_time_get_that_of_the_call(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    kinds = [pa.int64(), pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us", "UTC"), pa.timestamp("ns")]
    with Producer(cluster.bootstrap) as producer:
        producer.send_arrow("t", pa.record_batch({"value": [b""]}))
        producer.send_arrow("t", pa.record_batch({"value": [b""], "timestamp": pa.nulls(1)}))
        for kind in kinds:
            producer.send_arrow("t", pa.record_batch({"value": [b""] * 2, "timestamp": pa.array([None, 0], kind)}))
    times = [record.timestamp for record in stored_in(log)]
    given = times[3::2]
    assert given == [0] * len(kinds)
    assert min(times[:2] + times[2::2]) > 1_700_000_000_000
    assert max(times) < 4_000_000_000_000


BAD_ROWS: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("a value that is a number", {"value": [1]}, EncodeError, "column value is int64"),
    ("a key that is a number", {"key": [1], "value": [b""]}, EncodeError, "column key is int64"),
    ("a partition that is text", {"partition": ["1"], "value": [b""]}, EncodeError, "column partition is string"),
    ("a partition that is not there", {"partition": [0, 9], "value": [b"", b""]}, KafkaError, "partition t-9"),
    ("a negative partition", {"partition": [-1], "value": [b""]}, KafkaError, "partition t--1"),
    ("a time that is text", {"timestamp": ["now"], "value": [b""]}, EncodeError, "column timestamp is string"),
    ("a time before time", {"timestamp": [-2], "value": [b""]}, EncodeError, "row 0: timestamp -2"),
]


@pytest.mark.parametrize(("name", "columns", "kind", "says"), BAD_ROWS, ids=[row[0] for row in BAD_ROWS])
def test_rows_that_cannot_be_sent_are_told_by_send_arrow(
    cluster: FakeCluster, name: str, columns: dict[str, Any], kind: type[Exception], says: str
) -> None:
    logs = cluster.topic("t", 2)
    with Producer(cluster.bootstrap) as producer, pytest.raises(kind, match=says):
        producer.send_arrow("t", pa.record_batch(columns))
    assert [log.end for log in logs] == [0, 0]


def test_a_failure_is_that_of_all_rows_and_the_next_flush(cluster: FakeCluster) -> None:
    cluster.topic("t")
    cluster.script("Produce", None, refusing(Error.INVALID_RECORD))
    rows = pa.record_batch({"value": [b"x" * 1000] * 3000})
    with Producer(cluster.bootstrap) as producer:
        told = producer.send_arrow("t", rows)
        with pytest.raises(KafkaError, match="INVALID_RECORD"):
            producer.flush()
        assert told.done()
        with pytest.raises(KafkaError, match="INVALID_RECORD"):
            told.result()


def test_a_batch_of_rows_that_is_too_large_is_split(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    cluster.script("Produce", refusing(Error.MESSAGE_TOO_LARGE))
    with Producer(cluster.bootstrap) as producer:
        told = producer.send_arrow("t", pa.record_batch({"value": [b"%d" % number for number in range(9)]})).result(10)
    assert [record.value for record in stored_in(log)] == [b"%d" % number for number in range(9)]
    assert told.offsets == {("t", 0): (0, 8)}


def test_the_parts_of_a_batch_of_rows_that_is_split_have_its_compression_level(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    rows = [Record(None, b"%d" % (number * number) * 20, timestamp=0) for number in range(2000)]
    cluster.script("Produce", refusing(Error.MESSAGE_TOO_LARGE))
    with Producer(cluster.bootstrap, compression="zstd", compression_level=19, idempotence=False) as producer:
        columns = {"value": [row.value for row in rows], "timestamp": [0] * len(rows)}
        producer.send_arrow("t", pa.record_batch(columns)).result(10)
    whole = records.write(rows[:1000], compression="zstd", level=19)
    assert len(whole) != len(records.write(rows[:1000], compression="zstd"))
    assert log.batches[0][2][16:] == whole[16:]


def test_no_rows_are_nothing(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap) as producer:
        told = producer.send_arrow("t", pa.table({"value": pa.array([], pa.binary())})).result(1)
    assert (told.offsets, log.end) == ({}, 0)


def test_rows_need_an_open_transaction_where_records_do(cluster: FakeCluster) -> None:
    cluster.topic("t")
    with Producer(cluster.bootstrap, transactional_id="x") as producer, pytest.raises(TransactionStateError):
        producer.send_arrow("t", pa.record_batch({"value": [b""]}))


@given(st.lists(st.binary(max_size=40)), st.integers(1, 1000))
def test_a_column_of_keys_is_hashed_as_each_key_is(keys: list[bytes], partitions: int) -> None:
    ends = [0]
    for key in keys:
        ends.append(ends[-1] + len(key))
    found = bytearray(4 * len(keys))
    column = memoryview(b"".join(end.to_bytes(4, "little") for end in ends)).cast("i")
    if keys:
        partitioning.partitions_of(column, memoryview(b"".join(keys)), partitions, memoryview(found).cast("i"))
    assert list(memoryview(found).cast("i") if keys else []) == [partition_of(key, partitions) for key in keys]


@pytest.mark.parametrize("ends", [[0, 5], [-1, 0], [3, 2], [0]])
def test_ends_that_contradict_the_data_are_refused(ends: list[int]) -> None:
    column = memoryview(b"".join(end.to_bytes(4, "little", signed=True) for end in ends)).cast("i")
    with pytest.raises(ValueError, match="end"):
        partitioning.partitions_of(column, memoryview(b"abcd"), 3, memoryview(bytearray(4)).cast("i"))


def test_rows_are_told_of_once_when_all_of_them_are_done(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.topic("t", 2)
    cluster.script("Produce", *[refusing(Error.MESSAGE_TOO_LARGE)] * 2)
    rows = pa.table({"value": [b"%d" % number for number in range(8)], "partition": [0, 1] * 4})
    told: list[Any] = []

    def tell(delivery: RowsDelivery) -> None:
        told.append((delivery.done(), delivery.exception(0)))
        raise LookupError("what callbacks raise is logged")

    with caplog.at_level(logging.CRITICAL, "tagwire.client"), Producer(cluster.bootstrap) as producer:
        delivery = producer.send_arrow("t", rows)
        delivery.add_done_callback(tell)
        assert delivery.result(10).rows == 8
        producer.send("t", b"last", partition=0).result(10)
        assert told == [(True, None)]
        delivery.add_done_callback(tell)
        assert told == [(True, None)] * 2
        producer.send_arrow("t", rows.slice(0, 0)).add_done_callback(tell)
        assert told == [(True, None)] * 3
