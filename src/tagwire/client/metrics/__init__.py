"""What a client measures, by the names that Kafka's own clients give it.

`registry` holds the values and their windows; each other module is one subject: what is measured of it, and the call
that hot paths make, once a request, a response or a batch and never once a record.
"""

from tagwire.client.metrics.connections import ConnectionMetrics
from tagwire.client.metrics.consumer import ConsumerMetrics
from tagwire.client.metrics.coordinator import CoordinatorMetrics
from tagwire.client.metrics.fetch import FetchMetrics
from tagwire.client.metrics.producer import ProducerMetrics
from tagwire.client.metrics.registry import Metrics, MetricValues, Sensor

__all__ = [
    "ConnectionMetrics",
    "ConsumerMetrics",
    "CoordinatorMetrics",
    "FetchMetrics",
    "MetricValues",
    "Metrics",
    "ProducerMetrics",
    "Sensor",
]
