"""Reading assigned partitions, as Arrow or as records, for tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, Self, TypeVar, Unpack

from tagwire.client import arguments
from tagwire.client.admin.group_offsets import OffsetAndMetadata
from tagwire.client.aio.client import AsyncClient
from tagwire.client.aio.owning import AsyncClientOwner
from tagwire.client.aio.unclosed import warn_unclosed
from tagwire.client.client_core import security_apart
from tagwire.client.config import Bootstrap
from tagwire.client.decoded_values import Undecoded
from tagwire.client.metrics import MetricValues
from tagwire.client.offset_ranges import EndOffsets, Lag, Position, StartOffsets
from tagwire.client.option_types import of_type
from tagwire.client.reader_core import ReaderCore
from tagwire.client.reader_settings import ReaderOptions, settings_of
from tagwire.client.reading import BatchReading, RecordReading
from tagwire.client.scheduling import Lock, Wait, Work
from tagwire.errors import TagwireError
from tagwire.partitions import TopicPartition
from tagwire.records import HeaderSerdes, Record
from tagwire.records.interceptors import ConsumerInterceptor

if TYPE_CHECKING:
    import pyarrow as pa

Result = TypeVar("Result")

_OWN: Final = ("end_offsets", "stop_at_end")


class AsyncReader(AsyncClientOwner):
    """Iterates over Arrow record batches of assigned partitions, for one task at a time of an event loop. It gives and
    raises what `tagwire.client.Reader` does.

        async with AsyncReader("kafka-1:9092", "flights", stop_at_end=True) as reader:
            async for batch in reader: ...

        async with AsyncReader("kafka-1:9092", {("flights", 0): Committed()}, group="landing") as reader:
            async for record in reader.records():
                ...
                await reader.commit()

    A read that is cancelled, or whose `asyncio.timeout` is up, loses nothing: the next one gives what it would have
    given. The partitions are looked up on entering, or with the first call that is awaited. Decoding runs in the loop,
    between its turns: a batch at a time; what goes by a schema, which may wait for its registry, in a thread beside it.

    Args:
        client: a client, which stays open, and whose connections are not used, so that fetches which wait hold up no
            calls; or what one is made of, as `AsyncClient` takes it. The others: as of `tagwire.client.Reader`.

    Raises:
        ConfigError: an option is wrong. TagwireError: no event loop runs here. KafkaError: a topic or a partition does
            not exist; on entering, or from the first call. While iterating: as `tagwire.client.Reader`.
    """

    def __init__(
        self,
        client: AsyncClient | Bootstrap,
        starts: StartOffsets,
        *,
        end_offsets: EndOffsets | None = None,
        stop_at_end: bool = False,
        **options: Unpack[ReaderOptions],
    ) -> None:
        of_type("stop_at_end", stop_at_end, bool, "True or False")
        security, own = security_apart(options)
        super().__init__(client, security)
        fetch, decoding = settings_of(self._client.fetch_settings, own, _OWN)
        self._bounds = starts, end_offsets, stop_at_end
        self._network = self._client._core.network.sibling(self._driver)
        self._core = ReaderCore(self._network, fetch, decoding)
        self._opening = Lock()
        self._is_open = False
        self._closings = 0
        self._is_read = False
        self._batches = BatchReading(self._core)

    async def __aenter__(self) -> Self:
        try:
            await self._driver.run(self._until_closed(self._open()))
        except BaseException:
            await self.close()
            raise
        return self

    async def close(self) -> None:
        """Ends the fetch sessions and the connections; calls that other tasks wait for raise TagwireError. It may be
        closed again."""
        self._driver.require_loop()
        self._closings += 1
        self._driver.turn_soon()  # whoever waits for a response would otherwise connect anew
        self._core.close()
        self._network.close()
        await super().close()

    def __del__(self) -> None:
        if hasattr(self, "_network"):  # there is none where an option was wrong
            warn_unclosed(self, self._network, self._driver)

    def position(self, partition: tuple[str, int]) -> int:
        """The offset after the last record given out of a partition. Raises KeyError for one that is not assigned;
        before the partitions are looked up, that is any."""
        return self._core.position(arguments.topic_partition("partition", partition))

    async def seek(self, partition: tuple[str, int], position: Position) -> None:
        """Reads a partition on from another position; what is fetched of it already is not given any more. Raises as
        `Reader.seek`."""
        await self._run(lambda: self._core.seek(arguments.topic_partition("partition", partition), position))
        self._batches.sought()

    async def lag(self) -> dict[TopicPartition, Lag]:
        """How far each partition is read: as `Reader.lag`."""
        return await self._run(self._core.lag)

    async def committed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the reader's group has committed in the assigned partitions: as `Reader.committed`."""
        return await self._run(self._core.committed)

    async def commit(self, offsets: arguments.ByTopicOrPartition[int | OffsetAndMetadata] | None = None) -> None:
        """Commits for the reader's group: as `Reader.commit`."""
        await self._run(lambda: self._core.commit(offsets))

    def metrics(self) -> MetricValues:
        """What the reader measures: as `Reader.metrics`."""
        return self._network.metrics.values("consumer", self._core.metrics)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        batch = await self._read(self._batches.next)
        if batch is None:
            raise StopAsyncIteration
        return batch

    def records(
        self, *, interceptors: Iterable[ConsumerInterceptor] = (), header_serdes: HeaderSerdes | None = None
    ) -> AsyncRecords:
        """The same records one by one. Takes and raises what `Reader.records` does, while iterating."""
        return AsyncRecords(self, self._core, interceptors, header_serdes)

    async def _open(self) -> None:
        """Looks the partitions up, once, whoever comes first."""
        async with self._opening:
            if not self._is_open:
                await self._core.open(*self._bounds)
                self._is_open = True

    async def _run(self, begin: Callable[[], Work[Result]]) -> Result:
        async def opened() -> Result:
            await self._open()
            return await begin()

        return await self._driver.run(self._until_closed(opened()))

    async def _until_closed(self, work: Work[Result]) -> Result:
        """What `work` gives or raises. Where the reader is closed, it ends where it waits."""
        closings = self._closings
        try:
            while True:
                wait = work.send(None)
                await Wait(partial(self._is_over, wait, closings), wait.until)
                if closings != self._closings:
                    raise TagwireError("the reader was closed meanwhile")
        except StopIteration as end:
            result: Result = end.value
            return result
        finally:
            work.close()

    def _is_over(self, wait: Wait, closings: int) -> bool:
        return closings != self._closings or wait.ready()

    async def _read(self, begin: Callable[[], Work[Result]]) -> Result:
        if self._is_read:
            raise TagwireError("another task reads from this reader now; each task makes its own")
        self._is_read = True
        try:
            while True:
                try:
                    return await self._run(begin)
                except Undecoded as due:
                    await asyncio.to_thread(due.call)
        finally:
            self._is_read = False


class AsyncRecords:
    """The records of a reader, one by one. Whatever a cancelled step would have given, the next one gives."""

    def __init__(
        self,
        reader: AsyncReader,
        core: ReaderCore,
        interceptors: Iterable[ConsumerInterceptor],
        header_serdes: HeaderSerdes | None,
    ) -> None:
        self._reader = reader
        self._begin = partial(RecordReading, core, interceptors, header_serdes)
        self._reading: RecordReading | None = None
        self._there: Iterator[Record] = iter(())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        while True:
            try:
                record = next(self._there, None)
            except (Undecoded, TagwireError) as error:
                assert self._reading is not None
                self._there = self._reading.there()  # before anything else ends this: what it ended, the next step asks
                if isinstance(error, TagwireError):
                    raise
                await asyncio.to_thread(error.call)
                continue
            if record is not None:
                return record
            there = await self._reader._read(self._next)
            if there is None:
                raise StopAsyncIteration
            self._there = there

    async def _next(self) -> Iterator[Record] | None:
        if self._reading is None:
            self._reading = self._begin()
        return await self._reading.next()
