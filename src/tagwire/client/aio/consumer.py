"""Consuming topics as a member of a group, for the tasks of an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack

from tagwire.client import arguments
from tagwire.client.admin.group_offsets import OffsetAndMetadata
from tagwire.client.aio.asyncio_driver import AsyncioDriver
from tagwire.client.aio.client import AsyncClient
from tagwire.client.aio.core_owner import AsyncCoreOwner
from tagwire.client.aio.core_task import CoreTask
from tagwire.client.client_core import security_apart
from tagwire.client.config import Bootstrap
from tagwire.client.consuming.consumer_commits import CommitCallback
from tagwire.client.consuming.consumer_core import ConsumerCore
from tagwire.client.consuming.consumer_settings import ConsumerOptions, settings_of
from tagwire.client.consuming.listener import RebalanceListener
from tagwire.client.metadata import PartitionMetadata
from tagwire.client.metrics import MetricValues
from tagwire.client.offset_ranges import Lag, Position
from tagwire.client.offset_spec import OffsetSpec
from tagwire.client.producing.transaction_manager import GroupMetadata
from tagwire.errors import TagwireError
from tagwire.partitions import EARLIEST, LATEST, TopicPartition
from tagwire.records import Record

if TYPE_CHECKING:
    import pyarrow as pa

Result = TypeVar("Result")


class AsyncConsumer(AsyncCoreOwner):
    """Reads topics as a member of a group, or partitions that are assigned by hand, for one task at a time of an event
    loop. It does, takes and raises what `tagwire.client.Consumer` does; methods of a listener may be `async def`.

        async with AsyncConsumer("kafka-1:9092", group="billing", offset_reset="earliest") as consumer:
            await consumer.subscribe("flights")
            async for record in consumer: ...

    Heartbeats, fetches and commits run in the loop, beside every other task: a task that keeps the loop from its turns
    keeps the membership, too. A call that is cancelled, or whose `asyncio.timeout` is up, loses nothing: what it would
    have given, the next one gives.

    Args:
        client: a client, which stays open and is not used itself, or what one is made of. options: those of `Consumer`.

    Raises:
        ConfigError: an option is wrong, or two contradict each other. TagwireError: no event loop runs here.
    """

    def __init__(self, client: AsyncClient | Bootstrap, **options: Unpack[ConsumerOptions]) -> None:
        security, own = security_apart(options)
        super().__init__(client, security)
        settings = settings_of(self._client.fetch_settings, self._client.consume_settings, own)
        driver = AsyncioDriver(type(self).__name__)
        self._core = ConsumerCore(self._client._core.network.sibling(driver), settings)
        task = CoreTask(self._core.work, self._core.tasks, driver, "consumer")
        self._core.start(task)
        self._run_in(task, driver)

    # Subscription --------------------------------------------------------------------------------------------------

    async def subscribe(
        self,
        topics: arguments.Names | None = None,
        listener: RebalanceListener | None = None,
        *,
        pattern: str | None = None,
    ) -> None:
        """As `Consumer.subscribe`."""
        await self._run(self._core.subscribe(topics, pattern, listener))

    async def assign(self, partitions: arguments.TopicsOrPartitions | arguments.ByTopicOrPartition[Position]) -> None:
        """As `Consumer.assign`."""
        await self._run(self._core.assign(partitions))

    async def unsubscribe(self) -> None:
        """As `Consumer.unsubscribe`."""
        await self._run(self._core.unsubscribe())

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that the consumer has."""
        return self._core.assignment

    def subscription(self) -> frozenset[str]:
        """The topics that are subscribed to by name."""
        return self._core.work.subscription.topics

    def group_metadata(self) -> GroupMetadata:
        """The member, for `AsyncProducer.send_offsets`. Raises ConsumerStateError without a group."""
        return self._core.group_metadata()

    async def enforce_rebalance(self, reason: str = "the consumer asked for it") -> None:
        """As `Consumer.enforce_rebalance`."""
        await self._run(self._core.rejoin(arguments.name("reason", reason)))

    # Records -------------------------------------------------------------------------------------------------------

    async def poll(self, timeout: float | None = 0.0) -> list[Record]:
        """The next records, as soon as there are any, or none after `timeout` seconds: as `Consumer.poll`."""
        return await self._run(self._core.poll(timeout))

    async def consume(self, count: int, timeout: float | None = None) -> list[Record]:
        """The next `count` records, or those that come within `timeout` seconds: as `Consumer.consume`. Where it is
        cancelled, what it has gathered is fetched again."""
        try:
            return await self._run(self._core.consume(count, timeout))
        except asyncio.CancelledError:
            with suppress(TagwireError):  # of a consumer that has ended meanwhile: the cancellation is not lost to it
                await self._run(self._core.rewind())
            raise

    async def poll_batch(self, timeout: float | None = 0.0) -> pa.RecordBatch | None:
        """The next Arrow batch, or None after `timeout` seconds: as `Consumer.poll_batch`."""
        return await self._run(self._core.poll_batch(timeout))

    def batches(self) -> Polled[pa.RecordBatch]:
        """Arrow batches for ever, each as soon as it has come: `async for batch in consumer.batches()`. Raises as
        `Consumer.poll`."""
        return Polled(self._next_batch)

    def __aiter__(self) -> Polled[Record]:
        """Records for ever, one after the other: as iterating over a `Consumer`."""
        return Polled(lambda: self._run(self._core.read()))

    async def _next_batch(self) -> Iterator[pa.RecordBatch]:
        batch = await self.poll_batch(None)
        return iter(() if batch is None else (batch,))

    def wakeup(self) -> None:
        """Has the call that waits for records raise WakeupError, or the next one if none does. From any thread."""
        self._core.wakeup(self._task.driver.wakeup)

    # Positions -----------------------------------------------------------------------------------------------------

    async def position(self, partition: tuple[str, int], timeout: float | None = None) -> int:
        """As `Consumer.position`."""
        return await self._run(self._core.position(partition, timeout))

    async def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """As `Consumer.positions`."""
        return await self._run(self._core.positions())

    async def seek(self, partition: tuple[str, int], position: Position | OffsetAndMetadata) -> None:
        """As `Consumer.seek`."""
        await self._run(self._core.seek(partition, position))

    async def seek_to_beginning(self, partitions: arguments.TopicsOrPartitions | None = None) -> None:
        """As `Consumer.seek_to_beginning`."""
        await self._run(self._core.seek_to(partitions, EARLIEST))

    async def seek_to_end(self, partitions: arguments.TopicsOrPartitions | None = None) -> None:
        """As `Consumer.seek_to_end`."""
        await self._run(self._core.seek_to(partitions, LATEST))

    async def pause(self, partitions: arguments.TopicsOrPartitions | None = None) -> None:
        """As `Consumer.pause`."""
        await self._run(self._core.pause(partitions, is_paused=True))

    async def resume(self, partitions: arguments.TopicsOrPartitions | None = None) -> None:
        """As `Consumer.resume`."""
        await self._run(self._core.pause(partitions, is_paused=False))

    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        return self._core.paused

    async def lag(self) -> dict[TopicPartition, Lag]:
        """As `Consumer.lag`."""
        return await self._run(self._core.lag())

    async def offsets_for_times(
        self, times: arguments.ByTopicOrPartition[OffsetSpec], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """As `Consumer.offsets_for_times`."""
        return await self._run(self._core.list_offsets(times, timeout))

    async def partitions_for(self, topic: str, timeout: float | None = None) -> dict[int, PartitionMetadata]:
        """As `Consumer.partitions_for`."""
        return await self._run(self._core.partitions_for(topic, timeout))

    async def beginning_offsets(
        self, partitions: arguments.TopicsOrPartitions, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """As `Consumer.beginning_offsets`."""
        named = arguments.topics_or_partitions("partitions", partitions)
        return await self._run(self._core.list_offsets(dict.fromkeys(named, EARLIEST), timeout))

    async def end_offsets(
        self, partitions: arguments.TopicsOrPartitions, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """As `Consumer.end_offsets`."""
        named = arguments.topics_or_partitions("partitions", partitions)
        return await self._run(self._core.list_offsets(dict.fromkeys(named, LATEST), timeout))

    # Commits -------------------------------------------------------------------------------------------------------

    async def commit(
        self,
        offsets: Mapping[arguments.PartitionT, int | OffsetAndMetadata] | None = None,
        timeout: float | None = None,
    ) -> None:
        """As `Consumer.commit`. Where it is cancelled, nobody knows whether the offsets are committed; it may be called
        again."""
        await self._run(self._core.commit(offsets, timeout))

    async def commit_async(
        self,
        offsets: Mapping[arguments.PartitionT, int | OffsetAndMetadata] | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """Commits beside, after what was to be committed before, and waits for nothing: as `Consumer.commit_async`."""
        await self._run(self._core.commit_async(offsets, callback))

    def store_offsets(
        self, done: Record | Iterable[Record] | Mapping[arguments.PartitionT, int | OffsetAndMetadata]
    ) -> None:
        """Says what the application is done with: as `Consumer.store_offsets`. From any thread and task, and waits for
        nothing."""
        self._core.store_offsets(done)

    async def committed(
        self, partitions: arguments.TopicsOrPartitions | None = None, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """As `Consumer.committed`."""
        return await self._run(self._core.committed(partitions, timeout))

    def metrics(self) -> MetricValues:
        """What the consumer measures: as `Consumer.metrics`."""
        return self._core.metrics()

    # The end -------------------------------------------------------------------------------------------------------

    async def close(self, timeout: float = 30.0, *, leave: bool | None = None) -> None:
        """Commits, where that is automatic, tells the listener, leaves the group and ends the connections: as
        `Consumer.close`. Where it is cancelled, the connections end, and the group is told nothing more."""
        with self._core.closing(asyncio.current_task(), timeout):
            await self._end(lambda: self._run(self._core.close(timeout, leaves=leave)))

    async def _run(self, call: Coroutine[Any, Any, Result]) -> Result:
        try:
            self._task.require_waitable()
        except TagwireError:
            call.close()
            raise
        return await self._core.exclusively(asyncio.current_task(), call)


class Polled(Generic[Result]):
    """What a consumer gives, one after the other, for ever. A step that is cancelled has lost nothing."""

    def __init__(self, poll: Callable[[], Awaitable[Iterator[Result]]]) -> None:
        self._poll = poll
        self._there: Iterator[Result] = iter(())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Result:
        while True:
            for found in self._there:
                return found
            self._there = await self._poll()
