"""What a Reader does, as coroutines of the client's core: the blocking face and any other one run these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tagwire.client import arguments
from tagwire.client.admin.core import AdminCore
from tagwire.client.admin.group_offsets import OffsetAndMetadata
from tagwire.client.config import FetchSettings
from tagwire.client.fetch_collector import FetchCollector
from tagwire.client.fetch_positions import UNKNOWN, FetchBuffer, FetchPosition
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
from tagwire.client.record_decoder import decoder_of
from tagwire.client.scheduling import Lock
from tagwire.errors import ConfigError, RemoteProtocolError
from tagwire.partitions import EARLIEST, LATEST, TopicPartition
from tagwire.records import HeaderSerdes, Record
from tagwire.records.interceptors import ConsumerInterceptor

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
        self._buffer = FetchBuffer()
        self._collector = FetchCollector(self._buffer, decoding)
        self._fetcher = Fetcher(network, self._buffer, fetch, decoding.dialect)
        # Tasks may ask beside each other, and what was asked for last is what counts.
        self._seeking, self._committing = Lock(), Lock()

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
        self._fetcher.add(FetchPosition(partition, start, last.get(partition)) for partition, start in first.items())

    def close(self) -> None:
        """Ends the fetch sessions, as far as brokers can be told at once."""
        self._fetcher.close()

    # Positions -----------------------------------------------------------------------------------------------------

    def position(self, partition: TopicPartition) -> int:
        """The offset after the last record given out of a partition. Raises KeyError for one that is not assigned."""
        self._collector.note_given()
        return self._fetcher.positions[partition].given.offset

    async def seek(self, partition: TopicPartition, position: Position) -> None:
        """As `Reader.seek`."""
        if partition not in self._fetcher.positions:
            raise KeyError(partition)
        wanted = {partition: position_of(f"position: {partition}", position)}
        async with self._seeking:
            offset = (await resolved(self._network, wanted, self._settings.isolation, self._settings.group))[partition]
            self._collector.note_given()
            self._fetcher.seek(partition, offset)

    async def lag(self) -> dict[TopicPartition, Lag]:
        """As `Reader.lag`."""
        self._collector.note_given()
        positions = self._fetcher.positions
        ends = {partition: position.readable_end for partition, position in positions.items()}
        unknown = {partition: LATEST for partition, end in ends.items() if end == UNKNOWN}
        ends |= await list_offsets(self._network, unknown, self._network.deadline(), self._settings.isolation)
        return {
            partition: Lag(end, positions[partition].given.offset, max(0, end - positions[partition].given.offset))
            for partition, end in sorted(ends.items())
        }

    async def committed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """As `Reader.committed`."""
        return await self._admin().group_offsets(self._group(), list(self._fetcher.positions))

    async def commit(self, offsets: arguments.ByTopicOrPartition[int | OffsetAndMetadata] | None) -> None:
        """As `Reader.commit`."""
        self._collector.note_given()
        given = {partition: _to_commit(position) for partition, position in self._fetcher.positions.items()}
        async with self._committing:
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
        return self._collector.is_read_as_batches

    @property
    def finished(self) -> bool:
        """Whether everything up to the end offsets is fetched, and begun to be given out."""
        return self._fetcher.finished and not self._buffer.has_any

    async def fetch(self) -> None:
        """Waits until the next response is there, for `records_there` or `batch`. Where it is ended while it waits,
        nothing is lost."""
        await self._fetcher.next()

    def records_there(
        self, interceptors: Sequence[ConsumerInterceptor], header_serdes: HeaderSerdes | None
    ) -> Iterator[Record]:
        """The records of the responses that are there. Raises as `Reader.records`."""
        return self._collector.one_by_one(decoder_of(interceptors, header_serdes, self._collector.values))

    # Arrow batches -------------------------------------------------------------------------------------------------

    def batch(self) -> pa.RecordBatch | None:
        """The next batch that can be given out of what was fetched; None where more has to be fetched first, unless
        that is all. Raises as `Reader` while iterating."""
        return self._collector.batch(flush=not self._fetcher.has_more)

    def rewind(self) -> None:
        """Goes back to what was given out last, and fetches anew all that was fetched beyond."""
        self._collector.clear()
        if self._fetcher.rewind():
            self._fetcher.abandon()


def _to_commit(position: FetchPosition) -> OffsetAndMetadata:
    offset, leader_epoch = position.given
    return OffsetAndMetadata(offset, leader_epoch=leader_epoch)
