"""The client's core without sockets, threads or waiting: over a network in memory, by a clock that is made up."""

from __future__ import annotations

import gc
import socket
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from tagwire import messages, records
from tagwire.client.admin.core import AdminCore
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.config import ProduceSettings
from tagwire.client.connection_settings import ConnectionSettings
from tagwire.client.network_client import UNKNOWN_TOPIC_PATIENCE, NetworkClient
from tagwire.client.producing.producer_metadata import ProducerMetadata
from tagwire.client.scheduling import Lock, Tasks, gather, sleep
from tagwire.client.security import Security
from tagwire.codec import MessageObject
from tagwire.errors import (
    AuthenticationError,
    ConnectError,
    ConnectionLostError,
    Error,
    KafkaError,
    RequestTimeoutError,
    TagwireError,
)
from tagwire.partitions import TopicPartition
from tagwire.records import Record
from tagwire.rpc import ScramServer, scram_credential

from . import memory_network
from .fake_broker import Close, FakeCluster, Late, Silence
from .memory_network import LATENCY, MemoryDriver

TIMEOUT = 30.0


@pytest.fixture(autouse=True)
def no_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here may open a socket, begin a thread, wait or look at a clock of the system's. What other tests have
    left running in this process may: a thread of py4j ended at it."""
    here = threading.get_ident()

    def refusing(call: Callable[..., Any]) -> Callable[..., Any]:
        def refused(*args: Any, **options: Any) -> Any:
            if threading.get_ident() != here:
                return call(*args, **options)
            raise AssertionError("the core called the system")

        return refused

    monkeypatch.setattr(socket, "socket", refusing(socket.socket))
    monkeypatch.setattr(threading.Thread, "start", refusing(threading.Thread.start))
    monkeypatch.setattr(time, "sleep", refusing(time.sleep))


def network(
    cluster: FakeCluster, seed: int = 1, bootstrap: str = "kafka-0", **settings: Any
) -> tuple[MemoryDriver, NetworkClient]:
    driver = MemoryDriver(cluster, seed)
    addresses = [(bootstrap, broker.port) for broker in cluster.brokers]
    return driver, NetworkClient(addresses, ConnectionSettings("core", **settings), TIMEOUT, driver)


def produce(data: bytes) -> messages.ProduceRequest:
    kind = messages.ProduceRequest
    partition = kind.PartitionProduceData(index=0, records=data)
    return kind(acks=-1, timeout_ms=1000, topic_data=[kind.TopicProduceData(name="t", partition_data=[partition])])


def fetch(offset: int) -> messages.FetchRequest:
    kind = messages.FetchRequest
    partition = kind.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return kind(max_bytes=1 << 20, topics=[kind.FetchTopic(topic="t", partitions=[partition])])


async def produce_and_fetch(client: NetworkClient, value: bytes) -> list[bytes | None]:
    deadline = client.deadline()
    leader = (await client.partition(TopicPartition("t", 0), deadline)).leader
    connection = await client.connection(leader, deadline)
    written = await client.request(connection, produce(records.write([Record(None, value)])), deadline, 12)
    assert written.responses[0].partition_responses[0].error_code == 0
    found = await client.request(connection, fetch(0), deadline, 12)
    data = found.responses[0].partitions[0].records
    return [record.value for batch in records.read(data) for record in batch.records()]


@pytest.mark.parametrize("seed", range(5))
def test_records_are_written_and_read_without_the_system(seed: int) -> None:
    cluster = FakeCluster(2)
    cluster.topic("t")
    driver, client = network(cluster, seed)
    began = driver.now()
    assert driver.run(produce_and_fetch(client, b"x" * 5000)) == [b"x" * 5000]
    assert 4 * LATENCY < driver.now() - began < 1


def test_the_same_seed_gives_the_same_run() -> None:
    def run() -> tuple[list[tuple[float, str]], float]:
        cluster = FakeCluster(2)
        cluster.topic("t")
        cluster.script("Metadata", Close(), Close(), Close())
        driver, client = network(cluster, 7)
        driver.run(client.connection(None, client.deadline()))
        driver.run(produce_and_fetch(client, b"v"))
        return driver.trace, driver.now()

    assert run() == run()


async def until(moment: float) -> None:
    await sleep(moment)


def aged(cluster: FakeCluster, **settings: float) -> tuple[MemoryDriver, ProducerMetadata]:
    cluster.topic("t")
    driver, client = network(cluster)
    metadata = ProducerMetadata(client, ProduceSettings(**settings))  # type: ignore[arg-type]
    driver.run(metadata.fetch("t", client.deadline()))
    return driver, metadata


@pytest.mark.parametrize(("age", "due_after"), [(300.0, 300.0), (2.0, 2.0), (0.0, 0.1)])
def test_a_producers_metadata_is_asked_for_again_when_it_is_as_old_as_the_settings_say(
    age: float, due_after: float
) -> None:
    driver, metadata = aged(FakeCluster(), metadata_max_age=age)
    began = driver.now()
    driver.run(metadata.refresh())
    driver.run(until(began + 0.9 * due_after))
    assert not metadata.is_refresh_due
    driver.run(until(began + 1.01 * due_after))
    assert metadata.is_refresh_due


def test_a_producers_metadata_that_nobody_told_is_asked_for_again_soon_and_not_when_it_would_be_old() -> None:
    cluster = FakeCluster()
    driver, metadata = aged(cluster)
    cluster.script("Metadata", *[Silence()] * 100)
    with pytest.raises(TagwireError):
        driver.run(metadata.refresh())
    assert not metadata.is_refresh_due
    driver.run(until(driver.now() + 1.01))
    assert metadata.is_refresh_due


def test_metadata_is_asked_again_after_a_lost_connection_with_a_pause_by_the_made_up_clock() -> None:
    cluster = FakeCluster()
    driver, client = network(cluster)
    driver.run(client.refresh([], client.deadline()))
    cluster.script("Metadata", Close(), Close())
    before = driver.now()
    assert driver.run(client.refresh([], client.deadline())).cluster_id == "fake"
    assert 0.05 * 0.8 + 0.1 * 0.8 < driver.now() - before < 1
    assert cluster.brokers[0].connections == 3


def test_metadata_without_brokers_is_not_believed_and_asked_for_again() -> None:
    cluster = FakeCluster(2)
    driver, client = network(cluster)
    driver.run(client.refresh([], client.deadline()))
    empty = messages.MetadataResponse(cluster_id=None, controller_id=-1)
    cluster.script("Metadata", lambda _: empty, lambda _: empty)
    known = driver.run(client.refresh([], client.deadline()))
    assert (sorted(known.brokers), known.cluster_id) == ([0, 1], "fake")
    cluster.script("Metadata", *[lambda _: empty] * 100)
    with pytest.raises(ConnectError, match=r"tells of no brokers"):
        driver.run(client.refresh([], driver.now() + 1))
    assert client.is_known(1)


def test_a_refusal_of_all_metadata_which_tells_of_no_brokers_is_raised_at_once() -> None:
    cluster = FakeCluster()
    driver, client = network(cluster)
    told = messages.MetadataResponse.MetadataResponseTopic(name="t", error_code=Error.INVALID_REQUEST)
    cluster.script("Metadata", lambda _: messages.MetadataResponse(topics=[told]))
    with pytest.raises(KafkaError) as caught:
        driver.run(client.refresh(["t"], client.deadline()))
    assert caught.value.error is Error.INVALID_REQUEST
    assert len(cluster.requests("Metadata")) == 1


def test_tasks_that_look_for_a_broker_at_a_time_share_a_request() -> None:
    cluster = FakeCluster(2)
    driver, client = network(cluster)
    found = driver.run(gather([client.connection(1, client.deadline()) for _ in range(50)], driver.now))
    assert {connection.node for connection in found} == {1}
    assert len(cluster.requests("Metadata")) == 1
    missing = driver.run(gather([client.connection(7, client.deadline()) for _ in range(50)], driver.now))
    assert {str(error).partition(";")[0] for error in missing} == {"no broker 7 in the cluster"}
    assert len(cluster.requests("Metadata")) <= 3


def test_a_broker_that_goes_down_between_requests_is_connected_to_anew() -> None:
    cluster = FakeCluster()
    driver, client = network(cluster)
    driver.run(client.refresh([], client.deadline()))
    driver.drop(0)
    assert driver.run(client.refresh([], client.deadline())).cluster_id == "fake"
    assert cluster.brokers[0].connections == 2


def test_a_request_without_a_response_is_given_up_at_its_deadline_and_not_before() -> None:
    cluster = FakeCluster()
    driver, client = network(cluster)
    connection = driver.run(client.connection(None, client.deadline()))
    cluster.script("Metadata", Silence())
    before = driver.now()
    with pytest.raises(RequestTimeoutError, match=r"did not answer Metadata v12 within 30\.0 s"):
        driver.run(client.request(connection, messages.MetadataRequest(topics=None), before + TIMEOUT))
    assert driver.now() == before + TIMEOUT
    assert connection.closed


def test_a_response_that_comes_before_the_deadline_counts_whatever_came_of_another_one() -> None:
    cluster = FakeCluster()
    driver, client = network(cluster)
    connection = driver.run(client.connection(None, client.deadline()))
    cluster.script("Metadata", Late(5.0))
    request = connection.send(messages.MetadataRequest(topics=None))
    with pytest.raises(RequestTimeoutError):
        driver.run(request.response(driver.now() + 1))
    with pytest.raises(RequestTimeoutError):
        request.result()  # its connection is closed: what comes later is nobody's
    assert driver.run(client.refresh([], client.deadline())).cluster_id == "fake"


def test_a_host_that_swallows_packets_is_given_up_after_the_setup_timeout_and_the_next_one_tried() -> None:
    cluster = FakeCluster(2)
    driver, client = network(cluster)
    driver.unreachable.add("kafka-0")
    with pytest.raises(ConnectError, match=r"kafka-0:9092 \(timed out\), kafka-0:9093 \(timed out\)"):
        driver.run(client.connection(None, client.deadline()))
    assert driver.now() - 1000 == pytest.approx(20, abs=0.1)


@pytest.mark.parametrize("seconds", [2.0, 10.0, 30.0])
def test_every_address_of_a_host_has_its_share_of_the_time_however_short(seconds: float) -> None:
    cluster = FakeCluster()
    driver, client = network(cluster)
    driver.addresses["kafka-0"] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    driver.unreachable.update(["10.0.0.1", "10.0.0.2"])
    connection = driver.run(client.connection(None, driver.now() + seconds))
    assert connection.address.address[0] == "10.0.0.3"


@pytest.mark.parametrize("seconds", [2.0, 10.0, 30.0])
def test_brokers_that_accept_and_say_nothing_leave_time_for_the_last_one_however_short(seconds: float) -> None:
    cluster = FakeCluster(4)
    driver, client = network(cluster)
    cluster.script("ApiVersions", Silence(), Silence(), Silence())
    connection = driver.run(client.connection(None, driver.now() + seconds))
    assert (connection.host, connection.port) == ("kafka-0", 9095)


def test_a_broker_that_accepts_and_says_nothing_is_told_by_the_request_that_it_does_not_answer() -> None:
    cluster = FakeCluster()
    driver, client = network(cluster)
    cluster.script("ApiVersions", Silence())
    with pytest.raises(RequestTimeoutError, match="did not answer ApiVersions within"):
        driver.run(client.connection(None, driver.now() + 5))
    assert driver.now() == pytest.approx(1005)


@pytest.mark.parametrize("brokers", [1, 3])
def test_a_connection_goes_on_to_be_opened_for_the_next_who_waits(
    monkeypatch: pytest.MonkeyPatch, brokers: int
) -> None:
    monkeypatch.setattr(memory_network, "LATENCY", 0.4)  # more round trips until it is ready than fit in a timeout
    cluster = FakeCluster(brokers)
    driver, client = network(cluster)
    for _ in range(4):
        with suppress(ConnectError, RequestTimeoutError):
            assert driver.run(client.connection(None, driver.now() + 0.7)).is_ready
            break
    else:
        pytest.fail("it never gets there")
    assert len([state for _, state in driver.trace if state.startswith("RESOLVING")]) <= brokers


def test_a_connection_that_nobody_waits_for_any_more_is_given_up_after_the_setup_timeout() -> None:
    cluster = FakeCluster()
    driver, client = network(cluster)
    cluster.script("ApiVersions", Silence())
    with pytest.raises(RequestTimeoutError, match=r"did not answer ApiVersions within 1\.0 s"):
        driver.run(client.connection(None, driver.now() + 1))

    async def do_nothing(seconds: float) -> None:
        await sleep(driver.now() + seconds)

    driver.run(do_nothing(8.9))
    assert client.is_connected
    driver.run(do_nothing(0.2))
    assert not client.is_connected


def test_a_connection_that_says_nothing_is_given_up_though_it_is_waited_for_again_and_again() -> None:
    cluster = FakeCluster()
    driver, client = network(cluster)
    cluster.script("ApiVersions", Silence())
    for _ in range(2):
        with pytest.raises(RequestTimeoutError, match="did not answer ApiVersions within"):
            driver.run(client.connection(None, driver.now() + 4))
    assert driver.run(client.connection(None, driver.now() + 4)).is_ready  # a new one, as soon as the first is given up
    assert driver.now() == pytest.approx(1010, abs=0.1)


def test_a_connection_has_as_long_as_the_most_patient_waits_for_it() -> None:
    cluster = FakeCluster()
    driver, client = network(cluster)
    cluster.script("ApiVersions", Late(20))
    with pytest.raises(RequestTimeoutError):
        driver.run(client.connection(None, driver.now() + 1))
    assert driver.run(client.connection(None, driver.now() + 25)).is_ready
    assert [state for _, state in driver.trace if state.startswith("RESOLVING")] == ["RESOLVING kafka-0:9092"]


def test_a_lock_is_taken_in_the_order_in_which_it_was_wanted() -> None:
    lock, tasks, taken = Lock(), Tasks(), list[str]()

    async def take(name: str, until: float) -> None:
        async with lock:
            taken.append(name)
            await sleep(until)

    def start(name: str, then: Callable[[], None] = lambda: None) -> None:
        tasks.start(name, take(name, 1.0), lambda _, error: then())

    start("first", lambda: start("comes as it becomes free"))
    start("waits")
    start("gives up")
    start("waits, too")
    tasks.stop("gives up")
    tasks.step(2.0)
    assert taken == ["first", "waits", "waits, too", "comes as it becomes free"]


def test_a_silent_broker_holds_up_nobody_who_waits_for_another() -> None:
    cluster = FakeCluster(2)
    driver, client = network(cluster)
    driver.run(client.refresh([], client.deadline()))
    for node in (0, 1):
        driver.run(client.connection(node, client.deadline()))
    cluster.script("ListOffsets", Silence())
    ended: list[tuple[int, float]] = []

    async def ask(node: int, message: MessageObject) -> None:
        deadline = client.deadline()
        try:
            await client.request(await client.connection(node, deadline), message, deadline)
        finally:
            ended.append((node, driver.now()))

    asked = [ask(0, messages.ListOffsetsRequest(topics=[])), ask(1, messages.MetadataRequest(topics=None))]
    silent, other = driver.run(gather(asked, driver.now))
    assert isinstance(silent, RequestTimeoutError)
    assert other is None
    assert ended[0][0] == 1
    assert ended[0][1] < 1001
    assert ended[1][1] - ended[0][1] > 29


def test_connections_that_have_ended_at_addresses_that_nobody_uses_any_more_are_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = FakeCluster()
    driver, client = network(cluster)
    known: list[weakref.ref[BrokerConnection]] = []
    register = driver.register

    def registered(connection: BrokerConnection) -> None:
        known.append(weakref.ref(connection))
        register(connection)

    monkeypatch.setattr(driver, "register", registered)
    for number in range(10):
        told = cluster._Metadata(messages.MetadataRequest(topics=[]), 0)
        told.brokers[0].host = f"10.0.0.{number}"
        cluster.script("Metadata", lambda message, told=told: told)  # type: ignore[misc]
        driver.run(client.refresh([], client.deadline()))
        driver.run(client.connection(0, client.deadline()))
        driver.drop(0)
    driver.forget_ended()
    gc.collect()
    assert len(known) > 10
    assert sum(connection() is not None for connection in known) < 5


def test_a_name_that_nobody_knows_is_told() -> None:
    cluster = FakeCluster()
    driver, client = network(cluster, bootstrap="nowhere.test")
    driver.unknown.add("nowhere.test")
    with pytest.raises(ConnectError, match=r"nowhere.test:9092 \(Name or service not known\)"):
        driver.run(client.connection(None, client.deadline()))


@pytest.mark.parametrize(("password", "kind"), [("secret", None), ("wrong", AuthenticationError)])
def test_sasl_runs_without_the_system(password: str, kind: type[TagwireError] | None) -> None:
    credential = scram_credential("SCRAM-SHA-256", "secret")
    cluster = FakeCluster(sasl={"SCRAM-SHA-256": lambda: ScramServer("SCRAM-SHA-256", {"alice": credential}.get)})
    security = Security(
        "SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_plain_username="alice",
        sasl_plain_password=password,
    )
    driver, client = network(cluster, security=security)
    if kind is None:
        assert driver.run(client.refresh([], client.deadline())).cluster_id == "fake"
    else:
        with pytest.raises(kind):
            driver.run(client.refresh([], client.deadline()))


def test_what_a_connection_was_interrupted_in_is_settled_with_an_error() -> None:
    cluster = FakeCluster()
    driver, client = network(cluster)
    connection = driver.run(client.connection(None, client.deadline()))
    request = connection.send(messages.MetadataRequest(topics=None))
    connection.interrupted()
    with pytest.raises(ConnectionLostError, match="interrupted"):
        request.result()


@pytest.mark.parametrize(
    "call",
    [
        lambda admin: admin.describe_log_dirs(7),
        lambda admin: admin.describe_configs(("broker", "7")),
        lambda admin: admin.alter_configs({("broker", "7"): {"log.segment.bytes": "1"}}),
    ],
    ids=["log directories", "configs", "changes"],
)
def test_an_administrator_does_not_wait_long_for_a_broker_that_does_not_exist(
    call: Callable[[AdminCore], Any],
) -> None:
    driver, client = network(FakeCluster(2))
    began = driver.now()
    with pytest.raises(ConnectError, match=r"no broker 7 in the cluster; known: br"):
        driver.run(call(AdminCore(client, "read_uncommitted")))
    assert driver.now() - began < 2 * UNKNOWN_TOPIC_PATIENCE < TIMEOUT
