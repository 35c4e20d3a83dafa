"""What a Reader does, as coroutines of the client's core: the blocking face and any other one run these."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tagwire.client import arguments
from tagwire.client.admin.core import AdminCore
from tagwire.client.admin.group_offsets import OffsetAndMetadata
from tagwire.client.config import FetchSettings
from tagwire.client.decoding import arrow_batches, record_batches
from tagwire.client.fetch_positions import UNKNOWN, CompletedFetch, FetchPosition
from tagwire.client.fetching import Fetcher
from tagwire.client.metrics import Metrics
from tagwire.client.network_client import NetworkClient
from tagwire.client.offset_ranges import (
    Committed,
    EndOffsets,
    Lag,
    Position,
    StartOffsets,
    end_offsets,
    position_of,
    resolved,
    start_offsets,
)
from tagwire.client.offset_spec import AtTimestamp
from tagwire.client.offsets import list_offsets
from tagwire.client.reader_settings import DecodingSettings
from tagwire.errors import ConfigError, RemoteProtocolError, TagwireError
from tagwire.partitions import EARLIEST, LATEST, TopicPartition
from tagwire.records import HeaderSerdes, Record
from tagwire.records.interceptors import ConsumerInterceptor, after_decoding

if TYPE_CHECKING:
    import pyarrow as pa


class ReaderCore:
    """Reads assigned partitions, as Arrow batches or as records, and knows how far each was given out.

    The next Fetch is in flight while the last response is decoded. `open` comes first.
    """

    def __init__(self, network: NetworkClient, fetch: FetchSettings, decoding: DecodingSettings) -> None:
        self._network = network
        self._settings = fetch
        self._decoding = decoding
        self._fetch_positions: dict[TopicPartition, FetchPosition] = {}
        self._positions: dict[TopicPartition, int] = {}  # the offset after the last record given out
        self._held: dict[TopicPartition, list[CompletedFetch]] = {}
        self._keep([])
        self._fetcher = Fetcher(network, [], fetch, decoding.dialect)
        self._given: Record | None = None  # the record given out last, as long as its batch goes on

    @property
    def metrics(self) -> Metrics:
        """What fetching measures."""
        return self._fetcher.metrics

    async def open(self, starts: StartOffsets, ends: EndOffsets | None, stop_at_end: bool) -> None:
        """Finds the partitions and their bounds, once. Raises as `Reader` does."""
        default = EARLIEST if self._settings.group is None else Committed()
        begin = await start_offsets(self._network, starts, default)
        until: dict[TopicPartition, int | AtTimestamp | Committed] = {}
        if stop_at_end:
            until.update(dict.fromkeys(begin, LATEST))
        if ends is not None:
            until.update(end_offsets(ends, begin))
        isolation, group = self._settings.isolation, self._settings.group
        first = await resolved(self._network, begin, isolation, group)
        last = await resolved(self._network, until, isolation, group)
        for partition, end in last.items():
            if end < first[partition] and begin[partition] in (EARLIEST, LATEST) and until[partition] == LATEST:
                raise RemoteProtocolError(
                    f"{partition} is told to begin at offset {first[partition]} and to end at {end}"
                )
        self._fetch_positions = {
            partition: FetchPosition(partition, start, last.get(partition)) for partition, start in first.items()
        }
        self._positions = dict(first)
        self._fetcher = Fetcher(self._network, self._fetch_positions.values(), self._settings, self._decoding.dialect)

    def close(self) -> None:
        """Ends the fetch sessions, as far as brokers can be told at once."""
        self._fetcher.close()

    # Positions -----------------------------------------------------------------------------------------------------

    def position(self, partition: TopicPartition) -> int:
        """The offset after the last record given out of a partition. Raises KeyError for one that is not assigned."""
        self._note_given()
        return self._positions[partition]

    async def seek(self, partition: TopicPartition, position: Position) -> None:
        """As `Reader.seek`."""
        fetch_position = self._fetch_positions[partition]
        wanted = {partition: position_of(f"position: {partition}", position)}
        offset = (await resolved(self._network, wanted, self._settings.isolation, self._settings.group))[partition]
        fetch_position.seek(offset)
        self._fetcher.forget_failure()
        self._held.pop(partition, None)
        self._keep([entry for entry in self._small if entry[1] is not fetch_position])
        self._note_given()
        self._positions[partition] = offset

    async def lag(self) -> dict[TopicPartition, Lag]:
        """As `Reader.lag`."""
        self._note_given()
        ends = {partition: position.readable_end for partition, position in self._fetch_positions.items()}
        unknown = {partition: LATEST for partition, end in ends.items() if end == UNKNOWN}
        ends |= await list_offsets(self._network, unknown, self._network.deadline(), self._settings.isolation)
        return {
            partition: Lag(end, self._positions[partition], max(0, end - self._positions[partition]))
            for partition, end in sorted(ends.items())
        }

    async def committed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """As `Reader.committed`."""
        return await self._admin().group_offsets(self._group(), self._fetch_positions)

    async def commit(self, offsets: arguments.ByTopicOrPartition[int | OffsetAndMetadata] | None) -> None:
        """As `Reader.commit`."""
        self._note_given()
        given: Mapping[TopicPartition, int] = dict(self._positions)
        await self._admin().alter_group_offsets(self._group(), given if offsets is None else offsets)

    def _admin(self) -> AdminCore:
        return AdminCore(self._network, self._settings.isolation)

    def _group(self) -> str:
        if self._settings.group is None:
            raise ConfigError("the reader has no group whose offsets it could read or commit: give it group=")
        return self._settings.group

    # Records -------------------------------------------------------------------------------------------------------

    @property
    def is_read_as_batches(self) -> bool:
        """Whether batches are begun that are not given out."""
        return bool(self._held or self._small)

    @property
    def finished(self) -> bool:
        """Whether everything up to the end offsets is fetched."""
        return self._fetcher.finished

    async def fetch(self) -> tuple[list[CompletedFetch], TagwireError | None]:
        """What the next response brings, for `records_of`, and the error that is to be raised after it.

        Raises as `Fetcher.next`.
        """
        fetches = await self._fetcher.next()
        try:
            await self._fetcher.send()  # the next response is on its way while this one is decoded
        except TagwireError as error:
            return fetches, error
        return fetches, None

    def records_of(
        self, fetch: CompletedFetch, interceptors: Sequence[ConsumerInterceptor], header_serdes: HeaderSerdes | None
    ) -> Iterator[Record]:
        """Its records; none after `seek`. Raises as `Reader.records`."""
        position, seeks = fetch.position, fetch.position.seeks
        if not fetch.is_current:
            return
        as_read = not interceptors and header_serdes is None
        for found, after in record_batches(fetch, self._decoding):
            for record in found:
                if as_read:
                    self._given = record
                    yield record
                else:
                    known = record if header_serdes is None else header_serdes.deserialized(record)
                    self._given = record
                    yield after_decoding(known, interceptors)
                if position.seeks != seeks:
                    return
            self._passed(position, after)
        self._passed(position, fetch.next_offset)

    # Arrow batches -------------------------------------------------------------------------------------------------

    async def batches(self) -> AsyncGenerator[pa.RecordBatch, None]:
        """Arrow batches of all partitions, from their positions on. Raises as `Reader` while iterating."""
        while not self._fetcher.finished:
            try:
                for fetch in await self._fetcher.next():
                    if not fetch.is_current:
                        continue
                    partition = fetch.position.partition
                    held = self._held.setdefault(partition, [])
                    if held and held[-1].next_offset != fetch.start_offset:
                        for batch in self._decode(partition):
                            yield batch
                        held = self._held.setdefault(partition, [])
                    held.append(fetch)
                await self._fetcher.send()  # the next response is on its way while this one is decoded
            except TagwireError:
                for partition in list(self._held):
                    for batch in self._decode(partition):
                        yield batch
                for batch in self._give_small():
                    yield batch
                raise
            for partition in [partition for partition, fetches in self._held.items() if self._is_due(fetches)]:
                for batch in self._decode(partition):
                    yield batch
            if not self._fetcher.has_more:
                for batch in self._give_small():
                    yield batch
        self._fetcher.close()
        for batch in self._give_small():
            yield batch

    def rewind(self) -> None:
        """Goes back to what was given out last, and fetches anew all that was fetched beyond."""
        self._note_given()
        self._held.clear()
        self._keep([])
        moved = [one for partition, one in self._fetch_positions.items() if one.offset != self._positions[partition]]
        for one in moved:
            one.seek(self._positions[one.partition])
        if moved:
            self._fetcher.abandon()

    def _is_due(self, fetches: list[CompletedFetch]) -> bool:
        return (
            not fetches[0].position.has_more
            or sum(fetch.record_count for fetch in fetches) >= self._decoding.batch_rows
            or sum(len(fetch.records) for fetch in fetches) >= self._decoding.batch_bytes
        )

    def _decode(self, partition: TopicPartition) -> Iterator[pa.RecordBatch]:
        fetches = self._held.pop(partition, None)
        if fetches is None:
            return  # `seek` was called meanwhile
        position, seeks = fetches[0].position, fetches[0].position.seeks
        batches = arrow_batches(fetches, self._decoding)
        while position.seeks == seeks:
            try:
                batch, after = next(batches, (None, fetches[-1].next_offset))
            except TagwireError:
                yield from self._give_small()
                raise
            if batch is None:
                self._small.append((None, position, after))
                return
            yield from self._offer(batch, position, after)

    def _offer(self, batch: pa.RecordBatch, position: FetchPosition, after: int) -> Iterator[pa.RecordBatch]:
        """Gives a batch of a fair size at once; keeps smaller ones until they are one together."""
        if self._small and self._is_fair(batch.num_rows, batch.nbytes):
            yield from self._give_small()
        self._small.append((batch, position, after))
        self._small_rows += batch.num_rows
        self._small_bytes += batch.nbytes
        if self._is_fair(self._small_rows, self._small_bytes):
            yield from self._give_small()

    def _is_fair(self, rows: int, size: int) -> bool:
        return rows >= self._decoding.batch_rows // 2 or size >= self._decoding.batch_bytes // 2

    def _give_small(self) -> Iterator[pa.RecordBatch]:
        pieces = self._small
        self._keep([])
        for _, position, after in pieces:
            self._passed(position, after)
        batches = [batch for batch, _, _ in pieces if batch is not None and batch.num_rows]
        if batches:
            yield batches[0] if len(batches) == 1 else _joined(batches)

    def _keep(self, small: list[tuple[pa.RecordBatch | None, FetchPosition, int]]) -> None:
        self._small = small
        self._small_rows: int = sum(batch.num_rows for batch, _, _ in small if batch is not None)
        self._small_bytes: int = sum(batch.nbytes for batch, _, _ in small if batch is not None)

    # What was given out --------------------------------------------------------------------------------------------

    def _note_given(self) -> None:
        record, self._given = self._given, None
        if record is not None:
            self._positions[TopicPartition(record.topic or "", record.partition or 0)] = record.offset + 1

    def _passed(self, position: FetchPosition, after: int) -> None:
        self._given = None
        end = position.end_offset
        self._positions[position.partition] = after if end is None else min(after, end)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
