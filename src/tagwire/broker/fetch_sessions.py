"""Fetch sessions (KIP-227): the broker remembers what a reader fetches; each request and response tells changes.

A full request (epoch 0) begins a session, if there is room for one, and ends the one it names; epoch -1 only ends.
Requests after it name the session and count its epochs up; they add partitions, change them and let go of them, and
their responses leave out the partitions with nothing new. A session belongs to whoever names it: it grants nothing
that the same request in full would not.

There are as many sessions as Kafka keeps (max.incremental.fetch.session.cache.slots). When all are taken, a new one
takes the place of one that was not used for two minutes, else of the smallest that is older than that, if the new one
is larger. What all sessions remember together is bounded too: every partition is memory that a request can name.
Source: KIP-227, KIP-516; Kafka's FetchSession.scala.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol
from uuid import UUID

from tagwire.broker.clock import monotonic_ms
from tagwire.errors import Error, KafkaError
from tagwire.rpc.version_gates import FETCH_TOPIC_IDS

if TYPE_CHECKING:
    from tagwire.messages import FetchRequest, FetchResponse

MAX_SESSIONS: Final = 1000
"""Kafka's default for max.incremental.fetch.session.cache.slots."""

MAX_PARTITIONS: Final = 250_000
"""What all sessions may remember: about 100 MB."""

EVICTABLE_MS: Final = 120_000
"""How long a session has its place to itself: unused, or since it began."""

NO_SESSION: Final = 0
NO_REPLICA: Final = -1
NO_OFFSET: Final = -1
NO_EPOCH: Final = -1
FIRST_EPOCH: Final = 0
LAST_EPOCH: Final = -1
MAX_EPOCH: Final = 2**31 - 1

Key = tuple[str | UUID, int]
"""Topic, by id where the version names topics by their ids, and partition."""


@dataclass(slots=True, eq=False)
class FetchPartition:
    """What a session fetches of one partition, and what the last response told of it.

    Attributes:
        topic: its topic's name; "" while only an id is known that no topic has.
        topic_id: its topic's id; UUID 0 where it is requested by name.
        index: its number.
        fetch_offset, max_bytes, leader_epoch: where to read from, how much, and what the reader knows of its leader.
        last_epoch: the leader epoch of the last record that the reader has; -1 where it does not say.
        high_watermark, log_start_offset: as last told; -1 for never.
    """

    topic: str
    topic_id: UUID
    index: int
    fetch_offset: int
    max_bytes: int
    leader_epoch: int
    last_epoch: int = -1
    high_watermark: int = -1
    log_start_offset: int = -1

    def update(self, other: FetchPartition) -> None:
        """Fetch what `other` says from now on."""
        self.fetch_offset, self.max_bytes, self.leader_epoch = other.fetch_offset, other.max_bytes, other.leader_epoch
        self.last_epoch = other.last_epoch

    def tell(self, result: FetchResponse.PartitionData) -> bool:
        """Whether `result` has something that was not told yet; it counts as told then."""
        is_news = bool(
            len(result.records or b"")
            or result.error_code
            or result.high_watermark != self.high_watermark
            or result.log_start_offset != self.log_start_offset
            or result.preferred_read_replica != NO_REPLICA
            or result.diverging_epoch.end_offset != NO_OFFSET
        )
        # Told again when the error is over, whatever else has stayed as it was.
        self.high_watermark = -1 if result.error_code else result.high_watermark
        self.log_start_offset = result.log_start_offset
        return is_news


@dataclass(slots=True, eq=False)
class FetchSession:
    """One session. `epoch` is the one that the next request has to name."""

    session_id: int
    by_id: bool
    partitions: dict[Key, FetchPartition]
    created_ms: int
    used_ms: int
    epoch: int = FIRST_EPOCH + 1

    @property
    def is_evictable(self) -> bool:
        """Whether a larger session may take its place."""
        return self.used_ms - self.created_ms > EVICTABLE_MS


Told = list[tuple[FetchPartition, "FetchResponse.PartitionData"]]
"""Partitions and their results."""


class FetchContext(Protocol):
    """One Fetch request, as its session has it.

    Attributes:
        partitions: what is to be read, in this order.
        session_id: of a session that goes on with it; 0 for none.
    """

    partitions: Sequence[FetchPartition]

    @property
    def session_id(self) -> int: ...

    def respond(self, results: Iterable[FetchResponse.PartitionData]) -> tuple[int, Told]:
        """What is told of the responses, one per partition: the session's id, 0 for none, and the partitions.

        Raises:
            KafkaError: INVALID_FETCH_SESSION_EPOCH: the session has meanwhile gone on with another request.
        """


@dataclass(slots=True)
class _Sessionless:
    partitions: Sequence[FetchPartition]
    session_id: int = NO_SESSION

    def respond(self, results: Iterable[FetchResponse.PartitionData]) -> tuple[int, Told]:
        return NO_SESSION, list(zip(self.partitions, results))


@dataclass(slots=True)
class _Full:
    """Begins a session with the results."""

    partitions: Sequence[FetchPartition]
    create: Callable[[], int]
    session_id: int = NO_SESSION

    def respond(self, results: Iterable[FetchResponse.PartitionData]) -> tuple[int, Told]:
        told = list(zip(self.partitions, results))
        for partition, result in told:
            partition.tell(result)
        return self.create(), told


@dataclass(slots=True)
class _Incremental:
    """Tells changes. A partition that had records goes to the end, so that the others have their turn (KIP-227)."""

    session: FetchSession
    epoch: int
    partitions: Sequence[FetchPartition] = field(init=False)

    def __post_init__(self) -> None:
        self.partitions = list(self.session.partitions.values())

    @property
    def session_id(self) -> int:
        return self.session.session_id

    def respond(self, results: Iterable[FetchResponse.PartitionData]) -> tuple[int, Told]:
        session = self.session
        if session.epoch != self.epoch:
            raise KafkaError(Error.INVALID_FETCH_SESSION_EPOCH)
        told: Told = []
        for partition, result in zip(self.partitions, results):
            if not partition.tell(result):
                continue
            told.append((partition, result))
            if len(result.records or b""):
                key = _key(partition, session.by_id)
                session.partitions[key] = session.partitions.pop(key)
        return session.session_id, told


class FetchSessions:
    """The sessions of one broker. Used on its event loop alone.

    Args:
        clock: gives milliseconds, for how long a session has been unused.
        most: how many sessions there may be.
        most_partitions: how many partitions they may remember together.
    """

    def __init__(
        self,
        clock: Callable[[], int] = monotonic_ms,
        most: int = MAX_SESSIONS,
        most_partitions: int = MAX_PARTITIONS,
    ) -> None:
        self._clock = clock
        self._most = most
        self._most_partitions = most_partitions
        self._sessions: dict[int, FetchSession] = {}
        self._partitions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """How many partitions they remember together."""
        return self._partitions

    def begin(self, request: FetchRequest, version: int) -> FetchContext:
        """What a Fetch request is for.

        Raises:
            KafkaError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, or FETCH_SESSION_TOPIC_ID_ERROR where
                the session names topics in another way than the request's version.
        """
        by_id = version >= FETCH_TOPIC_IDS
        requested = {_key(partition, by_id): partition for partition in _requested(request)}
        if request.session_epoch in (FIRST_EPOCH, LAST_EPOCH):
            self._remove(request.session_id)
            if request.session_epoch == LAST_EPOCH:
                return _Sessionless(list(requested.values()))
            return _Full(list(requested.values()), lambda: self._create(requested, by_id))
        session = self._sessions.get(request.session_id)
        if session is None:
            raise KafkaError(Error.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            raise KafkaError(Error.INVALID_FETCH_SESSION_EPOCH)
        if session.by_id != by_id:
            raise KafkaError(Error.FETCH_SESSION_TOPIC_ID_ERROR)
        added = sum(key not in session.partitions for key in requested)
        if self._partitions + added > self._most_partitions:
            self._remove(session.session_id)
            raise KafkaError(Error.FETCH_SESSION_ID_NOT_FOUND)
        session.used_ms = self._clock()
        session.epoch = FIRST_EPOCH + 1 if session.epoch == MAX_EPOCH else session.epoch + 1
        self._update(session, requested, request)
        if not session.partitions:
            self._remove(session.session_id)
            return _Sessionless(list(requested.values()))
        return _Incremental(session, session.epoch)

    def _update(self, session: FetchSession, requested: dict[Key, FetchPartition], request: FetchRequest) -> None:
        before = len(session.partitions)
        for key, partition in requested.items():
            session.partitions.setdefault(key, partition).update(partition)
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                session.partitions.pop((topic.topic_id if session.by_id else topic.topic, index), None)
        self._partitions += len(session.partitions) - before

    def _create(self, partitions: dict[Key, FetchPartition], by_id: bool) -> int:
        """A new session's id; 0 where there is no room for one."""
        now = self._clock()
        if len(self._sessions) >= self._most and not self._evict(len(partitions), now):
            return NO_SESSION
        if self._partitions + len(partitions) > self._most_partitions:
            return NO_SESSION
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = secrets.randbelow(2**31)
        self._sessions[session_id] = FetchSession(session_id, by_id, partitions, now, now)
        self._partitions += len(partitions)
        return session_id

    def _evict(self, size: int, now_ms: int) -> bool:
        """Whether a session made room for one of `size` partitions."""
        oldest = min(self._sessions.values(), key=lambda session: session.used_ms)
        if now_ms - oldest.used_ms > EVICTABLE_MS:
            self._remove(oldest.session_id)
            return True
        evictable = [session for session in self._sessions.values() if session.is_evictable]
        smallest = min(evictable, key=lambda session: len(session.partitions), default=None)
        if smallest is None or len(smallest.partitions) >= size:
            return False
        self._remove(smallest.session_id)
        return True

    def _remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partitions -= len(session.partitions)


def _key(partition: FetchPartition, by_id: bool) -> Key:
    return (partition.topic_id if by_id else partition.topic), partition.index


def _requested(request: FetchRequest) -> Iterator[FetchPartition]:
    for topic in request.topics:
        for wanted in topic.partitions:
            yield FetchPartition(
                topic.topic,
                topic.topic_id,
                wanted.partition,
                wanted.fetch_offset,
                wanted.partition_max_bytes,
                max(wanted.current_leader_epoch, NO_EPOCH),  # whatever is below 0 says nothing
                wanted.last_fetched_epoch,
            )
