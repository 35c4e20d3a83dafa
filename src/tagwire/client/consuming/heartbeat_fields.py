"""What a ConsumerGroupHeartbeat says, and what of its response may be believed (KIP-848).

Everything is said when the member joins and after an error; then only what has changed. Kafka's class is
ConsumerHeartbeatRequestManager.HeartbeatState.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias
from uuid import UUID

from tagwire import messages
from tagwire.client.consuming.group_settings import GroupSettings
from tagwire.client.metadata import NO_TOPIC_ID
from tagwire.errors import RemoteProtocolError

JOINING: Final = 0
LEAVING: Final = -1
LEAVING_STATIC: Final = -2

PartitionsById: TypeAlias = Mapping[UUID, frozenset[int]]


@dataclass(frozen=True, slots=True)
class _Said:
    """What the coordinator was told at last, None for nothing."""

    topics: frozenset[str] | None = None
    pattern: str | None = None
    owned: PartitionsById | None = None
    is_full: bool = False


class HeartbeatFields:
    """What one member says.

    Args:
        member_id: its own, for as long as it lives.
    """

    def __init__(self, settings: GroupSettings, member_id: str) -> None:
        self._settings = settings
        self._member_id = member_id
        self._said = _Said()

    def reset(self) -> None:
        """Has everything said the next time."""
        self._said = _Said()

    def owned_unsaid(self) -> None:
        """Has what is owned said the next time, also where it was said before."""
        self._said = replace(self._said, owned=None)

    def request(
        self,
        epoch: int,
        topics: frozenset[str],
        pattern: str | None,
        owned: PartitionsById,
        *,
        takes_pattern: bool = True,
    ) -> messages.ConsumerGroupHeartbeatRequest:
        """The next one, in which all is taken for said.

        Args:
            owned: what is assigned and taken, or being taken.
            takes_pattern: whether the broker knows of patterns.
        """
        settings, said = self._settings, self._said
        is_full = epoch == JOINING or not said.is_full
        message = self._plain(epoch)
        if is_full:
            message.rebalance_timeout_ms = round(settings.max_poll_interval * 1000)
            message.rack_id = settings.rack or None
            message.server_assignor = settings.remote_assignor
        if is_full or topics != said.topics:
            message.subscribed_topic_names = sorted(topics)
        # What a static member does not say is as it was when another process had its instance id.
        inherits = epoch == JOINING and settings.instance_id is not None and takes_pattern
        if pattern != said.pattern or (is_full and pattern is not None) or inherits:
            message.subscribed_topic_regex = pattern or ""  # an empty one takes the one before away
        if is_full or owned != said.owned:
            kind = messages.ConsumerGroupHeartbeatRequest.TopicPartitions
            message.topic_partitions = [
                kind(topic_id=topic_id, partitions=sorted(indexes)) for topic_id, indexes in owned.items()
            ]
        self._said = _Said(topics, pattern, dict(owned), is_full=True)
        return message

    def leave_request(self, *, for_good: bool = False) -> messages.ConsumerGroupHeartbeatRequest:
        """The one that leaves; a static member means to come back (KIP-345), unless it leaves for good."""
        return self._plain(LEAVING if self._settings.instance_id is None or for_good else LEAVING_STATIC)

    def _plain(self, epoch: int) -> messages.ConsumerGroupHeartbeatRequest:
        return messages.ConsumerGroupHeartbeatRequest(
            group_id=self._settings.group,
            member_id=self._member_id,
            member_epoch=epoch,
            instance_id=self._settings.instance_id,
            rebalance_timeout_ms=-1,
            topic_partitions=None,
        )


def check_response(
    response: messages.ConsumerGroupHeartbeatResponse, member_id: str, epoch: int, group: str
) -> PartitionsById | None:
    """The assignment in a response without an error; None where there is no other than before.

    Args:
        epoch: what the request was sent with.

    Raises:
        RemoteProtocolError: it is another member's, an epoch goes back, no interval can be kept, or an assignment
            cannot be.
    """
    what = f"ConsumerGroupHeartbeat of group {group!r}"
    if response.member_id is not None and response.member_id != member_id:
        raise RemoteProtocolError(f"{what}: the response is for member {response.member_id!r}, not for {member_id!r}")
    if response.member_epoch < max(epoch, 1):
        raise RemoteProtocolError(
            f"{what}: member epoch {response.member_epoch} comes after {epoch}; they begin with 1 and only go up"
        )
    if response.heartbeat_interval_ms <= 0:
        raise RemoteProtocolError(f"{what}: a heartbeat every {response.heartbeat_interval_ms} ms cannot be sent")
    if response.assignment is None:
        return None
    assigned: dict[UUID, frozenset[int]] = {}
    for topic in response.assignment.topic_partitions:
        indexes = frozenset(topic.partitions)
        if topic.topic_id == NO_TOPIC_ID or topic.topic_id in assigned or len(indexes) < len(topic.partitions):
            raise RemoteProtocolError(f"{what}: topic {topic.topic_id} is assigned twice, or is none")
        if any(index < 0 for index in indexes):
            raise RemoteProtocolError(f"{what}: partition {min(indexes)} of topic {topic.topic_id} is assigned")
        assigned[topic.topic_id] = indexes
    return assigned
