"""What the application was given of what was fetched, and how far that goes in each partition.

Records are made, and handed on, as lists. Where they are read one after the other, a list is read through its iterator,
which runs without a line of Python for each record: what is unread of it is found out when somebody wants to know.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from tagwire.client.consuming.consumer_settings import ConsumerSettings
from tagwire.client.consuming.consumer_work import ConsumerWork
from tagwire.client.consuming.subscription_state import AssignedPartition
from tagwire.client.fetch_collector import FetchCollector
from tagwire.client.fetch_positions import UNKNOWN, GivenPosition
from tagwire.client.record_decoder import decoder_of
from tagwire.errors import TagwireError
from tagwire.partitions import TopicPartition
from tagwire.records import Record

if TYPE_CHECKING:
    import pyarrow as pa


class GivenRecords:
    """The application's records, and its positions.

    Attributes:
        gathered: records that one call collects before it gives them.
    """

    def __init__(self, work: ConsumerWork, settings: ConsumerSettings) -> None:
        self.gathered: list[Record] = []
        self._subscription = work.subscription
        self._collector = FetchCollector(work.fetched, settings.decoding)
        self._decoder = decoder_of(settings.interceptors, settings.header_serdes, self._collector.values)
        self._changes = bool(settings.interceptors) or settings.header_serdes is not None
        self._read: list[Record] = []  # one after the other
        self._reader: Iterator[Record] = iter(self._read)
        self._error: TagwireError | None = None

    # Records -------------------------------------------------------------------------------------------------------

    def records(self, most: int) -> list[Record] | None:
        """At most so many records that are there; None where there are none. Raises as `FetchCollector.records`."""
        if self._reader.__length_hint__():  # type: ignore[attr-defined]
            unread = self._unread()
            self.read(unread[most:])
            return unread[:most]
        if self._error is not None:
            self._raise_put_off()
        return self._collector.records(most, self._decoder) or None

    def batch(self, *, flush: bool) -> pa.RecordBatch | None:
        """A batch of what is there. Raises as `FetchCollector.batch`."""
        self._raise_put_off()
        return self._collector.batch(flush=flush)

    @property
    def makes_records(self) -> bool:
        """Whether records are made of those that were read, which need not tell where they come from."""
        return self._changes

    @property
    def holds_back(self) -> bool:
        """Whether there are rows that wait for more to make a batch with."""
        return self._collector.is_read_as_batches

    @property
    def has_more(self) -> bool:
        """Whether more is likely to come at once."""
        return any(
            one.is_fetched and not one.is_released and not one.fetch_position.is_paused and one.fetch_position.has_more
            for one in self._subscription.assigned.values()
        )

    def read(self, records: list[Record]) -> Iterator[Record]:
        """Gives records one after the other; nothing more by an iterator that was given before."""
        self._read.clear()
        self._read = records
        self._reader = iter(records)
        return self._reader

    def gather(self) -> list[Record]:
        """Gives what was gathered."""
        found, self.gathered = self.gathered, []
        return found

    def put_off(self, error: TagwireError) -> None:
        """Has an error raised by the next call, after what was gathered."""
        if not self._collector.put_off(error):
            self._error = error

    def _raise_put_off(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    # Positions -----------------------------------------------------------------------------------------------------

    def positions(self) -> dict[TopicPartition, GivenPosition]:
        """The next offset of each partition, those left out of which it is not known."""
        unread = self._first_unread()
        given = {
            partition: unread.get(partition) or one.fetch_position.given
            for partition, one in self._subscription.assigned.items()
        }
        return {partition: position for partition, position in given.items() if position.offset != UNKNOWN}

    def position(self, one: AssignedPartition) -> GivenPosition:
        """The next offset of one, which may be `UNKNOWN`."""
        return self._first_unread().get(one.partition) or one.fetch_position.given

    def note_consumed(self) -> None:
        """The application is done with everything that it was given."""
        is_any = self.gathered or self._reader.__length_hint__()  # type: ignore[attr-defined]
        unread = self._first_unread() if is_any else {}
        for partition, one in self._subscription.assigned.items():
            position = unread.get(partition) or one.fetch_position.given
            if position.offset != UNKNOWN:
                one.consumed = position

    def drop(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, GivenPosition]:
        """Gives nothing more of these that it has; where that begins."""
        unread = {partition: first for partition, first in self._first_unread().items() if partition in partitions}
        if unread:
            self._read[len(self._read) - len(self._unread()) :] = [
                record for record in self._unread() if _partition(record) not in partitions
            ]
        self.gathered = [record for record in self.gathered if _partition(record) not in partitions]
        return unread

    def forget(self) -> None:
        """Gives nothing more of all that it has."""
        self._read.clear()
        self.gathered.clear()
        self._error = None
        self._collector.clear()

    def _unread(self) -> list[Record]:
        count = self._reader.__length_hint__()  # type: ignore[attr-defined]
        return self._read[len(self._read) - count :] if count else []

    def _first_unread(self) -> dict[TopicPartition, GivenPosition]:
        """Where what the application has not had yet begins: what is gathered, too, is given at the end of the call."""
        first: dict[TopicPartition, GivenPosition] = {}
        for record in (*self.gathered, *self._unread()):
            partition = _partition(record)
            if partition not in first:
                one = self._subscription.assigned.get(partition)
                position = None if one is None else one.fetch_position
                first[partition] = position.before(record.offset) if position else GivenPosition(record.offset)
        return first


def _partition(record: Record) -> TopicPartition:
    return TopicPartition(record.topic or "", record.partition or 0)
