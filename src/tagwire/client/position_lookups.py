"""Where to go on in partitions whose position is missing, is out of range, or may have been truncated.

What a leader is asked is in `leader_lookups`; here is what follows from its responses. Kafka's OffsetFetcher and its
SubscriptionState (maybeCompleteValidation) are the models: a position after a record of a known leader epoch is
validated before a leader of another epoch is fetched from (KIP-320), and what was truncated is an error, or with
`auto.offset.reset` goes on where the logs diverge.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

from tagwire.client.config import FetchSettings
from tagwire.client.fetch_failures import FetchFailures
from tagwire.client.fetch_positions import UNKNOWN, CompletedFetch, FetchBuffer, FetchPosition, LeaderAndEpoch
from tagwire.client.leader_lookups import EpochOffset, LookedUpEpoch, epoch_ends_at, offsets_at
from tagwire.client.metadata import NO_TOPIC_ID
from tagwire.client.network_client import NetworkClient
from tagwire.client.offset_reset import offset_reset
from tagwire.client.offsets import NO_OFFSET, list_offsets
from tagwire.client.scheduling import Tasks, Work
from tagwire.errors import (
    Error,
    KafkaError,
    LogTruncationError,
    NoOffsetError,
    RemoteProtocolError,
    TagwireError,
    UnsupportedVersionError,
)
from tagwire.partitions import EARLIEST, LATEST, TopicPartition

logger = logging.getLogger("tagwire.client")

Result = TypeVar("Result")


class _Lookup(NamedTuple):
    """A position that is asked about, as it was then."""

    position: FetchPosition
    seeks: int
    offset: int
    leader_epoch: int
    leader: LeaderAndEpoch

    @property
    def is_current(self) -> bool:
        position = self.position
        return (position.seeks, position.offset, position.leader_epoch) == (self.seeks, self.offset, self.leader_epoch)


class PositionLookups:
    """Asks leaders about positions, beside what is fetched, and moves the positions as they respond."""

    def __init__(
        self,
        network: NetworkClient,
        tasks: Tasks,
        buffer: FetchBuffer,
        failures: FetchFailures,
        settings: FetchSettings,
    ) -> None:
        self._network = network
        self._tasks = tasks
        self._buffer = buffer
        self._failures = failures
        self._isolation = settings.isolation
        self._reset = offset_reset(settings.offset_reset)

    # Offsets that are missing --------------------------------------------------------------------------------------

    def find(self, leader: LeaderAndEpoch, positions: Collection[FetchPosition]) -> None:
        """Looks their offsets up, as `reset` says, or hands over that there is none."""
        asked: dict[TopicPartition, _Lookup] = {}
        timestamps: dict[TopicPartition, int] = {}
        for position in positions:
            reset = position.reset or self._reset
            if reset is None:
                self._failures.hand_over(
                    position,
                    NoOffsetError(f"{position.partition}: no offset to start from, and auto.offset.reset is none"),
                )
            else:
                asked[position.partition] = self._asked(position, leader)
                timestamps[position.partition] = reset.at(self._network.driver.wall_clock())
        if asked:
            self._start(("offsets", leader.leader), self._offsets(leader.leader, timestamps), asked, self._found)

    async def _offsets(
        self, node: int, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, EpochOffset | TagwireError]:
        results = await offsets_at(self._network, node, timestamps, self._isolation)
        late = {one: LATEST for one, result in results.items() if result == EpochOffset(NO_OFFSET)}
        return results | (await offsets_at(self._network, node, late, self._isolation) if late else {})

    def _found(self, asked: _Lookup, result: EpochOffset) -> None:
        asked.position.succeeded()
        self._move(asked.position, result, asked.leader)

    # Offsets out of range ------------------------------------------------------------------------------------------

    def out_of_range(self, position: FetchPosition, leader: LeaderAndEpoch) -> None:
        """The leader does not hold the position: finds what it does hold, and goes on there as the settings say."""
        asked = {position.partition: self._asked(position, leader)}
        self._start(("range", position), self._range(position.partition), asked, self._ranged)

    async def _range(self, partition: TopicPartition) -> dict[TopicPartition, tuple[int, int]]:
        deadline = self._network.deadline()
        first = await list_offsets(self._network, {partition: EARLIEST}, deadline, self._isolation)
        last = await list_offsets(self._network, {partition: LATEST}, deadline, self._isolation)
        return {partition: (first[partition], last[partition])}

    def _ranged(self, asked: _Lookup, held: tuple[int, int]) -> None:
        (first, last), position = held, asked.position
        text = f"offsets {first} to {last - 1}" if first < last else f"no records, its next offset is {last}"
        error = KafkaError(
            Error.OFFSET_OUT_OF_RANGE,
            f"{position.partition}: no offset {position.offset}; the partition holds {text}",
        )
        if self._reset is None:
            self._failures.hand_over(position, error)
        elif self._reset.timestamp is None:
            logger.warning("%s; going on as auto.offset.reset says", error)
            position.move(UNKNOWN)
        else:
            offset = first if self._reset.timestamp == EARLIEST else last
            logger.warning("%s; going on at %d", error, offset)
            self._move(position, EpochOffset(offset), asked.leader)

    # Truncation ----------------------------------------------------------------------------------------------------

    def validate(self, leader: LeaderAndEpoch, positions: Collection[FetchPosition]) -> None:
        """Asks the leader whether its log is the one that the positions were reached in."""
        asked = {position.partition: self._asked(position, leader) for position in positions}
        epochs = {one: LookedUpEpoch(position.leader_epoch, position.leader.epoch) for one, position in asked.items()}
        work = epoch_ends_at(self._network, leader.leader, epochs)
        self._start(("epochs", leader.leader), work, asked, self._validated, self._validated_by_nobody)

    def _validated(self, asked: _Lookup, result: EpochOffset) -> None:
        position = asked.position
        if result.leader_epoch > position.leader_epoch or min(result) < UNKNOWN:
            raise RemoteProtocolError(
                f"broker {asked.leader.leader} told that leader epoch {position.leader_epoch} of {position.partition} "
                f"ends as epoch {result.leader_epoch} at offset {result.offset}"
            )
        position.succeeded()
        if UNKNOWN in result:
            self._truncated(position, None, asked.leader)
        elif result.offset < position.offset:
            self._truncated(position, result, asked.leader)
        else:
            position.leader_epoch, position.validated_by = result.leader_epoch, asked.leader

    def _validated_by_nobody(self, asked: _Lookup, error: TagwireError) -> bool:
        """A broker that cannot tell is fetched from all the same, as Kafka's client does."""
        if isinstance(error, UnsupportedVersionError):
            asked.position.validated_by = asked.leader
        return isinstance(error, UnsupportedVersionError)

    def diverged(self, position: FetchPosition, told: EpochOffset, leader: LeaderAndEpoch, broker: str) -> None:
        """Takes that the leader's log diverges from what was fetched (KIP-595): `told` is the newest epoch that both
        have, and where it ends.

        Raises RemoteProtocolError: it is no divergence.
        """
        is_later = told.leader_epoch > position.leader_epoch
        is_same = told.leader_epoch == position.leader_epoch and told.offset >= position.offset
        if position.leader_epoch == UNKNOWN or is_later or is_same or min(told) < 0:
            raise RemoteProtocolError(
                f"{broker} told that the log of {position.partition} diverges at offset {told.offset} of epoch "
                f"{told.leader_epoch} from offset {position.offset} of epoch {position.leader_epoch}"
            )
        if told.offset < position.offset:
            self._truncated(position, told, leader)
        else:  # as `_validated`: the offset is in its log, after a record of an earlier epoch
            position.leader_epoch = told.leader_epoch

    def _truncated(self, position: FetchPosition, told: EpochOffset | None, leader: LeaderAndEpoch) -> None:
        if self._is_of_another_topic(position):
            told = None  # up to there the epochs are alike, and no record: what was read is gone with its topic
        error = LogTruncationError(position.partition, position.offset, None if told is None else told.offset)
        if self._reset is None:
            self._failures.hand_over(position, error)
        elif told is None:
            logger.warning("%s; going on as auto.offset.reset says", error)
            position.move(UNKNOWN)
        else:
            logger.warning("%s; going on at %d", error, told.offset)
            self._move(position, told, leader)

    # Parts ---------------------------------------------------------------------------------------------------------

    def _is_of_another_topic(self, position: FetchPosition) -> bool:
        """Whether the topic was deleted and made anew since the position was reached."""
        topic = self._network.known_topic(position.partition.topic)
        now = NO_TOPIC_ID if topic is None else topic.topic_id
        return NO_TOPIC_ID not in (now, position.topic_id) and now != position.topic_id

    def _move(self, position: FetchPosition, to: EpochOffset, leader: LeaderAndEpoch) -> None:
        """Goes on elsewhere, and tells whoever gives out what was fetched, after all that was fetched before."""
        if position.began.offset == UNKNOWN:
            position.begin(*to)
        position.move(*to)
        position.reset, position.validated_by = None, leader
        self._buffer.put(CompletedFetch(position, position.offset, memoryview(b""), 0))

    def _asked(self, position: FetchPosition, leader: LeaderAndEpoch) -> _Lookup:
        return _Lookup(position, position.seeks, position.offset, position.leader_epoch, leader)

    def _start(
        self,
        key: tuple[str, object],
        work: Work[Mapping[TopicPartition, Result | TagwireError]],
        asked: Mapping[TopicPartition, _Lookup],
        take: Callable[[_Lookup, Result], None],
        is_taken: Callable[[_Lookup, TagwireError], bool] = lambda asked, error: False,
    ) -> None:
        for one in asked.values():
            one.position.is_looking_up = True
        self._tasks.start(key, work, partial(self._ended, asked, take, is_taken))

    def _ended(
        self,
        asked: Mapping[TopicPartition, _Lookup],
        take: Callable[[_Lookup, Result], None],
        is_taken: Callable[[_Lookup, TagwireError], bool],
        results: Mapping[TopicPartition, Result | TagwireError] | None,
        error: Exception | None,
    ) -> None:
        for one in asked.values():
            one.position.is_looking_up = False
        if error is not None and not isinstance(error, TagwireError):
            raise error
        current = {partition: one for partition, one in asked.items() if one.is_current}
        if results is None:
            assert error is not None
            left = [one.position for one in current.values() if not is_taken(one, error)]
            if left:
                self._failures.postpone(left, error)
            return
        for partition, one in current.items():
            try:
                result = results[partition]
                if isinstance(result, TagwireError):
                    raise result
                take(one, result)
            except TagwireError as refusal:
                self._failures.postpone([one.position], refusal)
