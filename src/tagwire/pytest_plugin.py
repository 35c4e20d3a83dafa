"""A pytest plugin: a broker or a cluster for each test, or as many brokers as a run needs.

    def test_orders_are_counted(kafka_broker):
        run_the_program(kafka_broker.bootstrap)
        assert kafka_broker.requests.count("Produce") == 1

    @pytest.mark.kafka_broker(num_partitions=3, as_release="2.8")
    def test_an_old_broker_is_enough(kafka_broker): ...

    @pytest.mark.kafka_cluster(nodes=5)
    def test_orders_outlive_a_node(kafka_cluster):
        kafka_cluster.kill(1)

    @pytest.fixture(scope="session")
    def shared_broker(kafka_broker_factory):
        return kafka_broker_factory()

As with pytest's `tmp_path` and `tmp_path_factory`, the one is of a test and the other of the whole run. A broker starts
in milliseconds, so that a test need not share one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from difflib import get_close_matches
from os import PathLike
from typing import TYPE_CHECKING, Any

import pytest

from tagwire.errors import ConfigError

if TYPE_CHECKING:
    from tagwire.broker import Broker, Cluster

MARKER, CLUSTER_MARKER = "kafka_broker", "kafka_cluster"
# What a test has written need not outlive the machine.
DEFAULTS: dict[str, Any] = {"fsync": "never"}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{MARKER}(**options): how the fixture kafka_broker starts its broker, as tagwire.broker.Broker does"
    )
    config.addinivalue_line(
        "markers",
        f"{CLUSTER_MARKER}(**options): how the fixture kafka_cluster starts its cluster, as tagwire.broker.Cluster",
    )


def _options(request: pytest.FixtureRequest, name: str) -> dict[str, Any]:
    """What the marker of a name gives to this test.

    Raises:
        ConfigError: it gives options without their names, or a marker is misspelt.
    """
    _check_markers(request)
    marker = request.node.get_closest_marker(name)
    if marker and marker.args:
        raise ConfigError(f"marker {name}: needs options by name, such as {name}(num_partitions=3)")
    return {**DEFAULTS, **(marker.kwargs if marker else {})}


def _check_markers(request: pytest.FixtureRequest) -> None:
    """Raises ConfigError for a marker that is nearly this plugin's: without --strict-markers pytest only warns, and the
    broker would be one without the options. The project's own are let be."""
    own = {line.partition(":")[0].partition("(")[0].strip() for line in request.config.getini("markers")}
    for marker in request.node.iter_markers():
        meant = get_close_matches(marker.name.lower(), [MARKER, CLUSTER_MARKER], 1)
        if marker.name not in own and meant:
            raise ConfigError(f"marker {marker.name}: no such marker; {meant[0]} is one")


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A running broker of this test alone; the marker of the same name gives it options."""
    from tagwire.broker import Broker

    with Broker(**_options(request, MARKER)) as broker:
        yield broker


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A running cluster of this test alone, of three nodes; the marker of the same name gives it options."""
    from tagwire.broker import Cluster

    with Cluster(**_options(request, CLUSTER_MARKER)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kafka_broker_factory() -> Iterator[Callable[..., Broker]]:
    """Starts brokers, each with the options it is called with; they stop at the end of the run, or by `stop()`."""
    from tagwire.broker import Broker

    # The last first, and each whatever becomes of another.
    with ExitStack() as started:

        def start(data_dir: str | PathLike[str] | None = None, **options: Any) -> Broker:
            broker = Broker(data_dir, **{**DEFAULTS, **options})
            broker.start()
            started.callback(broker.stop)
            return broker

        yield start
