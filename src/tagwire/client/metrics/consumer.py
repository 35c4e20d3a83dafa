"""What a consumer measures of its own calls (Kafka's KafkaConsumerMetrics)."""

from __future__ import annotations

from tagwire.client.metrics.registry import Metrics, record_all

GROUP = "consumer-metrics"


class ConsumerMetrics:
    """One consumer; times are seconds of the driver's clock. Every call is once a poll, or once a call of the user."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._began: float | None = None
        self._ended: float | None = None
        self._between = metrics.sensor(GROUP, avg="time-between-poll-avg", max="time-between-poll-max")
        self._idle = metrics.sensor(GROUP, avg="poll-idle-ratio-avg")
        self._commit_sync = metrics.sensor(GROUP, total="commit-sync-time-ns-total")
        self._committed = metrics.sensor(GROUP, total="committed-time-ns-total")
        metrics.gauge(GROUP, "last-poll-seconds-ago", self._since_poll)

    def poll_began(self) -> None:
        """`poll` is called."""
        now = self._metrics.now()
        if self._began is not None:
            record_all(now, ((self._between, (now - self._began) * 1000),))
        self._began = now

    def poll_ended(self) -> None:
        """`poll` gives back what it has. Of the time since it gave something before, it waited itself for the share
        that `poll-idle-ratio-avg` tells; the rest was the user's."""
        now = self._metrics.now()
        if self._began is not None:
            whole = now - (self._began if self._ended is None else self._ended)
            record_all(now, ((self._idle, (now - self._began) / whole if whole > 0 else 0.0),))
        self._ended = now

    def commit_sync(self, seconds: float) -> None:
        """A commit that was waited for took so long."""
        self._commit_sync.record(seconds * 1e9)

    def committed(self, seconds: float) -> None:
        """`committed` took so long."""
        self._committed.record(seconds * 1e9)

    def _since_poll(self) -> float:
        return -1.0 if self._began is None else float(int(self._metrics.now() - self._began))
