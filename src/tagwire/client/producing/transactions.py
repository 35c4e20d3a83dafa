"""Transactions: the states of a producer with a transactional id, and what it asks of coordinators.

A transaction is open from `begin` to `end`. What fails meanwhile dooms the transaction, and often only that: it has to
be aborted, and the next one begins as if nothing had been. What means that the id is no longer this producer's, or that
coordinator and producer disagree, dooms the producer. Which error is which follows Kafka's producer.

Two versions of the protocol are in use. In the first, every partition is announced before it is written to, and the
epoch stays the same. In the second (KIP-890; `transaction.version` 2 of the cluster) writing is announcing, and every
end of a transaction gives the producer a new epoch, so that nothing late can land in the next transaction.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from tagwire import messages
from tagwire.client.cluster import Cluster
from tagwire.client.coordinators import GROUP, TRANSACTION
from tagwire.client.producing.delivery import NOBODY, Identity
from tagwire.client.producing.ending import END_TXN, ProducerIdentity, check_protocol, end
from tagwire.client.producing.gathering import Gathering
from tagwire.client.producing.lanes import Lane
from tagwire.client.producing.numbering import WINDOW, Coordinator, Numbering, identity_in
from tagwire.client.retry import is_retriable
from tagwire.client.scheduling import Turn
from tagwire.client.transport import Link
from tagwire.errors import (
    Error,
    KafkaError,
    ProducerFencedError,
    RemoteProtocolError,
    RequestTimeoutError,
    TagwireError,
    TransactionStateError,
    UnsupportedVersionError,
)
from tagwire.partitions import TopicPartition
from tagwire.rpc.version_gates import (
    END_TXN_TRANSACTION_V2,
    PRODUCE_TRANSACTION_V2,
    TXN_OFFSET_COMMIT_TRANSACTION_V2,
)

FEATURE: Final = "transaction.version"

# From this version on a producer may ask for a new epoch of its own (KIP-360).
RENEW_FROM: Final = 3

_FENCED: Final = (Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH)

# What a coordinator says to a producer that cannot go on at all.
_FATAL: Final = (
    *_FENCED,
    Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    Error.CLUSTER_AUTHORIZATION_FAILED,
    Error.INVALID_PRODUCER_ID_MAPPING,
    Error.INVALID_TXN_STATE,
    Error.INVALID_TRANSACTION_TIMEOUT,
    Error.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    Error.UNSUPPORTED_VERSION,
)
# A partition says these two of one transaction: it ended meanwhile, and the next one is good.
_FATAL_OF_PRODUCE: Final = tuple(
    error for error in _FATAL if error not in (Error.INVALID_PRODUCER_EPOCH, Error.INVALID_TXN_STATE)
)


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """A member of a consumer group, on whose behalf offsets are committed; outside of any group, only its name."""

    group: str
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


class Stage(Enum):
    """Where a transactional producer is."""

    NEW = "init_transactions comes before it"
    READY = "begin_transaction comes before it"
    OPEN = "a transaction is open"
    COMMITTING = "the transaction is being committed; commit_transaction goes on with that"
    ABORTING = "the transaction is being aborted; abort_transaction goes on with that"
    FAILED = "the transaction has failed and is to be aborted"
    DEAD = "the producer cannot be used any more"


def _not_now(stage: Stage) -> TransactionStateError:
    return TransactionStateError(f"no record can be sent now: {stage.value}")


class Transactional(Numbering):
    """A producer with a transactional id. `begin` and the stages are for callers, the rest for the sending thread.

    Attributes:
        stage: where it is. error: why it is `FAILED` or `DEAD`.
        version: the protocol that the current transaction uses, 1 or 2.
    """

    window = WINDOW

    def __init__(self, cluster: Cluster, gathering: Gathering, transactional_id: str, timeout_ms: int) -> None:
        self.transactional_id: str = transactional_id
        self.stage = Stage.NEW
        self.error: TagwireError | None = None
        self.version = 1
        self._cluster = cluster
        self._gathering = gathering
        self._timeout_ms = timeout_ms
        self._coordinator = Coordinator(cluster, TRANSACTION, transactional_id)
        self._turn = Turn()  # the coordinator is asked one thing at a time, in the order in which it was wanted
        self._groups: dict[str, Coordinator] = {}
        self._told: set[TopicPartition] = set()
        self._is_begun = False
        self._may_be_begun = False  # nobody knows whether the coordinator did what it was asked
        self._needs_epoch = False
        self._lock = threading.RLock()  # from looking at a stage until the next one is entered
        self._number = 0  # of the transaction that is open, or was last
        self._was_committed = False
        self.enter(Stage.NEW)

    # Stages --------------------------------------------------------------------------------------------------------

    def enter(self, stage: Stage, error: TagwireError | None = None) -> None:
        """Goes to a stage; records are taken only in `OPEN`."""
        with self._lock:
            self.stage, self.error = stage, error
            self.doom = error
            if stage is Stage.ABORTING:
                self.doom = TransactionStateError("the transaction was aborted before this was delivered")
            self._gathering.refuse(None if stage is Stage.OPEN else error or _not_now(stage))

    def require(self, *stages: Stage, what: str) -> None:
        """Raises the error that doomed transaction or producer, or TransactionStateError, unless at such a stage."""
        if self.stage in stages:
            return
        if self.error is not None:
            raise self.error
        raise TransactionStateError(f"{what}: {self.stage.value}")

    def begin(self) -> None:
        """Opens a transaction. Raises TransactionStateError, or what doomed the producer."""
        with self._lock:
            self.require(Stage.READY, what="a transaction cannot begin")
            self._number += 1
            self.enter(Stage.OPEN)

    def seal(self) -> int:
        """Takes no more records into the open transaction: what other threads hand over while it is delivered would
        come after its end. The transaction's number. Raises as `begin`."""
        with self._lock:
            self.require(Stage.OPEN, Stage.COMMITTING, what="nothing can be committed")
            self._gathering.refuse(_not_now(Stage.COMMITTING))
            return self._number

    def commit(self, number: int) -> None:
        """All of a transaction is delivered: `end` may commit it. Raises as `begin`, also where another is open."""
        with self._lock:
            self._require_still(number)
            self.require(Stage.OPEN, Stage.COMMITTING, what="nothing can be committed")
            self.enter(Stage.COMMITTING)

    def abort(self) -> int:
        """Nothing more of the transaction is delivered. Its number. Raises as `begin`."""
        with self._lock:
            self.require(Stage.OPEN, Stage.FAILED, Stage.ABORTING, what="nothing can be aborted")
            self.enter(Stage.ABORTING)
            return self._number

    def _require_still(self, number: int) -> None:
        if number != self._number:
            raise TransactionStateError("the transaction has ended meanwhile, and another one has begun")

    def _fail(self, error: TagwireError, fatal: tuple[Error, ...] = _FATAL) -> TagwireError:
        """Dooms transaction or producer, whichever `error` means; the error to raise."""
        with self._lock:
            if self.stage is Stage.DEAD and self.error is not None:
                return self.error
            if isinstance(error, KafkaError) and error.error in _FENCED and error.error in fatal:
                error = ProducerFencedError(error.code, error.message)
            is_fatal = isinstance(error, UnsupportedVersionError) or (
                isinstance(error, KafkaError) and error.error in fatal
            )
            if is_fatal:
                self.enter(Stage.DEAD, error)
            elif self.stage is not Stage.ABORTING:
                self.enter(Stage.FAILED, error)
            return error

    def _fail_unless_unknown(self, error: TagwireError) -> TagwireError:
        """`_fail`, except where the same question may be answered later."""
        unknown = is_retriable(error) or isinstance(error, RequestTimeoutError)
        return error if unknown else self._fail(error)

    # What the sender asks ------------------------------------------------------------------------------------------

    def produce_version(self, link: Link, api: int, highest: int | None) -> int:
        if self.version == 1:
            return link.version(api, PRODUCE_TRANSACTION_V2 - 1)
        version = link.version(api, highest)
        if version < PRODUCE_TRANSACTION_V2:
            raise UnsupportedVersionError(
                f"{link.broker}: Produce v{version} cannot take part in a transaction of a cluster whose {FEATURE} is 2"
            )
        return version

    def unannounced(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        new = [at for at in partitions if at not in self._told]
        if self.version == 1 or not new:
            return new
        self._told.update(new)  # writing to them is announcing them
        self._is_begun = True
        return []

    async def announce(self, partitions: list[TopicPartition], deadline: float) -> None:
        async with self._turn:
            if self.doom is not None:  # the transaction may have ended meanwhile: this would begin another
                raise self.doom
            try:
                await self._add(partitions, deadline)
            except TagwireError as error:
                self._may_be_begun = True
                raise self._fail_unless_unknown(error) from error.__cause__
            self._told.update(partitions)
            self._is_begun = True

    async def _add(self, partitions: list[TopicPartition], deadline: float) -> None:
        topics: dict[str, list[int]] = defaultdict(list)
        for topic, partition in partitions:
            topics[topic].append(partition)
        kind = messages.AddPartitionsToTxnRequest
        await self._ask(
            lambda link: kind(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self.identity.producer_id,
                v3_and_below_producer_epoch=self.identity.epoch,
                v3_and_below_topics=[
                    kind.AddPartitionsToTxnTopic(name=name, partitions=own) for name, own in topics.items()
                ],
            ),
            lambda answer: _codes(
                partitions,
                (
                    (TopicPartition(topic.name, found.partition_index), found.partition_error_code)
                    for topic in answer.results_by_topic_v3_and_below
                    for found in topic.results_by_partition
                ),
            ),
            deadline,
            "add partitions to the transaction",
        )

    def lost(self, lane: Lane, error: TagwireError) -> TagwireError:
        lane.must_restart = True
        self._needs_epoch = True
        return self._fail(error, _FATAL_OF_PRODUCE) if self.stage is Stage.OPEN else error

    # What callers ask of the thread --------------------------------------------------------------------------------

    async def initialize(self, deadline: float) -> None:
        """Takes the id over: whoever had it is fenced, and their open transaction aborted."""
        async with self._turn:
            with self._lock:
                self.require(Stage.NEW, Stage.READY, what="the transactional id cannot be taken over")
                self.enter(Stage.NEW)  # what began meanwhile would be aborted, or be fenced
            await self._initialize(NOBODY, deadline)
            self.enter(Stage.READY)

    def adopt(self, identity: ProducerIdentity) -> None:
        """Goes on as another producer that is not used any more, without asking anybody."""
        check_protocol(identity.transactions)
        with self._lock:
            self.require(Stage.NEW, what="another producer's identity cannot be taken")
            self.identity = Identity(identity.producer_id, identity.epoch)
            self.version = identity.transactions
            self.enter(Stage.READY)

    async def end(self, number: int, *, commit: bool, deadline: float) -> None:
        """Commits or aborts a transaction. No batch may be under way any more."""
        async with self._turn:
            self._require_still(number)
            if self.stage is Stage.READY and self._was_committed is commit:
                return  # an earlier call has ended it, after its caller had given up waiting
            self.require(Stage.COMMITTING if commit else Stage.ABORTING, what="nothing can be ended")
            if self._is_begun:
                try:
                    await self._ended(commit, deadline)
                except TagwireError as error:
                    raise self._fail_unless_unknown(error) from error.__cause__
                self._is_begun = self._may_be_begun = False
            if (self._needs_epoch or self._may_be_begun) and self.version == 1:
                await self._renew(deadline)
            self._told.clear()
            self._needs_epoch = self._may_be_begun = False
            await self._choose_version(deadline)
            with self._lock:
                self._was_committed = commit
                self.enter(Stage.READY)

    async def commit_offsets(
        self, offsets: Mapping[TopicPartition, tuple[int, int, str]], group: GroupMetadata, deadline: float
    ) -> None:
        """Makes offsets part of the transaction: (offset, leader epoch, metadata) of each partition."""
        async with self._turn:
            self.require(Stage.OPEN, what="offsets cannot be sent")
            await self._commit_offsets(offsets, group, deadline)

    async def _commit_offsets(
        self, offsets: Mapping[TopicPartition, tuple[int, int, str]], group: GroupMetadata, deadline: float
    ) -> None:
        try:
            if self.version == 1:
                kind = messages.AddOffsetsToTxnRequest
                self._may_be_begun = True
                await self._ask(
                    lambda link: kind(
                        transactional_id=self.transactional_id,
                        producer_id=self.identity.producer_id,
                        producer_epoch=self.identity.epoch,
                        group_id=group.group,
                    ),
                    lambda answer: [answer.error_code],
                    deadline,
                    f"add offsets of group {group.group!r} to the transaction",
                )
            self._is_begun = True
            await self._groups.setdefault(group.group, Coordinator(self._cluster, GROUP, group.group)).ask(
                lambda link: self._offset_commit(offsets, group),
                lambda answer: _codes(
                    offsets,
                    (
                        (TopicPartition(topic.name, found.partition_index), found.error_code)
                        for topic in answer.topics
                        for found in topic.partitions
                    ),
                ),
                deadline,
                f"commit offsets of group {group.group!r} in the transaction",
                highest=TXN_OFFSET_COMMIT_TRANSACTION_V2 - (self.version == 1),
            )
        except TagwireError as error:
            raise self._fail(error) from error

    def _offset_commit(self, offsets: Mapping[TopicPartition, tuple[int, int, str]], group: GroupMetadata) -> Any:
        kind = messages.TxnOffsetCommitRequest
        topics: dict[str, list[Any]] = defaultdict(list)
        for at, (offset, leader_epoch, metadata) in offsets.items():
            topics[at.topic].append(
                kind.TxnOffsetCommitRequestPartition(
                    partition_index=at.partition,
                    committed_offset=offset,
                    committed_leader_epoch=leader_epoch,
                    committed_metadata=metadata,
                )
            )
        return kind(
            transactional_id=self.transactional_id,
            group_id=group.group,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.epoch,
            generation_id_or_member_epoch=group.generation,
            member_id=group.member_id,
            group_instance_id=group.instance_id,
            topics=[kind.TxnOffsetCommitRequestTopic(name=name, partitions=own) for name, own in topics.items()],
        )

    async def _ended(self, commit: bool, deadline: float) -> None:
        self.identity = await end(
            self._coordinator,
            self.transactional_id,
            self.identity,
            commit=commit,
            version=self.version,
            deadline=deadline,
        )

    async def _renew(self, deadline: float) -> None:
        """Gets a new epoch, as the partitions may expect numbers that were given up."""
        try:
            await self._initialize(self.identity, deadline)
        except TagwireError as error:
            raise self._fail(error) from error

    async def _initialize(self, former: Identity, deadline: float) -> None:
        def request(link: Link) -> Any:
            kind = messages.InitProducerIdRequest
            if former != NOBODY and link.version(kind.api_key) < RENEW_FROM:
                raise UnsupportedVersionError(
                    f"{link.broker} cannot give transactional id {self.transactional_id!r} a new epoch, which needs "
                    f"InitProducerId v{RENEW_FROM} (Kafka 2.5)"
                )
            return kind(
                transactional_id=self.transactional_id,
                transaction_timeout_ms=self._timeout_ms,
                producer_id=former.producer_id,
                producer_epoch=former.epoch,
            )

        answer = await self._ask(request, lambda answer: [answer.error_code], deadline, "initialize")
        self.identity = identity_in(answer)
        await self._choose_version(deadline)

    async def _choose_version(self, deadline: float) -> None:
        """A cluster may settle on another protocol between two transactions."""
        if self._cluster.finalized.finalized.get(FEATURE, 0) < 2:
            self.version = 1
        elif self.version < 2:
            try:
                speaks = (await self._coordinator.link(deadline)).version(END_TXN)
            except TagwireError:  # the last transaction has ended well, whatever there is to say of the next one
                return
            self.version = 2 if speaks >= END_TXN_TRANSACTION_V2 else 1

    async def _ask(self, message: Any, errors: Any, deadline: float, what: str) -> Any:
        return await self._coordinator.ask(
            message, errors, deadline, f"{what}, transactional id {self.transactional_id!r}", highest=None
        )


def _codes(asked: Iterable[TopicPartition], told: Iterable[tuple[TopicPartition, int]]) -> list[int]:
    """The error codes of an answer about partitions, 0 for none; of one partition that is refused, not also those of
    the others, which were not attempted. Raises RemoteProtocolError where all that it tells of went well, and a
    partition is left out."""
    codes = dict(told)
    refused = [code for code in codes.values() if code]
    if not refused and (silent := set(asked) - codes.keys()):
        raise RemoteProtocolError(f"no word of {min(silent)} in the answer")
    return [code for code in refused if code != Error.OPERATION_NOT_ATTEMPTED] or refused
