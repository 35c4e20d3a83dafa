"""The broker's own state as records of an internal topic: appended durably, and read back when the broker starts.

An internal topic has one partition: whoever commits at the same time shares one sync. It is created when it is first
written to, and no client may write to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from struct import Struct

from tagwire.broker.storage.batch import Batch, batch_of
from tagwire.broker.topic import Topic, to_go_on_without
from tagwire.broker.topics import Topics
from tagwire.codec.classes import MessageObject
from tagwire.errors import DecodeError, Error, KafkaError, StorageError
from tagwire.records import Record, RecordBatch, batch_headers, read, write

_INT16 = Struct(">h")
READ_BYTES = 1 << 20


class CoordinatorLog:
    """One internal topic.

    Args:
        topics: where it is among the others.
        name: its name.
    """

    def __init__(self, topics: Topics, name: str) -> None:
        self._topics = topics
        self.name = name

    def replay(self) -> Iterator[RecordBatch]:
        """Every batch that compaction left, oldest first.

        Raises:
            StorageError: the log cannot be read.
        """
        partition = self._topics.partition(self.name, 0)
        if partition is None:
            return
        offset = partition.log.start_offset
        while offset < partition.log.end_offset:
            before = offset
            try:
                for batch in read(partition.log.read(offset, READ_BYTES)):
                    yield batch
                    offset = batch.next_offset
            except DecodeError as error:
                raise self._unreadable(str(error)) from None
            if offset == before:
                raise self._unreadable(f"there is no whole batch at offset {offset}")

    def _unreadable(self, problem: str) -> StorageError:
        return StorageError(f"{self.name} cannot be read: {problem}; {to_go_on_without(self.name)}")

    async def append(self, records: Sequence[Record], *, decides: bool = False) -> None:
        """Add records in one batch; they are as safe as the broker's `fsync` promises when this returns.

        Args:
            decides: as of `Partition.append`.

        Raises:
            KafkaError: COORDINATOR_NOT_AVAILABLE: the disk refused, and nothing of them was stored.
        """
        if records:
            await self.append_batch(write(records), decides=decides)

    async def append_batch(
        self, data: bytes, check: Callable[[], None] = lambda: None, *, decides: bool = False
    ) -> None:
        """Add a batch that is already made; as `append`.

        Args:
            check: called in a thread when everything before the batch is stored: raises KafkaError, as this then does,
                if it may not be added any more.
            decides: as of `Partition.append`.
        """
        view = memoryview(data)
        batch = batch_of(next(batch_headers(view)), view, checked=False)

        def make() -> Batch:
            check()
            return batch

        try:
            topic = self._topics.get(self.name) or await self._created()
            await topic.partitions[0].append(make, decides=decides)
        except StorageError as error:
            raise self._unwritable(error) from error

    async def _created(self) -> Topic:
        try:
            return await self._topics.create_internal(self.name)
        except KafkaError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: Exception) -> KafkaError:
        return KafkaError(Error.COORDINATOR_NOT_AVAILABLE, f"{self.name} cannot be written: {error}")


def record_of(key: MessageObject, value: MessageObject, version: int, now_ms: int) -> Record:
    """A record of a coordinator: its key is the type of the key's message and the message, its value a version and the
    message in it."""
    data = _INT16.pack(version) + value.encode(version)
    record: Record = Record(_key_bytes(key), data, timestamp=now_ms)
    return record


def tombstone_of(key: MessageObject, now_ms: int) -> Record:
    """The record that deletes what has this key."""
    record: Record = Record(_key_bytes(key), None, timestamp=now_ms)
    return record


def _key_bytes(key: MessageObject) -> bytes:
    return _INT16.pack(key.api_key) + key.encode(0)
