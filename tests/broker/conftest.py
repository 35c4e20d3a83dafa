"""Batches, a wire to a broker, and file operations that fail or forget, for the broker's tests."""

from __future__ import annotations

import signal
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from threading import Event
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from tagwire import messages
from tagwire.broker import Broker
from tagwire.broker.fault_injection import FaultyFiles
from tagwire.broker.storage import log_lock
from tagwire.broker.storage.batch import Batch
from tagwire.broker.storage.files import Files
from tagwire.records import Record, batch_headers, write
from tagwire.rpc import NEED_DATA, Connection

from ..limits import stretch
from .processes import Process


def make_batch(count: int = 1, timestamp: int = 1000, size: int = 20, compression: str = "none") -> Batch:
    """A batch of `count` records with timestamps counting up from `timestamp`, and values of `size` bytes."""
    records = [Record(b"k%d" % i, b"v" * size, timestamp=timestamp + i) for i in range(count)]
    data = write(records, compression=compression)
    header = next(batch_headers(data))
    return Batch(memoryview(data), header.last_offset_delta, header.max_timestamp)


@pytest.fixture(scope="session")
def batch() -> Callable[..., Batch]:
    return make_batch


@pytest.fixture
def failing_files() -> FaultyFiles:
    return FaultyFiles()


class ForgetfulFiles(Files):
    """Real files that can lose power: what was not synced is then cut off, zeroed or scrambled, or its name is gone."""

    def __init__(self) -> None:
        self._paths: dict[int, Path] = {}
        self._safe: dict[Path, int] = {}
        self._unsafe_names: set[Path] = set()

    def open(self, path: Path, *, write: bool = False) -> int:
        if write and not path.exists():
            self._unsafe_names.add(path)
            self._safe[path] = 0
        fd = super().open(path, write=write)
        self._paths[fd] = path
        self._safe.setdefault(path, self.size(path))
        return fd

    def sync(self, fd: int) -> None:
        super().sync(fd)
        path = self._paths[fd]
        self._safe[path] = self.size(path)

    def sync_directory(self, path: Path) -> None:
        super().sync_directory(path)
        self._unsafe_names = {name for name in self._unsafe_names if name.parent != path}

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        self._safe[target] = self._safe.pop(source)
        self._unsafe_names.discard(source)

    def remove(self, path: Path) -> None:
        super().remove(path)
        self._safe.pop(path, None)
        self._unsafe_names.discard(path)

    def lose_power(self, random: Random) -> None:
        """Close every file and let the unsynced part of the directory's files suffer."""
        for path, safe in list(self._safe.items()):
            if path in self._unsafe_names and random.random() < 0.5:
                path.unlink()
                continue
            data = bytearray(path.read_bytes())
            if len(data) <= safe:
                continue
            cut = random.randint(safe, len(data))
            fate = random.choice(["cut", "zero", "scramble"])
            if fate == "cut":
                del data[cut:]
            elif fate == "zero":
                data[cut:] = bytes(len(data) - cut)
            else:
                data[cut:] = random.randbytes(len(data) - cut)
            path.write_bytes(data)
        self._safe.clear()
        self._unsafe_names.clear()


@pytest.fixture(scope="session")
def forgetful_files() -> type[ForgetfulFiles]:
    return ForgetfulFiles


class Wire:
    """A client's connection, as low as it goes: any message in any version, any bytes."""

    def __init__(self, bootstrap: str, client_id: str = "test") -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=20 * stretch())
        self.rpc = Connection("client", client_id=client_id)

    def send(self, message: Any, version: int) -> None:
        self.socket.sendall(self.rpc.send(message, version))

    def receive(self) -> Any:
        """The next answer."""
        while (event := self.rpc.next_event()) is NEED_DATA:
            self.rpc.receive(self.socket.recv(65536))
        return getattr(event, "message", event)

    def ask(self, message: Any, version: int) -> Any:
        self.send(message, version)
        return self.receive()

    def is_closed(self) -> bool:
        """Whether the broker closes the connection without sending anything more."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def create(self, name: str, partitions: int = 1, **configs: str) -> Any:
        """Create a topic; its outcome. Configurations are given with _ for the dots."""
        request = messages.CreateTopicsRequest
        given = [
            request.CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ]
        topic = request.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=given)
        return self.ask(request(topics=[topic]), 7).topics[0]

    def produce(self, topic: str, records: bytes | None, partition: int = 0, acks: int = -1, version: int = 9) -> Any:
        """The outcome for the one partition; None with acks=0."""
        request = produce_request(topic, records, partition, acks)
        self.send(request, version)
        return None if acks == 0 else self.receive().responses[0].partition_responses[0]

    def fetch(self, topic: str | UUID, offset: int, partition: int = 0, version: int = 12, **options: int) -> Any:
        """The answer for the one partition; from version 13 `topic` is the topic's id."""
        return self.ask(fetch_request(topic, offset, partition, **options), version).responses[0].partitions[0]

    def offset_at(self, topic: str, timestamp: int, partition: int = 0, version: int = 7) -> Any:
        """What ListOffsets answers for the one partition."""
        request = messages.ListOffsetsRequest
        asked = request.ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        topics = [request.ListOffsetsTopic(name=topic, partitions=[asked])]
        return self.ask(request(replica_id=-1, topics=topics), version).topics[0].partitions[0]

    def metadata(self, *names: str, version: int = 12, create: bool = False) -> Any:
        request = messages.MetadataRequest
        topics = [request.MetadataRequestTopic(name=name) for name in names] or None
        # Before version 4 a client could not say that it wants none created.
        allow = create if version >= 4 else True
        return self.ask(request(topics=topics, allow_auto_topic_creation=allow), version)

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """Close it as a process that dies does: with a reset, and whatever was on its way."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()


def produce_request(topic: str, records: bytes | None, partition: int = 0, acks: int = -1) -> Any:
    request = messages.ProduceRequest
    data = request.PartitionProduceData(index=partition, records=records)
    topics = [request.TopicProduceData(name=topic, partition_data=[data])]
    return request(acks=acks, timeout_ms=1000, topic_data=topics)


def fetch_request(
    topic: str | UUID,
    offset: int,
    partition: int = 0,
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 2**31 - 1,
    partition_max_bytes: int = 1 << 20,
    **more: int,
) -> Any:
    request = messages.FetchRequest
    wanted = request.FetchPartition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=partition_max_bytes,
        current_leader_epoch=more.pop("current_leader_epoch", -1),
    )
    named = {"topic_id": topic} if isinstance(topic, UUID) else {"topic": topic}
    topics = [request.FetchTopic(partitions=[wanted], **named)]
    return request(max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=max_bytes, topics=topics, **more)


def records_of(*values: bytes | None, timestamp: int = 1000, compression: str = "none") -> bytes:
    """One batch, a record per value."""
    return write(
        [Record(None, value, timestamp=timestamp + i) for i, value in enumerate(values)], compression=compression
    )


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "data") as running:
        yield running


@pytest.fixture
def connect() -> Iterator[Callable[..., Wire]]:
    """Opens connections that are closed when the test ends."""
    opened: list[Wire] = []

    def open_one(bootstrap: str, **options: Any) -> Wire:
        opened.append(Wire(bootstrap, **options))
        return opened[-1]

    yield open_one
    for wire in opened:
        wire.close()


@pytest.fixture
def wire(broker: Broker, connect: Callable[..., Wire]) -> Wire:
    """A connection to `broker`."""
    return connect(broker.bootstrap)


@pytest.fixture
def hold_renames(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Broker], tuple[Event, Event]]]:
    """Holds what a broker's disk renames, from then on: when the first event is set, until the second is."""
    begun, go_on = Event(), Event()

    def hold(broker: Broker) -> tuple[Event, Event]:
        rename = broker.disk.rename

        def held(*paths: Path) -> None:
            begun.set()
            assert go_on.wait(30)
            rename(*paths)

        monkeypatch.setattr(broker.disk, "rename", held)
        return begun, go_on

    yield hold
    go_on.set()


@pytest.fixture(scope="session")
def make() -> SimpleNamespace:
    """Makers of requests and records."""
    return SimpleNamespace(produce=produce_request, fetch=fetch_request, records=records_of)


@pytest.fixture
def start() -> Iterator[Callable[..., Process]]:
    """Starts brokers as processes, on a directory and with an `fsync`."""
    running: list[Process] = []

    def start_one(*arguments: Any) -> Process:
        running.append(Process(*arguments))
        return running[-1]

    yield start_one
    for process in running:
        if process.is_running():
            process.end(signal.SIGKILL)


@pytest.fixture(autouse=True)
def _guarded_state_is_touched_with_its_lock_alone() -> Iterator[None]:
    """What is raised in a thread of the scheduler, or for a client, is only logged."""
    yield
    found, log_lock.unguarded[:] = list(log_lock.unguarded), []
    assert not found
