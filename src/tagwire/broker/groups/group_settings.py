"""How a broker treats members of KIP-848, and which groups may change their protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Migration = Literal["disabled", "upgrade", "downgrade", "bidirectional"]


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """As Kafka's group.consumer.* configurations.

    Attributes:
        session_timeout_ms: how long a member may be silent (group.consumer.session.timeout.ms).
        heartbeat_interval_ms: how often it is told to heartbeat (group.consumer.heartbeat.interval.ms).
        migration: which groups may change their protocol while they have members (group.consumer.migration.policy).
        takes_older_epochs: whether a member may commit in an older epoch, as from Kafka 4.3 on (KIP-1251).
        takes_rejoining: whether a member that the group has may join again, as in Kafka 4.3, where 4.0 refuses it until
            it has been silent for its session.
    """

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    migration: Migration = "bidirectional"
    takes_older_epochs: bool = True
    takes_rejoining: bool = True

    @property
    def may_upgrade(self) -> bool:
        """Whether a classic group becomes one of KIP-848 when such a member joins."""
        return self.migration in ("upgrade", "bidirectional")

    @property
    def may_downgrade(self) -> bool:
        """Whether a group of KIP-848 becomes a classic one when its last such member has gone."""
        return self.migration in ("downgrade", "bidirectional")
