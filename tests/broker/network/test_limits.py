"""Bounds: whatever clients do, the others are served, and memory and connections stay within what was allowed."""

from __future__ import annotations

import gc
import logging
import socket
import ssl
import struct
import time
from contextlib import contextmanager

import pytest

from tagwire import messages
from tagwire.broker import Broker, Cluster, Tls
from tagwire.broker.network import admission
from tagwire.broker.network.admission import Admission
from tagwire.broker.network.connection import ClientConnection
from tagwire.broker.network.memory_budget import MemoryBudget
from tagwire.errors import TagwireError
from tagwire.records import read

from ...limits import wait_until

API_VERSIONS = messages.ApiVersionsRequest(client_software_name="a", client_software_version="1")
MIB = 1 << 20
NO_FRAME = struct.pack(">i", -1)


def is_served(wire):
    return wire.ask(API_VERSIONS, 3).error_code == 0


def push(wire, data):
    """Send what can be sent at once, as a client that does not care."""
    wire.socket.settimeout(0.2)
    try:
        wire.socket.sendall(data)
    except (TimeoutError, OSError):
        return False
    return True


def test_clients_that_are_gone_before_they_are_let_in_do_no_harm(tmp_path, connect, caplog):
    with Broker(tmp_path / "data") as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        for _ in range(50):
            with socket.create_connection((host, int(port))) as gone:
                gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing resets it
        assert is_served(connect(broker.bootstrap))
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("option", ["max_connections", "max_connections_per_address"])
def test_connections_are_limited_and_come_free_again(tmp_path, connect, option, caplog):
    with Broker(tmp_path / "data", **{option: 3}) as broker:
        wires = [connect(broker.bootstrap) for _ in range(3)]
        assert all(is_served(wire) for wire in wires)
        assert connect(broker.bootstrap).is_closed()
        assert connect(broker.bootstrap).is_closed()
        assert is_served(wires[0])
        wires[0].close()

        def is_let_in():
            try:
                return is_served(connect(broker.bootstrap))
            except (OSError, TagwireError):
                return False

        assert wait_until(is_let_in)
    assert "connections are refused" in caplog.text


def test_each_address_has_its_own_limit():
    counted = Admission(4, 2)
    assert [counted.enter(address) for address in "aaabbbc"] == [True, True, False, True, True, False, False]
    counted.leave("a")
    assert (counted.enter("c"), counted.enter("a"), counted.open) == (True, False, 4)


def test_connections_leave_half_of_the_files_to_logs(tmp_path, connect, monkeypatch):
    monkeypatch.setattr(admission.resource, "getrlimit", lambda which: (9, 9))
    with Broker(tmp_path / "data") as broker:
        wires = [connect(broker.bootstrap) for _ in range(4)]
        assert all(is_served(wire) for wire in wires)
        assert connect(broker.bootstrap).is_closed()


def test_all_nodes_of_a_cluster_leave_half_of_the_files_together(connect, monkeypatch):
    monkeypatch.setattr(admission.resource, "getrlimit", lambda which: (9, 9))
    with Cluster(2) as cluster:
        first, second = (node.bootstrap for node in cluster.nodes.values())
        wires = [connect(first), *(connect(second) for _ in range(3))]
        assert all(is_served(wire) for wire in wires)
        assert connect(first).is_closed()
        assert connect(second).is_closed()
        wires[0].close()
        assert wait_until(lambda: is_let_in(second, connect))


def is_let_in(address, connect):
    wire = connect(address)
    try:
        return is_served(wire)
    except (ConnectionError, AttributeError):  # no answer
        return False


def test_tls_greetings_count_as_connections(tmp_path, certificates, connect):
    with Broker(tmp_path / "data", tls=Tls(certificates.broker), max_connections=2) as broker:
        silent = [connect(broker.bootstrap) for _ in range(2)]
        assert connect(broker.bootstrap).is_closed()
        silent[0].socket.sendall(b"\0\0\0\x04no TLS")
        assert silent[0].socket.recv(100)[:1] in (b"\x15", b"")


def test_a_client_that_leaves_over_tls_makes_room_for_the_next(tmp_path, certificates):
    trusting = ssl.create_default_context(cafile=str(certificates.authority))

    def greets():
        try:
            with (
                socket.create_connection(("127.0.0.1", port), 5) as plain,
                trusting.wrap_socket(plain, server_hostname="127.0.0.1"),
            ):
                return True
        except OSError:
            return False

    with Broker(tmp_path / "data", tls=Tls(certificates.broker), max_connections=1) as broker:
        port = int(broker.bootstrap.rpartition(":")[2])
        for _ in range(3):
            assert wait_until(greets)


@pytest.mark.parametrize("said", [b"", b"\0\0\0", b"GET / HTTP/1.1\r\n\r\n"])
def test_a_connection_that_ended_leaves_nothing_to_be_collected(broker, connect, said):
    def connections():
        return [found for found in gc.get_objects() if isinstance(found, ClientConnection)]

    def kept():
        return [found for found in connections() if not any(found is other for other in others)]

    gc.collect()
    others = connections()  # of brokers of other tests
    gc.disable()
    try:
        for _ in range(3):
            wire = connect(broker.bootstrap)
            assert is_served(wire)
            wire.socket.sendall(said)
            wire.close()
            assert wait_until(lambda: not kept())
    finally:
        gc.enable()


def test_a_connection_that_is_silent_for_too_long_is_closed_and_one_that_is_not_stays(tmp_path, connect):
    with Broker(tmp_path / "data", idle_timeout_s=1.5) as broker:
        idle, busy = connect(broker.bootstrap), connect(broker.bootstrap)
        idle.socket.settimeout(0.02)
        while not has_ended(idle):
            assert is_served(busy)


def has_ended(wire):
    try:
        return wire.is_closed()
    except TimeoutError:
        return False


def test_a_client_that_sends_a_byte_now_and_then_is_closed(tmp_path, connect):
    with Broker(tmp_path / "data", idle_timeout_s=0.3) as broker:
        slow = connect(broker.bootstrap)
        slow.socket.sendall(b"\0\0\1\0")
        sent = 0
        while push(slow, b"\0") and sent < 1000:
            sent += 1
            time.sleep(0.02)
        assert sent < 252  # never a whole request
        assert is_served(connect(broker.bootstrap))


def test_a_client_that_does_not_read_its_answers_is_closed(tmp_path, connect, make):
    with Broker(tmp_path / "data", idle_timeout_s=0.5) as broker:
        wire = connect(broker.bootstrap)
        wire.create("t", max_message_bytes=str(8 * MIB))
        wire.produce("t", make.records(b"v" * 4 * MIB))
        for _ in range(4):
            push(wire, wire.rpc.send(make.fetch("t", 0), 12))
        assert wait_until(lambda: broker.stats()["connections"]["open"] == 0)


def test_a_client_that_waits_for_records_is_not_idle(tmp_path, connect, make):
    with Broker(tmp_path / "data", idle_timeout_s=0.7) as broker:
        wire = connect(broker.bootstrap)
        wire.create("t")
        assert wire.fetch("t", 0, max_wait_ms=1600).error_code == 0


def test_a_throttled_client_that_has_gone_is_not_kept_until_it_may_go_on(tmp_path, connect, make):
    with Broker(tmp_path / "data", idle_timeout_s=0.5) as broker:
        wire, gone = connect(broker.bootstrap), connect(broker.bootstrap)
        wire.create("t")
        request = messages.AlterClientQuotasRequest
        anybody = request.EntryData(
            entity=[request.EntityData(entity_type="user", entity_name=None)],
            ops=[request.OpData(key="producer_byte_rate", value=1.0)],
        )
        assert wire.ask(request(entries=[anybody]), 1).entries[0].error_code == 0
        assert gone.produce("t", make.records(b"v" * 10_000)).error_code == 0  # for more than two hours
        gone.send(API_VERSIONS, 3)
        gone.close()
        assert wait_until(lambda: broker.stats()["connections"]["open"] == 0)


def test_half_requests_take_no_more_room_than_there_is_and_nobody_waits_for_them(tmp_path, connect, make, caplog):
    with Broker(tmp_path / "data", max_in_flight_bytes=4 * MIB) as broker:
        good = connect(broker.bootstrap)
        good.create("t")
        hostile = [connect(broker.bootstrap) for _ in range(12)]
        for wire in hostile:
            push(wire, struct.pack(">i", 50 * MIB) + bytes(MIB))
            assert good.produce("t", make.records(b"v" * 1000)).error_code == 0
        assert broker.stats()["connections"]["held_bytes"] <= 4 * MIB
        assert "is closed" in caplog.text
        assert is_served(connect(broker.bootstrap))


def test_half_requests_of_very_many_that_hold_little_each_keep_nobody_waiting(tmp_path, connect, make):
    with Broker(tmp_path / "data", max_in_flight_bytes=MIB) as broker:
        good = connect(broker.bootstrap)
        good.create("t")
        for _ in range(40):
            push(connect(broker.bootstrap), struct.pack(">i", 50_000) + bytes(40_000))
        assert good.produce("t", make.records(b"v" * 1000)).error_code == 0
        assert broker.stats()["connections"]["held_bytes"] <= MIB


@contextmanager
def large_record(tmp_path, connect, make):
    """A broker with one, of which a few take all the room that there is for responses; and one of its clients."""
    with Broker(tmp_path / "data", max_in_flight_bytes=16 * MIB) as broker:
        good = connect(broker.bootstrap)
        good.create("t", max_message_bytes=str(8 * MIB))
        good.produce("t", make.records(b"v" * 6 * MIB))
        yield broker, good


def test_answers_that_nobody_reads_take_no_more_room_than_there_is(tmp_path, connect, make):
    with large_record(tmp_path, connect, make) as (broker, good):
        for _ in range(10):
            wire = connect(broker.bootstrap)
            push(wire, wire.rpc.send(make.fetch("t", 0), 12))
        for _ in range(20):
            assert good.produce("t", make.records(b"v")).error_code == 0
            assert broker.stats()["connections"]["held_bytes"] <= 16 * MIB + 8 * MIB
        assert wait_until(lambda: broker.stats()["connections"]["open"] < 10)


def nothing_more_is_sent(wire):
    wire.socket.shutdown(socket.SHUT_WR)


def no_request_is_sent(wire):
    wire.socket.sendall(NO_FRAME)


@pytest.mark.parametrize("end", [nothing_more_is_sent, no_request_is_sent])
def test_answers_that_nobody_reads_count_until_the_connection_has_ended(tmp_path, connect, make, end, caplog):
    with large_record(tmp_path, connect, make) as (broker, good):
        for _ in range(10):
            wire = connect(broker.bootstrap)
            wire.send(make.fetch("t", 0), 12)
            end(wire)
        assert wait_until(lambda: "the one that is slowest" in caplog.text)
        assert is_served(good)


def test_nothing_is_read_any_more_from_who_has_sent_no_request(broker, wire, make):
    wire.create("t")
    wire.send(make.fetch("t", 0, max_wait_ms=30_000), 12)
    wire.socket.sendall(NO_FRAME)
    wire.socket.settimeout(1)
    with pytest.raises(TimeoutError):
        wire.socket.sendall(bytes(100 * MIB))


def test_answers_are_smaller_when_there_is_little_room_and_readers_still_get_everything(tmp_path, connect, make):
    with Broker(tmp_path / "data", max_in_flight_bytes=8 * MIB, fsync="never") as broker:
        wire = connect(broker.bootstrap)
        wire.create("t")
        for _ in range(12):
            wire.produce("t", make.records(b"v" * (MIB // 2)))
        offset = 0
        while offset < 12:
            records = wire.fetch("t", offset, partition_max_bytes=100 * MIB).records
            assert MIB // 2 < len(records) <= 2 * MIB
            offset = [batch.next_offset for batch in read(records)][-1]


def test_many_requests_wait_for_room_and_are_all_answered(tmp_path, connect, make):
    with Broker(tmp_path / "data", max_in_flight_bytes=MIB, fsync="never") as broker:
        first = connect(broker.bootstrap)
        first.create("t")
        wires = [connect(broker.bootstrap) for _ in range(8)]
        for wire in wires:
            for _ in range(5):
                wire.send(make.produce("t", make.records(b"v" * 50_000)), 9)
        outcomes = [wire.receive().responses[0].partition_responses[0].error_code for wire in wires for _ in range(5)]
        assert outcomes == [0] * 40
        assert first.offset_at("t", -1).offset == 40


def test_a_flood_of_requests_starves_nobody(tmp_path, connect, make):
    with Broker(tmp_path / "data", fsync="never") as broker:
        good = connect(broker.bootstrap)
        good.create("t")
        floods = [connect(broker.bootstrap) for _ in range(4)]
        ten_thousand = b"".join(flood_request(number) for number in range(10_000))
        for wire in floods:
            push(wire, ten_thousand)
        for number in range(20):
            assert good.produce("t", make.records(b"v")).base_offset == number


def flood_request(number):
    return struct.pack(">ihhih", 10, 18, 0, number, -1)


def test_a_frame_that_never_ends_and_a_reset_in_the_middle_leave_nothing_behind(tmp_path, connect):
    with Broker(tmp_path / "data") as broker:
        for _ in range(20):
            wire = connect(broker.bootstrap)
            push(wire, struct.pack(">i", MIB) + bytes(200_000))
            wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            wire.close()
        # Those that were not accepted yet when they went come and go afterwards.
        assert wait_until(lambda: {"open": 0, "held_bytes": 0}.items() <= broker.stats()["connections"].items())


def test_groups_are_limited(tmp_path, connect):
    def join(wire, group):
        request = messages.JoinGroupRequest
        protocols = [request.JoinGroupRequestProtocol(name="range", metadata=b"")]
        return wire.ask(
            request(
                group_id=group,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=protocols,
            ),
            2,
        ).error_code

    with Broker(tmp_path / "data", max_groups=3) as broker:
        wires = [connect(broker.bootstrap) for _ in range(5)]
        assert [join(wire, f"g{number}") for number, wire in enumerate(wires)] == [0, 0, 0, 15, 15]


class Held:
    def __init__(self):
        self.closed = self.told = False
        self.now = (0, 0)

    def held(self):
        return self.now

    def hang_up(self):
        self.closed = True

    def memory_is_free(self):
        self.told = True


def hold(room, held, slow, busy):
    held.now = slow, busy
    room.hold(held, slow, busy)


def test_when_all_room_is_taken_the_slowest_goes_and_the_busy_stay():
    room = MemoryBudget(10 * MIB)
    slow, slower, busy = Held(), Held(), Held()
    hold(room, busy, 0, 6 * MIB)
    hold(room, slow, MIB, 0)
    hold(room, slower, 2 * MIB, 0)
    assert not room.is_full_for(busy)
    hold(room, slow, 3 * MIB, 0)
    assert (slow.closed, slower.closed, busy.closed) == (True, False, False)
    assert room.taken == 8 * MIB


def test_many_that_are_slow_with_little_each_go_where_nobody_else_would_make_room():
    room = MemoryBudget(MIB)
    slow, busy = [Held() for _ in range(40)], Held()
    hold(room, busy, 0, MIB)
    for each in slow[:26]:
        hold(room, each, 40_000, 0)
    assert not any(each.closed for each in (*slow, busy))  # who is busy makes room, and then it is enough
    for each in slow[26:]:
        hold(room, each, 40_000, 0)
    assert sum(each.closed for each in slow) == 14
    hold(room, busy, 0, 0)
    assert room.taken == 26 * 40_000
    assert not room.is_full_for(busy)


def test_whose_client_has_read_meanwhile_is_not_closed_for_what_it_held():
    room = MemoryBudget(10 * MIB)
    idle, slow, busy = Held(), Held(), Held()
    hold(room, idle, 6 * MIB, 0)
    hold(room, slow, 3 * MIB, 0)
    idle.now = 0, 0  # nobody tells
    hold(room, busy, 0, 6 * MIB)
    assert (idle.closed, slow.closed, busy.closed) == (False, False, False)
    assert room.taken == 9 * MIB
    slow.now = MIB, 0
    assert room.recount() == room.taken == 7 * MIB
    room.leave(slow)
    room.leave(busy)
    assert room.taken == 0


def test_who_is_busy_waits_until_there_is_room_and_is_told():
    room = MemoryBudget(MIB)
    one, other = Held(), Held()
    hold(room, one, 0, MIB)
    hold(room, other, 0, 1)
    assert room.is_full_for(other)
    hold(room, one, 0, 10)
    assert (other.told, other.closed, one.closed, room.taken) == (True, False, False, 11)
    room.leave(one)
    room.leave(other)
    assert room.taken == 0
