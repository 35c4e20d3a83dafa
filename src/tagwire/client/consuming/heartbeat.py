"""When a classic member is to send a heartbeat, and until when it has been heard of (Kafka's Heartbeat)."""

from __future__ import annotations

from random import Random

from tagwire.client.consuming.group_settings import GroupSettings
from tagwire.client.retry import pause_before
from tagwire.client.scheduling import NEVER


class Heartbeat:
    """The times of one member. All are seconds of the driver's clock.

    Attributes:
        due_at: when to send the next one.
        session_until: until when the coordinator keeps the member, by what it has surely heard of it.
        poll_until: until when its user has to have polled.
        waits_to_join: whether the coordinator may have a JoinGroup of the member: it has no session meanwhile.
    """

    def __init__(self, settings: GroupSettings) -> None:
        self.due_at = self.session_until = NEVER
        self.poll_until = 0.0
        self.waits_to_join = False
        self._settings = settings
        self._failed = 0

    def polled(self, now: float) -> None:
        """Takes that the user has polled."""
        self.poll_until = now + self._settings.max_poll_interval

    def join_sent(self) -> None:
        """Takes that JoinGroup is on its way."""
        self.waits_to_join = True

    def join_failed(self, now: float, *, is_first: bool) -> None:
        """Takes that the member has not joined. Of attempts after the first nobody knows which the coordinator has
        had, and none gives the member more time."""
        if is_first and self.waits_to_join:
            self.session_until = now + self._settings.session_seconds
        self.waits_to_join = False

    def joined(self, now: float) -> None:
        """Takes that a generation has begun."""
        self.due_at = now + self._settings.heartbeat_seconds
        self.session_until = now + self._settings.session_seconds
        self.waits_to_join, self._failed = False, 0

    def sent(self, now: float) -> None:
        """Takes that one is on its way."""
        self.due_at = now + self._settings.heartbeat_seconds

    def answered(self, sent_at: float) -> None:
        """Takes that the coordinator has had the one of that time."""
        self._failed = 0
        self.session_until = max(self.session_until, sent_at + self._settings.session_seconds)

    def failed(self, now: float, random: Random) -> None:
        """Takes that one had no response, or one of no use: the next comes after a pause."""
        self._failed += 1
        self.due_at = now + pause_before(self._failed, random)
