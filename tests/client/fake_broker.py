"""Brokers that respond as a test tells them to, over real sockets on the loopback interface.

A `FakeCluster` keeps topics in memory and serves ApiVersions, Metadata, ListOffsets, Produce, Fetch, CreateTopics and
DeleteTopics from one or several addresses. `cluster.script("Fetch", action, ...)` says what happens to the next
requests of an API instead: each action is one of the classes below, or a function from the request to the response.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tagwire import messages, records
from tagwire.errors import Error, ProtocolError
from tagwire.records.compression import MAX_DECOMPRESSED
from tagwire.rpc import NEED_DATA, Connection, Gate, Request, ServerMechanism, UnsupportedApiVersions, api_name

from .fake_sessions import FakeSessions

SASL = {17: (0, 1), 36: (0, 2)}
SERVED = {0: (3, 12), 1: (4, 12), 2: (1, 7), 3: (0, 12), 18: (0, 5), 19: (2, 7), 20: (1, 6), 22: (0, 5)}


class Close:
    """Close the connection instead of responding."""


class Silence:
    """Never respond."""


@dataclass
class Raw:
    """Send these bytes instead of a response."""

    data: bytes


@dataclass
class Late:
    """Respond as usual, after some seconds."""

    seconds: float


@dataclass
class Piecemeal:
    """Respond as usual, a few bytes at a time."""

    step: int


@dataclass
class LostResponse:
    """Do what is requested, then close the connection instead of responding."""


class NoResponse:
    """Do what is requested, and send no response."""


class Stalled:
    """Read nothing more on the connection until the broker stops, as a process that hangs does; `begun` is set then."""

    def __init__(self) -> None:
        self.begun = threading.Event()


Action = Any


@dataclass
class FakePartition:
    leader: int
    start: int = 0
    end: int = 0
    batches: list[tuple[int, int, bytes]] = field(default_factory=list)  # base offset, next offset, bytes
    epoch: int = -1
    stable: int | None = None  # the last stable offset, where transactions are open
    aborted: list[tuple[int, int, int]] = field(default_factory=list)  # producer id, first offset, its marker's
    numbered: dict[tuple[int, int, int], int] = field(default_factory=dict)  # producer id, epoch, sequence: offset
    due: dict[tuple[int, int], int] = field(default_factory=dict)  # producer id, epoch: the sequence that comes next
    dialect: str | None = None

    def append(self, data: bytes) -> int:
        """Appends one batch, as a broker does; returns its base offset.

        Of one with a sequence number, that of the first time it came; -1 where another is due, -2 where its producer
        has written under a later epoch.
        """
        if self.dialect is not None:
            return self._append_messages(data)
        header = next(records.batch_headers(data))
        producer, sequence = (header.producer_id, header.producer_epoch), header.base_sequence
        if sequence >= 0:
            if (*producer, sequence) in self.numbered:
                return self.numbered[(*producer, sequence)]
            if any(known == producer[0] and epoch > producer[1] for known, epoch in self.due):
                return -2
            if sequence != self.due.get(producer, 0):
                return -1
            self.numbered[(*producer, sequence)] = self.end
            self.due[producer] = records.next_sequence(sequence, header.count)
        placed = bytearray(data)
        records.assign_offsets(placed, self.end, 0)
        return self.put(bytes(placed))

    def _append_messages(self, data: bytes) -> int:
        base = self.end
        for header in records.batch_headers(data, self.dialect, max_decompressed=MAX_DECOMPRESSED):
            entry = bytearray(header.bytes_in(memoryview(data)))
            records.assign_offsets(entry, self.end, 0, self.dialect, max_decompressed=MAX_DECOMPRESSED)
            self.put(bytes(entry))
        return base

    def put(self, data: bytes) -> int:
        """Keeps a batch at the offsets it says it has: for logs with gaps."""
        header = next(records.batch_headers(data, self.dialect, max_decompressed=MAX_DECOMPRESSED))
        self.batches.append((header.base_offset, header.next_offset, data))
        self.end = header.next_offset
        return header.base_offset

    @property
    def last_stable(self) -> int:
        return self.end if self.stable is None else self.stable

    def first_from(self, timestamp: int) -> int:
        """The offset of the first record not older than `timestamp`, -1 where there is none."""
        found = (
            record.offset
            for _, _, data in self.batches
            for batch in records.read(data)
            for record in batch.records()
            if record.timestamp >= timestamp
        )
        return next(found, -1)

    def read(self, offset: int, limit: int) -> bytes:
        """The batches from the one that holds `offset` on, at least one, cut off at `limit` bytes as a broker may."""
        found = b"".join(data for _, after, data in self.batches if after > offset)
        first = next((len(data) for _, after, data in self.batches if after > offset), 0)
        return found[: max(limit, first)]


class FakeCluster:
    """One or several brokers sharing topics. A context manager; `bootstrap` has every address.

    Args:
        tls: what connections are wrapped in.
        sasl: mechanisms of which a client must pass one.
        max_session_s: how long it may go on then without passing it again; 0 for ever.
    """

    def __init__(
        self,
        nodes: int = 1,
        *,
        served: dict[int, tuple[int, int]] | None = None,
        tls: ssl.SSLContext | None = None,
        sasl: Mapping[str, Callable[[], ServerMechanism]] | None = None,
    ) -> None:
        self.served = dict(SERVED if served is None else served)
        self.tls = tls
        self.sasl = sasl
        self.max_session_s = 0.0
        if sasl is not None:
            self.served.update(SASL)
        self.topics: dict[str, list[FakePartition]] = {}
        self.ids: dict[str, UUID] = {}
        self.sessions = FakeSessions()
        self.endpoints = False  # whether refusals tell who leads (KIP-951)
        self.controller = 0
        self.auto_create = False
        self.seen: list[tuple[int, str, int, Any]] = []  # node, API, version, message
        self.lock = threading.RLock()
        self._next_id = 1
        self._next_producer = 99
        self._served_too: dict[str, Callable[[Any], Any]] = {}
        self._scripts: dict[str, deque[Action]] = defaultdict(deque)
        self.brokers = [FakeBroker(self, node) for node in range(nodes)]

    def __enter__(self) -> FakeCluster:
        for broker in self.brokers:
            broker.start()
        return self

    def __exit__(self, *_: object) -> None:
        for broker in self.brokers:
            broker.stop()

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{broker.port}" for broker in self.brokers)

    def topic(self, name: str, partitions: int = 1) -> list[FakePartition]:
        """Makes a topic, its partitions led by the brokers in turn."""
        self.topics[name] = [FakePartition(leader=i % len(self.brokers)) for i in range(partitions)]
        self.ids[name] = UUID(int=self._next_id)
        self._next_id += 1
        return self.topics[name]

    def script(self, api: str, *actions: Action) -> None:
        self._scripts[api].extend(actions)

    def serve(self, ranges: dict[int, tuple[int, int]], responses: dict[str, Callable[[Any], Any]]) -> None:
        """Serves other APIs too: {API name: request -> response}."""
        self.served.update(ranges)
        self._served_too.update(responses)

    def next_action(self, api: str) -> Action:
        queue = self._scripts[api]
        return queue.popleft() if queue else None

    def requests(self, api: str) -> list[Any]:
        """The requests of one API that came in so far, in order."""
        with self.lock:
            return [message for _, name, _, message in self.seen if name == api]

    def requested_versions(self, api: str) -> list[int]:
        with self.lock:
            return [version for _, name, version, _ in self.seen if name == api]

    # Default responses -----------------------------------------------------------------------------------------------

    def respond(self, api: str, message: Any, node: int) -> Any:
        if api in self._served_too:
            with self.lock:
                return self._served_too[api](message)
        handler: Callable[[Any, int], Any] = getattr(self, f"_{api}")
        with self.lock:
            return handler(message, node)

    def _ApiVersions(self, message: Any, node: int) -> Any:  # noqa: N802
        kind = messages.ApiVersionsResponse
        entries = [
            kind.ApiVersion(api_key=api, min_version=low, max_version=high) for api, (low, high) in self.served.items()
        ]
        return kind(api_keys=entries)

    def _Metadata(self, message: Any, node: int) -> Any:  # noqa: N802
        kind = messages.MetadataResponse
        named = {topic_id: name for name, topic_id in self.ids.items()}
        requested = message.topics or []
        names = [topic.name if topic.name is not None else named.get(topic.topic_id) for topic in requested]
        unknown = [topic.topic_id for topic, name in zip(requested, names) if name is None]
        names = list(self.topics) if message.topics is None else [name for name in names if name is not None]
        for name in names:
            if name not in self.topics and self.auto_create and message.allow_auto_topic_creation:
                self.topic(name, 2)
        return kind(
            brokers=[
                kind.MetadataResponseBroker(node_id=broker.node, host="127.0.0.1", port=broker.port)
                for broker in self.brokers
            ],
            cluster_id="fake",
            controller_id=self.controller,
            topics=[self._described(kind, name) for name in names]
            + [
                kind.MetadataResponseTopic(name=None, topic_id=topic_id, error_code=Error.UNKNOWN_TOPIC_ID)
                for topic_id in unknown
            ],
        )

    def _described(self, kind: Any, name: str) -> Any:
        if name not in self.topics:
            return kind.MetadataResponseTopic(name=name, error_code=Error.UNKNOWN_TOPIC_OR_PARTITION)
        partitions = [
            kind.MetadataResponsePartition(
                partition_index=index, leader_id=partition.leader, leader_epoch=partition.epoch
            )
            for index, partition in enumerate(self.topics[name])
        ]
        return kind.MetadataResponseTopic(
            name=name, topic_id=self.ids[name], partitions=partitions, is_internal=name.startswith("__")
        )

    def _find(self, name: str, index: int, node: int) -> tuple[FakePartition | None, Error]:
        partitions = self.topics.get(name, [])
        if index >= len(partitions):
            return None, Error.UNKNOWN_TOPIC_OR_PARTITION
        if partitions[index].leader != node:
            return None, Error.NOT_LEADER_OR_FOLLOWER
        return partitions[index], Error.NONE

    def _ListOffsets(self, message: Any, node: int) -> Any:  # noqa: N802
        kind = messages.ListOffsetsResponse
        topics = []
        for topic in message.topics:
            found = []
            for requested in topic.partitions:
                partition, error = self._find(topic.name, requested.partition_index, node)
                error = error or _epoch_error(requested, partition)
                entry = kind.ListOffsetsPartitionResponse(partition_index=requested.partition_index, error_code=error)
                if partition is not None and not error:
                    end = partition.last_stable if message.isolation_level else partition.end
                    entry.offset = {-2: partition.start, -1: end}.get(requested.timestamp, -1)
                    if requested.timestamp >= 0:
                        entry.offset = partition.first_from(requested.timestamp)
                found.append(entry)
            topics.append(kind.ListOffsetsTopicResponse(name=topic.name, partitions=found))
        return kind(topics=topics)

    def _Produce(self, message: Any, node: int) -> Any:  # noqa: N802
        kind = messages.ProduceResponse
        topics = []
        names = {topic_id: name for name, topic_id in self.ids.items()}
        for topic in message.topic_data:
            found = []
            for data in topic.partition_data:
                partition, error = self._find(names.get(topic.topic_id, topic.name), data.index, node)
                base = partition.append(bytes(data.records)) if partition is not None else -1
                if base < 0 and error is Error.NONE:
                    error = Error.INVALID_PRODUCER_EPOCH if base == -2 else Error.OUT_OF_ORDER_SEQUENCE_NUMBER
                entry = kind.PartitionProduceResponse(index=data.index, error_code=error, base_offset=base)
                if error is Error.NOT_LEADER_OR_FOLLOWER and self.endpoints:
                    entry.current_leader.leader_id = self.topics[topic.name][data.index].leader
                    entry.current_leader.leader_epoch = self.topics[topic.name][data.index].epoch
                found.append(entry)
            topics.append(
                kind.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=found)
            )
        return None if message.acks == 0 else kind(responses=topics)

    def _InitProducerId(self, message: Any, node: int) -> Any:  # noqa: N802
        self._next_producer += 1
        return messages.InitProducerIdResponse(producer_id=self._next_producer, producer_epoch=0)

    def _Fetch(self, message: Any, node: int) -> Any:  # noqa: N802
        kind = messages.FetchResponse
        error, session, wanted = self.sessions.take(message)
        if error:
            return kind(error_code=error)
        names = {topic_id: name for name, topic_id in self.ids.items()}
        topics: dict[tuple[str, UUID], list[Any]] = {}
        left, moved = message.max_bytes, set()
        for (topic, topic_id, _), requested in wanted.items():
            name = names.get(topic_id, topic)
            entry = self._fetched(kind, name, requested, node, left, committed=message.isolation_level == 1)
            if not name:
                entry.error_code = Error.UNKNOWN_TOPIC_ID
            left -= len(entry.records or b"")
            if self.endpoints and entry.error_code == Error.NOT_LEADER_OR_FOLLOWER:
                partition = self.topics[name][requested.partition]
                entry.current_leader = kind.LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.epoch)
                moved.add(partition.leader)
            topics.setdefault((topic, topic_id), []).append(entry)
        return kind(
            session_id=session,
            responses=[
                kind.FetchableTopicResponse(topic=topic, topic_id=topic_id, partitions=told)
                for (topic, topic_id), entries in topics.items()
                if (told := self.sessions.news(session, topic, topic_id, entries))
            ],
            node_endpoints=[
                kind.NodeEndpoint(node_id=leader, host="127.0.0.1", port=self.brokers[leader].port)
                for leader in sorted(moved)
            ],
        )

    def _fetched(self, kind: Any, name: str, requested: Any, node: int, left: int, *, committed: bool) -> Any:
        partition, error = self._find(name, requested.partition, node)
        entry = kind.PartitionData(partition_index=requested.partition, error_code=error, high_watermark=-1)
        if partition is None:
            return entry
        entry.error_code = _epoch_error(requested, partition)
        if entry.error_code:
            return entry
        entry.high_watermark, entry.last_stable_offset = partition.end, partition.last_stable
        if not partition.start <= requested.fetch_offset <= partition.end:
            entry.error_code = Error.OFFSET_OUT_OF_RANGE
        elif left > 0:
            entry.records = partition.read(requested.fetch_offset, min(left, requested.partition_max_bytes))
            if committed:
                entry.aborted_transactions = [
                    kind.AbortedTransaction(producer_id=producer, first_offset=first)
                    for producer, first, marker in partition.aborted
                    if marker >= requested.fetch_offset
                ]
        return entry

    def _CreateTopics(self, message: Any, node: int) -> Any:  # noqa: N802
        kind = messages.CreateTopicsResponse
        results = []
        for topic in message.topics:
            error = Error.NONE
            if node != self.controller:
                error = Error.NOT_CONTROLLER
            elif topic.name in self.topics:
                error = Error.TOPIC_ALREADY_EXISTS
            elif not message.validate_only:
                self.topic(topic.name, topic.num_partitions)
            results.append(kind.CreatableTopicResult(name=topic.name, error_code=error, error_message=None))
        return kind(topics=results)

    def _DeleteTopics(self, message: Any, node: int) -> Any:  # noqa: N802
        kind = messages.DeleteTopicsResponse
        names = [topic.name for topic in message.topics] or message.topic_names
        results = []
        for name in names:
            known = self.topics.pop(name, None) is not None
            error = Error.NONE if known else Error.UNKNOWN_TOPIC_OR_PARTITION
            results.append(kind.DeletableTopicResult(name=name, error_code=error))
        return kind(responses=results)


class FakeBroker:
    """One address. Every connection has a thread of its own, which ends with it."""

    def __init__(self, cluster: FakeCluster, node: int) -> None:
        self.cluster = cluster
        self.node = node
        self.port = 0
        self.connections = 0
        self._listener: socket.socket | None = None
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._stopped = threading.Event()

    def start(self) -> None:
        """Listens, at the port it had before if it had one."""
        self._stopped.clear()
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        self._run(self._accept, self._listener)

    def stop(self) -> None:
        """Stops listening and drops every connection."""
        if self._listener is not None:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        self.drop()
        for thread in self._threads:
            thread.join(timeout=10)

    def drop(self) -> None:
        """Ends every connection, as a broker that goes down does."""
        self._stopped.set()
        for sock in self._sockets:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def _run(self, target: Callable[[socket.socket], None], sock: socket.socket) -> None:
        thread = threading.Thread(target=target, args=(sock,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            self.connections += 1
            self._sockets.append(sock)
            self._run(self._serve, sock)

    def _serve(self, sock: socket.socket) -> None:
        connection = Connection("broker", served=self.cluster.served)
        sasl, longest = self.cluster.sasl, self.cluster.max_session_s
        gate = None if sasl is None else Gate(sasl, max_session_s=longest)
        try:
            if self.cluster.tls is not None:
                sock = self.cluster.tls.wrap_socket(sock, server_side=True)
                self._sockets.append(sock)
            with sock:
                while True:
                    while (event := connection.next_event()) is NEED_DATA:
                        connection.receive(sock.recv(65536))
                    if isinstance(event, Request) and gate is not None and not gate.admits(event.api_key):
                        return
                    if isinstance(event, Request) and gate is not None and event.api_key in (17, 36):
                        if not self._admit(sock, connection, gate, event):
                            return
                        continue
                    if not isinstance(event, Request | UnsupportedApiVersions) or not self._reply(
                        sock, connection, event
                    ):
                        return
        except (OSError, ProtocolError):
            return

    def _admit(self, sock: socket.socket, connection: Connection, gate: Gate, event: Request) -> bool:
        """One step of SASL. False ends the connection: refused."""
        step = gate.handshake if event.api_key == 17 else gate.authenticate
        with self.cluster.lock:
            self.cluster.seen.append((self.node, api_name(event.api_key), event.version, None))
        sock.sendall(connection.send_response(event, step(event.decode())))
        return not gate.failed

    def _reply(self, sock: socket.socket, connection: Connection, event: Request | UnsupportedApiVersions) -> bool:
        """Does what the script or the default says. False ends the connection."""
        cluster, api = self.cluster, api_name(event.api_key)
        message = event.decode() if isinstance(event, Request) else None
        with cluster.lock:
            cluster.seen.append((self.node, api, event.version, message))
            action = cluster.next_action(api)
        if isinstance(action, Close):
            return False
        if isinstance(action, Stalled):
            action.begun.set()
            self._stopped.wait()
            return False
        if isinstance(action, Silence | Raw):
            connection.send_response(event, None)
            sock.sendall(action.data if isinstance(action, Raw) else b"")
            return True
        if isinstance(action, Late):
            time.sleep(action.seconds)
        response: Any
        if isinstance(event, UnsupportedApiVersions):
            response = self._refusal()
        elif callable(action):
            response = action(message)
        else:
            response = cluster.respond(api, message, self.node)
        if isinstance(action, LostResponse):
            return False
        if isinstance(action, NoResponse):
            connection.send_response(event, None)
            return True
        data = connection.send_response(event, response)
        step = action.step if isinstance(action, Piecemeal) else max(len(data), 1)
        for at in range(0, len(data), step):
            sock.sendall(data[at : at + step])
        return True

    def _refusal(self) -> Any:
        low, high = self.cluster.served[18]
        entry = messages.ApiVersionsResponse.ApiVersion(api_key=18, min_version=low, max_version=high)
        return messages.ApiVersionsResponse(error_code=Error.UNSUPPORTED_VERSION, api_keys=[entry])


def _epoch_error(requested: Any, partition: FakePartition | None) -> Error:
    """What the leader says to who knows of another leader epoch."""
    if partition is None or requested.current_leader_epoch in (-1, partition.epoch):
        return Error.NONE
    is_older = requested.current_leader_epoch < partition.epoch
    return Error.FENCED_LEADER_EPOCH if is_older else Error.UNKNOWN_LEADER_EPOCH
