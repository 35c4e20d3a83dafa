"""What fetching measures: requests, and the bytes and records that were given out (Kafka's FetchMetricsRegistry)."""

from __future__ import annotations

from collections.abc import Iterable

from tagwire.client.metrics.registry import Metrics, Sensor, record_all
from tagwire.partitions import TopicPartition

GROUP = "consumer-fetch-manager-metrics"


class _Consumed:
    """Of all topics, or of one."""

    __slots__ = ("bytes", "records")

    def __init__(self, metrics: Metrics, tag: str = "") -> None:
        self.bytes = metrics.sensor(
            GROUP,
            tag,
            avg="fetch-size-avg",
            max="fetch-size-max",
            rate="bytes-consumed-rate",
            total="bytes-consumed-total",
        )
        self.records = metrics.sensor(
            GROUP,
            tag,
            rate="records-consumed-rate",
            total="records-consumed-total",
            avg="records-per-request-avg",
        )


class _Partition:
    """How far one partition is read."""

    __slots__ = ("lag", "lead", "replica")

    def __init__(self, metrics: Metrics, partition: TopicPartition) -> None:
        tag = str(partition)
        self.replica = -1
        self.lag = metrics.sensor(GROUP, tag, value="records-lag", avg="records-lag-avg", max="records-lag-max")
        self.lead = metrics.sensor(GROUP, tag, value="records-lead", avg="records-lead-avg", min="records-lead-min")
        metrics.gauge(GROUP, "preferred-read-replica", lambda: float(self.replica), tag)


class FetchMetrics:
    """What one reader, or consumer, fetches.

    Every call is once a response, or once a partition in it.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._all = _Consumed(metrics)
        self._topics: dict[str, _Consumed] = {}
        self._partitions: dict[TopicPartition, _Partition] = {}
        self._requests: Sensor = metrics.sensor(
            GROUP,
            avg="fetch-latency-avg",
            max="fetch-latency-max",
            count_rate="fetch-rate",
            count="fetch-total",
        )
        self._throttled = metrics.sensor(GROUP, avg="fetch-throttle-time-avg", max="fetch-throttle-time-max")
        self._lag = metrics.sensor(GROUP, max="records-lag-max")
        self._lead = metrics.sensor(GROUP, min="records-lead-min")

    def responded(self, seconds: float, throttle_time_ms: int) -> None:
        """A response to Fetch came, so long after its request."""
        record_all(self._metrics.now(), ((self._requests, seconds * 1000), (self._throttled, throttle_time_ms)))

    def consumed(self, pieces: Iterable[tuple[TopicPartition, int, int]]) -> None:
        """What came of one response: bytes and records of each partition."""
        topics: dict[str, tuple[int, int]] = {}
        all_bytes = all_records = 0
        for partition, size, records in pieces:
            before = topics.get(partition.topic, (0, 0))
            topics[partition.topic] = before[0] + size, before[1] + records
            all_bytes, all_records = all_bytes + size, all_records + records
        found: list[tuple[Sensor, float]] = [(self._all.bytes, all_bytes), (self._all.records, all_records)]
        for topic, (size, records) in topics.items():
            consumed = self._topics.get(topic)
            if consumed is None:
                consumed = self._topics[topic] = _Consumed(self._metrics, topic)
            found += ((consumed.bytes, size), (consumed.records, records))
        record_all(self._metrics.now(), found)

    def at(self, partition: TopicPartition, position: int, end: int, start: int) -> None:
        """How far a partition is read: `position` is the next record's offset; `end` and `start`, where the log ends
        and begins for the reader, -1 where the broker does not tell."""
        known = self._partitions.get(partition) or self._partition(partition)
        lag, lead = max(end - position, 0), max(position - start, 0)
        found: tuple[tuple[Sensor, float], ...] = ()
        if end >= 0:
            found = ((known.lag, lag), (self._lag, lag))
        if start >= 0:
            found += ((known.lead, lead), (self._lead, lead))
        record_all(self._metrics.now(), found)

    def prefers(self, partition: TopicPartition, replica: int) -> None:
        """From which replica a partition is fetched, -1 for its leader (KIP-392)."""
        self._partition(partition).replica = replica

    def removed(self, partition: TopicPartition) -> None:
        """A partition is not fetched any more."""
        known = self._partitions.pop(partition, None)
        if known is not None:  # a topic may be called as it is, such as "flights-2"
            self._metrics.remove(GROUP, str(partition), (known.lag, known.lead))

    def _partition(self, partition: TopicPartition) -> _Partition:
        known = self._partitions.get(partition)
        if known is None:
            known = self._partitions[partition] = _Partition(self._metrics, partition)
        return known
