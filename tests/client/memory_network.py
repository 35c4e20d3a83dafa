"""A network in memory, with a clock of its own: the client's core runs over it without a socket, a thread or a wait.

What is to happen stands in one queue by time; running it takes the next event, sets the clock, and resumes whatever is
over by then. The same seed gives the same run. Behind the addresses answers a `FakeCluster` that was never started.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from tagwire import messages
from tagwire.client.aside import Aside
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.connection_settings import ConnectionState, ResolvedAddress
from tagwire.client.scheduling import NEVER, Result, Work
from tagwire.rpc import CLOSED, NEED_DATA, Connection, Gate, Request, api_name

from .fake_broker import Close, FakeCluster, Late, Silence

# Seconds that bytes take, and the most of them that arrive at once.
LATENCY = 0.001
MOST_AT_ONCE = 100

# More events than any test needs: what goes round in circles ends.
MOST_EVENTS = 100_000


class Pending:
    """A response that comes later: what a broker's end of a connection is given in its place. Requests behind it on the
    same connection wait, as they do at a broker."""

    def __init__(self) -> None:
        self._response: Any = None
        self._is_settled = False
        self._taker: Callable[[Any], None] | None = None

    def settle(self, response: Any) -> None:
        self._response, self._is_settled = response, True
        if self._taker is not None:
            self._taker(response)

    def then(self, taker: Callable[[Any], None]) -> None:
        self._taker = taker
        if self._is_settled:
            taker(self._response)


class MemoryDriver:
    """A `Driver`: its clock stands still until everything that is to happen now has happened."""

    def __init__(self, cluster: FakeCluster, seed: int = 1) -> None:
        self.random = Random(seed)
        self.trace: list[tuple[float, str]] = []
        self.addresses: dict[str, list[str]] = {}  # of hosts that have others than their name
        self.unreachable: set[str] = set()  # addresses that swallow what is sent to them
        self.unknown: set[str] = set()  # hosts that no name server knows
        self._cluster = cluster
        self._clock = 1000.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._peers: dict[BrokerConnection, _Peer] = {}
        for broker in cluster.brokers:
            broker.port = 9092 + broker.node

    def now(self) -> float:
        return self._clock

    def wall_clock(self) -> float:
        return 1_700_000_000 + self._clock

    def register(self, connection: BrokerConnection) -> None:
        connection.attach(self._changed, self._begin_aside)

    def run(self, work: Work[Result]) -> Result:
        """What a coroutine gives or raises, in no time."""
        try:
            while True:
                wait = work.send(None)
                while not wait.is_over(self._clock):
                    self._step(wait.until)
        except StopIteration as end:
            result: Result = end.value
            return result
        finally:
            work.close()

    def after(self, seconds: float, happens: Callable[[], None]) -> None:
        """Has something happen later."""
        heapq.heappush(self._events, (self._clock + seconds, next(self._numbers), happens))

    def drop(self, node: int) -> None:
        """Ends every connection to a broker, as one that goes down does."""
        for connection, peer in list(self._peers.items()):
            if peer.node == node and not connection.closed:
                self.after(0, lambda connection=connection: connection.lost("Connection reset by peer"))  # type: ignore[misc]

    def forget_ended(self) -> None:
        """Keeps nothing of connections that have ended, and of what was to happen to them."""
        self._peers = {connection: peer for connection, peer in self._peers.items() if not connection.closed}
        self._events.clear()

    def _begin_aside(self, connection: BrokerConnection, aside: Aside) -> None:
        aside.begin(lambda: self.after(0, lambda: connection.aside_done(aside)), None)

    def _step(self, until: float) -> None:
        """The next event, or the time that somebody waits for."""
        deadline = min((one.deadline for one in self._peers if not one.closed), default=NEVER)
        at = self._events[0][0] if self._events else NEVER
        self._clock = max(self._clock, min(at, deadline, until))
        assert self._clock != NEVER, "everybody waits, and nothing is to happen"
        assert next(self._numbers) < MOST_EVENTS
        if at <= self._clock:
            heapq.heappop(self._events)[2]()
        for connection in list(self._peers):
            connection.expire_setup()

    def _changed(self, connection: BrokerConnection) -> None:
        peer = self._peers.setdefault(connection, _Peer(self, self._cluster))
        if connection.attempt != peer.attempt or connection.closed:
            peer.attempt = connection.attempt
            self._begin(connection)
        elif not peer.is_writing:
            peer.is_writing = True
            self.after(0, lambda: self._write(connection, peer))

    def _begin(self, connection: BrokerConnection) -> None:
        attempt, self_name = connection.attempt, f"{connection.host}:{connection.port}"
        self.trace.append((self._clock, f"{connection.state.name} {self_name}"))

        def go_on(happens: Callable[[], None]) -> Callable[[], None]:
            return lambda: happens() if connection.attempt == attempt and not connection.closed else None

        if connection.state is ConnectionState.RESOLVING:
            if connection.host in self.unknown:
                self.after(LATENCY, go_on(lambda: connection.not_resolved("Name or service not known")))
            else:
                names = self.addresses.get(connection.host, [connection.host])
                found = [ResolvedAddress(0, (name, connection.port)) for name in names]
                self.after(LATENCY, go_on(lambda: connection.resolved(found)))
        elif connection.state is ConnectionState.CONNECTING and connection.address.address[0] not in self.unreachable:
            known = [broker.node for broker in self._cluster.brokers if broker.port == connection.port]
            if known:
                peer = self._peers[connection] = _Peer(self, self._cluster, known[0])
                peer.attempt = attempt
                self._cluster.brokers[known[0]].connections += 1
                self.after(LATENCY, go_on(connection.connected))
            else:
                self.after(LATENCY, go_on(lambda: connection.not_connected("Connection refused")))

    def _write(self, connection: BrokerConnection, peer: _Peer) -> None:
        """Some of what is to be written; the rest a little later."""
        data = connection.output()
        peer.is_writing = False
        if not data:
            return
        taken = self.random.randint(1, min(len(data), MOST_AT_ONCE))
        sent = bytes(data[:taken])
        connection.written(taken)
        if not peer.is_writing:
            peer.is_writing = True
            self.after(0, lambda: self._write(connection, peer))
        peer.arrives_at = max(peer.arrives_at, self._clock + LATENCY)
        self.after(peer.arrives_at - self._clock, lambda: peer.receive(connection, sent))


def _tells_anything(response: messages.FetchResponse) -> bool:
    partitions = [partition for topic in response.responses for partition in topic.partitions]
    return response.error_code != 0 or any(
        one.records or one.error_code or one.preferred_read_replica >= 0 or one.diverging_epoch.end_offset >= 0
        for one in partitions
    )


class _Peer:
    """A broker's end of a connection."""

    def __init__(self, driver: MemoryDriver, cluster: FakeCluster, node: int = -1) -> None:
        self.node = node
        self.attempt = -1
        self.is_writing = False
        self.arrives_at = 0.0
        self.responds_at = 0.0
        self._requests: deque[Request] = deque()
        self._is_busy = False
        self._driver = driver
        self._cluster = cluster
        self._protocol = Connection("broker", served=cluster.served)
        self.gate = None
        if cluster.sasl is not None:
            self.gate = Gate(
                cluster.sasl, max_session_s=cluster.max_session_s, clock=driver.now, wall=driver.wall_clock
            )

    def receive(self, connection: BrokerConnection, data: bytes) -> None:
        if connection.closed or self._driver._peers.get(connection) is not self:
            return
        self._protocol.receive(data)
        while (event := self._protocol.next_event()) not in (NEED_DATA, CLOSED):
            assert isinstance(event, Request)
            self._requests.append(event)
        self._go_on(connection)

    def _go_on(self, connection: BrokerConnection) -> None:
        """Responds to what came, up to what has to wait."""
        while self._requests and not self._is_busy:
            event = self._requests.popleft()
            response, delay = self._respond(event)
            if isinstance(response, Pending):
                self._is_busy = True
                response.then(lambda message, event=event: self._late(connection, event, message))  # type: ignore[misc]
                continue
            if response is None:
                self._driver.after(LATENCY, lambda: self._arrive(connection, b""))
                return
            if response:
                self.responds_at = max(self.responds_at, self._driver.now() + LATENCY + delay)  # in order
                wait = self.responds_at - self._driver.now()
                self._driver.after(wait, lambda data=response: self._arrive(connection, data))  # type: ignore[misc]

    def _late(self, connection: BrokerConnection, event: Request, message: Any) -> None:
        self._is_busy = False
        data = self._protocol.send_response(event, message)
        self._driver.after(LATENCY, lambda: self._arrive(connection, data))
        self._driver.after(LATENCY, lambda: self._go_on(connection))

    def _respond(self, event: Request) -> tuple[bytes | Pending | None, float]:
        """The bytes of the response, or that it comes later, None to end the connection; and how long they take."""
        cluster, api = self._cluster, api_name(event.api_key)
        message = event.decode()
        cluster.seen.append((self.node, api, event.version, message))
        action = cluster.next_action(api)
        if isinstance(message, messages.SaslHandshakeRequest | messages.SaslAuthenticateRequest) and action is None:
            assert self.gate is not None
            assert self.gate.admits(event.api_key)
            is_handshake = isinstance(message, messages.SaslHandshakeRequest)
            told = self.gate.handshake(message) if is_handshake else self.gate.authenticate(message)
            return self._protocol.send_response(event, told), 0.0
        if isinstance(action, Close) or not (self.gate is None or self.gate.admits(event.api_key)):
            return None, 0.0
        if isinstance(action, Silence):
            self._protocol.send_response(event, None)
            return b"", 0.0
        delay = action.seconds if isinstance(action, Late) else 0.0
        response = action(message) if callable(action) else cluster.respond(api, message, self.node)
        if isinstance(message, messages.FetchRequest) and not _tells_anything(response):
            delay += message.max_wait_ms / 1000  # as a broker does
        if isinstance(response, Pending):
            return response, delay
        return self._protocol.send_response(event, response), delay

    def _arrive(self, connection: BrokerConnection, data: bytes) -> None:
        """Bytes for the client, in pieces; none end the connection."""
        if connection.closed or self._driver._peers.get(connection) is not self:
            return
        if not data:
            connection.received(0)
            return
        while data and not connection.closed:
            space = connection.space()
            taken = min(len(space), len(data), self._driver.random.randint(1, MOST_AT_ONCE))
            space[:taken] = data[:taken]
            connection.received(taken)
            data = data[taken:]
