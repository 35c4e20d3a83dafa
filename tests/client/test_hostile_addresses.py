"""Hosts and ports that can be none, in what a user gives and in what a broker advertises: a typed error that names
them, and nothing but the broker that is meant is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tagwire import messages
from tagwire.cli import main
from tagwire.client import Client, Producer
from tagwire.errors import ConfigError, ConnectError, Error, TagwireError

from .fake_broker import FakeCluster
from .produce_responses import refusing

NO_DOMAIN_NAMES = ["a..b", "a" * 64, "xn--☃", ".a", "."]
HOSTS = [*NO_DOMAIN_NAMES, "", "a\0b", "a\nb", "\x1b[31mred", "a b", "x" * 30_000, "a." * 200]
PORTS = [-1, 0, 65_536, 70_000, 2**31 - 1, -(2**31)]


def short(value: object) -> str:
    return ascii(value)[:24]


def advertising(cluster: FakeCluster, node: int, host: str, port: int) -> Callable[[Any], Any]:
    """Answers to Metadata in which one broker is said to be elsewhere."""

    def answer(message: Any) -> Any:
        found = cluster._Metadata(message, 0)
        found.brokers[node].host, found.brokers[node].port = host, port
        return found

    return answer


@pytest.mark.parametrize("host", [*NO_DOMAIN_NAMES, "x" * 30_000, "a\0b", "\x1b[31mred"], ids=short)
def test_a_bootstrap_host_that_can_be_none_is_a_configuration_error(host: str) -> None:
    with pytest.raises(ConfigError, match=r"(?i)^bootstrap\.servers.*host") as raised:
        Client(f"127.0.0.1:9092,{host}:9092")
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 3000


@pytest.mark.parametrize("host", HOSTS, ids=short)
def test_an_advertised_host_that_can_be_none_is_named(host: str) -> None:
    with FakeCluster() as cluster:
        cluster.script("Metadata", *[advertising(cluster, 0, host, 9092)] * 5)
        with Client(cluster.bootstrap, timeout=1) as client:
            with pytest.raises(ConnectError, match="host") as raised:
                client.network.connection(0, client.network.deadline())
            assert str(raised.value).isprintable()
            assert len(str(raised.value)) < 1000


@pytest.mark.parametrize("port", PORTS)
def test_an_advertised_port_that_can_be_none_is_named(port: int) -> None:
    with FakeCluster() as cluster:
        cluster.script("Metadata", *[advertising(cluster, 0, "127.0.0.1", port)] * 5)
        with (
            Client(cluster.bootstrap, timeout=1) as client,
            pytest.raises(ConnectError, match=rf"127.0.0.1:{port} \(port {port} is not 1 to 65535\)"),
        ):
            client.network.connection(0, client.network.deadline())


@pytest.mark.parametrize(("host", "port"), [("a..b", 9092), ("a\0b", 9092), ("127.0.0.1", 70_000)], ids=short)
def test_a_producer_goes_on_with_the_brokers_that_can_be_reached(host: str, port: int) -> None:
    with FakeCluster(2) as cluster:
        log, lost = cluster.topic("t", 2)
        cluster.serve({3: (0, 12)}, {"Metadata": advertising(cluster, 1, host, port)})
        producer = Producer(cluster.bootstrap, timeout=2, acks=1)
        unreachable = producer.send("t", b"v", partition=1)
        for number in range(3):
            assert producer.send("t", b"v", partition=0).result(30).offset == number
        with pytest.raises(ConnectError, match=r"9092|70000"):
            unreachable.result(30)
        assert producer.send("t", b"v", partition=0).result(30).offset == 3
        with pytest.raises(ConnectError):  # that of the record that is lost
            producer.close()
        assert (log.end, lost.end) == (4, 0)


def test_a_leader_that_a_refusal_moves_to_no_address_costs_one_attempt() -> None:
    def moved(message: Any) -> Any:
        log.epoch = 10
        answer = refusing(Error.NOT_LEADER_OR_FOLLOWER)(message)
        answer.responses[0].partition_responses[0].current_leader.leader_id = 7
        answer.responses[0].partition_responses[0].current_leader.leader_epoch = 10
        answer.node_endpoints = [messages.ProduceResponse.NodeEndpoint(node_id=7, host="a..b", port=9092)]
        return answer

    with FakeCluster() as cluster:
        (log,) = cluster.topic("t")
        cluster.script("Produce", moved)
        with Producer(cluster.bootstrap, timeout=10, acks=1) as producer:
            assert producer.send("t", b"v").result(30).offset == 0  # the next Metadata tells the right address


@pytest.mark.parametrize("host", ["a..b", "xn--☃"])
def test_a_command_tells_an_advertised_host_in_one_line(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeCluster() as cluster:
        cluster.topic("t")
        cluster.serve({3: (0, 12)}, {"Metadata": advertising(cluster, 0, host, 9092)})
        code = main(["-X", "request.timeout.ms=1000", "topics", "--bootstrap", cluster.bootstrap])
    told = capsys.readouterr()
    assert (code, told.err.count("\n")) == (0, 1)  # the topic is listed, without what its leader would tell
    assert host in told.err


@pytest.mark.parametrize("options", [{"host": "a..b"}, {"host": ""}, {"advertise": "a..b:1"}, {"advertise": "é\0:1"}])
def test_a_broker_neither_listens_on_nor_advertises_such_a_host(options: dict[str, Any]) -> None:
    from tagwire.broker import Broker

    with pytest.raises(ConfigError, match=r"^(host|advertise)="):
        Broker(**options).start()


def test_a_tap_stands_before_no_such_host(tmp_path: Any) -> None:
    from tagwire.capture.tap import Files, Passed, Tap

    passed = Passed()
    files = Files(tmp_path, passed)
    with pytest.raises(TagwireError, match=r"upstream a\.\.b:9092"):
        Tap(("a..b", 9092), files, passed)
    files.close()
