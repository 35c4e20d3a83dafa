"""Values by Kafka's metric names: sensors that are recorded to, and gauges that are asked (Kafka's Metrics and Sensor).

Rates, averages and extremes are of a sliding window, as Kafka's SampledStat has it: two samples of 30 seconds, of which
the older one is dropped when it is older than both (metrics.num.samples, metrics.sample.window.ms).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

MetricValues = dict[str, dict[str, float | None]]
"""{group: {name: value}}, what `metrics()` of a client gives. The group of values that are one topic's, partition's or
broker's has that after a dot: "producer-topic-metrics.flights", "consumer-node-metrics.node-1". None is where Kafka's
clients say NaN: nothing to average in the window."""

SAMPLE_SECONDS: Final = 30.0
SAMPLES: Final = 2

_HOUR: Final = 3600.0

# What a group begins with whose name depends on the client it is of: "-metrics" is "producer-metrics" of a producer.
_OF_CLIENT: Final = "-"


class _Sample:
    """What was recorded in one part of the window (SampledStat.Sample)."""

    __slots__ = ("began", "count", "greatest", "latest", "least", "sum")

    def __init__(self, now: float) -> None:
        self.began = now
        self.latest = now
        self.count = 0
        self.sum = 0.0
        self.greatest = float("-inf")
        self.least = float("inf")


class Sensor:
    """What is recorded to, and the values that are made of it. One thread records; any may read.

    Attributes:
        total: the sum of all that was recorded. count: how often that was. last: what was recorded last.
    """

    __slots__ = ("_now", "_samples", "count", "last", "names", "total")

    def __init__(self, now: Callable[[], float], names: dict[str, str]) -> None:
        self.total = 0.0
        self.count = 0
        self.last: float | None = None
        self.names = names
        self._now = now
        self._samples: list[_Sample] = []

    def record(self, value: float = 1.0) -> None:
        """Takes a value."""
        record_all(self._now(), ((self, value),))

    def values(self) -> dict[str, float | None]:
        """Every value, by its metric's name."""
        now = self._now()
        kept = [sample for sample in self._samples if now - sample.latest < SAMPLES * SAMPLE_SECONDS]
        count, summed = sum(sample.count for sample in kept), sum(sample.sum for sample in kept)
        seconds = _window(now, kept)
        found: dict[str, float | None] = {
            "rate": summed / seconds,
            "count_rate": count / seconds,
            "per_hour": count / seconds * _HOUR,
            "total": self.total,
            "count": float(self.count),
            "avg": summed / count if count else None,
            "max": max((sample.greatest for sample in kept if sample.count), default=None),
            "min": min((sample.least for sample in kept if sample.count), default=None),
            "value": self.last,
        }
        return {name: found[stat] for stat, name in self.names.items()}


def record_all(now: float, values: Iterable[tuple[Sensor, float]]) -> None:
    """Has each sensor take a value, all of them at one time: once for what is recorded of a request, say."""
    for sensor, value in values:
        samples = sensor._samples
        if not samples or now - samples[-1].began >= SAMPLE_SECONDS:
            samples = sensor._samples = [*samples[1 - SAMPLES :], _Sample(now)]
        sensor.total += value
        sensor.count += 1
        sensor.last = value
        sample = samples[-1]
        sample.latest = now
        sample.count += 1
        sample.sum += value
        if value > sample.greatest:
            sample.greatest = value
        if value < sample.least:
            sample.least = value


def _window(now: float, kept: list[_Sample]) -> float:
    """Seconds that a rate is of (Rate.windowSize of Kafka): since the oldest sample, and at least all samples but
    one in full, so that a few events at the beginning make no high rate."""
    elapsed = now - kept[0].began if kept else 0.0
    missing = SAMPLES - 1 - int(elapsed / SAMPLE_SECONDS)
    return elapsed + max(missing, 0) * SAMPLE_SECONDS


class Metrics:
    """What one client measures.

    Args:
        now: its driver's clock, seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self._sensors: dict[tuple[str, str], list[Sensor]] = {}
        self._gauges: dict[tuple[str, str], dict[str, Callable[[], float | None]]] = {}

    def sensor(self, group: str, tag: str = "", **names: str) -> Sensor:
        """A new sensor.

        Args:
            group: Kafka's name of the group; one that begins with a hyphen gets the kind of client before it.
            tag: the topic, partition or broker that it is about.
            names: Kafka's names of what is made of its values. Of the window: `rate`, what is recorded a second;
                `count_rate`, how often a second; `per_hour`, how often an hour; `avg`, `max`, `min`. Since the
                beginning: `total`, what was recorded; `count`, how often. `value`: what was recorded last.
        """
        sensor = Sensor(self.now, names)
        self._sensors.setdefault((group, tag), []).append(sensor)
        return sensor

    def gauge(self, group: str, name: str, value: Callable[[], float | None], tag: str = "") -> None:
        """A value that is asked for when somebody reads it, in the reader's thread. It replaces one of the same
        name."""
        self._gauges.setdefault((group, tag), {})[name] = value

    def remove(self, group: str, tag: str, sensors: Collection[Sensor] | None = None) -> None:
        """Forgets what was measured of a topic, partition or broker: by these sensors, None is all, and the gauges."""
        kept = [one for one in self._sensors.pop((group, tag), ()) if sensors is not None and one not in sensors]
        if kept:
            self._sensors[group, tag] = kept
        self._gauges.pop((group, tag), None)

    def values(self, kind: str, *others: Metrics) -> MetricValues:
        """Every value now.

        Args:
            kind: "producer", "consumer", "admin-client", ... others: whose values belong to the same client.
        """
        found: MetricValues = {}
        for metrics in (self, *others):
            for (group, tag), sensors in list(metrics._sensors.items()):
                values = found.setdefault(_named(kind, group, tag), {})
                for sensor in list(sensors):
                    values.update(sensor.values())
            for (group, tag), gauges in list(metrics._gauges.items()):
                values = found.setdefault(_named(kind, group, tag), {})
                values.update({name: value() for name, value in list(gauges.items())})
        return found


def _named(kind: str, group: str, tag: str) -> str:
    named = kind + group if group.startswith(_OF_CLIENT) else group
    return f"{named}.{tag}" if tag else named
