"""What connections measure: opened and closed, bytes, requests and responses, all and by broker (Kafka's Selector)."""

from __future__ import annotations

from tagwire.client.metrics.registry import Metrics, Sensor, record_all

GROUP = "-metrics"
NODE_GROUP = "-node-metrics"


class _Traffic:
    """Of all connections, or of those to one broker."""

    __slots__ = ("incoming", "latency", "outgoing", "requests", "responses")

    def __init__(self, metrics: Metrics, group: str, tag: str = "") -> None:
        self.outgoing = metrics.sensor(group, tag, rate="outgoing-byte-rate", total="outgoing-byte-total")
        self.requests = metrics.sensor(
            group,
            tag,
            count_rate="request-rate",
            count="request-total",
            avg="request-size-avg",
            max="request-size-max",
        )
        self.incoming = metrics.sensor(group, tag, rate="incoming-byte-rate", total="incoming-byte-total")
        self.responses = metrics.sensor(group, tag, count_rate="response-rate", count="response-total")
        self.latency: Sensor | None = None


class ConnectionMetrics:
    """The connections of one client. Brokers have the name that Kafka's clients give them, "node-1"; "node--1" is one
    whose id is not known yet."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._all = _Traffic(metrics, GROUP)
        self._nodes: dict[int, _Traffic] = {}
        self._io = metrics.sensor(GROUP, count_rate="network-io-rate", count="network-io-total")
        self._created = metrics.sensor(GROUP, count_rate="connection-creation-rate", count="connection-creation-total")
        self._closed = metrics.sensor(GROUP, count_rate="connection-close-rate", count="connection-close-total")
        self._authenticated = metrics.sensor(
            GROUP, count_rate="successful-authentication-rate", count="successful-authentication-total"
        )
        self._refused = metrics.sensor(
            GROUP, count_rate="failed-authentication-rate", count="failed-authentication-total"
        )
        self._reauthenticated = metrics.sensor(
            GROUP, count_rate="successful-reauthentication-rate", count="successful-reauthentication-total"
        )
        self._not_reauthenticated = metrics.sensor(
            GROUP, count_rate="failed-reauthentication-rate", count="failed-reauthentication-total"
        )
        self._reauthentication = metrics.sensor(
            GROUP, avg="reauthentication-latency-avg", max="reauthentication-latency-max"
        )
        metrics.gauge(GROUP, "connection-count", lambda: float(self._created.count - self._closed.count))

    def created(self) -> None:
        """A connection is connected."""
        self._created.record()

    def closed(self) -> None:
        """One that was connected is no longer."""
        self._closed.record()

    def authenticated(self) -> None:
        """A broker took the credentials."""
        self._authenticated.record()

    def refused(self) -> None:
        """A broker refused the credentials."""
        self._refused.record()

    def reauthenticated(self, seconds: float) -> None:
        """A session was renewed, and took so long (KIP-368)."""
        self._reauthenticated.record()
        self._reauthentication.record(seconds * 1000)

    def not_reauthenticated(self) -> None:
        """A session could not be renewed."""
        self._not_reauthenticated.record()

    def requested(self, node: int, size: int) -> None:
        """A request of so many bytes is on its way."""
        traffic = self._nodes.get(node) or self._node(node)
        record_all(self._metrics.now(), ((self._all.requests, size), (traffic.requests, size)))

    def written(self, node: int, size: int) -> None:
        """Bytes were handed to the system."""
        traffic = self._nodes.get(node) or self._node(node)
        record_all(self._metrics.now(), ((self._io, 1.0), (self._all.outgoing, size), (traffic.outgoing, size)))

    def received(self, node: int, size: int) -> None:
        """Bytes came in."""
        traffic = self._nodes.get(node) or self._node(node)
        record_all(self._metrics.now(), ((self._io, 1.0), (self._all.incoming, size), (traffic.incoming, size)))

    def responded(self, node: int, seconds: float) -> None:
        """A response came, so long after its request."""
        traffic = self._nodes.get(node) or self._node(node)
        latency = traffic.latency
        if latency is None:
            names = {"avg": "request-latency-avg", "max": "request-latency-max"}
            latency = traffic.latency = self._metrics.sensor(NODE_GROUP, f"node-{node}", **names)
        record_all(
            self._metrics.now(), ((self._all.responses, 1.0), (traffic.responses, 1.0), (latency, seconds * 1000))
        )

    def _node(self, node: int) -> _Traffic:
        traffic = self._nodes[node] = _Traffic(self._metrics, NODE_GROUP, f"node-{node}")
        return traffic
