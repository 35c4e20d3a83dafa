"""The client's core holds no sockets, threads or clocks: it is given bytes and times, and gives bytes and deadlines."""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator
from contextlib import nullcontext
from pathlib import Path

import pytest

import tagwire.client
from tagwire.client.config import ProduceSettings
from tagwire.client.metadata import PartitionMetadata, TopicMetadata
from tagwire.client.producing.delivery import Delivery
from tagwire.client.producing.partitioner import TopicPartitioner
from tagwire.client.producing.record_accumulator import PATIENCE, Claim, RecordAccumulator
from tagwire.client.scheduling import completed
from tagwire.errors import RequestTimeoutError
from tagwire.records import Record

OUTSIDE = {"asyncio", "concurrent", "select", "selectors", "socket", "threading", "time"}

# the drivers, what callers' threads and tasks wait in, and where tokens are had while nobody waits
FACES = {
    "aio/asyncio_driver.py",
    "aio/consumer.py",
    "aio/core_task.py",
    "aio/loop_completion.py",
    "aio/loop_line.py",
    "aio/producer.py",
    "aio/reader.py",
    "aside.py",
    "blocking_driver.py",
    "consuming/consumer.py",
    "core_thread.py",
    "oauth_endpoint.py",
    "oauth_login.py",
    "producing/blocking_completion.py",
    "producing/delivery.py",
    "producing/producer.py",
    "socket_driver.py",
}


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found.add(node.module.split(".")[0])
    return found


def test_only_what_waits_for_others_knows_of_sockets_threads_and_clocks() -> None:
    (room,) = map(Path, tagwire.client.__path__)
    knowing = {str(path.relative_to(room)) for path in room.rglob("*.py") if imported(path) & OUTSIDE}
    assert knowing == FACES


class NobodyWaits:
    """The completion of batches where there is one thread."""

    lock = nullcontext()

    def held(self) -> nullcontext[None]:
        return self.lock

    def news(self) -> NobodyWaits:
        return self

    def notify_all(self) -> None:
        return

    def require_waitable(self) -> None:
        return

    async def wait(self, until: float) -> None:
        raise AssertionError("nothing waits here")


class Resumed:
    """Awaited until whoever runs the coroutine goes on with it."""

    def __await__(self) -> Generator[None]:
        yield


class Waits(NobodyWaits):
    """The same, in which a coroutine waits until it is resumed."""

    notified = 0
    until = 0.0

    def notify_all(self) -> None:
        self.notified += 1

    async def wait(self, until: float) -> None:
        self.until = until
        await Resumed()


def test_the_accumulator_goes_by_the_time_it_is_given_and_never_waits() -> None:
    now = 1000.0
    woken: list[float] = []
    settings = ProduceSettings(linger=5.0, buffer_memory=100, batch_bytes=60)
    accumulator = RecordAccumulator(settings, NobodyWaits(), lambda: now, lambda: woken.append(now), Delivery)
    topic = TopicMetadata("t", partitions={0: PartitionMetadata(0, 1)})
    partitioner = TopicPartitioner(topic, "none", settings.batch_bytes)

    first = accumulator.append(partitioner, Record(None, b"v"), 40, None)
    assert first is not None
    assert (accumulator.ready_at(), list(accumulator.drain(now))) == (1005.0, [])
    now += 5
    (batch,) = accumulator.drain(now)
    assert (batch.count, batch.created, accumulator.ready_at()) == (1, 1000.0, float("inf"))
    accumulator.append(partitioner, Record(None, b"w"), 60, None)
    assert accumulator.ready_at() == 0.0  # it is full
    assert accumulator.append(partitioner, Record(None, b"x"), 1, None) is None
    with pytest.raises(RequestTimeoutError, match="buffer_memory allows 100"):
        completed(accumulator.room(1, now))
    accumulator.complete([(batch, 7, None)])
    assert first.result(0).offset == 7
    accumulator.append(partitioner, Record(None, b"x"), 40, None)
    assert woken == [1000.0, 1005.0, 1005.0]  # a batch was begun; another was, and was full


def of_two_batches(completion: Waits, now: Callable[[], float]) -> tuple[RecordAccumulator[Delivery], TopicPartitioner]:
    """An accumulator that has room for a hundred bytes, and what it is given records by."""
    settings = ProduceSettings(linger=5.0, buffer_memory=100, batch_bytes=50)
    accumulator = RecordAccumulator(settings, completion, now, lambda: None, Delivery)
    return accumulator, TopicPartitioner(TopicMetadata("t", partitions={0: PartitionMetadata(0, 1)}), "none", 50)


@pytest.mark.parametrize("waited", [0.0, PATIENCE / 2])
def test_nothing_is_held_for_who_has_just_begun_to_wait(waited: float) -> None:
    completion, now = Waits(), 0.0
    accumulator, partitioner = of_two_batches(completion, lambda: now)
    for _ in range(2):
        accumulator.append(partitioner, Record(None, b"v"), 50, None)
    batches = list(accumulator.drain(now))
    claim = accumulator.claim(80, until=60.0)
    room = accumulator.room(80, 60.0, claim)
    room.send(None)
    assert completion.until == PATIENCE
    now = waited
    accumulator.complete([(batches[0], 0, None)])
    room.send(None)
    assert accumulator.append(partitioner, Record(None, b"v"), 50, None) is not None
    room.close()


def test_what_becomes_free_is_held_for_who_has_waited_longest_for_room() -> None:
    completion, now = Waits(), 0.0
    accumulator, partitioner = of_two_batches(completion, lambda: now)

    def append(size: int, claim: Claim | None = None) -> bool:
        return accumulator.append(partitioner, Record(None, b"v"), size, None, None, claim) is not None

    assert append(50)
    assert append(50)
    batches = list(accumulator.drain(0.0))
    claims = [accumulator.claim(size, until=60.0) for size in (80, 10)]
    rooms = [accumulator.room(claim.bytes, 60.0, claim) for claim in claims]
    for room in rooms:
        room.send(None)
    now = PATIENCE
    for room in rooms:
        room.send(None)  # by now it stands in line
    accumulator.complete([(batches[0], 0, None)])
    assert not append(10)  # small ones came later
    assert not append(10, claims[1])
    late = accumulator.claim(10, until=now)
    assert append(10, late)  # who may not wait takes what there is
    accumulator.complete([(batches[1], 1, None)])
    with pytest.raises(StopIteration):
        rooms[0].send(None)
    assert append(80, claims[0])
    accumulator.release(claims[0])
    assert not append(10)
    with pytest.raises(StopIteration):
        rooms[1].send(None)
    assert append(10, claims[1])
    accumulator.release(claims[1])
    assert not append(10)


def test_who_gives_up_waiting_for_room_leaves_what_was_held_to_the_next() -> None:
    completion, now = Waits(), 0.0
    accumulator, partitioner = of_two_batches(completion, lambda: now)
    for _ in range(2):
        accumulator.append(partitioner, Record(None, b"v"), 50, None)
    batches = list(accumulator.drain(0.0))
    first, second = (accumulator.claim(size, until=60.0) for size in (200, 50))
    assert first.bytes == 100  # more than all the room: it waits until nothing is there beside it
    rooms = [accumulator.room(claim.bytes, 60.0, claim) for claim in (first, second)]
    for room in rooms:
        room.send(None)
    now = PATIENCE
    for room in rooms:
        room.send(None)  # by now it stands in line
    accumulator.complete([(batches[0], 0, None)])
    assert (first.held, second.held) == (50, 0)
    completion.notified = 0
    rooms[0].close()
    accumulator.release(first)
    assert (second.held, completion.notified) == (50, 1)
    with pytest.raises(StopIteration):
        rooms[1].send(None)
    accumulator.release(second)
    accumulator.release(second)  # as often as one likes
    assert accumulator.has_room(50)


# what people use, and what runs it: no rule of the protocol stands there
THIN = [
    "aio",
    "client.py",
    "reader.py",
    "owning.py",
    "admin/admin.py",
    "producing/producer.py",
    "consuming/consumer.py",
]
DRIVERS = ["blocking_driver.py", "blocking_network_client.py", "core_thread.py", "socket_driver.py"]


def test_no_face_imports_the_messages_of_the_protocol_but_through_the_core() -> None:
    (room,) = map(Path, tagwire.client.__path__)
    files = [
        file for name in THIN + DRIVERS for file in ((room / name).rglob("*.py") if name == "aio" else [room / name])
    ]
    assert len(files) > 15
    named = [
        (file.name, node.lineno)
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if (isinstance(node, ast.Import) and any("tagwire.messages" in name.name for name in node.names))
        or (
            isinstance(node, ast.ImportFrom)
            and ("messages" in (node.module or "") or any(name.name == "messages" for name in node.names))
        )
        or (isinstance(node, ast.Attribute) and node.attr == "api_key")
    ]
    assert named == []
