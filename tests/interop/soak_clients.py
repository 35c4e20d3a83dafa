"""The clients of the soak: one thread each, through restarts of the broker, noting what was acknowledged."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

import aiokafka
import aiokafka.errors
import confluent_kafka
import kafka
import kafka.errors

PAUSE_S: Final = 0.005
TRANSACTION: Final = 20
ABORTED_EVERY: Final = 4
WAIT_S: Final = 60


class SoakClient(ABC):
    """Runs until it is told to stop.

    Attributes:
        failure: what ended it before.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.failure: BaseException | None = None
        self.stopping = threading.Event()
        self._thread = threading.Thread(target=self._guarded, name=type(self).__name__, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends it, when what it has begun is done."""
        self.stopping.set()
        self._thread.join(2 * WAIT_S)
        assert not self._thread.is_alive(), f"{self._thread.name} did not stop"
        if self.failure is not None:
            raise AssertionError(f"{self._thread.name} failed") from self.failure

    def _guarded(self) -> None:
        try:
            self.run()
        except BaseException as error:
            self.failure = error

    @abstractmethod
    def run(self) -> None:
        """Works until `stopping` is set."""


class Writer(SoakClient):
    """Writes counting numbers to a partition of its own.

    Attributes:
        partition: where.
        acknowledged: what stands, in the order it was sent.
        withdrawn: what must not be read: its transaction was aborted.
    """

    def __init__(self, bootstrap: str, topic: str, partition: int) -> None:
        super().__init__(bootstrap, topic)
        self.partition = partition
        self.acknowledged: list[int] = []
        self.withdrawn: set[int] = set()
        self.sent = 0

    def next_value(self) -> bytes:
        self.sent += 1
        return b"%d" % (self.sent - 1)


class LibrdkafkaWriter(Writer):
    """Idempotent."""

    def run(self) -> None:
        options = {"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 5, "log_level": 0}
        producer = confluent_kafka.Producer({**options, "message.timeout.ms": 1000 * WAIT_S})
        errors: list[confluent_kafka.KafkaError] = []

        def delivered(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
            if error is None:
                self.acknowledged.append(int(message.value()))
            else:
                errors.append(error)

        while not self.stopping.is_set():
            for _ in range(10):
                producer.produce(self.topic, self.next_value(), partition=self.partition, on_delivery=delivered)
            producer.poll(PAUSE_S)
        assert producer.flush(WAIT_S) == 0
        assert not errors, f"{len(errors)} records failed, the first by {errors[0]}"


class TransactionalWriter(Writer):
    """In transactions, of which some are aborted."""

    def run(self) -> None:
        options = {"bootstrap.servers": self.bootstrap, "transactional.id": "soak", "log_level": 0}
        producer = confluent_kafka.Producer({**options, "transaction.timeout.ms": 1000 * WAIT_S})
        self._retried(lambda: producer.init_transactions(WAIT_S))
        number = 0
        while not self.stopping.is_set():
            producer.begin_transaction()
            values = [self.next_value() for _ in range(TRANSACTION)]
            for value in values:
                producer.produce(self.topic, value, partition=self.partition)
            number += 1
            numbers = [int(value) for value in values]
            if number % ABORTED_EVERY and self._committed(producer):
                self.acknowledged += numbers
            else:
                if number % ABORTED_EVERY == 0:
                    producer.flush(WAIT_S)
                self._retried(lambda: producer.abort_transaction(WAIT_S))
                self.withdrawn.update(numbers)
            time.sleep(PAUSE_S)

    def _committed(self, producer: confluent_kafka.Producer) -> bool:
        """Whether the transaction stands; if not, it has to be aborted."""
        try:
            self._retried(lambda: producer.commit_transaction(WAIT_S))
        except confluent_kafka.KafkaException as error:
            if error.args[0].txn_requires_abort():
                return False
            raise
        return True

    @staticmethod
    def _retried(act: Callable[[], None]) -> None:
        while True:
            try:
                return act()
            except confluent_kafka.KafkaException as error:
                if not error.args[0].retriable():
                    raise


class AiokafkaWriter(Writer):
    """Idempotent, waiting for each acknowledgement."""

    def run(self) -> None:
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # it tells of every attempt while the broker is down
        asyncio.run(self._write())

    async def _write(self) -> None:
        options: dict[str, Any] = {"enable_idempotence": True, "request_timeout_ms": 1000 * WAIT_S}
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=self.bootstrap, **options)
        await producer.start()
        try:
            while not self.stopping.is_set():
                value = self.next_value()
                await producer.send_and_wait(self.topic, value, partition=self.partition)
                self.acknowledged.append(int(value))
                await asyncio.sleep(PAUSE_S)
        finally:
            await producer.stop()


class Reader(SoakClient):
    """A member of a group that has a partition to itself, and commits what it has read.

    Attributes:
        found: the numbers read, by partition.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(bootstrap, topic)
        self.found: dict[int, set[int]] = {}

    def note(self, partition: int, value: bytes) -> None:
        self.found.setdefault(partition, set()).add(int(value))


class LibrdkafkaReader(Reader):
    def run(self) -> None:
        options = {"bootstrap.servers": self.bootstrap, "group.id": "librdkafka", "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer({**options, "auto.commit.interval.ms": 500, "log_level": 0})
        consumer.subscribe([self.topic])
        try:
            while not self.stopping.is_set():
                for message in consumer.consume(500, 0.2):
                    if message.error() is None:
                        self.note(message.partition(), message.value())
        finally:
            consumer.close()


class KafkaPythonReader(Reader):
    def run(self) -> None:
        options: dict[str, Any] = {"group_id": "kafka-python", "auto_offset_reset": "earliest"}
        options["isolation_level"] = "read_committed"
        consumer = kafka.KafkaConsumer(self.topic, bootstrap_servers=self.bootstrap, **options)
        try:
            while not self.stopping.is_set():
                try:
                    # A shorter poll can end while the client joins, which then drops what it is assigned.
                    polled = consumer.poll(2000)
                except kafka.errors.KafkaConnectionError:  # the broker is down: kafka-python leaves the next try to us
                    continue
                for records in polled.values():
                    for record in records:
                        self.note(record.partition, record.value)
        finally:
            consumer.close()
