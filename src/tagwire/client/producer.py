"""Producing records: gathered into batches per partition, sent when a batch is full or on `flush`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Final

from tagwire.client.client import Client
from tagwire.client.config import acks_of, at_least, compression_of
from tagwire.client.delivery import Batch, Delivery, size_of, whole_batch
from tagwire.client.metadata import TopicPartition
from tagwire.client.owning import ClientOwner
from tagwire.client.partitioner import StickyPartition, partition_of
from tagwire.client.sending import Sender
from tagwire.errors import EncodeError, Error, KafkaError, TagwireError
from tagwire.records import HeaderSerdes, Record
from tagwire.records.interceptors import ProducerInterceptor, before_encoding
from tagwire.records.record import HeaderKey

# Encoded batches that may wait for their answer before `send` waits too (buffer.memory of Java's producer).
BUFFER_BYTES: Final = 32 * 1024 * 1024

_LATEST_TIMESTAMP: Final = 2**63 - 1


class Producer(ClientOwner):
    """Sends records, for one thread; nothing happens behind its back.

    A record goes out when its batch is full, when a later `send` finds it older than `linger`, and on `flush` and
    `close` at the latest. The order of a partition is the order of the calls, whatever has to be tried again; a batch
    whose answer was lost is sent again and may then stand twice. A record with a key goes to the partition that
    Java's producer gives the key; records without one fill a batch of one partition, then of another.

        with Producer("kafka-1:9092", compression="zstd") as producer:
            delivery = producer.send("flights", b"value", key=b"UA-1545", headers=[("origin", b"EWR")])
            producer.flush()
            delivery.offset

    Args:
        client: a client, which stays open, or bootstrap addresses, "HOST:PORT,HOST:PORT".
        acks: who must have a batch before it counts as sent: "all" in-sync replicas, 1 the leader, 0 nobody.
        compression: none, gzip, snappy, lz4 or zstd.
        batch_bytes: bytes of records, before compression, that are sent together.
        linger: seconds that a record waits for others; None until its batch is full.
        retries: how often a batch is tried again. timeout: seconds from its first record until it is given up.
            What is left out is as the client is set up.
        interceptors: each sees every record of `send` before it is encoded, and may set its headers or give another
            record. One that raises is logged, and the record goes on as it was before it.
        header_serdes: what makes header values, also those of interceptors, bytes.

    Raises:
        ConfigError: an option is wrong.
    """

    def __init__(
        self,
        client: Client | str,
        *,
        acks: str | int | None = None,
        compression: str | None = None,
        batch_bytes: int | None = None,
        linger: float | None = None,
        retries: int | None = None,
        timeout: float | None = None,
        interceptors: Sequence[ProducerInterceptor] = (),
        header_serdes: HeaderSerdes | None = None,
    ) -> None:
        given: dict[str, Any] = {
            "acks": None if acks is None else acks_of(acks),
            "compression": None if compression is None else compression_of(compression),
            "batch_bytes": at_least("batch_bytes", batch_bytes, 1),
            "linger": at_least("linger", linger, 0),
            "retries": at_least("retries", retries, 0),
            "timeout": at_least("timeout", timeout, 0),
        }
        super().__init__(client)
        settings = replace(
            self._client.produce_settings, **{name: value for name, value in given.items() if value is not None}
        )
        self._compression = settings.compression
        self._batch_bytes = settings.batch_bytes
        self._linger = settings.linger
        self._interceptors = tuple(interceptors)
        self._header_serdes = header_serdes
        self._sender = Sender(self._client, settings)
        self._open: dict[TopicPartition, Batch] = {}
        self._partitions: dict[str, list[TopicPartition]] = {}
        self._sticky: dict[str, StickyPartition] = {}

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Sequence[tuple[HeaderKey, Any]] = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Delivery:
        """Takes a record. What becomes of it shows in the `Delivery`, and a failure also in the next `flush`.

        Args:
            headers: (key, value) pairs, in order; keys may repeat. Values are bytes or None, or what `header_serdes`
                takes.
            timestamp: milliseconds since 1970 UTC, -1 for none; None is now.
            partition: where to put it; None as the key says.

        Raises:
            EncodeError: the record cannot be written.
            KafkaError: the topic or the partition does not exist. A missing topic is created where brokers do that.
            ConnectError, ...: the topic's partitions could not be asked.
        """
        if timestamp is None:
            timestamp = int(time.time() * 1000)
        record = self._prepared(topic, Record(key, value, headers, timestamp))
        if not -1 <= record.timestamp <= _LATEST_TIMESTAMP:
            raise EncodeError(f"timestamp {record.timestamp} of a record is out of range")
        size = size_of(record.key, record.value, record.headers)
        at = self._place(topic, record.key, partition)
        batch = self._open.get(at)
        if batch is not None and batch.size + size > self._batch_bytes:
            self._close_batch(batch)
            self._dispatch()
            if record.key is None and partition is None:
                at = self._place(topic, None, None)
            batch = self._open.get(at)
        if batch is None:
            batch = self._open[at] = Batch(at)
        delivery = batch.add(record, size)
        if batch.size >= self._batch_bytes:
            self._close_batch(batch)
            self._dispatch()
        if self._linger is not None and self._close_old(time.monotonic() - self._linger):
            self._dispatch()
        return delivery

    def send_batch(self, topic: str, partition: int, data: bytes) -> Delivery:
        """Takes a record batch that is encoded already, such as `tagwire.records.from_arrow` makes; it is sent as it
        is.

        Raises:
            EncodeError: `data` is not exactly one record batch. Else as `send`.
        """
        at = self._place(topic, None, partition)
        batch = whole_batch(at, data)
        if at in self._open:
            self._close_batch(self._open[at])
        self._sender.enqueue(batch)
        self._dispatch()
        return Delivery(batch, 0)

    def flush(self) -> None:
        """Sends everything and waits until all of it is decided.

        Raises:
            TagwireError: the first failure since the last flush: KafkaError as a broker refused, or what kept a batch
            from
                being delivered within its time. Each `Delivery` has its own.
        """
        for batch in list(self._open.values()):
            self._close_batch(batch)
        self._sender.pump(block=False)
        while not self._sender.idle:
            self._sender.pump(block=True)
        self._sender.raise_first()

    def close(self) -> None:
        """Flushes, and closes the connections where the producer opened them. Raises as `flush`."""
        try:
            self.flush()
        finally:
            super().close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except TagwireError:
            if error is None:
                raise

    def _prepared(self, topic: str, record: Record) -> Record:
        """What is to be encoded, after the interceptors and the headers' serializers."""
        record = before_encoding(topic, record, self._interceptors)
        if self._header_serdes is None:
            return record
        return record.replace(headers=self._header_serdes.serialized(record.headers))

    def _place(self, topic: str, key: bytes | None, partition: int | None) -> TopicPartition:
        places = self._partitions.get(topic)
        if places is None:
            found = self._client.topic(topic, self._client.deadline(), allow_auto_create=True)
            places = self._partitions[topic] = [TopicPartition(topic, index) for index in range(len(found.partitions))]
            self._sticky[topic] = StickyPartition(len(places))
        if partition is None:
            return places[self._sticky[topic].current if key is None else partition_of(key, len(places))]
        if not 0 <= partition < len(places):
            raise KafkaError(
                Error.UNKNOWN_TOPIC_OR_PARTITION,
                f"partition {topic}-{partition}: topic {topic!r} has {len(places)} partitions",
            )
        return places[partition]

    def _close_batch(self, batch: Batch) -> None:
        """Encodes an open batch and hands it to the sender, which sends it when it is told to."""
        del self._open[batch.at]
        sticky = self._sticky[batch.at.topic]
        if sticky.current == batch.at.partition:
            sticky.move_on()
        try:
            batch.close(self._compression)
        except EncodeError as error:
            batch.failed(error)
            self._sender.note(error)
        else:
            self._sender.enqueue(batch)

    def _close_old(self, before: float) -> bool:
        """Closes the batches that were begun by then. Whether there were any."""
        old = [batch for batch in self._open.values() if batch.created <= before]
        for batch in old:
            self._close_batch(batch)
        return bool(old)

    def _dispatch(self) -> None:
        self._sender.pump(block=False)
        while self._sender.waiting_bytes > BUFFER_BYTES:
            self._sender.pump(block=True)
