"""Transactions: the states of a producer with a transactional id, and its requests to coordinators.

A transaction is open from `begin` to `end`. What fails meanwhile is often only an abortable error: the transaction has
to be aborted, and the next one begins as if nothing had been. A fatal error ends the producer: the transactional id is
no longer its own, or coordinator and producer disagree. Which is which is in `produce_errors`.

With transaction version 1, every partition is added to the transaction before it is written to, and the epoch stays the
same. With version 2 (KIP-890; `transaction.version` of the cluster) writing adds the partition, and every end of a
transaction gives the producer a new epoch, so that nothing late can land in the next transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeVar

from tagwire import messages
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.config import MAX_IN_FLIGHT
from tagwire.client.coordinator_client import CoordinatorClient
from tagwire.client.coordinators import GROUP, TRANSACTION
from tagwire.client.network_client import NetworkClient
from tagwire.client.producing.end_txn import check_transaction_version, end
from tagwire.client.producing.idempotence import NonIdempotent
from tagwire.client.producing.partition_queue import PartitionQueue
from tagwire.client.producing.produce_errors import FATAL_OF_COORDINATOR, FATAL_OF_PRODUCE, FENCED, is_fatal
from tagwire.client.producing.producer_id import (
    NO_PRODUCER_ID,
    ProducerIdAndEpoch,
    ProducerIdentity,
    producer_id_in,
)
from tagwire.client.producing.record_accumulator import RecordAccumulator
from tagwire.client.retry import is_retriable
from tagwire.client.scheduling import Lock
from tagwire.codec import RequestMessage
from tagwire.errors import (
    ConfigError,
    Error,
    KafkaError,
    ProducerFencedError,
    RemoteProtocolError,
    RequestTimeoutError,
    TagwireError,
    TransactionStateError,
    UnsupportedVersionError,
    afresh,
)
from tagwire.partitions import TopicPartition
from tagwire.rpc.names import api_name
from tagwire.rpc.version_gates import (
    END_TXN_TRANSACTION_V2,
    INIT_PRODUCER_ID_BUMP,
    PRODUCE_TRANSACTION_V2,
    TXN_OFFSET_COMMIT_TRANSACTION_V2,
)
from tagwire.spec.api_keys import ApiKey

FEATURE: Final = "transaction.version"

Response = TypeVar("Response")


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """A member of a consumer group, on whose behalf offsets are committed (Kafka's ConsumerGroupMetadata); outside of
    any group, only its name."""

    group: str
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


class TransactionState(Enum):
    """The state of a producer with a transactional id (Kafka's TransactionManager.State)."""

    UNINITIALIZED = "init_transactions comes before it"
    READY = "begin_transaction comes before it"
    IN_TRANSACTION = "a transaction is open"
    COMMITTING_TRANSACTION = "the transaction is being committed; commit_transaction goes on with that"
    ABORTING_TRANSACTION = "the transaction is being aborted; abort_transaction goes on with that"
    ABORTABLE_ERROR = "the transaction has failed and is to be aborted"
    FATAL_ERROR = "the producer cannot be used any more"


def _not_now(state: TransactionState) -> TransactionStateError:
    return TransactionStateError(f"no record can be sent now: {state.value}")


class TransactionManager(NonIdempotent):
    """A producer with a transactional id. The states are for callers, the rest is for the sending thread.

    Attributes:
        state: where it is. last_error: why that is `ABORTABLE_ERROR` or `FATAL_ERROR`.
        transaction_version: of the current transaction, 1 or 2.

    Args:
        lock: held from looking at the state until the next one is entered, also by one who holds it already.
    """

    max_in_flight = MAX_IN_FLIGHT

    def __init__(
        self,
        network: NetworkClient,
        accumulator: RecordAccumulator[Any],
        transactional_id: str,
        timeout_ms: int,
        lock: AbstractContextManager[object],
    ) -> None:
        self.transactional_id: str = transactional_id
        self.state = TransactionState.UNINITIALIZED
        self.last_error: TagwireError | None = None
        self.transaction_version = 1
        self._network = network
        self._accumulator = accumulator
        self._timeout_ms = timeout_ms
        self._coordinator = CoordinatorClient(network, TRANSACTION, transactional_id)
        self._turn = Lock()  # one request at a time to the coordinator, in the order in which they were wanted
        self._groups: dict[str, CoordinatorClient] = {}
        self._partitions: set[TopicPartition] = set()
        self._is_started = False
        self._may_be_started = False  # nobody knows whether the coordinator did what was requested
        self._epoch_bump_required = False
        self._lock = lock
        self._number = 0  # of the transaction that is open, or was last
        self._was_committed = False
        self._is_outcome_told = True
        self.transition_to(TransactionState.UNINITIALIZED)

    # States --------------------------------------------------------------------------------------------------------

    def transition_to(self, state: TransactionState, error: TagwireError | None = None) -> None:
        """Goes to a state; records are taken only in `IN_TRANSACTION`."""
        with self._lock:
            self.state, self.last_error = state, error
            self.abort_reason = error
            if state is TransactionState.ABORTING_TRANSACTION:
                self.abort_reason = TransactionStateError("the transaction was aborted before this was delivered")
            self._accumulator.refuse(None if state is TransactionState.IN_TRANSACTION else error or _not_now(state))

    def require(self, *states: TransactionState, what: str) -> None:
        """Raises `last_error`, or TransactionStateError, unless in one of `states`."""
        if self.state in states:
            return
        if self.last_error is not None:
            raise afresh(self.last_error)
        raise TransactionStateError(f"{what}: {self.state.value}")

    def begin(self) -> None:
        """Opens a transaction. Raises TransactionStateError, or the fatal error."""
        with self._lock:
            self.require(TransactionState.READY, what="a transaction cannot begin")
            self._number += 1
            self._is_outcome_told = False
            self.transition_to(TransactionState.IN_TRANSACTION)

    def require_open(self, *, what: str) -> int:
        """The number of the transaction that is open. Raises as `begin`."""
        with self._lock:
            self.require(TransactionState.IN_TRANSACTION, what=what)
            return self._number

    def stop_appends(self) -> int:
        """Takes no more records into the open transaction: what other threads send while it is delivered would come
        after its end. The transaction's number. Raises as `begin`."""
        with self._lock:
            if self._has_ended_untold(commit=True):
                return self._number
            self.require(
                TransactionState.IN_TRANSACTION,
                TransactionState.COMMITTING_TRANSACTION,
                what="nothing can be committed",
            )
            self._accumulator.refuse(_not_now(TransactionState.COMMITTING_TRANSACTION))
            return self._number

    def begin_commit(self, number: int) -> None:
        """All of a transaction is delivered: `end` may commit it. Raises as `begin`, also where another is open."""
        with self._lock:
            self._require_still(number)
            if self._has_ended_untold(commit=True):
                return
            self.require(
                TransactionState.IN_TRANSACTION,
                TransactionState.COMMITTING_TRANSACTION,
                what="nothing can be committed",
            )
            self.transition_to(TransactionState.COMMITTING_TRANSACTION)

    def begin_abort(self) -> int:
        """Nothing more of the transaction is delivered. Its number. Raises as `begin`."""
        with self._lock:
            if self._has_ended_untold(commit=False):
                return self._number
            self.require(
                TransactionState.IN_TRANSACTION,
                TransactionState.ABORTABLE_ERROR,
                TransactionState.ABORTING_TRANSACTION,
                what="nothing can be aborted",
            )
            self.transition_to(TransactionState.ABORTING_TRANSACTION)
            return self._number

    def outcome_told(self) -> None:
        """Whoever ended the transaction knows that it has: until then the same call may be made again."""
        self._is_outcome_told = True

    def _has_ended_untold(self, *, commit: bool) -> bool:
        return self.state is TransactionState.READY and not self._is_outcome_told and self._was_committed is commit

    def _require_still(self, number: int) -> None:
        if number != self._number:
            raise TransactionStateError("the transaction has ended meanwhile, and another one has begun")

    def _transition_to_error(
        self, error: TagwireError, fatal: tuple[Error, ...] = FATAL_OF_COORDINATOR
    ) -> TagwireError:
        """The transaction has failed, or the producer where `error` is `fatal`. The error to raise."""
        with self._lock:
            if self.state is TransactionState.FATAL_ERROR and self.last_error is not None:
                return self.last_error
            if isinstance(error, KafkaError) and error.error in FENCED and error.error in fatal:
                error = ProducerFencedError(error.code, error.message)
            if is_fatal(error, fatal):
                self.transition_to(TransactionState.FATAL_ERROR, error)
            elif self.state is not TransactionState.ABORTING_TRANSACTION:
                self.transition_to(TransactionState.ABORTABLE_ERROR, error)
            return error

    def _transition_unless_unknown(self, error: TagwireError) -> TagwireError:
        """`_transition_to_error`, except where the same request may succeed later."""
        unknown = is_retriable(error) or isinstance(error, RequestTimeoutError)
        return error if unknown else self._transition_to_error(error)

    # What the sender asks ------------------------------------------------------------------------------------------

    def produce_version(self, connection: BrokerConnection, api: int, highest: int | None) -> int:
        if self.transaction_version == 1:
            return connection.version(api, PRODUCE_TRANSACTION_V2 - 1)
        return _version_from(connection, api, PRODUCE_TRANSACTION_V2, highest)

    def partitions_to_add(
        self, partitions: Iterable[TopicPartition], connection: BrokerConnection
    ) -> list[TopicPartition]:
        self._settle_on_version(connection, ApiKey.PRODUCE, PRODUCE_TRANSACTION_V2)
        new = [tp for tp in partitions if tp not in self._partitions]
        if self.transaction_version == 1 or not new:
            return new
        self._partitions.update(new)  # writing to them adds them
        self._is_started = True
        return []

    async def add_partitions(self, partitions: list[TopicPartition], deadline: float) -> None:
        async with self._turn:
            if self.abort_reason is not None:  # what is aborted needs no other partition
                raise self.abort_reason
            try:
                await self._add(partitions, deadline)
            except TagwireError as error:
                self._may_be_started = True
                raise self._transition_unless_unknown(error) from error.__cause__
            self._partitions.update(partitions)
            self._is_started = True

    async def _add(self, partitions: list[TopicPartition], deadline: float) -> None:
        topics: dict[str, list[int]] = defaultdict(list)
        for topic, partition in partitions:
            topics[topic].append(partition)
        kind = messages.AddPartitionsToTxnRequest
        await self._send(
            lambda connection: kind(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self.producer.producer_id,
                v3_and_below_producer_epoch=self.producer.epoch,
                v3_and_below_topics=[
                    kind.AddPartitionsToTxnTopic(name=name, partitions=own) for name, own in topics.items()
                ],
            ),
            lambda response: _codes(
                partitions,
                (
                    (TopicPartition(topic.name, found.partition_index), found.partition_error_code)
                    for topic in response.results_by_topic_v3_and_below
                    for found in topic.results_by_partition
                ),
            ),
            deadline,
            "add partitions to the transaction",
        )

    def handle_failed_batch(self, queue: PartitionQueue, error: TagwireError) -> TagwireError:
        # With version 2 the end gives another epoch. Where there is none, since nothing was sent, the numbers go on.
        if self.transaction_version == 1 or self._is_started:
            queue.sequences.must_reset = True
            self._epoch_bump_required = True
        return (
            self._transition_to_error(error, FATAL_OF_PRODUCE)
            if self.state is TransactionState.IN_TRANSACTION
            else error
        )

    # What callers ask of the thread --------------------------------------------------------------------------------

    async def init_transactions(self, deadline: float, *, once: bool = False) -> None:
        """Takes the id over: whoever had it is fenced, and their open transaction aborted. `once`: see
        `CoordinatorClient.send`."""
        async with self._turn:
            with self._lock:
                self.require(
                    TransactionState.UNINITIALIZED,
                    TransactionState.READY,
                    what="the transactional id cannot be taken over",
                )
                self.transition_to(
                    TransactionState.UNINITIALIZED
                )  # what began meanwhile would be aborted, or be fenced
            await self._init_producer_id(NO_PRODUCER_ID, deadline, once=once)
            self.transition_to(TransactionState.READY)

    def resume(self, identity: ProducerIdentity) -> None:
        """Goes on as another producer that is not used any more, without a request."""
        check_transaction_version(identity.transaction_version)
        if identity.sequences is None:  # from 0 on, what comes would be taken for what was written before
            raise ConfigError(
                "resume: of a transaction of version 1 end_transaction knows no sequence numbers; take those of the "
                "identity of the producer that wrote it: dataclasses.replace(ended, sequences=identity.sequences)"
            )
        with self._lock:
            self.require(TransactionState.UNINITIALIZED, what="another producer's identity cannot be taken")
            self.producer = ProducerIdAndEpoch(identity.producer_id, identity.epoch)
            self.transaction_version = identity.transaction_version
            self.transition_to(TransactionState.READY)

    async def end(self, number: int, *, commit: bool, deadline: float) -> None:
        """Commits or aborts a transaction. No batch may be in flight any more."""
        async with self._turn:
            self._require_still(number)
            if self.state is TransactionState.READY and self._was_committed is commit:
                return  # an earlier call has ended it, after its caller had given up waiting
            self.require(
                TransactionState.COMMITTING_TRANSACTION if commit else TransactionState.ABORTING_TRANSACTION,
                what="nothing can be ended",
            )
            if self._is_started:
                try:
                    await self._ended(commit, deadline)
                except TagwireError as error:
                    raise self._transition_unless_unknown(error) from error.__cause__
                self._is_started = self._may_be_started = False
            if (self._epoch_bump_required or self._may_be_started) and self.transaction_version == 1:
                await self._bump_epoch(deadline)
            self._partitions.clear()
            self._epoch_bump_required = self._may_be_started = False
            await self._choose_transaction_version(deadline)
            with self._lock:
                self._was_committed = commit
                self.transition_to(TransactionState.READY)

    async def commit_offsets(
        self, number: int, offsets: Mapping[TopicPartition, tuple[int, int, str]], group: GroupMetadata, deadline: float
    ) -> None:
        """Makes offsets part of a transaction: (offset, leader epoch, metadata) of each partition."""
        async with self._turn:
            self._require_still(number)
            self.require(TransactionState.IN_TRANSACTION, what="offsets cannot be sent")
            await self._commit_offsets(offsets, group, deadline)

    async def _commit_offsets(
        self, offsets: Mapping[TopicPartition, tuple[int, int, str]], group: GroupMetadata, deadline: float
    ) -> None:
        if self.transaction_version > 1 and not self._is_started:
            with suppress(TagwireError):  # said of whatever is asked of the coordinator
                coordinator = await self._coordinator.connection(min(deadline, self._network.deadline()))
                self._settle_on_version(coordinator, ApiKey.END_TXN, END_TXN_TRANSACTION_V2)
        try:
            if self.transaction_version == 1:
                kind = messages.AddOffsetsToTxnRequest
                self._may_be_started = True
                await self._send(
                    lambda connection: kind(
                        transactional_id=self.transactional_id,
                        producer_id=self.producer.producer_id,
                        producer_epoch=self.producer.epoch,
                        group_id=group.group,
                    ),
                    lambda response: [response.error_code],
                    deadline,
                    f"add offsets of group {group.group!r} to the transaction",
                )
            self._is_started = True
            await self._groups.setdefault(group.group, CoordinatorClient(self._network, GROUP, group.group)).send(
                lambda connection: self._offset_commit(connection, offsets, group),
                lambda response: _codes(
                    offsets,
                    (
                        (TopicPartition(topic.name, found.partition_index), found.error_code)
                        for topic in response.topics
                        for found in topic.partitions
                    ),
                ),
                deadline,
                f"commit offsets of group {group.group!r} in the transaction",
                highest=TXN_OFFSET_COMMIT_TRANSACTION_V2 - (self.transaction_version == 1),
            )
        except TagwireError as error:
            raise self._transition_to_error(error) from error

    def _offset_commit(
        self, connection: BrokerConnection, offsets: Mapping[TopicPartition, tuple[int, int, str]], group: GroupMetadata
    ) -> messages.TxnOffsetCommitRequest:
        kind = messages.TxnOffsetCommitRequest
        if self.transaction_version > 1:  # else no end would come to them
            _version_from(connection, kind.api_key, TXN_OFFSET_COMMIT_TRANSACTION_V2)
        topics: dict[str, list[messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition]] = defaultdict(list)
        for tp, (offset, leader_epoch, metadata) in offsets.items():
            topics[tp.topic].append(
                kind.TxnOffsetCommitRequestPartition(
                    partition_index=tp.partition,
                    committed_offset=offset,
                    committed_leader_epoch=leader_epoch,
                    committed_metadata=metadata,
                )
            )
        return kind(
            transactional_id=self.transactional_id,
            group_id=group.group,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            generation_id_or_member_epoch=group.generation,
            member_id=group.member_id,
            group_instance_id=group.instance_id,
            topics=[kind.TxnOffsetCommitRequestTopic(name=name, partitions=own) for name, own in topics.items()],
        )

    async def _ended(self, commit: bool, deadline: float) -> None:
        self.producer = await end(
            self._coordinator,
            self.transactional_id,
            self.producer,
            commit=commit,
            transaction_version=self.transaction_version,
            deadline=deadline,
        )

    async def _bump_epoch(self, deadline: float) -> None:
        """Gets a new epoch: the partitions may expect the sequence numbers of batches that were failed."""
        try:
            await self._init_producer_id(self.producer, deadline)
        except TagwireError as error:
            raise self._transition_to_error(error) from error

    async def _init_producer_id(self, current: ProducerIdAndEpoch, deadline: float, *, once: bool = False) -> None:
        def request(connection: BrokerConnection) -> messages.InitProducerIdRequest:
            kind = messages.InitProducerIdRequest
            if current != NO_PRODUCER_ID and connection.version(kind.api_key) < INIT_PRODUCER_ID_BUMP:
                raise UnsupportedVersionError(
                    f"{connection.broker} cannot give transactional id {self.transactional_id!r} a new epoch, which "
                    f"needs InitProducerId v{INIT_PRODUCER_ID_BUMP} (Kafka 2.5)"
                )
            return kind(
                transactional_id=self.transactional_id,
                transaction_timeout_ms=self._timeout_ms,
                producer_id=current.producer_id,
                producer_epoch=current.epoch,
            )

        response = await self._send(request, lambda response: [response.error_code], deadline, "initialize", once=once)
        self.producer = producer_id_in(response)
        await self._choose_transaction_version(deadline)

    async def _choose_transaction_version(self, deadline: float) -> None:
        """A cluster may settle on another transaction version between two transactions."""
        if self._network.finalized.finalized.get(FEATURE, 0) < 2:
            self.transaction_version = 1
        elif self.transaction_version < 2:
            try:
                speaks = (await self._coordinator.connection(deadline)).version(ApiKey.END_TXN)
            except TagwireError:  # the last transaction has ended well, whatever there is to say of the next one
                return
            self.transaction_version = 2 if speaks >= END_TXN_TRANSACTION_V2 else 1

    def _settle_on_version(self, connection: BrokerConnection, api: int, lowest: int) -> None:
        """Before anything is in the transaction: its version is 1 where the broker has come back meanwhile as a release
        that has no other."""
        if self.transaction_version == 1 or self._is_started:
            return
        with suppress(UnsupportedVersionError):  # said of whatever is to be sent
            if connection.version(api) < lowest:
                self.transaction_version = 1

    async def _send(
        self,
        request: Callable[[BrokerConnection], RequestMessage[Response]],
        errors: Callable[[Response], Iterable[int]],
        deadline: float,
        what: str,
        *,
        once: bool = False,
    ) -> Response:
        of = f"{what}, transactional id {self.transactional_id!r}"
        return await self._coordinator.send(request, errors, deadline, of, once=once)


def _version_from(connection: BrokerConnection, api: int, lowest: int, highest: int | None = None) -> int:
    """The version of an API to use in a transaction of version 2. Raises UnsupportedVersionError where the broker has
    none from `lowest` on."""
    version = connection.version(api, highest)
    if version < lowest:
        raise UnsupportedVersionError(
            f"{connection.broker}: {api_name(api)} v{version} cannot take part in a transaction of a cluster "
            f"whose {FEATURE} is 2"
        )
    return version


def _codes(requested: Iterable[TopicPartition], told: Iterable[tuple[TopicPartition, int]]) -> list[int]:
    """The error codes of a response about partitions, 0 for none; of one partition that is refused, not also those of
    the others, which were not attempted. Raises RemoteProtocolError where all that it tells of went well, and a
    partition is left out."""
    codes = dict(told)
    refused = [code for code in codes.values() if code]
    if not refused and (silent := set(requested) - codes.keys()):
        raise RemoteProtocolError(f"no word of {min(silent)} in the response")
    return [code for code in refused if code != Error.OPERATION_NOT_ATTEMPTED] or refused
