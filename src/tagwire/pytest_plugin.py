"""A pytest plugin: a broker for each test, or as many as a run needs.

    def test_orders_are_counted(kafka_broker):
        run_the_program(kafka_broker.bootstrap)
        assert kafka_broker.requests.count("Produce") == 1

    @pytest.mark.kafka_broker(num_partitions=3, as_release="2.8")
    def test_an_old_broker_is_enough(kafka_broker): ...

    @pytest.fixture(scope="session")
    def shared_broker(kafka_broker_factory):
        return kafka_broker_factory()

As with pytest's `tmp_path` and `tmp_path_factory`, the one is of a test and the other of the whole run. A broker starts
in milliseconds, so that a test need not share one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tagwire.broker import Broker

MARKER = "kafka_broker"
# What a test has written need not outlive the machine.
DEFAULTS: dict[str, Any] = {"fsync": "never"}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{MARKER}(**options): how the fixture kafka_broker starts its broker, as tagwire.broker.Broker does"
    )


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A running broker of this test alone; the marker of the same name gives it options."""
    from tagwire.broker import Broker

    marker = request.node.get_closest_marker(MARKER)
    with Broker(**{**DEFAULTS, **(marker.kwargs if marker else {})}) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_broker_factory() -> Iterator[Callable[..., Broker]]:
    """Starts brokers, each with the options it is called with; they stop at the end of the run, or by `stop()`."""
    from tagwire.broker import Broker

    started: list[Broker] = []

    def start(**options: Any) -> Broker:
        broker = Broker(**{**DEFAULTS, **options})
        broker.start()
        started.append(broker)
        return broker

    yield start
    for broker in reversed(started):
        broker.stop()
