"""A simulated network: processes on it, connections between them, and what can befall these.

All processes share one machine's loopback, so that ports are unique in the world; each has an address of its own as
well, and its name is a host's name. Whoever cuts or slows says between whom: a process, or the address of a listener,
since one process can serve several nodes of a cluster.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple, Protocol

from .flow import Flow
from .socket_module import SocketModule
from .sockets import CONNECT_RETRIES, FIRST_CONNECT_RETRY_S, Address, Party, SimulatedSocket, StreamSocket, os_error

LOOPBACK: Final = "127.0.0.1"
ANYWHERE: Final = "0.0.0.0"
FIRST_FREE_PORT: Final = 32768


class Timer(Protocol):
    """Something that happens later, unless it is taken back."""

    def cancel(self) -> None: ...


class Scheduler(Protocol):
    """Who has the world's time: `now` in seconds, and what happens later."""

    random: Random

    @property
    def now(self) -> float: ...

    def after(self, seconds: float, act: Callable[[], None]) -> Timer: ...


LATE_S: Final = 0.5
"""Longer than this no spike goes untold."""


class Late(NamedTuple):
    """A segment that took much longer than others, though nothing was wrong: hosts, when it left and when it came."""

    sender: str
    receiver: str
    began: float
    ended: float


@dataclass(frozen=True)
class Conditions:
    """What the network is like where nothing is wrong with it.

    Attributes:
        latency_s, jitter_s: what every segment takes, and what it takes more at most.
        spikes, spike_s: how often one takes much longer, and how long at most.
        bandwidth: bytes in a second, of one connection in one direction.
        send_buffer, receive_buffer: bytes, of each socket.
        fragments: how often a send, a segment or a read is of a part only.
    """

    latency_s: float = 0.0002
    jitter_s: float = 0.0
    spikes: float = 0.0
    spike_s: float = 0.0
    bandwidth: float = 1e9
    send_buffer: int = 256 << 10
    receive_buffer: int = 256 << 10
    fragments: float = 0.0

    @classmethod
    def drawn(cls, random: Random) -> Conditions:
        """Of a machine, a data centre or a continent; mostly quiet, sometimes narrow."""
        latency_s = random.choice([0.00005, 0.0005, 0.005, 0.05])
        return cls(
            latency_s,
            latency_s * random.choice([0.1, 1.0, 5.0]),
            random.choice([0.0, 0.001, 0.02]),
            random.choice([0.05, 0.5, 3.0]),
            random.choice([1e6, 1e7, 1e9]),
            random.choice([4 << 10, 64 << 10, 256 << 10]),
            random.choice([4 << 10, 64 << 10, 256 << 10]),
            random.choice([0.0, 0.05, 0.5]),
        )


class Host:
    """What a process has of the network.

    Attributes:
        name, address: unique; a name resolves to its address.
        is_on: whether its machine has power.
        sockets: what stands there for the module `socket`.
    """

    def __init__(self, network: Network, name: str, address: str) -> None:
        self.network = network
        self.name = name
        self.address = address
        self.is_on = True
        self.open: dict[SimulatedSocket, None] = {}
        self.sockets = SocketModule(lambda: self)

    def __repr__(self) -> str:
        return self.name

    def opened(self, sock: SimulatedSocket) -> None:
        if not self.is_on:
            raise os_error(errno.ENETDOWN)
        self.open[sock] = None

    def closed(self, sock: SimulatedSocket) -> None:
        self.open.pop(sock, None)


Place = Host | Address


@dataclass(eq=False)
class Connection:
    """A connection, while at least one of its ends is open."""

    number: int
    client: StreamSocket
    server: StreamSocket

    def __str__(self) -> str:
        return f"connection {self.number} ({self.client.host.name} to {self.server.host.name} {self.listener[1]})"

    @property
    def listener(self) -> Address:
        """Where it was connected to."""
        assert self.client.remote is not None
        return self.client.remote


class Fault:
    """Something wrong with the network, until `heal`."""

    def __init__(self, network: Network, told: str) -> None:
        self._network = network
        self._told = told

    def __str__(self) -> str:
        return self._told

    def heal(self) -> None:
        """Have it as it was. Does nothing when it was healed already."""
        if self in self._network.faults:
            del self._network.faults[self]
            self._network.tell(f"healed: {self._told}")

    def stops(self, sender: Party, receiver: Party) -> bool:
        """Whether what is sent so is lost."""
        return False

    def delay_s(self, sender: Party, receiver: Party, size: int) -> float:
        """What it takes more."""
        return 0.0

    def refuses(self, server: Party) -> bool:
        """Whether it lets no connection in."""
        return False


class Network:
    """All of it.

    Args:
        scheduler: the world's time and chance.
        conditions: what it is like; None draws that.

    Attributes:
        faults: what is wrong with it.
        late: what was under way for `LATE_S` longer than others, though nothing was wrong.
        trace: told what happens, in words; None where nobody listens.
        tap: given what a socket of a connection sends.
    """

    def __init__(self, scheduler: Scheduler, conditions: Conditions | None = None) -> None:
        self.scheduler = scheduler
        self.random = scheduler.random
        self.conditions = conditions or Conditions.drawn(scheduler.random)
        self.faults: dict[Fault, None] = {}
        self.late: list[Late] = []
        self.trace: Callable[[str], None] | None = None
        self.tap: Callable[[StreamSocket, bytes], None] | None = None
        self._bytes = hashlib.sha256()
        self.hosts: dict[str, Host] = {}
        self._listening: dict[Address, StreamSocket] = {}
        self._bound: dict[Address, StreamSocket] = {}
        self._owners: dict[Address, Host] = {}  # who listened there last, whether it still does or not
        self._connections: dict[Connection, None] = {}
        self._numbers = 100
        self._connection_numbers = 0
        self._next_port = FIRST_FREE_PORT

    def tell(self, words: str) -> None:
        if self.trace is not None:
            self.trace(words)

    def bytes_sent(self, sender: StreamSocket, data: bytes) -> None:
        """What a socket of a connection sends."""
        self._bytes.update(f"{sender.host.name} {len(data)} ".encode())
        self._bytes.update(data)
        if self.tap is not None:
            self.tap(sender, data)

    def digest(self) -> str:
        """Of all bytes that were sent, by whom, and in which parts."""
        return self._bytes.hexdigest()

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    # Processes -----------------------------------------------------------------------------------------------------

    def host(self, name: str) -> Host:
        """A process of this name, which it keeps over restarts."""
        if name not in self.hosts:
            number = len(self.hosts) + 1
            self.hosts[name] = Host(self, name, f"10.0.{number >> 8}.{number & 255}")
        return self.hosts[name]

    def kill(self, host: Host) -> None:
        """The process is killed: the system closes its sockets, as after kill -9."""
        self.tell(f"{host.name} is killed")
        for sock in list(host.open):
            if isinstance(sock, StreamSocket):
                sock.killed()
            else:
                sock.close()

    def power_off(self, host: Host) -> None:
        """Its machine is gone without a word: nobody is told, and nothing it had sent and not delivered arrives."""
        self.tell(f"{host.name} vanishes")
        host.is_on = False
        for connection in list(self._connections):
            for end in (connection.client, connection.server):
                if end.host is host:
                    end.vanished()
        for sock in list(host.open):
            if isinstance(sock, StreamSocket):
                sock.vanished()
            else:
                sock.close()

    def power_on(self, host: Host) -> None:
        """The machine is there again, and knows none of its connections."""
        host.is_on = True

    # Names and addresses -------------------------------------------------------------------------------------------

    def address_of(self, name: str) -> str | None:
        """What a name resolves to; None where there is none."""
        if name in ("localhost", ""):
            return LOOPBACK
        return self.hosts[name].address if name in self.hosts else None

    def bind(self, sock: StreamSocket, address: Address) -> Address:
        host, port = address[:2]
        host = ANYWHERE if host == "" else self.address_of(host) or host
        if host not in (LOOPBACK, ANYWHERE, sock.host.address):
            raise os_error(errno.EADDRNOTAVAIL)
        wanted = host, port or self._free_port()
        if wanted in self._bound:
            raise os_error(errno.EADDRINUSE)
        self._bound[wanted] = sock
        return wanted

    def unbind(self, sock: StreamSocket) -> None:
        if sock.local is not None:
            if self._bound.get(sock.local) is sock:
                del self._bound[sock.local]
            if self._listening.get(sock.local) is sock:
                del self._listening[sock.local]

    def listens(self, sock: StreamSocket) -> None:
        assert sock.local is not None
        self._listening[sock.local] = sock
        self._owners[sock.local] = sock.host
        self.tell(f"{sock.host.name} listens on {sock.local[1]}")

    def listeners(self) -> list[Address]:
        """Where somebody listens."""
        return list(self._listening)

    def _free_port(self) -> int:
        while True:
            self._next_port += 1
            if all(port != self._next_port for _, port in self._bound):
                return self._next_port

    def _owner(self, address: Address) -> Host | None:
        """Whose machine has an address."""
        for known in (address, (ANYWHERE, address[1])):
            if (owner := self._owners.get(known)) is not None and address[0] in (LOOPBACK, owner.address):
                return owner
        return next((host for host in self.hosts.values() if host.address == address[0]), None)

    def _listener(self, party: Party) -> StreamSocket | None:
        assert party.serves is not None
        found = self._listening.get(party.serves) or self._listening.get((ANYWHERE, party.serves[1]))
        return found if found is not None and found.host is party.host else None

    # Connections ---------------------------------------------------------------------------------------------------

    def connections(self) -> list[Connection]:
        """Those of which an end is open."""
        return list(self._connections)

    def connects(self, client: StreamSocket, address: Address) -> None:
        """`client` begins to connect."""
        client.local = client.local or (
            LOOPBACK if address[0] == LOOPBACK else client.host.address,
            self._free_port(),
        )
        client.remote = address[0], address[1]
        owner = self._owner(client.remote) or (client.host if address[0] == LOOPBACK else None)
        self._greet(client, None if owner is None else Party(owner, client.remote), 0)

    def _greet(self, client: StreamSocket, server: Party | None, tries: int) -> None:
        """Sends what begins a connection, and again while nobody answers."""
        if not client.is_connecting:
            return
        if tries > CONNECT_RETRIES:
            client.broken(errno.ETIMEDOUT)
            return
        if server is not None:
            self._carry(client.party, server, lambda: self._greeted(client, server))
        wait = FIRST_CONNECT_RETRY_S * 2**tries
        self.scheduler.after(wait, lambda: self._greet(client, server, tries + 1))

    def _carry(self, sender: Party, receiver: Party, act: Callable[[], None]) -> None:
        """One segment of a connection that is being made; it may be lost."""
        if self.passes(sender, receiver):
            takes = self.transit_s(sender, receiver, 0)
            self.scheduler.after(takes, lambda: act() if self.passes(sender, receiver) else None)

    def _greeted(self, client: StreamSocket, party: Party) -> None:
        if client.peer is None:
            listener = self._listener(party)
            if listener is None or any(fault.refuses(party) for fault in self.faults):
                self._carry(party, client.party, lambda: self._refused(client))
                return
            if not listener.has_room or client.is_gone:
                return
            listener.greeted(self._join(client, party))
        self._carry(party, client.party, client.connected)

    @staticmethod
    def _refused(client: StreamSocket) -> None:
        if client.is_connecting:
            client.broken(errno.ECONNREFUSED)

    def _join(self, client: StreamSocket, party: Party) -> StreamSocket:
        server = StreamSocket(party.host)
        server.local, server.remote, server.party = client.remote, client.local, party
        server.peer, client.peer = client, server
        there, back = Flow(self, client, server), Flow(self, server, client)
        client.joined(there, back)
        server.joined(back, there)
        self._connection_numbers += 1
        connection = Connection(self._connection_numbers, client, server)
        client.connection = server.connection = connection
        self._connections[connection] = None
        return server

    def ended(self, end: StreamSocket) -> None:
        """An end was closed, or broken."""
        connection = end.connection
        if connection is not None and connection.client.is_gone and connection.server.is_gone:
            self._connections.pop(connection, None)

    # What befalls a segment ----------------------------------------------------------------------------------------

    def passes(self, sender: Party, receiver: Party) -> bool:
        """Whether a segment that is sent or arrives now is not lost."""
        if not (sender.host.is_on and receiver.host.is_on):
            return False
        return not any(fault.stops(sender, receiver) for fault in self.faults)

    def transit_s(self, sender: Party, receiver: Party, size: int) -> float:
        """How long a segment of `size` bytes takes."""
        conditions, random = self.conditions, self.random
        takes = conditions.latency_s + conditions.jitter_s * random.random() + size / conditions.bandwidth
        if conditions.spikes and random.random() < conditions.spikes:
            spike_s = conditions.spike_s * random.random()
            takes += spike_s
            if spike_s >= LATE_S:
                now = self.scheduler.now
                self.late.append(Late(sender.host.name, receiver.host.name, now, now + takes))
        late = 0.0
        for fault in self.faults:  # sum() adds floats in another way from Python 3.12 on
            late += fault.delay_s(sender, receiver, size)
        return takes + late
