"""How a consumer is a member of its group. Kafka's class is GroupRebalanceConfig; which settings belong to which
protocol is its ConsumerConfig's to say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from tagwire.client.consuming.assignors import ASSIGNORS
from tagwire.errors import ConfigError
from tagwire.escaping import told

GroupProtocol = Literal["classic", "consumer"]

_INSTANCE_ID: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Settings of a member, checked. Times in seconds.

    Attributes:
        group: `group.id`.
        protocol: `group.protocol`; "consumer" is KIP-848's.
        instance_id: `group.instance.id` of a static member (KIP-345).
        rack: `client.rack`; "" is none.
        session_timeout: `session.timeout.ms`, None for 45; with "consumer" it is the broker's to set.
        heartbeat_interval: `heartbeat.interval.ms`, None for 3, or a third of a short session timeout; with "consumer"
            it is the broker's to set.
        assignors: `partition.assignment.strategy`, names in the order of preference; None for range, and then
            cooperative-sticky. With "consumer" there are none.
        remote_assignor: `group.remote.assignor`, None for the broker's choice; with "classic" there is none.
        max_poll_interval: `max.poll.interval.ms`, which is also the rebalance timeout.
        metadata_max_age: `metadata.max.age.ms`.
        exclude_internal_topics: `exclude.internal.topics`: a pattern matches none of them; with "consumer" the
            broker matches, and those too.
        allow_auto_create: `allow.auto.create.topics`.

    Raises:
        ConfigError: a setting is wrong, or belongs to the other protocol.
    """

    group: str
    protocol: GroupProtocol = "classic"
    instance_id: str | None = None
    rack: str = ""
    session_timeout: float | None = None
    heartbeat_interval: float | None = None
    assignors: tuple[str, ...] | None = None
    remote_assignor: str | None = None
    max_poll_interval: float = 300.0
    metadata_max_age: float = 300.0
    exclude_internal_topics: bool = True
    allow_auto_create: bool = True

    def __post_init__(self) -> None:
        if not self.group:
            raise ConfigError("group.id: '': a member of a group needs the group's name")
        if self.protocol not in ("classic", "consumer"):
            raise ConfigError(f"group.protocol: {self.protocol!r}: must be classic or consumer")
        instance = self.instance_id
        if instance is not None and (_INSTANCE_ID.fullmatch(instance) is None or instance in (".", "..")):
            raise ConfigError(
                f"group.instance.id: {instance!r}: must be 1 to 249 letters, digits, '.', '_' and '-', and not '.' or "
                "'..'"
            )
        self._check_protocol()
        for name, value in (
            ("session.timeout.ms", self.session_timeout),
            ("heartbeat.interval.ms", self.heartbeat_interval),
            ("max.poll.interval.ms", self.max_poll_interval),
        ):
            if value is not None and not 0.001 <= value <= 2_147_483.647:
                raise ConfigError(f"{name}: {value * 1000:g}: must be from 1 to 2147483647")
        if not 0 <= self.metadata_max_age <= 2_147_483.647:
            raise ConfigError(f"metadata.max.age.ms: {self.metadata_max_age * 1000:g}: must be from 0 to 2147483647")
        if self.heartbeat_seconds >= self.session_seconds:
            raise ConfigError(
                f"heartbeat.interval.ms: {self.heartbeat_seconds * 1000:g}: must be lower than session.timeout.ms, "
                f"which is {self.session_seconds * 1000:g}"
            )

    @property
    def session_seconds(self) -> float:
        """After how long without a heartbeat a classic member is taken for gone."""
        return 45.0 if self.session_timeout is None else self.session_timeout

    @property
    def heartbeat_seconds(self) -> float:
        """How often a classic member sends a heartbeat."""
        return min(3.0, self.session_seconds / 3) if self.heartbeat_interval is None else self.heartbeat_interval

    @property
    def assignor_names(self) -> tuple[str, ...]:
        """The assignors of a classic member, in the order of its preference."""
        return ("range", "cooperative-sticky") if self.assignors is None else self.assignors

    def _check_protocol(self) -> None:
        if self.protocol == "classic":
            if self.remote_assignor is not None:
                raise ConfigError(
                    "group.remote.assignor: belongs to group.protocol=consumer; with classic assignors are named in "
                    "partition.assignment.strategy"
                )
            if not self.assignor_names:
                raise ConfigError("partition.assignment.strategy: is empty; at least one assignor is needed")
            for name in self.assignor_names:
                if name not in ASSIGNORS:
                    raise ConfigError(
                        f"partition.assignment.strategy: {told(name, 200)!r}: must be of {', '.join(ASSIGNORS)}, or "
                        "Java's classes of these"
                    )
            return
        for name, value in (
            ("session.timeout.ms", self.session_timeout),
            ("heartbeat.interval.ms", self.heartbeat_interval),
            ("partition.assignment.strategy", self.assignors),
        ):
            if value is not None:
                instead = (
                    "group.remote.assignor" if name.startswith("partition") else f"the broker's group.consumer.{name}"
                )
                raise ConfigError(f"{name}: cannot be set with group.protocol=consumer; {instead} is in its place")
