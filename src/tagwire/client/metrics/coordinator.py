"""What a group's member measures: heartbeats, rebalances, commits (Kafka's ConsumerCoordinatorMetrics and
AbstractCoordinator.GroupCoordinatorMetrics)."""

from __future__ import annotations

from collections.abc import Callable

from tagwire.client.metrics.registry import Metrics, Sensor

GROUP = "consumer-coordinator-metrics"

# What is said before there was any (HeartbeatMetrics of Kafka).
_NEVER = -1.0


class CoordinatorMetrics:
    """One member. Times are seconds of the driver's clock; Kafka's metrics have milliseconds.

    Args:
        assigned: how many partitions the member has now.
    """

    def __init__(self, metrics: Metrics, assigned: Callable[[], int]) -> None:
        metrics.remove(GROUP, "")  # of who was a member before
        self._metrics = metrics
        self._heartbeat_at: float | None = None
        self._rebalanced_at: float | None = None
        self._heartbeats = metrics.sensor(
            GROUP, max="heartbeat-response-time-max", count_rate="heartbeat-rate", count="heartbeat-total"
        )
        self._joins = self._timed("join-time", count_rate="join-rate", count="join-total")
        self._syncs = self._timed("sync-time", count_rate="sync-rate", count="sync-total")
        self._commits = self._timed("commit-latency", count_rate="commit-rate", count="commit-total")
        self._rebalances = self._timed(
            "rebalance-latency",
            total="rebalance-latency-total",
            count="rebalance-total",
            per_hour="rebalance-rate-per-hour",
        )
        self._failed = metrics.sensor(GROUP, count="failed-rebalance-total", per_hour="failed-rebalance-rate-per-hour")
        self._revoked = self._timed("partition-revoked-latency")
        self._assigned = self._timed("partition-assigned-latency")
        self._lost = self._timed("partition-lost-latency")
        metrics.gauge(GROUP, "assigned-partitions", lambda: float(assigned()))
        metrics.gauge(GROUP, "last-heartbeat-seconds-ago", lambda: self._since(self._heartbeat_at))
        metrics.gauge(GROUP, "last-rebalance-seconds-ago", lambda: self._since(self._rebalanced_at))

    def heartbeat_sent(self) -> None:
        """A heartbeat, classic or KIP-848's, is on its way."""
        self._heartbeat_at = self._metrics.now()

    def heartbeat(self, seconds: float) -> None:
        """Its response came after so long."""
        self._heartbeats.record(seconds * 1000)

    def joined(self, seconds: float) -> None:
        """JoinGroup had its response after so long."""
        self._joins.record(seconds * 1000)

    def synced(self, seconds: float) -> None:
        """SyncGroup had its response after so long."""
        self._syncs.record(seconds * 1000)

    def committed(self, seconds: float) -> None:
        """OffsetCommit had its response after so long."""
        self._commits.record(seconds * 1000)

    def rebalanced(self, seconds: float) -> None:
        """A rebalance is over, so long after it began."""
        self._rebalanced_at = self._metrics.now()
        self._rebalances.record(seconds * 1000)

    def rebalance_failed(self) -> None:
        """A rebalance is begun anew, or given up."""
        self._failed.record()

    def revoked(self, seconds: float) -> None:
        """The listener took so long over revoked partitions."""
        self._revoked.record(seconds * 1000)

    def assigned(self, seconds: float) -> None:
        """The listener took so long over assigned partitions."""
        self._assigned.record(seconds * 1000)

    def lost(self, seconds: float) -> None:
        """The listener took so long over lost partitions."""
        self._lost.record(seconds * 1000)

    def _timed(self, name: str, **names: str) -> Sensor:
        return self._metrics.sensor(GROUP, avg=f"{name}-avg", max=f"{name}-max", **names)

    def _since(self, at: float | None) -> float:
        return _NEVER if at is None else float(int(self._metrics.now() - at))
