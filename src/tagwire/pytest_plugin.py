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
from difflib import get_close_matches
from os import PathLike
from typing import TYPE_CHECKING, Any

import pytest

from tagwire.errors import ConfigError

if TYPE_CHECKING:
    from tagwire.broker import Broker

MARKER = "kafka_broker"
# What a test has written need not outlive the machine.
DEFAULTS: dict[str, Any] = {"fsync": "never"}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{MARKER}(**options): how the fixture kafka_broker starts its broker, as tagwire.broker.Broker does"
    )


def _check_markers(request: pytest.FixtureRequest) -> None:
    """Raises ConfigError for a marker that is nearly this plugin's: without --strict-markers pytest only warns, and the
    broker would be one without the options. The project's own are let be."""
    own = {line.partition(":")[0].partition("(")[0].strip() for line in request.config.getini("markers")}
    for marker in request.node.iter_markers():
        if marker.name not in own and get_close_matches(marker.name.lower(), [MARKER], 1):
            raise ConfigError(f"marker {marker.name}: no such marker; {MARKER} is one")


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A running broker of this test alone; the marker of the same name gives it options."""
    from tagwire.broker import Broker

    _check_markers(request)
    marker = request.node.get_closest_marker(MARKER)
    options = marker.kwargs if marker else {}
    if marker and marker.args:
        raise ConfigError(f"marker {MARKER}: needs options by name, such as {MARKER}(num_partitions=3)")
    with Broker(**{**DEFAULTS, **options}) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_broker_factory() -> Iterator[Callable[..., Broker]]:
    """Starts brokers, each with the options it is called with; they stop at the end of the run, or by `stop()`."""
    from tagwire.broker import Broker

    started: list[Broker] = []

    def start(data_dir: str | PathLike[str] | None = None, **options: Any) -> Broker:
        broker = Broker(data_dir, **{**DEFAULTS, **options})
        broker.start()
        started.append(broker)
        return broker

    yield start
    for broker in reversed(started):
        broker.stop()
