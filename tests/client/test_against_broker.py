"""The client and the embedded broker, end to end."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from tagwire import records
from tagwire.broker import Broker
from tagwire.client import EARLIEST, LATEST, Admin, Client, NewTopic, Producer, Reader, TopicPartition
from tagwire.errors import ConnectError, Error, KafkaError


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker(auto_create_topics=False) as broker:
        yield broker.bootstrap


@pytest.fixture
def client(bootstrap: str) -> Iterator[Client]:
    with Client(bootstrap) as client:
        yield client


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_produced_is_read_back_byte_for_byte(client: Client, compression: str) -> None:
    topic = f"back-{compression}"
    Admin(client).create_topics([NewTopic(topic, num_partitions=3)])
    sent = [
        (b"k%d" % (i % 10), None if i % 7 == 0 else b"v%d" % i, [("n", b"%d" % i), ("n", None)] if i % 2 else [], i)
        for i in range(2000)
    ]
    with Producer(client, compression=compression, batch_bytes=4000) as producer:
        deliveries = [producer.send(topic, value, key, headers, time) for key, value, headers, time in sent]
    expected = {
        (delivery.partition, delivery.offset): (key, value, headers or None, time)
        for delivery, (key, value, headers, time) in zip(deliveries, sent)
    }
    found = {}
    for batch in Reader(client, {(topic, index): EARLIEST for index in range(3)}, stop_at_end=True):
        for row in batch.set_column(3, "timestamp", batch.column("timestamp").cast(pa.int64())).to_pylist():
            headers = row["headers"] and [(header["key"], header["value"]) for header in row["headers"]]
            found[row["partition"], row["offset"]] = row["key"], row["value"], headers, row["timestamp"]
    assert found == expected
    assert len(found) == 2000


def test_arrow_rows_go_in_and_come_out(client: Client) -> None:
    Admin(client).create_topics([NewTopic("arrow")])
    rows = pa.record_batch({"key": [b"a", b"b", None], "value": [b"1", None, b"3"], "timestamp": [1, 2, 3]})
    with Producer(client) as producer:
        delivery = producer.send_batch("arrow", 0, records.from_arrow(rows, compression="zstd"))
    assert delivery.offset == 0
    read = next(Reader(client, {("arrow", 0): 0}, columns=("key", "value"), stop_at_end=True))
    assert read.to_pydict() == {"key": [b"a", b"b", None], "value": [b"1", None, b"3"]}


def test_offsets_and_metadata_agree(client: Client) -> None:
    Admin(client).create_topics([NewTopic("counted", num_partitions=2)])
    with Producer(client) as producer:
        for number in range(10):
            producer.send("counted", b"", timestamp=1000 + number, partition=1)
    assert sorted(client.metadata(["counted"]).topics["counted"].partitions) == [0, 1]
    both = [TopicPartition("counted", index) for index in range(2)]
    assert client.list_offsets(dict.fromkeys(both, EARLIEST)) == {both[0]: 0, both[1]: 0}
    assert client.list_offsets(dict.fromkeys(both, LATEST)) == {both[0]: 0, both[1]: 10}
    assert client.list_offsets({both[1]: 1004}) == {both[1]: 4}


def test_the_versions_spoken_are_the_highest_in_common(client: Client) -> None:
    Admin(client).create_topics([NewTopic("spoken")])
    with Producer(client) as producer:
        producer.send("spoken", b"v")
    list(Reader(client, {("spoken", 0): EARLIEST}, stop_at_end=True))
    served = client.versions()
    spoken = client.negotiated()
    assert set(spoken) == {"Produce", "Fetch", "ListOffsets", "Metadata", "CreateTopics", "InitProducerId"}
    assert (spoken["Produce"], spoken["Fetch"]) == (min(12, served[0][1]), min(18, served[1][1]))


def test_a_reader_waits_for_what_is_produced_later(client: Client, bootstrap: str) -> None:
    Admin(client).create_topics([NewTopic("later")])
    seen: list[bytes | None] = []

    def read() -> None:
        with Reader(bootstrap, {("later", 0): 0}, end_offsets={("later", 0): 30}) as reader:
            for batch in reader:
                seen.extend(batch.column("value").to_pylist())

    thread = threading.Thread(target=read)
    thread.start()
    with Producer(client) as producer:
        for number in range(30):
            producer.send("later", b"%d" % number)
            producer.flush()
    thread.join(timeout=30)
    assert seen == [b"%d" % number for number in range(30)]


def test_a_batch_larger_than_the_topic_allows_is_refused_with_its_partition(client: Client) -> None:
    Admin(client).create_topics([NewTopic("narrow", configs={"max.message.bytes": "1000"})])
    with Producer(client) as producer:
        delivery = producer.send("narrow", b"x" * 2000)
        with pytest.raises(KafkaError, match=r"MESSAGE_TOO_LARGE .* for narrow-0") as caught:
            producer.flush()
    assert caught.value.error is Error.MESSAGE_TOO_LARGE
    assert delivery.error is caught.value


def test_what_does_not_exist_is_named(bootstrap: str) -> None:
    with Client(bootstrap, timeout=0.6) as client, pytest.raises(KafkaError, match="topic 'missing'"):
        Reader(client, {("missing", 0): EARLIEST})
    with Admin(bootstrap) as admin, pytest.raises(KafkaError, match="delete topic 'missing'"):
        admin.delete_topics(["missing"])


def test_an_offset_the_log_does_not_have_names_what_it_has(client: Client) -> None:
    Admin(client).create_topics([NewTopic("short")])
    with Producer(client) as producer:
        producer.send("short", b"v")
    with pytest.raises(KafkaError, match="short-0: no offset 7; the partition holds offsets 0 to 0"):
        next(Reader(client, {("short", 0): 7}))


def test_a_deleted_topic_ends_a_reader(bootstrap: str) -> None:
    with Client(bootstrap, timeout=0.5) as client:
        Admin(client).create_topics([NewTopic("doomed")])
        with Producer(client) as producer:
            producer.send("doomed", b"v")
        reader = Reader(client, {("doomed", 0): 0}, max_wait_ms=10)
        assert next(reader).num_rows == 1
        Admin(client).delete_topics(["doomed"])
        with pytest.raises(KafkaError, match="topic 'doomed'"):
            next(reader)


def test_a_stopped_broker_is_unreachable_and_a_restarted_one_is_not(tmp_path: object) -> None:
    with Broker(str(tmp_path)) as broker:
        bootstrap = broker.bootstrap
        with Producer(bootstrap) as producer:
            producer.send("kept", b"v")
    with pytest.raises(ConnectError, match=bootstrap):
        Client(bootstrap).metadata()
    with Broker(str(tmp_path)) as broker:
        batch = next(Reader(broker.bootstrap, {("kept", 0): EARLIEST}, stop_at_end=True))
        assert batch.column("value").to_pylist() == [b"v"]
