"""What a consumer is told beside how to fetch, as Kafka's ConsumerConfig has it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConsumeSettings:
    """What a consumer is told; None is a default that depends on other settings. Times in seconds.

    What belongs to the membership is checked, and its defaults are, in `tagwire.client.consuming.group_settings`.

    Attributes:
        max_poll_interval: how long a member may stay away from `poll` before it leaves the group.
        max_poll_records: how many records one `poll` gives at most.
        auto_commit: None is where there is a group.
        auto_offset_store: whether what was given out is done with at the next poll; else what `store_offsets` says.
        offset_reset: where to go on without a committed offset, and where one is out of range: as in `FetchSettings`.
    """

    protocol: str = "classic"
    instance_id: str | None = None
    session_timeout: float | None = None
    heartbeat_interval: float | None = None
    assignors: tuple[str, ...] | None = None
    remote_assignor: str | None = None
    max_poll_interval: float = 300.0
    max_poll_records: int = 500
    auto_commit: bool | None = None
    auto_commit_interval: float = 5.0
    auto_offset_store: bool = True
    offset_reset: str = "latest"
    exclude_internal_topics: bool = True
    allow_auto_create: bool = True
