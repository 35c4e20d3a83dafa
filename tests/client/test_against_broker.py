"""The client and the embedded broker, end to end, in what other brokers do otherwise or cannot be made to do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tagwire import records
from tagwire.broker import Broker
from tagwire.client import EARLIEST, Admin, Client, NewTopic, Producer, Reader
from tagwire.errors import ConnectError, Error, KafkaError
from tagwire.records import Record


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker(auto_create_topics=False) as broker:
        yield broker.bootstrap


@pytest.fixture
def client(bootstrap: str) -> Iterator[Client]:
    with Client(bootstrap) as client:
        yield client


def test_a_batch_larger_than_the_topic_allows_is_refused_with_its_partition(client: Client) -> None:
    Admin(client).create_topics([NewTopic("narrow", configs={"max.message.bytes": "1000"})])
    with Producer(client) as producer:
        delivery = producer.send("narrow", b"x" * 2000)
        with pytest.raises(KafkaError, match=r"MESSAGE_TOO_LARGE .* for narrow-0") as caught:
            producer.flush()
    assert caught.value.error is Error.MESSAGE_TOO_LARGE
    assert delivery.exception() is caught.value


def test_what_does_not_exist_is_named(bootstrap: str) -> None:
    with Client(bootstrap, timeout=0.6) as client, pytest.raises(KafkaError, match="topic 'missing'"):
        Reader(client, {("missing", 0): EARLIEST})
    with Admin(bootstrap) as admin, pytest.raises(KafkaError, match="delete topic 'missing'"):
        admin.delete_topics(["missing"])


def test_a_deleted_topic_ends_a_reader(bootstrap: str) -> None:
    with Client(bootstrap, timeout=2) as client:
        Admin(client).create_topics([NewTopic("deleted")])
        with Producer(client) as producer:
            producer.send("deleted", b"v")
        reader = Reader(client, {("deleted", 0): 0}, max_wait_ms=10)
        assert next(reader).num_rows == 1
        Admin(client).delete_topics(["deleted"])
        with pytest.raises(KafkaError, match="topic 'deleted'"):
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


def test_a_partition_that_the_topic_has_got_meanwhile_is_written_to(client: Client) -> None:
    import pyarrow as pa

    admin = Admin(client)
    admin.create_topics([NewTopic("growing")])
    with Producer(client) as producer:
        assert producer.send("growing", b"v", partition=0).result().offset == 0
        admin.create_partitions({"growing": 2})
        assert producer.send("growing", b"v", partition=1).result().offset == 0
        admin.create_partitions({"growing": 3})
        assert producer.send_arrow("growing", pa.table({"value": [b"v"], "partition": [2]})).result().rows == 1
        admin.create_partitions({"growing": 4})
        assert producer.send_batch("growing", 3, records.write([Record(None, b"v")])).result().offset == 0
        with pytest.raises(KafkaError, match="partition growing-4: topic 'growing' has 4 partitions"):
            producer.send("growing", b"v", partition=4)
