"""What a Producer does, for whichever face: one whose callers' threads wait, or one whose tasks do.

Its coroutines await a `CoreHost` and a `Completion` alone, and never more: with those of a thread, which block, they go
to their end at once (`scheduling.completed`); with those of an event loop they are awaited.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from tagwire.client import arguments, process
from tagwire.client.admin.group_offsets import OffsetAndMetadata, committable
from tagwire.client.config import ProduceSettings, seconds
from tagwire.client.core_host import CoreHost
from tagwire.client.metadata import PartitionMetadata
from tagwire.client.metrics import MetricValues
from tagwire.client.network_client import NetworkClient
from tagwire.client.option_types import of_type
from tagwire.client.producing.encoded_values import Unplanned, ValueEncoding
from tagwire.client.producing.idempotence import Idempotent, NonIdempotent
from tagwire.client.producing.partitioner import TopicPartitioner
from tagwire.client.producing.producer_batch import ProducerBatch
from tagwire.client.producing.producer_id import ProducerIdentity
from tagwire.client.producing.producer_metadata import ProducerMetadata
from tagwire.client.producing.record_accumulator import NEVER, Claim, RecordAccumulator, RecordDelivery
from tagwire.client.producing.record_checks import check_destination, milliseconds, size_of, whole_number
from tagwire.client.producing.send_line import Place, SendLine
from tagwire.client.producing.sender import Sender
from tagwire.client.producing.settings import EncodingSettings
from tagwire.client.producing.transaction_manager import GroupMetadata, TransactionManager, TransactionState
from tagwire.client.property_values import wrong
from tagwire.client.scheduling import Tasks, Work
from tagwire.errors import (
    EncodeError,
    Error,
    KafkaError,
    ProducerFencedError,
    TagwireError,
    TransactionStateError,
)
from tagwire.kernel.record_writing import as_headers
from tagwire.partitions import TopicPartition
from tagwire.records import Record
from tagwire.records.record import HeaderKey, Headers

if TYPE_CHECKING:
    import pyarrow as pa

Result = TypeVar("Result")

GivenHeaders = Sequence[tuple[HeaderKey, Any]] | Mapping[str, Any] | Mapping[int, Any]
"""Headers as `Producer.send` takes them."""

GivenValue = bytes | Mapping[str, Any] | list[Any] | int | float | date | Decimal | None
"""Keys and values as `Producer.send` takes them: bytes, or what Python has for a schema's type. Text is taken, too, but
type checkers are not told so: mostly it stands there by mistake."""

_LATEST_TIMESTAMP: Final = 2**63 - 1

# As which headers are mostly given.
_PAIRED: Final = (list, tuple)

# Seconds that anything waits at most: what systems wait for has bounds of its own.
_LONGEST_WAIT: Final = 1e9


class ProducerCore(Generic[RecordDelivery]):
    """The rules of a Producer. `start` comes first; whoever appends may do so from any thread of the host's process.

    Attributes:
        sender, tasks: the work that the host is to do all the time, and what runs beside it.

    Args:
        network: connections of its own.
        lock: one that is held from looking at the state of transactions until the next one is entered, also by one who
            holds it already.
        line: of the callers that wait before they append.
    """

    def __init__(
        self,
        network: NetworkClient,
        settings: ProduceSettings,
        encoding: EncodingSettings,
        accumulator: RecordAccumulator[RecordDelivery],
        lock: AbstractContextManager[object],
        line: SendLine | None = None,
    ) -> None:
        self.tasks = Tasks()
        self._line = SendLine() if line is None else line
        self._waited_for = self._line.topics
        self._made_in = process.current
        self._settings = settings
        self._encoding = encoding
        self._header_keys = str if settings.dialect is None else int
        self._changes_records = encoding.changes_records
        self._values = None if encoding.formats is None else ValueEncoding(encoding.formats)
        self._now = network.now
        self._metrics = network.metrics
        self._metadata = ProducerMetadata(network, settings)
        self._accumulator = accumulator
        self._idempotence = _idempotence(network, settings, accumulator, lock)
        self.sender = Sender(network, self.tasks, settings, self._metadata, accumulator, self._idempotence)

    def start(self, host: CoreHost) -> None:
        """Takes what runs `sender` and `tasks`, once."""
        self._host = host

    # Records -------------------------------------------------------------------------------------------------------

    def append(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: GivenHeaders,
        timestamp: int,
        partition: int | None,
        on_delivery: Callable[[RecordDelivery], object] | None = None,
    ) -> RecordDelivery | Coroutine[Any, Any, RecordDelivery]:
        """Appends a record to a batch; where something has to be waited for before, a coroutine that does.

        Takes and raises what `Producer.send` does; the coroutine, too.
        """
        if self._made_in is not process.current:
            self._require_process()
        if type(timestamp) is not int:
            timestamp = milliseconds(timestamp)
        pairs: Headers = ()
        if headers:
            # Whether something is a Mapping takes longer to ask than a header to write.
            if type(headers) not in _PAIRED and isinstance(headers, Mapping):
                headers = tuple(headers.items())
            pairs = as_headers(headers, f"record for {topic}")  # the caller may go on with the list
        record = Record(key, value, pairs, timestamp)
        if self._changes_records:
            record = self._encoding.prepared(topic, record)
            key, value, pairs, timestamp = record.key, record.value, record.headers, milliseconds(record.timestamp)
        if self._values is not None:
            return self._append_encoded(self._values, topic, record, partition, on_delivery)
        try:
            if not -1 <= timestamp <= _LATEST_TIMESTAMP:
                raise EncodeError(f"timestamp {timestamp} of a record is out of range")
            size = size_of(key, value, pairs, self._header_keys)
            partitioner = self._metadata.get(topic)
            if (
                partitioner is not None
                and (partition is None or partition < len(partitioner))
                and (topic not in self._waited_for or self._line.has_passed(topic))
            ):
                if partition is None and partitioner.asks:
                    partition = partitioner.asked(record)
                delivery = self._accumulator.append(partitioner, record, size, partition, on_delivery)
                if delivery is not None:
                    return delivery
            return self._append_later(topic, record, size, partition, on_delivery, self._accumulator.refused)
        except TypeError:
            check_destination(topic, partition)
            raise

    async def _append_encoded(
        self,
        values: ValueEncoding,
        topic: str,
        record: Record,
        partition: int | None,
        on_delivery: Callable[[RecordDelivery], object] | None,
    ) -> RecordDelivery:
        check_destination(topic, partition)
        since = self._accumulator.refused
        with self._line.place(topic) as place:
            while True:
                try:
                    encoded = values.record(topic, record)
                    break
                except Unplanned as due:
                    await self._host.aside(due.call)
            timestamp = milliseconds(encoded.timestamp)
            if not -1 <= timestamp <= _LATEST_TIMESTAMP:
                raise EncodeError(f"timestamp {timestamp} of a record is out of range")
            size = size_of(encoded.key, encoded.value, encoded.headers, self._header_keys)
            until = self._room_by()
            return await self._append_from(place, topic, encoded, size, partition, on_delivery, since, until)

    async def _append_later(
        self,
        topic: str,
        record: Record,
        size: int,
        partition: int | None,
        on_delivery: Callable[[RecordDelivery], object] | None,
        since: int,
    ) -> RecordDelivery:
        until = self._room_by()  # of one budget with the metadata, as in Kafka's KafkaProducer
        try:
            await self._existing(topic, partition)
            with self._line.place(topic) as place:
                return await self._append_from(place, topic, record, size, partition, on_delivery, since, until)
        except TypeError:
            check_destination(topic, partition)
            raise

    async def _append_from(
        self,
        place: Place,
        topic: str,
        record: Record,
        size: int,
        partition: int | None,
        on_delivery: Callable[[RecordDelivery], object] | None,
        since: int,
        until: float,
    ) -> RecordDelivery:
        accumulator = self._accumulator
        partitioner = await self._topic(topic, partition)
        await place.turn()
        if partition is None and partitioner.asks:
            partition = partitioner.asked(record)
        claim: Claim | None = None
        try:
            while True:
                with accumulator.completion.held():
                    accumulator.require_since(since)
                    delivery = accumulator.append(partitioner, record, size, partition, on_delivery, claim)
                if delivery is not None:
                    return delivery
                claim = claim or accumulator.claim(size, until)
                await accumulator.room(size, until, claim)
        finally:
            if claim is not None:
                accumulator.release(claim)

    async def send_batch(self, topic: str, partition: int, data: bytes) -> RecordDelivery:
        """As `Producer.send_batch`."""
        partition = whole_number("partition", partition)
        check_destination(topic, partition)
        since, until = self._accumulator.refused, self._room_by()
        await self._existing(topic, partition)
        with self._line.place(topic) as place:
            tp = (await self._topic(topic, partition)).checked(partition)
            batch = self._accumulator.encoded(tp, data, is_unsplittable=True)
            await place.turn()
            await self._append_batch(batch, since, until)
        return self._accumulator.delivery(batch, 0)

    async def send_arrow(
        self, topic: str, rows: pa.RecordBatch | pa.Table, partition: int | None, now_ms: int
    ) -> list[ProducerBatch]:
        """The batches of `Producer.send_arrow`. Takes and raises what that does.

        Args:
            now_ms: the timestamp of rows that have none.
        """
        from tagwire.client.producing.arrow_rows import MAX_BATCH_BYTES, check_rows, greatest_partition, row_batches

        check_rows(rows)
        since = self._accumulator.refused
        if partition is not None:
            partition = whole_number("partition", partition)
        check_destination(topic, partition)
        greatest = greatest_partition(rows) if partition is None else partition
        batches: list[ProducerBatch] = []
        await self._existing(topic, greatest)
        with self._line.place(topic) as place:
            if self._values is not None:
                rows = await self._encoded_rows(self._values, topic, rows)
            partitioner = await self._topic(topic, greatest)
            size = max(self._settings.batch_bytes, MAX_BATCH_BYTES)
            dialect, register = self._settings.dialect, self._encoding.register
            await place.turn()
            for tp, data in row_batches(rows, partitioner, partition, size, now_ms, dialect, register):
                batch = self._accumulator.encoded(tp, data, level=partitioner.level)
                await self._append_batch(batch, since, self._room_by())
                batches.append(batch)
        return batches

    async def _encoded_rows(
        self, values: ValueEncoding, topic: str, rows: pa.RecordBatch | pa.Table
    ) -> pa.RecordBatch | pa.Table:
        check_destination(topic, None)
        found: list[pa.RecordBatch | pa.Table] = []
        await self._host.aside(lambda: found.append(values.rows(topic, rows)))
        return found[0]

    async def partitions_for(self, topic: str, timeout: float | None) -> dict[int, PartitionMetadata]:
        """As `Producer.partitions_for`."""
        name = arguments.name("topic", topic)
        return await self._call(lambda deadline: self._metadata.partitions(name, deadline), timeout)

    @property
    def pending(self) -> int:
        """How many records are neither delivered nor failed."""
        self._require_process()
        return self._accumulator.pending_records

    def metrics(self) -> MetricValues:
        """As `Producer.metrics`."""
        return self._metrics.values("producer")

    async def flush(self, timeout: float | None = None) -> None:
        """As `Producer.flush`."""
        seconds("timeout", timeout)
        self._host.require_waitable()
        with self.sender.metrics.timed("flush"):
            await self._accumulator.flush(self._deadline(timeout))

    async def close(self, timeout: float | None, *, abort: bool) -> None:
        """What comes before the end of the host, which the face ends in any case: as `Producer.close`."""
        if self._host.is_over:
            return
        transactions = self._idempotence
        if not isinstance(transactions, TransactionManager):
            await self.flush(timeout)
        elif abort and transactions.state is TransactionState.COMMITTING_TRANSACTION:  # decided, and not all have heard
            with suppress(TransactionStateError):  # of another thread's call that has just ended it
                await self.commit_transaction(timeout)
        elif abort and transactions.state in (
            TransactionState.IN_TRANSACTION,
            TransactionState.ABORTABLE_ERROR,
            TransactionState.ABORTING_TRANSACTION,
        ):
            await self.abort_transaction(timeout)

    # Transactions --------------------------------------------------------------------------------------------------

    async def identity(self) -> ProducerIdentity:
        """As `Producer.identity`."""
        idempotence = self._idempotence
        sequences = await self._call(lambda deadline: _at_once(self.sender.sequences), None)
        version = idempotence.transaction_version if isinstance(idempotence, TransactionManager) else 0
        return ProducerIdentity(*idempotence.producer, version, sequences)

    async def init_transactions(
        self, timeout: float | None = None, *, resume: ProducerIdentity | None = None, once: bool = False
    ) -> None:
        """As `Producer.init_transactions`."""
        transactions = self._transactions()
        of_type("resume", resume, ProducerIdentity, "the identity of a producer")
        if resume is None:
            with self.sender.metrics.timed("txn-init"):
                await self._call(lambda deadline: transactions.init_transactions(deadline, once=once), timeout)
        else:
            transactions.resume(resume)
            producer = transactions.producer
            await self._call(lambda deadline: _at_once(self.sender.resume, producer, resume.sequences or {}), timeout)

    def begin_transaction(self) -> None:
        """As `Producer.begin_transaction`."""
        transactions = self._transactions()
        with self.sender.metrics.timed("txn-begin"):
            transactions.begin()

    async def send_offsets(
        self, offsets: Mapping[arguments.PartitionT, int | OffsetAndMetadata], group: str | GroupMetadata
    ) -> None:
        """As `Producer.send_offsets`."""
        transactions = self._transactions()
        number = transactions.require_open(what="offsets cannot be sent")
        wanted = {
            partition: _committed(partition, offset)
            for partition, offset in arguments.by_topic_partition("offsets", offsets, "42").items()
        }
        member = group if isinstance(group, GroupMetadata) else GroupMetadata(arguments.name("group", group))
        if not wanted:
            return  # no coordinator would add the group, and with nothing else in it there is no transaction to commit
        with self.sender.metrics.timed("txn-send-offsets"):
            await self._call(lambda deadline: transactions.commit_offsets(number, wanted, member, deadline), None)

    async def commit_transaction(self, timeout: float | None = None) -> None:
        """As `Producer.commit_transaction`."""
        transactions = self._transactions()
        seconds("timeout", timeout)
        number = transactions.stop_appends()
        if transactions.state is TransactionState.IN_TRANSACTION:
            await self.flush()
        transactions.begin_commit(number)
        with self.sender.metrics.timed("txn-commit"):
            await self._call(lambda deadline: transactions.end(number, commit=True, deadline=deadline), timeout)
        transactions.outcome_told()

    async def abort_transaction(self, timeout: float | None = None) -> None:
        """As `Producer.abort_transaction`."""
        transactions = self._transactions()
        seconds("timeout", timeout)
        self._host.require_waitable()
        number = transactions.begin_abort()
        self._host.wakeup()
        await self._accumulator.await_completion(self._deadline(timeout))
        with self.sender.metrics.timed("txn-abort"):
            await self._call(lambda deadline: transactions.end(number, commit=False, deadline=deadline), timeout)
        transactions.outcome_told()

    async def abort_after_error(self, raised: BaseException) -> None:
        """Aborts, unless the transaction is beyond that, because of an error that is raised anyway; when that fails
        too, the coordinator's timeout aborts.

        Raises:
            ProducerFencedError: that is what `raised`, a leader's INVALID_PRODUCER_EPOCH, was about: with transaction
                version 2 no coordinator was asked before.
        """
        if self._transactions().state in (TransactionState.IN_TRANSACTION, TransactionState.ABORTABLE_ERROR):
            try:
                await self.abort_transaction()
            except ProducerFencedError:
                if isinstance(raised, KafkaError) and raised.error is Error.INVALID_PRODUCER_EPOCH:
                    raise
            except TagwireError:
                return

    def _transactions(self) -> TransactionManager:
        self._require_process()
        if not isinstance(self._idempotence, TransactionManager):
            raise TransactionStateError("the producer has no transactional_id")
        return self._idempotence

    # Parts ---------------------------------------------------------------------------------------------------------

    def _require_process(self) -> None:
        """Asked before any lock is taken that the host, too, takes."""
        process.require(self._made_in, "producer")

    def _deadline(self, timeout: float | None) -> float:
        return NEVER if timeout is None else self._now() + timeout

    def _room_by(self) -> float:
        """Until when room is waited for."""
        return self._now() + (self._settings.max_block if self._settings.block_on_buffer_full else 0.0)

    async def _append_batch(self, batch: ProducerBatch, since: int, until: float) -> None:
        accumulator = self._accumulator
        claim: Claim | None = None
        try:
            while not accumulator.append_batch(batch, since, claim):
                claim = claim or accumulator.claim(batch.size, until)
                await accumulator.room(batch.size, until, claim)
        finally:
            if claim is not None:
                accumulator.release(claim)

    async def _existing(self, name: str, partition: int | None) -> None:
        """Waits for a partition that the topic is not known to have. Nobody stands in line behind that: it may never
        have it."""
        known = self._metadata.get(name)
        if known is not None and partition is not None and partition >= len(known):
            await self._topic(name, partition)

    async def _topic(self, name: str, partition: int | None = None) -> TopicPartitioner:
        """The partitioner of a topic; if it lacks `partition`, as the cluster has it now."""
        if not isinstance(name, str):
            raise EncodeError(f'topic of a record must be text, such as "orders", not {type(name).__name__}')
        known: TopicPartitioner | None = self._metadata.get(name)
        if known is not None and (partition is None or partition < len(known)):
            return known
        with self.sender.metrics.timed("metadata-wait"):
            return await self._call(lambda deadline: self._metadata.fetch(name, deadline, partition), None)

    async def _call(self, function: Callable[[float], Work[Result]], timeout: float | None) -> Result:
        """Lets the host run what `function` begins, with its deadline."""
        seconds("timeout", timeout)
        limit = self._settings.max_block if timeout is None else timeout
        deadline = self._now() + min(limit, _LONGEST_WAIT)
        return await self._host.result(lambda: function(deadline), deadline)


async def _at_once(function: Callable[..., Result], *arguments: Any) -> Result:
    return function(*arguments)


def _idempotence(
    network: NetworkClient,
    settings: ProduceSettings,
    accumulator: RecordAccumulator[Any],
    lock: AbstractContextManager[object],
) -> NonIdempotent:
    if settings.transactional_id is not None:
        timeout_ms = int(settings.transaction_timeout * 1000)
        return TransactionManager(network, accumulator, settings.transactional_id, timeout_ms, lock)
    return Idempotent(network) if settings.idempotence else NonIdempotent()


def _committed(partition: TopicPartition, given: object) -> tuple[int, int, str]:
    if isinstance(given, OffsetAndMetadata):
        committable(partition, given.offset)
        return given.offset, given.leader_epoch, given.metadata
    offset = arguments.whole(given)
    if offset is None:
        raise wrong(f"offsets: {partition}", arguments.shown(given), "an offset, or an OffsetAndMetadata")
    return committable(partition, offset).offset, -1, ""
