"""Offsets that are to be committed, and as whose.

A commit may wait: behind another, or for a newer epoch. Meanwhile the consumer may lose a partition, and be a member
again under an epoch or a generation with which the coordinator takes everything: the next owner's offset would go back.
So each commit that somebody asks for remembers which membership, and which assignment of each partition, that was
under. An automatic one finds out in its turn what there is to commit: what the application commits itself meanwhile
may be ahead of what was known before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Final

from tagwire.client.admin.group_offsets import OffsetAndMetadata
from tagwire.client.consuming.membership import Membership
from tagwire.client.consuming.subscription_state import AssignedPartition, SubscriptionState
from tagwire.errors import CommitFailedError, Error
from tagwire.partitions import TopicPartition

_ADVICE: Final = "whoever has it now reads again what was not committed; commit what is still yours"


class PendingCommit:
    """A commit from when it is asked for until it is done. Partitions that the consumer did not have then are the
    caller's own matter, as long as the membership lasts; so is everything of a consumer that assigns by hand.

    Attributes:
        offsets: what was asked for.

    Args:
        membership: whom the consumer is in its group; gives None while partitions are assigned by hand.
    """

    def __init__(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        subscription: SubscriptionState,
        membership: Callable[[], Membership | None],
    ) -> None:
        self.offsets = offsets
        self._subscription = subscription
        self._current_membership = membership
        self._membership = membership()
        self._incarnation = None if self._membership is None else self._membership.incarnation
        self._assigned = {
            partition: one for partition in offsets if (one := subscription.assigned.get(partition)) is not None
        }
        self._sought = {partition: one.sought for partition, one in self._assigned.items()}

    def owned(self) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """`offsets`, which may be committed now. Raises CommitFailedError: a partition is not the consumer's any more,
        or is again after it was not."""
        gone = self._gone()
        if gone:
            names = ", ".join(map(str, sorted(gone)))
            raise CommitFailedError(
                Error.ILLEGAL_GENERATION,
                f"{names}: the consumer's membership or assignment has ended since the commit was asked for: {_ADVICE}",
            )
        return self.offsets

    def is_about(self, partitions: Set[TopicPartition]) -> bool:
        """Whether offsets of any of these are to be committed."""
        return any(partition in partitions for partition in self.offsets)

    def note_committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Has the assignments that the commit was asked for under know of it."""
        for partition, one in self._assigned.items():
            if partition in offsets:
                one.note_committed(offsets[partition].offset, self._sought[partition])

    def _gone(self) -> set[TopicPartition]:
        membership = self._current_membership()
        if membership is not self._membership:
            return set(self.offsets)
        if membership is None:
            return set()
        if membership.incarnation is not self._incarnation:
            return set(self.offsets)
        assigned = self._subscription.assigned
        return {
            partition for partition, one in self._assigned.items() if one.is_lost or assigned.get(partition) is not one
        }


class AutomaticCommit:
    """A commit of what the application is done with and is not committed, which is found out whenever it is asked.

    Args:
        stored: whether that is what the application has stored, and not what it was given before its last poll.
    """

    def __init__(self, subscription: SubscriptionState, *, stored: bool = False) -> None:
        self._subscription = subscription
        self._is_stored = stored
        self._sent: list[tuple[AssignedPartition, object]] = []

    @property
    def offsets(self) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """What there is to commit now."""
        if self._is_stored:
            return self._subscription.stored()
        return {
            partition: OffsetAndMetadata(*one.consumed)
            for partition, one in self._subscription.assigned.items()
            if one.consumed is not None and not one.is_lost and not one.has_committed(one.consumed.offset)
        }

    def owned(self) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """`offsets`, which are about to be sent."""
        offsets = self.offsets
        assigned = [self._subscription.assigned[partition] for partition in offsets]
        self._sent = [(one, one.sought) for one in assigned]
        return offsets

    def is_about(self, partitions: Set[TopicPartition]) -> bool:
        """Whether offsets of any of these are on their way. What is not sent yet will be of what is assigned then."""
        return any(one.partition in partitions for one, _ in self._sent)

    def note_committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Has the assignments know of it that there were when it was sent."""
        for one, sought in self._sent:
            one.note_committed(offsets[one.partition].offset, sought)
