"""The fetch position of each partition, and what was fetched, on its way from a Fetcher to a FetchCollector.

The Fetcher may run in another thread than the FetchCollector, which belongs to whoever is given records. No lock stands
between them: each attribute is written by one side alone, in one assignment, and read by either, and what was fetched
goes over in a queue (`FetchBuffer`). A seek counts `seeks` up, so that what was fetched before it is known when it
comes. Kafka's SubscriptionState.FetchPosition, CompletedFetch and FetchBuffer are the models.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from tagwire.client.driver import Driver
from tagwire.client.metadata import NO_TOPIC_ID
from tagwire.client.offset_reset import OffsetReset
from tagwire.client.retry import is_retriable, pause_before
from tagwire.client.scheduling import NEVER
from tagwire.errors import (
    CorruptRecordError,
    Error,
    KafkaError,
    RequestTimeoutError,
    TagwireError,
    UnsupportedVersionError,
)
from tagwire.partitions import TopicPartition

UNKNOWN: Final = -1

MOST_EPOCHS: Final = 16
"""Of how many leader epochs it is known where what was given of them began: one call gives records of few."""


class GivenPosition(NamedTuple):
    """How far a partition was given out.

    Attributes:
        offset: the next one to give; -1 while it is still looked up.
        leader_epoch: of the leader that appended the record before it; -1 where that is not known. It is committed with
            the offset (KIP-320).
    """

    offset: int
    leader_epoch: int = UNKNOWN


class LeaderAndEpoch(NamedTuple):
    """Who leads a partition, since which epoch (-1 where the cluster does not tell)."""

    leader: int
    epoch: int


class FetchPosition:
    """How far one partition is fetched and given out.

    Attributes, of the Fetcher's side:
        partition: which one.
        offset: the next one to fetch; -1 while it has to be looked up.
        leader_epoch: of the record before it; -1 where that is not known.
        topic_id: of the topic that it was fetched of in that epoch; all zeros where that is not known.
        ahead_since: since when the metadata is known to be older than that epoch; None where it is not.
        end_offset: the one to stop before; None goes on for ever.
        readable_end: the end of the partition as the last response told it, -1 before there was one: the last stable
            offset for readers of committed records, the high watermark for others.
        reset: how to look the offset up; None as the Fetcher does.
        seeks: how often `seek` was called; what was fetched before the last time is not wanted.
        turn: counts seeks, pauses and whatever else may end that records of the partition are given one by one.
        is_looking_up: whether a request is about where to go on, and nothing is fetched meanwhile.
        validated_by: by whom the position was found to be in the log that is there now.
        replica: the follower to fetch from (KIP-392), -1 for the leader.
        replica_until: when the leader is asked again which one (seconds of the driver's clock).
        is_redirected: whether nothing came since a broker named another one to fetch from.
        shuns_replicas_until: until when the leader is not told of a rack, since the replicas it named gave nothing.
        idle: seconds waited in vain since the last records.
        retry_at: when the partition may be fetched again after a failure (seconds of the driver's clock).
        fetched_bytes: of records, handed over so far.
        failure: what was handed over last, if it was an error.
    Of the FetchCollector's side:
        taken_bytes: of records, taken over so far.
    """

    __slots__ = (
        "_attempts",
        "_began",
        "_epochs",
        "_failing_since",
        "_given",
        "_is_paused",
        "ahead_since",
        "end_offset",
        "failure",
        "fetched_bytes",
        "idle",
        "is_looking_up",
        "is_redirected",
        "leader_epoch",
        "offset",
        "partition",
        "readable_end",
        "replica",
        "replica_until",
        "reset",
        "retry_at",
        "seeks",
        "shuns_replicas_until",
        "taken_bytes",
        "topic_id",
        "turn",
        "validated_by",
    )

    def __init__(
        self,
        partition: TopicPartition,
        offset: int = UNKNOWN,
        end_offset: int | None = None,
        leader_epoch: int = UNKNOWN,
    ) -> None:
        self.partition = partition
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.topic_id = NO_TOPIC_ID
        self.ahead_since: float | None = None
        self.end_offset = end_offset
        self.readable_end = UNKNOWN
        self.reset: OffsetReset | None = None
        self.seeks = 0
        self._is_paused = self.is_looking_up = self.is_redirected = False
        self.turn = 0
        self.validated_by: LeaderAndEpoch | None = None
        self.replica = UNKNOWN
        self.replica_until = self.shuns_replicas_until = 0.0
        self.idle = 0.0
        self.retry_at = 0.0
        self.fetched_bytes = self.taken_bytes = 0
        self.failure: FetchFailure | None = None
        self._attempts = 0
        self._failing_since = 0.0
        self._began = (0, GivenPosition(offset, leader_epoch))
        self._given = self._began
        self._epochs: tuple[GivenPosition, ...] = ()  # from which offset on what was given is of which epoch

    @property
    def given(self) -> GivenPosition:
        """How far the partition was given out, from where it began or the last `seek` went; also what was on its way
        to be given when it was left."""
        (seeks, found), (since, began) = self._given, self._began
        return found if seeks >= since and found.offset != UNKNOWN else began

    @property
    def began(self) -> GivenPosition:
        """Where it began, or where the last `seek` went; its offset is -1 while that is looked up."""
        return self._began[1]

    def before(self, offset: int) -> GivenPosition:
        """Where an application stands that has had no more than what is before `offset` of what was given."""
        for since, epoch in reversed(self._epochs):
            if since < offset:
                return GivenPosition(offset, epoch)
        began = self.began
        return GivenPosition(offset, began.leader_epoch if offset == began.offset else UNKNOWN)

    @property
    def is_paused(self) -> bool:
        """Whether it is left out of fetches, and what is fetched already is kept and not given out. The Fetcher's side
        sets it."""
        return self._is_paused

    @is_paused.setter
    def is_paused(self, is_paused: bool) -> None:
        self._is_paused = is_paused
        self.turn += 1

    @property
    def done(self) -> bool:
        """Whether everything up to `end_offset` is fetched."""
        return self.end_offset is not None and self.offset >= self.end_offset

    @property
    def has_more(self) -> bool:
        """Whether the broker is known, or has to be supposed, to have more of what is wanted."""
        return not self.done and (self.readable_end == UNKNOWN or self.offset < self.readable_end)

    @property
    def buffered_bytes(self) -> int:
        """Bytes of records that are handed over and not taken yet."""
        return self.fetched_bytes - self.taken_bytes

    @property
    def is_failing(self) -> bool:
        """Whether the last attempt to fetch it has failed, and is repeated."""
        return self._attempts > 0

    # The Fetcher's side --------------------------------------------------------------------------------------------

    def seek(self, offset: int, leader_epoch: int = UNKNOWN) -> None:
        """Goes on from `offset`, and has no use for what was fetched before."""
        self._began = self.seeks + 1, GivenPosition(offset, leader_epoch)
        self.seeks += 1
        self.turn += 1
        self.move(offset, leader_epoch)

    def begin(self, offset: int, leader_epoch: int = UNKNOWN) -> None:
        """Begins at `offset`, which was looked up."""
        self._began = self._began[0], GivenPosition(offset, leader_epoch)

    def move(self, offset: int, leader_epoch: int = UNKNOWN) -> None:
        """Fetches from `offset` on, what was fetched already before it."""
        self.offset, self.leader_epoch, self.topic_id = offset, leader_epoch, NO_TOPIC_ID
        self.validated_by, self.failure, self.ahead_since = None, None, None
        self.idle = self.retry_at = 0.0

    def leave(self) -> None:
        """The partition is not wanted any more, nor what was fetched of it."""
        self.seeks += 1
        self.turn += 1

    def succeeded(self) -> None:
        """The broker responded without an error."""
        self._attempts = 0

    def failed(self, error: TagwireError, patience: float, driver: Driver) -> None:
        """Puts off the next attempt. Raises `error` when it is not worth one, or has lasted for `patience` seconds;
        with patience for ever it is as `_heals` says."""
        now = driver.now()
        if not self._attempts:
            self._failing_since = now
        is_worth_it = is_retriable(error) if patience < NEVER else _heals(error)
        if not is_worth_it or now - self._failing_since >= patience:
            raise error
        self._attempts += 1
        self.retry_at = now + pause_before(self._attempts, driver.random)

    # The FetchCollector's side -------------------------------------------------------------------------------------

    def give(self, seeks: int, offset: int, leader_epoch: int) -> None:
        """Everything up to `offset` was given out, but not beyond `end_offset`; `seeks` as they were when it was
        fetched."""
        since, last = self._given
        if leader_epoch != last.leader_epoch or offset < last.offset or seeks != since or not self._epochs:
            first = last.offset if seeks == since and last.offset != UNKNOWN else self.began.offset
            kept = [one for one in self._epochs if one.offset < min(first, offset)] if seeks == since else []
            self._epochs = (*kept[1 - MOST_EPOCHS :], GivenPosition(min(first, offset), leader_epoch))
        end = self.end_offset
        self._given = seeks, GivenPosition(offset if end is None else min(offset, end), leader_epoch)


class CompletedFetch:
    """Whole record batches of one partition, in order; none where the position was only moved.

    Attributes:
        position: of the partition. seeks: its, when they were fetched.
        start_offset: the first one wanted of them.
        next_offset: the one after them.
        epochs: (leader epoch, offset after them) of those that the same leader appended, in order.
        records: their bytes, as they came.
        record_count: how many records their headers state.
        aborted_transactions: (producer id, first offset) of those among them, for readers of committed records.
    """

    __slots__ = (
        "aborted_transactions",
        "epochs",
        "next_offset",
        "position",
        "record_count",
        "records",
        "seeks",
        "start_offset",
    )

    def __init__(
        self,
        position: FetchPosition,
        start_offset: int,
        records: memoryview,
        record_count: int,
        aborted_transactions: Sequence[tuple[int, int]] = (),
        epochs: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.position = position
        self.start_offset = start_offset
        self.next_offset = position.offset
        self.epochs = epochs or ((position.leader_epoch, position.offset),)
        self.records = records
        self.record_count = record_count
        self.aborted_transactions = aborted_transactions
        self.seeks = position.seeks

    @property
    def is_current(self) -> bool:
        """Whether the partition is still wanted, and `seek` was not called since the records were fetched."""
        return self.seeks == self.position.seeks

    def epoch_before(self, offset: int) -> int:
        """The leader epoch of the record before an offset; -1 where that is not known."""
        for epoch, after in self.epochs:
            if offset <= after:
                return epoch
        return self.epochs[-1][0]


class FetchFailure:
    """An error that is to be raised after what was fetched before it.

    Attributes:
        position: of the partition that it is about.
        is_taken: whether it was taken over. Until then nothing more is fetched of the partition.
    """

    __slots__ = ("error", "is_taken", "position", "seeks")

    def __init__(self, position: FetchPosition, error: TagwireError) -> None:
        self.position = position
        self.error = error
        self.is_taken = False
        self.seeks = position.seeks

    @property
    def is_current(self) -> bool:
        """Whether the partition is still wanted, and `seek` was not called since."""
        return self.seeks == self.position.seeks


Fetched = CompletedFetch | FetchFailure


class FetchBuffer:
    """What was fetched and waits to be taken over, in the order in which it came; of a paused partition it stays.

    The Fetcher's side calls `put`, the FetchCollector's `take` and `clear`, and either `has_any`.
    """

    def __init__(self) -> None:
        self._waiting: deque[Fetched] = deque()
        self._paused: dict[FetchPosition, deque[Fetched]] = {}
        # Without it the system gets the memory of each response back before the next one needs as much, which it has to
        # clear first.
        self._kept: memoryview | None = None

    def put(self, fetched: Fetched) -> None:
        """Appends it."""
        if isinstance(fetched, CompletedFetch):
            fetched.position.fetched_bytes += len(fetched.records)
        else:
            fetched.position.failure = fetched
        self._waiting.append(fetched)

    def take(self) -> Fetched | None:
        """The next one of a partition that is not paused; None where there is none."""
        for position, kept in list(self._paused.items()) if self._paused else ():
            while kept and not (kept[0].is_current and position.is_paused):
                fetched = self._taken(kept.popleft())
                if fetched.is_current:
                    return fetched
            if not kept:
                del self._paused[position]
        while self._waiting:
            fetched = self._waiting.popleft()
            position = fetched.position
            if fetched.seeks == position.seeks and (position.is_paused or position in self._paused):
                self._paused.setdefault(position, deque()).append(fetched)
            elif self._taken(fetched).seeks == position.seeks:
                return fetched
        return None

    def clear(self) -> None:
        """Drops everything."""
        for kept in (self._waiting, *self._paused.values()):
            while kept:
                self._taken(kept.popleft())
        self._paused.clear()

    @property
    def has_any(self) -> bool:
        """Whether `take` would give something."""
        if not self._waiting and not self._paused:
            return False
        for waiting in (self._waiting, *list(self._paused.values())):
            for one in waiting.copy():
                if one.seeks == one.position.seeks and not one.position.is_paused:
                    return True
        return False

    def _taken(self, fetched: Fetched) -> Fetched:
        if isinstance(fetched, CompletedFetch):
            fetched.position.taken_bytes += len(fetched.records)
            self._kept = fetched.records or self._kept
        else:
            fetched.is_taken = True
        return fetched


def _heals(error: TagwireError) -> bool:
    """Whether who waits for ever waits for this to pass: for a leader that keeps silent or does not know what is wrong
    with it, too, but not for a log that is damaged, which stays so. Source: Kafka's
    FetchCollector.handleInitializeErrors."""
    if isinstance(error, KafkaError):
        return error.error is Error.UNKNOWN_SERVER_ERROR or (
            error.retriable and error.error is not Error.CORRUPT_MESSAGE
        )
    return is_retriable(error) or isinstance(error, RequestTimeoutError)


def at_offset(partition: TopicPartition, offset: int, error: TagwireError) -> TagwireError:
    """`error` about records, naming the partition and the offset of their batch."""
    if isinstance(error, UnsupportedVersionError):
        return UnsupportedVersionError(f"{partition}@{offset}: {error}")
    return CorruptRecordError(str(error), path=f"{partition}@{offset}")
