"""The pytest plugin, as a project that has installed tagwire meets it."""

from __future__ import annotations

import subprocess
import sys

PROJECT = """
import pytest
from tagwire.client import Client

seen = set()


@pytest.mark.parametrize("number", [1, 2])
def test_each_test_has_a_broker_of_its_own(kafka_broker, number):
    assert kafka_broker.bootstrap not in seen
    seen.add(kafka_broker.bootstrap)
    with Client(kafka_broker.bootstrap) as client:
        assert not client.metadata().topics
        client.metadata(["t"], allow_auto_create=True)
        assert len(client.metadata(["t"]).topics["t"].partitions) == 1


@pytest.mark.kafka_broker(num_partitions=3, as_release="2.8")
def test_a_marker_gives_options(kafka_broker):
    with Client(kafka_broker.bootstrap) as client:
        client.metadata(["t"], allow_auto_create=True)
        assert len(client.metadata(["t"]).topics["t"].partitions) == 3
        assert client.versions()[3] == (0, 11)


@pytest.mark.kafka_cluster(nodes=2)
def test_a_cluster_has_nodes_that_end(kafka_cluster):
    kafka_cluster.kill(1)
    with Client(kafka_cluster.bootstrap) as client:
        assert list(client.metadata([]).brokers) == [2]


@pytest.fixture(scope="session")
def shared(kafka_broker_factory):
    return kafka_broker_factory(num_partitions=2)


def test_a_broker_can_be_shared(shared):
    with Client(shared.bootstrap) as client:
        client.metadata(["t"], allow_auto_create=True)


def test_by_all_the_tests_of_a_run(shared, kafka_broker_factory):
    with Client(shared.bootstrap) as client:
        assert len(client.metadata().topics["t"].partitions) == 2
    other = kafka_broker_factory()
    assert other.bootstrap != shared.bootstrap
    other.stop()
"""


def test_a_project_gets_brokers_for_its_tests_and_none_is_left(tmp_path):
    (tmp_path / "test_project.py").write_text(PROJECT)
    command = [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", "test_project.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "6 passed" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


MISTAKES = """
import pytest

@pytest.mark.kafka_broker(num_partition=3)
def test_option(kafka_broker): ...

@pytest.mark.kafka_borker(num_partitions=3)
def test_marker(kafka_broker): ...

@pytest.mark.kafka_broker(3)
def test_position(kafka_broker): ...

def test_factory(kafka_broker_factory):
    kafka_broker_factory(as_relase="2.8")

@pytest.mark.kafka_brokers
def test_a_marker_of_the_projects_own(kafka_broker): ...
"""


def test_a_misspelt_marker_or_option_names_the_one_that_was_meant(tmp_path):
    (tmp_path / "test_project.py").write_text(MISTAKES)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    kafka_brokers: of the project\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_project.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    for said in (
        "ConfigError: num_partition: no such option; num_partitions is one",
        "ConfigError: marker kafka_borker: no such marker; kafka_broker is one",
        "ConfigError: marker kafka_broker: needs options by name, such as kafka_broker(num_partitions=3)",
        "ConfigError: as_relase: no such option; as_release is one",
    ):
        assert said in done.stdout


def test_a_run_that_asks_for_no_broker_loads_none(tmp_path):
    (tmp_path / "test_project.py").write_text("import sys\ndef test(): assert 'tagwire.broker' not in sys.modules\n")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q"], cwd=tmp_path, capture_output=True, text=True)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


LEFT = """
import socket

started = []

def pytest_unconfigure():
    host, port = started[0].rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), 5).close()
    except ConnectionRefusedError:
        print("the first has stopped")
"""
UNSTOPPABLE = """
from conftest import started
from tagwire.broker import Broker

stop = Broker.stop

def fail(broker):
    is_first = broker.bootstrap == started[0]
    stop(broker)
    if not is_first:
        raise OSError("no room for the last segment")

Broker.stop = fail

def test_two(kafka_broker_factory):
    started.append(kafka_broker_factory().bootstrap)
    kafka_broker_factory()
"""


def test_a_broker_of_the_factory_stops_though_another_could_not(tmp_path):
    (tmp_path / "conftest.py").write_text(LEFT)
    (tmp_path / "test_project.py").write_text(UNSTOPPABLE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_project.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "no room for the last segment" in done.stdout, done.stdout + done.stderr
    assert "the first has stopped" in done.stdout, done.stdout + done.stderr
