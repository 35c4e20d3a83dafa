"""Who is over a quota: the response says for how long, and the connection is muted (KIP-219)."""

from __future__ import annotations

import time
import tracemalloc
from contextlib import suppress
from types import SimpleNamespace

import pytest

from tagwire import messages
from tagwire.broker import Broker, Cluster, clock
from tagwire.broker.groups.coordinator import Groups
from tagwire.broker.quotas.rates import Rate, TokenBucket
from tagwire.broker.quotas.throttles import Meters, Mutations
from tagwire.client import Client, Producer, Reader
from tagwire.errors import Error, KafkaError

from .test_client_quotas import alter

BATCH = b"v" * 1000


@pytest.fixture
def ahead(monkeypatch):
    """Sets the clock of quotas, which stands still, ahead by seconds."""
    now = [clock.monotonic_ms()]
    monkeypatch.setattr(clock, "monotonic_ms", lambda: now[0])

    def move(seconds):
        now[0] += int(seconds * 1000)

    return move


@pytest.fixture
def topic(broker, connect):
    """By a connection of its own, so that no other is muted for it."""
    other = connect(broker.bootstrap, client_id="admin")
    other.create("t")
    return other


def produced(wire, make, *values, acks=-1, version=9):
    wire.send(make.produce("t", make.records(*values), acks=acks), version)
    return wire.receive().throttle_time_ms if acks else None


def seconds_of(ask):
    began = time.monotonic()
    ask()
    return time.monotonic() - began


def test_without_quotas_nobody_is_throttled(wire, topic, make):
    assert [produced(wire, make, BATCH * 100) for _ in range(3)] == [0, 0, 0]


def test_a_producer_over_its_quota_is_told_at_once_and_then_muted(wire, topic, make, ahead):
    alter(topic, ({"client-id": "test"}, {"producer_byte_rate": 1000}))
    assert produced(wire, make, BATCH * 9) == 0
    began = time.monotonic()
    throttled_ms = produced(wire, make, BATCH)
    assert time.monotonic() - began < 5
    assert 100 <= throttled_ms <= 400  # 10,000 bytes and what is around them, where 10,000 were free
    assert seconds_of(lambda: wire.metadata("t")) > throttled_ms / 1000 - 0.05
    ahead(30)
    assert produced(wire, make, BATCH) == 0


@pytest.mark.parametrize("version", [3, 5, 9, 12])
def test_every_version_is_told_and_muted(wire, topic, make, ahead, version):
    alter(topic, ({"client-id": None}, {"producer_byte_rate": 10_000}))
    throttled_ms = produced(wire, make, BATCH * 101, version=version)
    assert 100 <= throttled_ms <= 150
    assert seconds_of(lambda: wire.metadata("t")) > throttled_ms / 1000 - 0.05


def test_without_a_response_the_connection_is_muted_all_the_same(wire, topic, make, ahead):
    alter(topic, ({"user": "ANONYMOUS"}, {"producer_byte_rate": 10_000}))
    produced(wire, make, BATCH * 102, acks=0)
    assert seconds_of(lambda: wire.metadata("t")) > 0.15


def test_what_a_connection_sent_ahead_waits_and_is_served(wire, topic, make, ahead):
    alter(topic, ({"client-id": "test"}, {"producer_byte_rate": 10_000}))
    for _ in range(3):
        wire.send(make.produce("t", make.records(BATCH * 50)), 9)
    told = [wire.receive() for _ in range(3)]
    assert [answer.responses[0].partition_responses[0].base_offset for answer in told] == [0, 1, 2]
    assert told[2].throttle_time_ms > 0


def test_clients_are_measured_each_for_itself(wire, topic, make, ahead, connect, broker):
    alter(topic, ({"client-id": None}, {"producer_byte_rate": 1000}))
    other = connect(broker.bootstrap, client_id="other")
    assert produced(wire, make, BATCH * 9) == 0
    assert produced(other, make, BATCH * 9) == 0
    assert produced(other, make, BATCH) > 0


def test_a_reader_over_its_quota_gets_nothing_and_all_of_it_later(wire, topic, make, ahead, broker, connect):
    for _ in range(3):
        produced(wire, make, BATCH * 40)
    alter(topic, ({"client-id": "test"}, {"consumer_byte_rate": 10_000}))
    first = wire.ask(make.fetch("t", 0), 12)
    size = len(first.responses[0].partitions[0].records)
    assert first.throttle_time_ms == 0
    assert 40_000 < size < 100_001  # no more than can be had at once without waiting
    again = connect(broker.bootstrap).ask(make.fetch("t", 0), 12)
    assert again.throttle_time_ms > 0
    assert again.responses == []
    ahead(30)
    assert len(connect(broker.bootstrap).ask(make.fetch("t", 0), 12).responses[0].partitions[0].records) == size


def test_a_session_has_not_gone_on_where_its_reader_was_throttled(wire, topic, make, ahead, broker, connect):
    produced(wire, make, BATCH * 60)
    alter(topic, ({"client-id": "test"}, {"consumer_byte_rate": 10_000}))
    begun = wire.ask(make.fetch("t", 0, session_id=0, session_epoch=0), 12)
    session = begun.session_id
    assert session > 0
    throttled = wire.ask(make.fetch("t", 0, session_id=session, session_epoch=1), 12)
    assert (throttled.throttle_time_ms > 0, throttled.session_id, throttled.responses) == (True, session, [])
    ahead(30)
    more = connect(broker.bootstrap).ask(make.fetch("t", 0, session_id=session, session_epoch=2), 12)
    assert more.responses[0].partitions[0].records == begun.responses[0].partitions[0].records


def test_a_session_does_not_begin_where_its_reader_is_throttled(wire, topic, make, ahead):
    produced(wire, make, BATCH * 60)
    alter(topic, ({"client-id": "test"}, {"consumer_byte_rate": 10_000}))
    wire.ask(make.fetch("t", 0), 12)
    throttled = wire.ask(make.fetch("t", 0, session_id=0, session_epoch=0), 12)
    assert (throttled.throttle_time_ms > 0, throttled.session_id, throttled.responses) == (True, 0, [])


def test_the_time_that_requests_take_is_measured(wire, topic, ahead):
    alter(topic, ({"client-id": "test"}, {"request_percentage": 0.000001}))
    assert wire.metadata("t").throttle_time_ms == 1000  # and for no longer, however much it was


def busy():
    """The event loop is busy."""
    until = time.perf_counter() + 0.5
    while time.perf_counter() < until:
        pass


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("api", ["Heartbeat", "LeaveGroup"])
def test_the_time_of_tasks_that_serve_a_request_is_measured(connect, monkeypatch, ahead, nodes, api):
    leave = Groups._leave

    async def slow(*arguments):
        busy()
        return await leave(*arguments)

    monkeypatch.setattr(Groups, "_leave", slow)
    monkeypatch.setattr(Groups, "heartbeat", lambda *_: busy() or Error.UNKNOWN_MEMBER_ID)
    request = {
        "Heartbeat": messages.HeartbeatRequest(group_id="g", member_id="m"),
        "LeaveGroup": messages.LeaveGroupRequest(group_id="g", member_id="m"),
    }[api]
    with Cluster(nodes) as cluster:
        admin = connect(cluster.bootstrap.split(",")[0], client_id="admin")
        assert alter(admin, ({"client-id": "test"}, {"request_percentage": 1})) == [0]
        found = admin.ask(messages.FindCoordinatorRequest(key="g"), 3)
        answer = connect(f"{found.host}:{found.port}", client_id="test").ask(request, 2)
    assert (answer.error_code, answer.throttle_time_ms) == (Error.UNKNOWN_MEMBER_ID, 1000)


def change(wire, topic, version, count=1):
    kind = messages.CreateTopicsRequest
    wanted = kind.CreatableTopic(name=topic, num_partitions=count, replication_factor=1)
    answer = wire.ask(kind(topics=[wanted], timeout_ms=60_000), version)
    return answer.topics[0].error_code, answer.throttle_time_ms


def test_changes_of_topics_are_refused_where_a_client_is_new_enough(broker, connect, topic, ahead):
    alter(topic, ({"client-id": "test"}, {"controller_mutation_rate": 1}))
    assert change(connect(broker.bootstrap), "a", 6, 12) == (0, 0)  # 11 are free
    assert change(connect(broker.bootstrap), "b", 6) == (Error.THROTTLING_QUOTA_EXCEEDED, 1000)
    more = messages.CreatePartitionsRequest
    wanted = more(topics=[more.CreatePartitionsTopic(name="t", count=2, assignments=None)], timeout_ms=1000)
    answer = connect(broker.bootstrap).ask(wanted, 3)
    assert (answer.results[0].error_code, answer.throttle_time_ms) == (Error.THROTTLING_QUOTA_EXCEEDED, 1000)
    answer = connect(broker.bootstrap).ask(messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    assert (answer.responses[0].error_code, answer.throttle_time_ms) == (Error.THROTTLING_QUOTA_EXCEEDED, 1000)
    assert change(connect(broker.bootstrap), "b", 5) == (0, 2000)  # it is counted all the same
    answer = connect(broker.bootstrap).metadata("auto", create=True)
    assert (answer.topics[0].error_code, answer.throttle_time_ms) == (0, 3000)
    ahead(4)
    assert change(connect(broker.bootstrap), "c", 7) == (0, 0)


@pytest.mark.parametrize("is_strict", [False, True])
def test_time_that_passed_until_the_response_is_not_waited_once_more(ahead, is_strict):
    mutations = Mutations((TokenBucket(), 1.0), is_strict=is_strict)
    assert mutations.throttle_time_ms == 0
    mutations.count(13)  # 11 are free
    with suppress(KafkaError):
        mutations.count(0)
    assert mutations.throttle_time_ms == 2000
    ahead(0.5)
    assert mutations.throttle_time_ms == 1500
    ahead(30)
    assert mutations.throttle_time_ms == 0


def test_all_nodes_count_changes_together(connect, ahead):
    with Cluster(2) as cluster:
        first, second = (connect(node.bootstrap) for node in cluster.nodes.values())
        alter(connect(cluster.bootstrap.partition(",")[0]), ({"client-id": "test"}, {"controller_mutation_rate": 1}))
        assert change(first, "a", 6, 12) == (0, 0)
        assert change(second, "b", 6)[0] == Error.THROTTLING_QUOTA_EXCEEDED


def test_an_address_makes_so_many_connections_and_the_next_one_is_closed(broker, connect, topic, ahead):
    alter(topic, ({"ip": "127.0.0.1"}, {"connection_creation_rate": 1}))
    for _ in range(10):
        connect(broker.bootstrap).metadata()
    late = connect(broker.bootstrap)
    began = time.monotonic()
    assert late.is_closed()
    assert time.monotonic() - began > 0.5
    ahead(30)
    connect(broker.bootstrap).metadata()


def test_a_muted_connection_is_not_idle(tmp_path, connect, make, ahead):
    with Broker(tmp_path / "d", idle_timeout_s=0.2) as broker:
        admin, wire = connect(broker.bootstrap, client_id="admin"), connect(broker.bootstrap)
        admin.create("t")
        alter(connect(broker.bootstrap, client_id="admin"), ({"client-id": "test"}, {"producer_byte_rate": 10_000}))
        assert 400 < produced(wire, make, BATCH * 105) < 700
        assert wire.metadata("t").topics[0].error_code == 0


def test_who_is_muted_with_much_sent_ahead_keeps_no_room_from_others(tmp_path, connect, make, ahead):
    with Broker(tmp_path / "d", max_in_flight_bytes=2 << 20, fsync="never") as broker:
        other = connect(broker.bootstrap, client_id="other")
        other.create("t")
        alter(other, ({"client-id": "test"}, {"producer_byte_rate": 1}))
        for wire in [connect(broker.bootstrap) for _ in range(4)]:
            assert produced(wire, make, BATCH * 100) > 60_000
            with suppress(OSError):  # whoever holds the most is closed
                wire.send(make.produce("t", make.records(BATCH * 800)), 9)
        assert [produced(other, make, BATCH) for _ in range(3)] == [0, 0, 0]


def test_our_own_client_gets_everything_under_a_quota(broker, topic):
    alter(topic, ({"user": None}, {"producer_byte_rate": 14_500, "consumer_byte_rate": 14_500}))
    with Producer(broker.bootstrap, linger=0.0) as producer:
        for _ in range(3):
            producer.send("t", BATCH * 50)
            producer.flush()
    with Reader(broker.bootstrap, ("t", 0), stop_at_end=True) as reader:
        assert sum(1 for _ in reader.records()) == 3
    with Client(broker.bootstrap) as client:
        assert client.list_offsets({("t", 0): -1}) == {("t", 0): 3}


class OfEveryClient:
    """A quota of its own for each client id."""

    def of_client(self, quota, user, client_id):
        return user, client_id, 1000.0


def test_clients_with_long_names_are_told_apart_and_their_names_not_kept():
    meters = Meters(OfEveryClient(), "producer_byte_rate", Rate)

    def record(client_id, amount):
        return meters.record(SimpleNamespace(client_id=client_id, session=SimpleNamespace(principal="User:a")), amount)

    tracemalloc.start()
    try:
        for number in range(200):
            assert record("x" * 30_000 + str(number), 9000) == 0
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1 << 20
    assert record("x" * 30_000 + "7", 9000) > 0
