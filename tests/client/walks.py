"""What the client does with any broker, whoever wrote it: the same tests for all of them.

A module that has a broker derives from `Walks` and gives the fixture `kind`. What a broker does not list is not asked
of it, and the test is skipped by that reason.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import pyarrow as pa
import pytest

from tagwire import records
from tagwire.client import EARLIEST, LATEST, Admin, Client, Consumer, NewTopic, Producer, Reader, TopicPartition
from tagwire.client.versions import range_of
from tagwire.errors import Error, KafkaError
from tagwire.rpc import api_key
from tagwire.rpc.ranges import overlap

from ..limits import wait_until
from .faces import THREADS, Face

NOW: Final = 1_700_000_000_000
SECONDS: Final = 30
_NUMBERS: Final = count()

# Key, value, headers, timestamp.
Row = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int]


@dataclass(frozen=True)
class Kind:
    """A cluster that stands.

    Attributes:
        name: what reports call it.
        exclude: versions not to speak to it, as `Client` takes them.
        finds_times: whether it finds the first record from a time on.
        face: which of the client's faces walks.
    """

    name: str
    bootstrap: str
    exclude: Mapping[str, str] = field(default_factory=dict)
    finds_times: bool = True
    face: Face = THREADS

    def client(self, **options: Any) -> Client:
        client: Client = self.face.client(self.bootstrap, **{"timeout": 20, "exclude": self.exclude, **options})
        return client


class Walk:
    """One test's way through a cluster: its client, and topics of its own."""

    def __init__(self, kind: Kind, client: Client) -> None:
        self.kind = kind
        self.client = client
        self.admin: Admin = kind.face.admin(client)

    def needs(self, *apis: str) -> None:
        """Skips the test where the broker lists no version of an API that we speak."""
        listed = self.client.versions()
        for api in apis:
            if api_key(api) not in listed or not overlap(listed[api_key(api)], range_of(api_key(api))):
                pytest.skip(f"{self.kind.name} does not serve {api}")

    def name(self) -> str:
        return f"walk-{next(_NUMBERS)}"

    def topic(self, partitions: int = 1, **configs: str) -> str:
        """A new topic; where topics cannot be asked for, one that comes into being when it is named."""
        name = self.name()
        if api_key("CreateTopics") in self.client.versions():
            self.admin.create_topics([NewTopic(name, partitions, configs={"retention.ms": "-1", **configs})])
        else:
            self.client.metadata([name], allow_auto_create=True)
        return name

    def fill(self, topic: str, values: int, partition: int = 0) -> None:
        with self.producer() as producer:
            for number in range(values):
                producer.send(topic, b"%d" % number, timestamp=NOW + number, partition=partition)

    def read(self, topic: str, partitions: int = 1, **options: Any) -> Reader:
        starts = {(topic, index): EARLIEST for index in range(partitions)}
        return self.reader(starts, stop_at_end=True, **options)

    def producer(self, **options: Any) -> Producer:
        producer: Producer = self.kind.face.producer(self.client, **options)
        return producer

    def reader(self, starts: Any, client: Client | None = None, **options: Any) -> Reader:
        reader: Reader = self.kind.face.reader(client or self.client, starts, **options)
        return reader

    def consumer(self, **options: Any) -> Consumer:
        consumer: Consumer = self.kind.face.consumer(self.client, **options)
        return consumer


class Walks:
    """Records, offsets and groups."""

    @pytest.fixture
    def walk(self, kind: Kind) -> Iterator[Walk]:
        with kind.client() as client:
            yield Walk(kind, client)

    @pytest.mark.parametrize("compression", records.CODECS)
    def test_what_is_produced_is_read_back_as_columns_and_as_objects(self, walk: Walk, compression: str) -> None:
        topic = walk.topic(3)
        sent = [_row(number) for number in range(2000)]
        with walk.producer(compression=compression, batch_bytes=4000) as producer:
            told = [producer.send(topic, value, key, headers, time) for key, value, headers, time in sent]
        expected = {(each.partition, each.result().offset): row for each, row in zip(told, sent)}
        assert len(expected) == 2000
        assert dict(_of_columns(walk.read(topic, 3))) == expected
        objects = walk.read(topic, 3).records()
        assert {
            (each.partition, each.offset): (each.key, each.value, list(each.headers), each.timestamp)
            for each in objects
        } == expected

    def test_arrow_rows_go_in_and_come_out(self, walk: Walk) -> None:
        topic = walk.topic()
        rows = pa.record_batch({"key": [b"a", b"b", None], "value": [b"1", None, b"3"], "timestamp": [1, 2, 3]})
        with walk.producer() as producer:
            delivery = producer.send_batch(topic, 0, records.from_arrow(rows, compression="zstd"))
        assert delivery.result().offset == 0
        read = next(walk.read(topic, columns=("key", "value")))
        assert read.to_pydict() == {"key": [b"a", b"b", None], "value": [b"1", None, b"3"]}

    def test_every_api_is_spoken_at_the_highest_version_in_common(self, walk: Walk) -> None:
        walk.fill(topic := walk.topic(), 1)
        list(walk.read(topic))
        listed = walk.client.versions()
        spoken = walk.client.negotiated()
        assert {"Produce", "Fetch", "ListOffsets", "Metadata"} <= spoken.keys()
        highest = {name: min(listed[api_key(name)][1], range_of(api_key(name))[1]) for name in spoken}
        assert {**spoken, **dict.fromkeys(walk.kind.exclude, 0)} == {**highest, **dict.fromkeys(walk.kind.exclude, 0)}

    def test_offsets_are_told_by_end_and_by_time(self, walk: Walk) -> None:
        walk.fill(topic := walk.topic(2), 10, partition=1)
        both = [TopicPartition(topic, index) for index in range(2)]
        assert walk.client.list_offsets(dict.fromkeys(both, EARLIEST)) == {both[0]: 0, both[1]: 0}
        assert walk.client.list_offsets(dict.fromkeys(both, LATEST)) == {both[0]: 0, both[1]: 10}

    def test_a_time_is_found_in_a_partition(self, walk: Walk) -> None:
        if not walk.kind.finds_times:
            pytest.skip(f"{walk.kind.name} answers every time with an end")
        walk.fill(topic := walk.topic(), 10)
        found = {time: walk.client.list_offsets({(topic, 0): NOW + time})[topic, 0] for time in (-5, 4, 10)}
        assert found == {-5: 0, 4: 4, 10: -1}

    def test_a_reader_waits_for_what_is_produced_later(self, walk: Walk) -> None:
        topic = walk.topic()
        seen: list[bytes | None] = []

        def read() -> None:
            with walk.kind.client() as client:
                for batch in walk.reader({(topic, 0): 0}, client, end_offsets={(topic, 0): 30}):
                    seen.extend(batch.column("value").to_pylist())

        thread = threading.Thread(target=read)
        thread.start()
        for number in range(3):
            walk.fill(topic, 10)
            assert walk.client.list_offsets({(topic, 0): LATEST})[topic, 0] == 10 * (number + 1)
        thread.join()
        assert seen == [b"%d" % number for number in range(10)] * 3

    def test_an_offset_the_log_does_not_have_names_what_it_has(self, walk: Walk) -> None:
        walk.fill(topic := walk.topic(), 1)
        with pytest.raises(KafkaError, match=f"{topic}-0: no offset 7; the partition holds offsets 0 to 0"):
            next(walk.reader({(topic, 0): 7}))

    def test_offsets_of_a_group_are_kept_without_being_a_member(self, walk: Walk) -> None:
        topic, group = walk.topic(2), walk.name()
        places = [TopicPartition(topic, index) for index in range(2)]
        walk.admin.alter_group_offsets(group, {places[0]: 3, places[1]: 7})
        walk.admin.alter_group_offsets(group, {places[1]: 8})
        found = walk.admin.group_offsets(group, places)
        assert {at: committed.offset for at, committed in found.items()} == {places[0]: 3, places[1]: 8}

    def test_a_topic_that_is_missing_is_named(self, kind: Kind, walk: Walk) -> None:
        walk.needs("DeleteTopics")
        with kind.client(timeout=1) as client, pytest.raises(KafkaError) as caught:
            kind.face.admin(client).delete_topics(["no-such-topic"])
        assert caught.value.error is Error.UNKNOWN_TOPIC_OR_PARTITION
        assert "delete topic 'no-such-topic'" in str(caught.value)


def _row(number: int) -> Row:
    headers = [("n", b"%d" % number), ("n", None), ("größe", b"")] if number % 2 else []
    value = None if number % 7 == 0 else b"value %d " % number * (number % 5)
    return b"k%d" % (number % 10), value, headers, NOW + number


def _of_columns(reader: Reader) -> Iterator[tuple[tuple[int, int], Row]]:
    for batch in reader:
        for row in batch.set_column(3, "timestamp", batch.column("timestamp").cast(pa.int64())).to_pylist():
            headers = [(header["key"], header["value"]) for header in row["headers"] or []]
            yield (row["partition"], row["offset"]), (row["key"], row["value"], headers, row["timestamp"])


def until(done: Callable[[], bool]) -> None:
    """Waits for what a cluster does by and by, such as writing the markers of a transaction that has ended."""
    wait_until(done, SECONDS)
