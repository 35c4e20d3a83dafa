"""What a producer measures: batches, requests, records by topic, time spent in calls (Kafka's SenderMetricsRegistry,
BufferPool and KafkaProducerMetrics)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tagwire.client.metrics.registry import Metrics, Sensor, record_all

GROUP = "producer-metrics"
TOPIC_GROUP = "producer-topic-metrics"

CALLS = ("flush", "metadata-wait", "txn-init", "txn-begin", "txn-send-offsets", "txn-commit", "txn-abort")
"""The calls whose time is told, as "flush-time-ns-total"."""


class SentBatch(NamedTuple):
    """What is told of a batch that is sent.

    Attributes:
        size: bytes of it, as it is sent. compression: that, as a share of its bytes before compression; None where
            those are not known, of what the caller has encoded.
        queued: seconds since its first record.
    """

    topic: str
    records: int
    size: int
    compression: float | None
    queued: float


class _Records:
    """Of all topics, or of one."""

    __slots__ = ("errors", "retries", "sent")

    def __init__(self, metrics: Metrics, group: str, tag: str = "") -> None:
        self.sent = metrics.sensor(group, tag, rate="record-send-rate", total="record-send-total")
        self.retries = metrics.sensor(group, tag, rate="record-retry-rate", total="record-retry-total")
        self.errors = metrics.sensor(group, tag, rate="record-error-rate", total="record-error-total")


class _Topic(_Records):
    __slots__ = ("bytes", "compression")

    def __init__(self, metrics: Metrics, topic: str) -> None:
        super().__init__(metrics, TOPIC_GROUP, topic)
        self.bytes = metrics.sensor(TOPIC_GROUP, topic, rate="byte-rate", total="byte-total")
        self.compression = metrics.sensor(TOPIC_GROUP, topic, avg="compression-rate")


class ProducerMetrics:
    """One producer. Times are seconds of the driver's clock; Kafka's metrics have milliseconds, or nanoseconds where
    the name says so. How many records were sent counts those that are sent again, as Kafka's does.

    Args:
        memory, buffered: bytes of records that may wait to be delivered, and that do. in_flight: how many Produce
            requests have no response yet.
    """

    def __init__(
        self, metrics: Metrics, memory: int, buffered: Callable[[], int], in_flight: Callable[[], int]
    ) -> None:
        self._metrics = metrics
        self._all = _Records(metrics, GROUP)
        self._topics: dict[str, _Topic] = {}
        self._batches = metrics.sensor(GROUP, avg="batch-size-avg", max="batch-size-max")
        self._queued = metrics.sensor(GROUP, avg="record-queue-time-avg", max="record-queue-time-max")
        self._compression = metrics.sensor(GROUP, avg="compression-rate-avg")
        self._per_request = metrics.sensor(GROUP, avg="records-per-request-avg")
        self._latency = metrics.sensor(GROUP, avg="request-latency-avg", max="request-latency-max")
        self._throttled = metrics.sensor(GROUP, avg="produce-throttle-time-avg", max="produce-throttle-time-max")
        self._splits = metrics.sensor(GROUP, count_rate="batch-split-rate", count="batch-split-total")
        self._exhausted = metrics.sensor(GROUP, count_rate="buffer-exhausted-rate", count="buffer-exhausted-total")
        self._wait_ratio = metrics.sensor(GROUP, rate="bufferpool-wait-ratio")
        self._waited = metrics.sensor(GROUP, total="bufferpool-wait-time-ns-total")
        metrics.gauge(GROUP, "buffer-total-bytes", lambda: float(memory))
        metrics.gauge(GROUP, "buffer-available-bytes", lambda: float(max(memory - buffered(), 0)))
        metrics.gauge(GROUP, "requests-in-flight", lambda: float(in_flight()))
        self._calls = {call: metrics.sensor(GROUP, total=f"{call}-time-ns-total") for call in CALLS}

    def sent(self, batches: Iterable[SentBatch]) -> None:
        """A request with these batches is on its way."""
        total = 0
        found: list[tuple[Sensor, float]] = []
        for batch in batches:
            total += batch.records
            topic = self._topics.get(batch.topic) or self._topic(batch.topic)
            found += (
                (topic.sent, batch.records),
                (topic.bytes, batch.size),
                (self._batches, batch.size),
                (self._queued, batch.queued * 1000),
            )
            if batch.compression is not None:
                found += ((topic.compression, batch.compression), (self._compression, batch.compression))
        found += ((self._all.sent, total), (self._per_request, total))
        record_all(self._metrics.now(), found)

    def responded(self, seconds: float, throttle_time_ms: int) -> None:
        """A response to Produce came, so long after its request."""
        record_all(self._metrics.now(), ((self._latency, seconds * 1000), (self._throttled, throttle_time_ms)))

    def retried(self, topic: str, records: int) -> None:
        """A batch is to be sent again."""
        self._topic(topic).retries.record(records)
        self._all.retries.record(records)

    def failed(self, topic: str, records: int) -> None:
        """A batch is failed."""
        self._topic(topic).errors.record(records)
        self._all.errors.record(records)

    def split(self) -> None:
        """A batch was too large, and is two now."""
        self._splits.record()

    def waited_for_room(self, seconds: float, found: bool) -> None:
        """A caller waited so long for room, and found some or none."""
        self._wait_ratio.record(seconds)
        self._waited.record(seconds * 1e9)
        if not found:
            self._exhausted.record()

    @contextmanager
    def timed(self, call: str) -> Iterator[None]:
        """Measures how long a call takes; `call`: one of `CALLS`."""
        began = self._metrics.now()
        try:
            yield
        finally:
            self._calls[call].record((self._metrics.now() - began) * 1e9)

    def _topic(self, name: str) -> _Topic:
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = _Topic(self._metrics, name)
        return topic
