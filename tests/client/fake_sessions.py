"""The fetch sessions that a broker keeps (KIP-227), for a scripted one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tagwire.errors import Error

Key = tuple[str, UUID, int]


@dataclass
class _Session:
    epoch: int = 1
    wanted: dict[Key, Any] = field(default_factory=dict)
    told: dict[Key, tuple[int, int]] = field(default_factory=dict)


class FakeSessions:
    """Keeps no sessions until `keep` is set; the ids it gives are 101, 102 and so on."""

    def __init__(self) -> None:
        self.keep = False
        self.kept: dict[int, _Session] = {}
        self._last = 100

    def take(self, message: Any) -> tuple[Error, int, dict[Key, Any]]:
        """An error, the id of the session, and all that is wanted in it."""
        asked = {
            (topic.topic, topic.topic_id, partition.partition): partition
            for topic in message.topics
            for partition in topic.partitions
        }
        if message.session_epoch <= 0:
            self.kept.pop(message.session_id, None)
            if message.session_epoch < 0 or not self.keep:
                return Error.NONE, 0, asked
            self._last += 1
            self.kept[self._last] = _Session(wanted=asked)
            return Error.NONE, self._last, asked
        session = self.kept.get(message.session_id)
        if session is None:
            return Error.FETCH_SESSION_ID_NOT_FOUND, 0, {}
        if message.session_epoch != session.epoch:
            return Error.INVALID_FETCH_SESSION_EPOCH, 0, {}
        session.epoch += 1
        for topic in message.forgotten_topics_data:
            for index in topic.partitions:
                session.wanted.pop((topic.topic, topic.topic_id, index), None)
        session.wanted.update(asked)
        return Error.NONE, message.session_id, session.wanted

    def news(self, session: int, topic: str, topic_id: UUID, entries: list[Any]) -> list[Any]:
        """Of an answer's entries those that tell something: all of them in a full answer."""
        kept = self.kept.get(session)
        if kept is None:
            return entries
        found = []
        for entry in entries:
            key, ends = (topic, topic_id, entry.partition_index), (entry.high_watermark, entry.last_stable_offset)
            if entry.records or entry.error_code or kept.told.get(key) != ends:
                found.append(entry)
            kept.told[key] = ends
        return found
