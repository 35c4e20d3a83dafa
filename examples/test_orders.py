"""A pytest suite with faults.

The fixture `kafka_broker` is a real broker of one test alone. What goes wrong on networks and disks is made to happen:
a response that is lost, a broker that is slow, a disk that is full. Run it with `pytest examples/test_orders.py`.
"""

import errno

import pytest

from tagwire.broker import delay, hang_up
from tagwire.client import Producer, Reader
from tagwire.errors import TagwireError


def place_order(bootstrap: str, order: bytes, timeout: float = 30.0) -> int:
    """The code under test: the offset at which an order stands."""
    with Producer(bootstrap, timeout=timeout) as producer:
        delivery = producer.send("orders", order)
        producer.flush()
        return delivery.result().offset


def orders(bootstrap: str) -> list[bytes | None]:
    with Reader(bootstrap, "orders", stop_at_end=True) as reader:
        return [record.value for record in reader.records()]


def test_an_order_survives_a_lost_response(kafka_broker):
    with kafka_broker.intercept("Produce", hang_up(handled=True), times=1) as lost:
        assert place_order(kafka_broker.bootstrap, b"1 umbrella") == 0
    assert len(lost.calls) == 1
    assert orders(kafka_broker.bootstrap) == [b"1 umbrella"]  # sent twice, stored once


def test_a_slow_broker_only_takes_longer(kafka_broker):
    with kafka_broker.intercept("Produce", delay(0.05)):
        place_order(kafka_broker.bootstrap, b"1 umbrella")
    assert orders(kafka_broker.bootstrap) == [b"1 umbrella"]


def test_an_order_that_no_disk_has_room_for_is_an_error(kafka_broker):
    place_order(kafka_broker.bootstrap, b"1 umbrella")
    kafka_broker.disk.fail("write", errno.ENOSPC)
    with pytest.raises(TagwireError):
        place_order(kafka_broker.bootstrap, b"2 umbrellas", timeout=0.5)
    kafka_broker.disk.mend()
    assert orders(kafka_broker.bootstrap) == [b"1 umbrella"]


@pytest.mark.kafka_broker(as_release="3.0", num_partitions=3)
def test_an_old_cluster_will_do(kafka_broker):
    place_order(kafka_broker.bootstrap, b"1 umbrella")
    assert orders(kafka_broker.bootstrap) == [b"1 umbrella"]
    assert kafka_broker.requests.count("Produce") == 1
