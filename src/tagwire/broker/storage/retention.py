"""Which segments are closed, and which are deleted, for their age and size: by Kafka's topic configurations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tagwire.broker.storage.segment import LogSegment
from tagwire.broker.topic_config import TopicConfig


@dataclass(frozen=True, slots=True)
class Deletion:
    """Segments that are about to be deleted.

    Attributes:
        start: where the log starts then, to be written down before; None where that is as it was.
        carry_out: deletes them; says how many. Raises OSError.
    """

    start: int | None
    carry_out: Callable[[], int]


def is_overdue(active: LogSegment, config: TopicConfig, now_ms: int) -> bool:
    """Whether the segment that is written to was begun too long ago to be written to any more."""
    return active.size > 0 and active.began_ms() <= now_ms - config.roll_ms


def is_surplus(active: LogSegment, config: TopicConfig) -> bool:
    """Whether the segment that is written to is past the topic's retention size: when nothing is to be kept."""
    return active.size > 0 and config.deletes and config.retention_bytes == 0


def is_expired(segment: LogSegment, config: TopicConfig, now_ms: int) -> bool:
    """Whether all that is in a segment is past the topic's retention time."""
    if not config.deletes or config.retention_ms < 0:
        return False
    newest = segment.newest[0]
    return (newest if newest >= 0 else segment.modified_ms()) < now_ms - config.retention_ms
