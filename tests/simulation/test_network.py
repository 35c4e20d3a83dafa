"""Laws of the simulated network, over connections that are drawn."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from selectors import EVENT_READ, EVENT_WRITE

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .heap_scheduler import HeapScheduler
from .world.network import Conditions, Network
from .world.network_faults import HalfOpen, Loss, Partition, Refusal, Slowness, cut, stray, told_late
from .world.selecting import SimulatedSelector
from .world.transports import SocketLoop

NO_LINGERING = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")


def read_to_the_reset(sock):
    """Reads what has arrived; after it comes a reset."""
    with pytest.raises(ConnectionResetError):
        list(iter(lambda: sock.recv(100), b""))


class Pair:
    """A client and a server with one connection."""

    def __init__(self, seed, conditions=None, tick=None):
        self.scheduler = HeapScheduler(seed, tick)
        self.network = Network(self.scheduler, conditions)
        self.told = []
        self.network.trace = self.told.append
        self.client_host, self.server_host = self.network.host("client"), self.network.host("server")
        self.listening = self.server_host.sockets.create_server(("127.0.0.1", 0), backlog=3)
        self.address = self.listening.getsockname()
        self.client, self.server = self.connect()
        self.sent, self.received = b"", b""

    def begin(self):
        sock = self.client_host.sockets.socket()
        with pytest.raises(BlockingIOError):
            sock.connect(self.address)
        return sock

    def connect(self):
        sock = self.begin()
        while not sock.events() & EVENT_WRITE:
            self.scheduler.run(1)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
        return sock, self.listening.accept()[0]

    @property
    def connection(self):
        return self.client.connection

    def send(self, data):
        """Sends what goes."""
        try:
            size = self.client.send(data)
        except BlockingIOError:
            return
        self.sent += data[:size]

    def receive(self):
        """Everything that has arrived; then how it stands: "open", "ended" or the number of an error."""
        while True:
            try:
                data = self.server.recv(1000)
            except BlockingIOError:
                return "open"
            except OSError as error:
                return error.errno
            if not data:
                return "ended"
            self.received += data


acts = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.binary(max_size=9000)),
        st.tuples(st.just("receive"), st.none()),
        st.tuples(st.just("wait"), st.floats(0.0, 3.0)),
        st.tuples(st.just("partition"), st.booleans()),
        st.tuples(st.just("loss"), st.floats(0.0, 0.9)),
        st.tuples(st.just("slow"), st.floats(0.0, 5.0)),
        st.tuples(st.just("heal"), st.none()),
    ),
    max_size=30,
)


def lived(seed, acts):
    pair = Pair(seed)
    for act, value in acts:
        if act == "send":
            pair.send(value)
        elif act == "receive":
            pair.receive()
        elif act == "wait":
            pair.scheduler.run(value)
        elif act == "partition":
            Partition(pair.network, pair.client_host, pair.server_host, one_way=value)
        elif act == "loss":
            Loss(pair.network, pair.client_host, pair.address, value)
        elif act == "slow":
            Slowness(pair.network, pair.client_host, latency_s=value)
        else:
            for fault in list(pair.network.faults):
                fault.heal()
    return pair


def heal_and_finish(pair):
    for fault in list(pair.network.faults):
        fault.heal()
    outcome = "open"
    for _ in range(400):
        pair.scheduler.run(300)
        outcome = pair.receive()
        if outcome != "open":
            break
    return outcome


@given(st.integers(0, 1000), acts)
def test_bytes_arrive_in_order_and_once_and_all_of_them_when_what_was_wrong_is_healed(seed, acts):
    pair = lived(seed, acts)
    assert pair.sent.startswith(pair.received)
    pair.client.shutdown(socket.SHUT_WR)
    assert heal_and_finish(pair) == "ended"
    assert pair.received == pair.sent


@given(st.integers(0, 1000))
def test_what_no_fault_holds_back_arrives_however_times_are_rounded(seed):
    """Two segments that are due together are not overtaken by what rounding makes of their times: what comes before
    its time would be dropped, and nobody sends it again."""
    narrow = Conditions(latency_s=0.005, jitter_s=0.005, receive_buffer=4096, fragments=0.5)
    pair = Pair(seed, narrow, tick=1e-12)
    data = bytes(range(256)) * 200
    for _ in range(3000):
        if pair.sent != data:
            pair.send(data[len(pair.sent) :])
        pair.scheduler.run(0.001)
        pair.receive()
    assert pair.received == data


@given(st.integers(0, 1000), acts, st.sampled_from(["both", "server", "client", "nobody"]))
def test_of_a_connection_that_is_cut_a_beginning_arrives(seed, acts, told):
    pair = lived(seed, acts)
    cut(pair.network, pair.connection, told)
    outcome = heal_and_finish(pair)
    assert pair.sent.startswith(pair.received)
    assert outcome == (errno.ECONNRESET if told in ("both", "server") else "open")
    if told in ("both", "client"):
        read_to_the_reset(pair.client)
    else:
        with pytest.raises((BlockingIOError, TimeoutError)):  # of what nobody acknowledges
            pair.client.recv(100)


@given(st.integers(0, 1000), acts, st.sampled_from(["kill", "close", "reset", "power"]))
def test_however_a_client_ends_a_beginning_arrives_and_the_end_is_told_unless_there_is_no_power(seed, acts, end):
    pair = lived(seed, acts)
    if end == "kill":
        pair.network.kill(pair.client_host)
    elif end == "power":
        pair.network.power_off(pair.client_host)
    else:
        if end == "reset":
            pair.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGERING)
        pair.client.close()
    outcome = heal_and_finish(pair)
    assert pair.sent.startswith(pair.received)
    if end == "close":
        assert (outcome, pair.received) == ("ended", pair.sent)
    elif end == "power":
        assert outcome == "open"
    assert pair.client.fileno() == -1
    with pytest.raises(OSError, match="Bad file descriptor"):
        pair.client.send(b"x")


@given(st.integers(0, 1000))
def test_the_same_seed_is_told_the_same(seed):
    def told():
        pair = Pair(seed)
        Loss(pair.network, pair.client_host, None, 0.3)
        for _ in range(20):
            pair.send(b"abc" * 500)
            pair.scheduler.run(0.3)
            pair.receive()
        return pair.told, pair.sent, pair.received, pair.scheduler.now

    assert told() == told()


@pytest.mark.parametrize("one_way", [False, True])
def test_nothing_arrives_through_a_partition(one_way):
    pair = Pair(1)
    fault = Partition(pair.network, pair.client_host, pair.server_host, one_way=one_way)
    pair.send(b"abc")
    pair.scheduler.run(100)
    assert pair.receive() == "open"
    assert pair.received == b""
    pair.server.send(b"back")
    pair.scheduler.run(1)
    assert bool(pair.client.events() & EVENT_READ) == one_way
    fault.heal()
    pair.scheduler.run(300)
    pair.receive()
    assert pair.received == b"abc"


def test_a_partition_from_one_listener_leaves_the_other_listeners_of_a_process_reachable():
    pair = Pair(1)
    other = pair.server_host.sockets.create_server(("127.0.0.1", 0))
    Partition(pair.network, pair.client_host, pair.address)
    pair.send(b"abc")
    sock = pair.client_host.sockets.socket()
    assert sock.connect_ex(other.getsockname()) == errno.EINPROGRESS
    pair.scheduler.run(10)
    assert other.events() & EVENT_READ
    pair.receive()
    assert pair.received == b""


def test_what_is_not_acknowledged_for_a_quarter_of_an_hour_ends_the_connection_of_who_sent_it_alone():
    pair = Pair(1)
    Partition(pair.network, pair.client_host, pair.server_host)
    pair.send(b"abc")
    pair.scheduler.run(900)
    assert pair.client.events() & EVENT_READ == 0
    pair.scheduler.run(300)
    with pytest.raises(TimeoutError):
        pair.client.recv(1)
    assert pair.receive() == "open"


def test_half_open_one_direction_is_lost_and_the_other_arrives():
    pair = Pair(1)
    fault = HalfOpen(pair.network, pair.connection, "server")
    pair.send(b"lost")
    pair.server.send(b"arrives")
    pair.scheduler.run(5)
    assert pair.client.recv(100)
    assert pair.receive() == "open"
    assert pair.received == b""
    fault.heal()
    pair.scheduler.run(300)
    pair.receive()
    assert pair.received == b"lost"


def test_who_is_cut_off_and_connects_again_has_an_old_connection_whose_bytes_still_arrive():
    pair = Pair(1, Conditions(latency_s=1.0))
    pair.send(b"old")
    cut(pair.network, pair.connection, "client")
    client, server = pair.connect()
    client.send(b"new")
    pair.scheduler.run(5)
    assert server.recv(10) == b"new"
    assert pair.receive() == "open"
    assert pair.received == b"old"


@pytest.mark.parametrize("told", ["client", "nobody"])
def test_who_was_not_told_of_an_end_hears_of_it_late(told):
    pair = Pair(1, Conditions())
    server = pair.connection.server
    cut(pair.network, pair.connection, told)
    pair.client.close()
    pair.scheduler.run(60)
    assert not server.is_broken
    assert told_late(pair.network, server.host) == 1
    assert told_late(pair.network, server.host) == 0
    read_to_the_reset(server)


def test_who_has_heard_of_an_end_or_is_in_the_middle_hears_nothing_late():
    pair = Pair(1, Conditions())
    server = pair.connection.server
    assert told_late(pair.network, server.host) == 0
    pair.client.close()
    pair.scheduler.run(1)
    assert told_late(pair.network, server.host) == 0
    assert server.recv(1) == b""


def test_back_pressure_holds_what_nobody_reads():
    pair = Pair(1, Conditions(send_buffer=1000, receive_buffer=500))
    for _ in range(10):
        pair.send(b"x" * 400)
        pair.scheduler.run(1)
    assert len(pair.sent) == 1500
    assert not pair.client.events() & EVENT_WRITE
    pair.receive()
    pair.scheduler.run(1)
    assert pair.client.events() & EVENT_WRITE


def test_sends_segments_and_reads_are_of_any_part():
    pair = Pair(1, Conditions(fragments=0.9))
    assert pair.client.send(b"x" * 1000) < 1000
    pair.scheduler.run(1)
    assert len(pair.server.recv(1000)) < 900


def test_bandwidth_makes_more_bytes_take_longer():
    pair = Pair(1, Conditions(bandwidth=1000.0))
    pair.send(b"x" * 5000)
    pair.scheduler.run(4.9)
    assert not pair.server.events() & EVENT_READ
    pair.scheduler.run(0.2)
    assert pair.server.events() & EVENT_READ


def test_a_segment_that_takes_long_though_nothing_is_wrong_is_told():
    pair = Pair(1, Conditions(latency_s=0.1, spikes=1.0, spike_s=3.0))
    pair.network.late.clear()
    began = pair.scheduler.now
    for _ in range(20):
        pair.client.send(b"late")
    of_client = [late for late in pair.network.late if late.sender == "client"]
    assert of_client
    assert {(late.receiver, late.began) for late in of_client} == {("server", began)}
    assert all(0.5 < late.ended - late.began <= 3.1 for late in of_client)


def test_what_a_fault_makes_late_is_the_faults():
    pair = Pair(1, Conditions(latency_s=0.1))
    Slowness(pair.network, pair.client_host, pair.server_host, latency_s=9.0)
    for _ in range(20):
        pair.client.send(b"late")
    assert pair.network.late == []


def test_connections_overtake_each_other():
    orders = set()
    for seed in range(20):
        pair = Pair(seed, Conditions(latency_s=0.1, jitter_s=1.0))
        _, other = pair.connect()
        pair.client.send(b"first")
        other.peer.send(b"second")
        while not pair.server.events() & EVENT_READ and not other.events() & EVENT_READ:
            pair.scheduler.run(0.01)
        orders.add(bool(pair.server.events() & EVENT_READ))
    assert orders == {True, False}


def test_nobody_listens_is_a_refusal_and_nobody_there_is_a_silence():
    pair = Pair(1)
    pair.listening.close()
    sock = pair.begin()
    pair.scheduler.run(1)
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED
    pair.network.power_off(pair.server_host)
    sock = pair.begin()
    pair.scheduler.run(120)
    assert sock.events() == 0
    pair.scheduler.run(10)
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ETIMEDOUT


def test_a_place_that_refuses_lets_nobody_in_until_it_is_healed():
    pair = Pair(1)
    fault = Refusal(pair.network, pair.address)
    sock = pair.begin()
    pair.scheduler.run(1)
    assert sock.events() == EVENT_READ | EVENT_WRITE
    with pytest.raises(ConnectionRefusedError):
        sock.send(b"x")
    fault.heal()
    pair.connect()


def test_a_full_backlog_has_others_try_again_until_somebody_is_accepted():
    pair = Pair(1)
    waiting = [pair.begin() for _ in range(4)]
    pair.scheduler.run(0.9)
    assert [bool(sock.events() & EVENT_WRITE) for sock in waiting].count(True) == 3
    pair.listening.accept()
    pair.scheduler.run(10)
    assert all(sock.events() & EVENT_WRITE for sock in waiting)


def test_who_closes_with_unread_bytes_resets():
    pair = Pair(1)
    pair.send(b"abc")
    pair.scheduler.run(1)
    pair.server.close()
    pair.scheduler.run(1)
    with pytest.raises(ConnectionResetError):
        pair.client.recv(10)
    with pytest.raises(BrokenPipeError):
        pair.client.send(b"x")


def test_a_machine_that_is_back_resets_what_it_does_not_know():
    pair = Pair(1)
    pair.network.power_off(pair.server_host)
    pair.send(b"abc")
    pair.scheduler.run(5)
    assert pair.client.events() & EVENT_READ == 0
    pair.network.power_on(pair.server_host)
    pair.scheduler.run(60)
    with pytest.raises(ConnectionResetError):
        pair.client.recv(10)


def test_a_killed_process_gives_its_ports_back_and_its_peers_hear_of_it():
    for seed in range(10):
        pair = Pair(seed)
        pair.network.kill(pair.server_host)
        pair.scheduler.run(20)
        assert pair.client.events() & EVENT_READ
        assert pair.network.listeners() == []
        pair.server_host.sockets.create_server(pair.address)
        assert pair.network.connections() == [] or pair.network.connections() == [pair.connection]


def test_a_port_is_one_sockets_and_a_held_one_refuses():
    pair = Pair(1)
    with pytest.raises(OSError, match="in use"):
        pair.client_host.sockets.create_server(pair.address)
    pair.listening.close()
    held = pair.server_host.sockets.socket(socket.AF_INET)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(pair.address)
    sock = pair.begin()
    pair.scheduler.run(1)
    assert os.strerror(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)) == "Connection refused"
    held.listen(5)
    pair.listening = held
    pair.connect()


def test_names_of_processes_are_names_of_hosts():
    pair = Pair(1)
    module = pair.client_host.sockets
    found = module.getaddrinfo("server", 9092, type=socket.SOCK_STREAM)
    assert found == [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("10.0.0.2", 9092))]
    with pytest.raises(socket.gaierror):
        module.getaddrinfo("server", 9092, flags=socket.AI_NUMERICHOST)
    with pytest.raises(socket.gaierror):
        module.getaddrinfo("nobody", 9092)
    everywhere = pair.server_host.sockets.create_server(("", 9092))
    sock = module.socket()
    assert sock.connect_ex(found[0][4]) == errno.EINPROGRESS
    pair.scheduler.run(1)
    assert everywhere.accept()[1][0] == "10.0.0.1"


def test_a_stray_connection_says_nothing():
    pair = Pair(1)
    stray(pair.network, pair.client_host, pair.address)
    pair.scheduler.run(1)
    accepted, _ = pair.listening.accept()
    pair.scheduler.run(1000)
    assert not accepted.events() & EVENT_READ


# Selectors and loops -----------------------------------------------------------------------------------------------


def test_a_pair_of_sockets_wakes_a_selector():
    pair = Pair(1)
    ours, theirs = pair.client_host.sockets.socketpair()
    waits = []
    selector = SimulatedSelector(lambda selector, timeout: waits.append(timeout))
    selector.register(ours, EVENT_READ, "data")
    assert selector.select(5.0) == []
    theirs.send(b"\0")
    [(key, events)] = selector.select(5.0)
    assert (key.data, events, waits) == ("data", EVENT_READ, [5.0, 0.0])
    assert selector.select(5.0), "it is level-triggered"
    assert ours.recv(100) == b"\0"
    assert selector.select(5.0) == []
    theirs.close()
    assert selector.select(5.0)
    assert ours.recv(100) == b""


class Loop(SocketLoop, asyncio.BaseEventLoop):
    """A loop whose time passes when it waits."""

    def __init__(self, scheduler, sockets):
        super().__init__()
        self.scheduler, self.sockets = scheduler, sockets
        self._selector = SimulatedSelector(self._pass)

    def _pass(self, selector, timeout):
        end = self.scheduler.now + (1000.0 if timeout is None else timeout)
        while not selector.is_ready() and self.scheduler.now < end:
            self.scheduler.run(min(0.01, end - self.scheduler.now))
            self.scheduler.now = max(self.scheduler.now, min(end, self.scheduler.now + 0.01))

    def time(self):
        return self.scheduler.now

    def _write_to_self(self):
        pass


class Echo(asyncio.BufferedProtocol):
    def __init__(self):
        self.buffer, self.events, self.echo = bytearray(100), [], True
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        self.transport = transport
        transport.set_write_buffer_limits(high=1000)

    def get_buffer(self, sizehint):
        return memoryview(self.buffer)

    def buffer_updated(self, size):
        if self.echo:
            self.transport.write(bytes(self.buffer[:size]))

    def eof_received(self):
        self.events.append("eof")
        self.transport.close()
        return True

    def pause_writing(self):
        self.events.append("pause")
        self.transport.pause_reading()

    def resume_writing(self):
        self.events.append("resume")
        self.transport.resume_reading()

    def connection_lost(self, error):
        self.ended.set_result(error)


@pytest.fixture
def loop_of():
    loops = []

    def made(pair):
        loops.append(Loop(pair.scheduler, pair.server_host.sockets))
        return loops[-1]

    yield made
    for loop in loops:
        loop.close()


async def echoing(loop, pair):
    """The broker's way to take a connection."""
    sock, address = await loop.sock_accept(pair.listening)
    assert address == pair.client.getsockname()
    transport, protocol = await loop.connect_accepted_socket(Echo, sock)
    assert transport.get_extra_info("sockname") == pair.address
    assert transport.get_extra_info("socket") is sock
    return protocol


@pytest.mark.parametrize("seed", range(10))
def test_a_protocol_on_a_simulated_loop_gets_and_sends_everything_with_back_pressure(loop_of, seed):
    pair = Pair(seed, Conditions(send_buffer=500, receive_buffer=700, fragments=0.3))
    loop = loop_of(pair)
    data = bytes(range(256)) * 40

    async def scene():
        pair.client = pair.begin()
        protocol = await echoing(loop, pair)
        back, sent = b"", 0
        while sent < 6000 or not back:
            await asyncio.sleep(0.01)
            if pair.client.events() & EVENT_WRITE:
                sent += pair.client.send(data[sent:6000])
            if sent > 2000 and pair.client.events() & EVENT_READ:
                back += pair.client.recv(50)
        pair.client.shutdown(socket.SHUT_WR)
        while True:
            await asyncio.sleep(0.01)
            if pair.client.events() & EVENT_READ:
                part = pair.client.recv(1000)
                back += part
                if not part:
                    break
        assert await protocol.ended is None
        assert back == data[:6000]
        assert protocol.events[0] == "pause"
        assert protocol.events[-1] == "eof"

    loop.run_until_complete(scene())


def test_a_protocol_is_told_of_a_reset_and_can_reset(loop_of):
    pair = Pair(1)
    loop = loop_of(pair)

    async def scene():
        pair.client = pair.begin()
        protocol = await echoing(loop, pair)
        cut(pair.network, pair.connection)
        assert isinstance(await protocol.ended, ConnectionResetError)
        pair.client = pair.begin()
        protocol = await echoing(loop, pair)
        transport = protocol.transport
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGERING)
        transport.write(b"x")
        transport.abort()
        assert transport.is_closing()
        assert await protocol.ended is None
        await asyncio.sleep(1)
        read_to_the_reset(pair.client)
        assert (await loop.getaddrinfo("localhost", 9))[0][4] == ("127.0.0.1", 9)

    loop.run_until_complete(scene())
