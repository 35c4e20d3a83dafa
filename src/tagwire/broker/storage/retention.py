"""Which segments are closed, and which are deleted, for their age and size: by Kafka's topic configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tagwire.broker.storage.segment import Segment
from tagwire.broker.topic_config import TopicConfig

if TYPE_CHECKING:
    from tagwire.broker.storage.log import PartitionLog


def is_overdue(active: Segment, config: TopicConfig, now_ms: int) -> bool:
    """Whether the segment that is written to was begun too long ago to be written to any more."""
    return active.size > 0 and active.began_ms() <= now_ms - config.roll_ms


def is_expired(segment: Segment, config: TopicConfig, now_ms: int) -> bool:
    """Whether all that is in a segment is past the topic's retention time."""
    if not config.deletes or config.retention_ms < 0:
        return False
    newest = segment.newest[0]
    return (newest if newest >= 0 else segment.modified_ms()) < now_ms - config.retention_ms


def expired_before(log: PartitionLog, now_ms: int) -> int:
    """Before which offset the topic's retention asks for whole segments to be deleted.

    The segment that is written to is never deleted; it is closed first, when that is due.

    Raises:
        StorageError: the disk refused, or the log is offline.
    """
    log.roll_if_due(now_ms)
    log.expire_producers(now_ms)
    closed, config = log.closed_segments(), log.config
    surplus = log.size_bytes - config.retention_bytes
    start = log.start_offset
    for segment in closed if config.deletes else ():
        surplus -= segment.size
        too_large = config.retention_bytes >= 0 and surplus >= 0
        if not too_large and not is_expired(segment, config, now_ms):
            break
        start = segment.next_offset
    return max(start, log.start_offset)
