"""AsyncProducer: sends records for the tasks of an event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Unpack

from tagwire.client import arguments
from tagwire.client.admin.group_offsets import OffsetAndMetadata
from tagwire.client.aio.asyncio_driver import AsyncioDriver
from tagwire.client.aio.client import AsyncClient
from tagwire.client.aio.core_owner import AsyncCoreOwner
from tagwire.client.aio.core_task import CoreTask
from tagwire.client.aio.delivery import AsyncDelivery, AsyncRowsDelivery
from tagwire.client.aio.loop_completion import LoopCompletion
from tagwire.client.aio.loop_line import LoopLine
from tagwire.client.client_core import security_apart
from tagwire.client.config import Bootstrap, seconds
from tagwire.client.metadata import PartitionMetadata
from tagwire.client.metrics import MetricValues
from tagwire.client.producing.producer_core import GivenHeaders, GivenValue, ProducerCore
from tagwire.client.producing.producer_id import ProducerIdentity
from tagwire.client.producing.record_accumulator import RecordAccumulator
from tagwire.client.producing.settings import ProducerOptions, settings_of
from tagwire.client.producing.transaction_manager import GroupMetadata

if TYPE_CHECKING:
    import pyarrow as pa

# After as many calls of `send` while something is to be sent, the loop gets a turn: a task that sends and sends, and
# finds room, would keep it from everybody.
_SENDS_BEFORE_A_TURN: Final = 500


class AsyncProducer(AsyncCoreOwner):
    """Sends records, in batches, beside the tasks of one event loop, any number of which may share it. It does, takes
    and raises what `tagwire.client.Producer` does.

        async with AsyncProducer("kafka-1:9092", compression="zstd") as producer:
            delivery = await producer.send("flights", b"value", key=b"UA-1545", headers=[("origin", b"EWR")])
            (await delivery).offset

    `await producer.send(...)` waits for room alone, so that many records are on their way; awaiting what it gives waits
    for the record's delivery. A `send` that is cancelled has appended nothing.

        async with AsyncProducer("kafka-1:9092", transactional_id="mover") as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send("flights", b"value")
                await producer.send_offsets({("arrivals", 0): 42}, "group")

    Calls about transactions that are cancelled may be made again, as after a RequestTimeoutError: what was begun goes
    on, and is found done.

    Args:
        client: a client, which stays open and is not used itself, or what one is made of. options: those of `Producer`.

    Raises:
        ConfigError: an option is wrong, or two contradict each other. TagwireError: no event loop runs here.
    """

    def __init__(self, client: AsyncClient | Bootstrap, **options: Unpack[ProducerOptions]) -> None:
        security, own = security_apart(options)
        super().__init__(client, security)
        settings, encoding = settings_of(self._client.produce_settings, own)
        driver = AsyncioDriver(type(self).__name__)
        completion = LoopCompletion(driver)
        accumulator = RecordAccumulator(settings, completion, driver.now, driver.turn_soon, AsyncDelivery)
        network = self._client._core.network.sibling(driver)
        self._core = ProducerCore(network, settings, encoding, accumulator, threading.RLock(), LoopLine())
        self._sends = 0
        self._yielding = 0
        self._turn: asyncio.Handle | None = None
        self._core_driver = driver
        task = CoreTask(self._core.sender, self._core.tasks, driver, "producer")
        self._core.start(task)
        self._run_in(task, driver)

    async def send(
        self,
        topic: str,
        value: GivenValue,
        key: GivenValue = None,
        headers: GivenHeaders = (),
        timestamp: int | None = None,
        partition: int | None = None,
        on_delivery: Callable[[AsyncDelivery], object] | None = None,
    ) -> AsyncDelivery:
        """Appends a record to a batch, as soon as there is room. What becomes of it is awaited from the delivery; a
        failure also shows in the next `flush`. `on_delivery` is called in the loop, and is no coroutine function.

        Takes and raises what `Producer.send` does.
        """
        driver = self._core_driver
        if asyncio.get_running_loop() is not driver.loop:
            driver.require_loop()
        turn = driver.turn_due
        if turn is not None:
            if turn is not self._turn:
                self._turn, self._sends = turn, 0
            self._sends += 1
        if self._yielding or (turn is not None and self._sends > _SENDS_BEFORE_A_TURN):
            await self._after_a_turn()
        if timestamp is None:
            timestamp = time.time_ns() // 1_000_000
        delivery = self._core.append(topic, value, key, headers, timestamp, partition, on_delivery)
        return delivery if isinstance(delivery, AsyncDelivery) else await delivery

    async def _after_a_turn(self) -> None:
        """Gives the loop a turn. Calls that come before all of those that wait have gone on wait, too: in their order,
        since a loop runs what is ready first come, first served."""
        self._yielding += 1
        try:
            await asyncio.sleep(0)
        finally:
            self._yielding -= 1

    async def send_batch(self, topic: str, partition: int, data: bytes) -> AsyncDelivery:
        """Sends a record batch that is encoded already. Takes and raises what `Producer.send_batch` does."""
        return await self._core.send_batch(topic, partition, data)

    async def send_arrow(
        self,
        topic: str,
        rows: pa.RecordBatch | pa.Table,
        partition: int | None = None,
        on_delivery: Callable[[AsyncRowsDelivery], object] | None = None,
    ) -> AsyncRowsDelivery:
        """Sends rows with columns key, value, headers, timestamp and partition. Takes and raises what
        `Producer.send_arrow` does. Where it is cancelled, batches before the one that waited for room are sent."""
        now = time.time_ns() // 1_000_000
        batches = await self._core.send_arrow(topic, rows, partition, now)
        delivery = AsyncRowsDelivery(rows.num_rows, batches)
        if on_delivery is not None:
            delivery.add_done_callback(on_delivery)
        return delivery

    async def partitions_for(self, topic: str, timeout: float | None = None) -> dict[int, PartitionMetadata]:
        """The partitions of a topic, by number: as `Producer.partitions_for`."""
        return await self._core.partitions_for(topic, timeout)

    def __len__(self) -> int:
        """How many records are neither delivered nor failed."""
        return self._core.pending

    def __bool__(self) -> bool:
        """A producer without records is one, too."""
        return True

    def metrics(self) -> MetricValues:
        """What the producer measures: as `Producer.metrics`."""
        return self._core.metrics()

    async def flush(self, timeout: float | None = None) -> None:
        """Sends everything and waits until all of it is delivered, or failed. Takes and raises what `Producer.flush`
        does."""
        await self._core.flush(timeout)

    async def close(self, timeout: float | None = None, *, abort: bool = True) -> None:
        """Flushes, and closes the connections; also where it is cancelled: what is not delivered by then is failed.
        Takes and raises what `Producer.close` does."""
        seconds("timeout", timeout)
        await self._end(lambda: self._core.close(timeout, abort=abort))

    # Transactions --------------------------------------------------------------------------------------------------

    async def identity(self) -> ProducerIdentity:
        """Who this producer is to brokers now: as `Producer.identity`."""
        return await self._core.identity()

    async def init_transactions(
        self, timeout: float | None = None, *, resume: ProducerIdentity | None = None, once: bool = False
    ) -> None:
        """Takes the transactional id over. Takes and raises what `Producer.init_transactions` does."""
        await self._core.init_transactions(timeout, resume=resume, once=once)

    def begin_transaction(self) -> None:
        """Opens a transaction: what is sent from now on belongs to it. Raises as `Producer.begin_transaction`."""
        self._task.require_waitable()
        self._core.begin_transaction()

    async def send_offsets(
        self, offsets: Mapping[arguments.PartitionT, int | OffsetAndMetadata], group: str | GroupMetadata
    ) -> None:
        """Makes offsets of a group part of the transaction. Takes and raises what `Producer.send_offsets` does."""
        await self._core.send_offsets(offsets, group)

    async def commit_transaction(self, timeout: float | None = None) -> None:
        """Delivers everything and commits; calling it again goes on. Takes and raises what
        `Producer.commit_transaction` does."""
        await self._core.commit_transaction(timeout)

    async def abort_transaction(self, timeout: float | None = None) -> None:
        """Gives up what is not delivered yet, and aborts; calling it again goes on. Takes and raises what
        `Producer.abort_transaction` does."""
        await self._core.abort_transaction(timeout)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """A transaction that is committed at the end of the block, and aborted when the block raises or is cancelled.

        Raises:
            As `Producer.transaction`.
        """
        self.begin_transaction()
        try:
            yield
            await self.commit_transaction()
        except BaseException as error:
            await self._core.abort_after_error(error)
            raise
