"""Offsets that are to be committed, and as whose.

A commit may wait: behind another, or for a newer epoch. Meanwhile the consumer may lose a partition, and be a member
again under an epoch or a generation with which the coordinator takes everything: the next owner's offset would go back.
So each commit remembers which membership, and which assignment of each partition, it was asked for under.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from tagwire.client.admin.group_offsets import OffsetAndMetadata
from tagwire.client.consuming.membership import Membership
from tagwire.client.consuming.subscription_state import SubscriptionState
from tagwire.errors import CommitFailedError, Error
from tagwire.partitions import TopicPartition

logger = logging.getLogger("tagwire.client")

_ADVICE: Final = "whoever has it now reads again what was not committed; commit what is still yours"


class PendingCommit:
    """A commit from when it is asked for until it is done. Partitions that the consumer did not have then are the
    caller's own matter, as long as the membership lasts; so is everything of a consumer that assigns by hand.

    Attributes:
        offsets: what was asked for.

    Args:
        membership: whom the consumer is in its group; gives None while partitions are assigned by hand.
        is_automatic: whether partitions that are gone are left out. Otherwise nothing is committed, and whoever asked
            is told.
    """

    def __init__(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        subscription: SubscriptionState,
        membership: Callable[[], Membership | None],
        *,
        is_automatic: bool = False,
    ) -> None:
        self.offsets = offsets
        self._subscription = subscription
        self._current_membership = membership
        self._is_automatic = is_automatic
        self._membership = membership()
        self._incarnation = None if self._membership is None else self._membership.incarnation
        self._assigned = {
            partition: one for partition in offsets if (one := subscription.assigned.get(partition)) is not None
        }

    def owned(self) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """What of it may be committed now. Raises CommitFailedError: a partition is not the consumer's any more, or is
        again after it was not."""
        gone = self._gone()
        if not gone:
            return self.offsets
        names = ", ".join(map(str, sorted(gone)))
        if not self._is_automatic:
            raise CommitFailedError(
                Error.ILLEGAL_GENERATION,
                f"{names}: the consumer's membership or assignment has ended since the commit was asked for: {_ADVICE}",
            )
        logger.info("offsets of %s are not committed: the consumer has lost them meanwhile", names)
        return {partition: offset for partition, offset in self.offsets.items() if partition not in gone}

    def note_committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Has the assignments that the commit was asked for under know of it."""
        for partition, one in self._assigned.items():
            if partition in offsets:
                one.committed = offsets[partition].offset

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
