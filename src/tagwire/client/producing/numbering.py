"""Under which identity a producer numbers its batches: none, its own, or a transactional one (`transactions`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from tagwire import messages
from tagwire.client.cluster import Cluster
from tagwire.client.coordinators import coordinators
from tagwire.client.producing.delivery import NOBODY, Identity
from tagwire.client.producing.lanes import Lane, next_epoch
from tagwire.client.retry import Retry
from tagwire.client.scheduling import sleep
from tagwire.client.transport import Link
from tagwire.errors import (
    Error,
    KafkaError,
    RemoteProtocolError,
    RequestTimeoutError,
    TagwireError,
    UnsupportedVersionError,
)
from tagwire.partitions import TopicPartition

# Batches of a partition that may be under way: brokers remember the last five of each producer (Kafka's
# ProducerStateEntry).
WINDOW: Final = 5

_LOST_COORDINATOR: Final = (Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE)


class Coordinator:
    """The broker that coordinates a group or a transactional id, which is asked until it answers.

    Args:
        kind: `coordinators.GROUP` or `TRANSACTION`. key: the group or the id.
    """

    def __init__(self, cluster: Cluster, kind: int, key: str) -> None:
        self._cluster = cluster
        self._kind = kind
        self._key = key
        self._node: int | None = None

    async def link(self, deadline: float) -> Link:
        """The connection to it."""
        if self._node is None:
            self._node = (await coordinators(self._cluster, [self._key], self._kind, deadline))[self._key]
        return await self._cluster.link(self._node, deadline)

    async def ask(
        self,
        message: Callable[[Link], Any],
        errors: Callable[[Any], Iterable[int]],
        deadline: float,
        what: str,
        *,
        highest: int | None = None,
    ) -> Any:
        """The answer without an error in it. What may succeed later, and a lost connection, is tried again: the
        question must be one that can be asked twice.

        Args:
            errors: the codes in an answer, 0 for none. what: how errors call the question.
            highest: the highest version that may be spoken.

        Raises:
            KafkaError: the broker refuses. RequestTimeoutError, ConnectError, ...: not answered by the deadline.
        """
        retry = Retry(deadline)
        while True:
            soon = min(deadline, self._cluster.deadline())
            try:
                link = await self.link(soon)
                request = message(link)
                version = link.version(request.api_key, highest)
                answer = await self._cluster.ask(link, request, soon, version)
            except TagwireError as error:
                self._node = None
                # An attempt may take less time than all of them, and may be over before it began: to be left alone for
                # longer is an error at once.
                await sleep(retry.pause_until(error, anyway=isinstance(error, RequestTimeoutError)))
                continue
            refusals = [KafkaError(code, what) for code in errors(answer) if code]
            if not refusals:
                return answer
            if any(refusal.error in _LOST_COORDINATOR for refusal in refusals):
                self._node = None
            worst = next((refusal for refusal in refusals if not refusal.retriable), refusals[0])
            await sleep(retry.pause_until(worst))


def identity_in(answer: Any) -> Identity:
    """What an answer to InitProducerId gives. Raises RemoteProtocolError for what is no identity."""
    if answer.producer_id < 0 or answer.producer_epoch < 0:
        given = f"producer id {answer.producer_id} at epoch {answer.producer_epoch}"
        raise RemoteProtocolError(f"the answer to InitProducerId gives {given}")
    return Identity(answer.producer_id, answer.producer_epoch)


class Numbering:
    """A producer that does not number its batches. Methods are for the sending thread.

    Attributes:
        identity: `NOBODY` where there is none, or none yet.
        is_missing: whether an identity is needed before anything can be sent; `ensure` gets it.
        window: how many batches of a partition may be under way.
        transactional_id: None without transactions.
        doom: why nothing more is sent; None while there is no reason.
    """

    identity = NOBODY
    window = 1
    transactional_id: str | None = None
    doom: TagwireError | None = None

    @property
    def is_missing(self) -> bool:
        return False

    def produce_version(self, link: Link, api: int, highest: int | None) -> int:
        """The version of Produce to speak."""
        return link.version(api, highest)

    async def ensure(self, deadline: float) -> None:
        """Gets an identity. Raises TagwireError."""

    def unannounced(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Of partitions that are about to be written to, those that have to be announced before."""
        return []

    async def announce(self, partitions: list[TopicPartition], deadline: float) -> None:
        """Announces partitions. Raises TagwireError."""

    def lost(self, lane: Lane, error: TagwireError) -> TagwireError:
        """A batch of the partition is given up. Returns what to say of it."""
        return error

    def renew(self, lane: Lane, error: KafkaError) -> bool:
        """The broker does not go on with the partition's numbers. Whether others can be tried."""
        return False


class Idempotent(Numbering):
    """A producer with an id of its own, which the first batch asks for."""

    window = WINDOW

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @property
    def is_missing(self) -> bool:
        return self.identity == NOBODY

    async def ensure(self, deadline: float) -> None:
        request = messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
        retry = Retry(deadline)
        while True:
            error: TagwireError
            try:
                _, answer = await self._cluster.ask_any(request, min(deadline, self._cluster.deadline()))
                if not answer.error_code:
                    break
                error = KafkaError(answer.error_code, "ask for a producer id")
            except UnsupportedVersionError as unsupported:
                hint = "Producer(idempotence=False) does without, but a batch whose answer is lost may then stand twice"
                raise UnsupportedVersionError(f"{unsupported}; {hint}") from unsupported
            except TagwireError as failure:
                error = failure
            await sleep(retry.pause_until(error))
        self.identity = identity_in(answer)

    def lost(self, lane: Lane, error: TagwireError) -> TagwireError:
        if not lane.must_restart:
            lane.must_restart = True
            self.identity = next_epoch(self.identity)
        return error

    def renew(self, lane: Lane, error: KafkaError) -> bool:
        self.lost(lane, error)
        lane.has_gap = True
        if error.error is Error.INVALID_PRODUCER_EPOCH:  # somebody else has the id at a later epoch
            self.identity = NOBODY
        return True
