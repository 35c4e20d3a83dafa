"""Which topics a member of a classic group subscribes to, and whether they have changed since partitions were assigned.

A pattern is matched by the client, as the classic protocol has it: KIP-848 leaves that to the broker. Kafka's classes:
SubscriptionState, ConsumerCoordinator.MetadataSnapshot.
"""

from __future__ import annotations

import re
from typing import Final

from tagwire.client.consuming.assignors.assignor import TopicRacks, topic_racks
from tagwire.client.consuming.group_settings import GroupSettings
from tagwire.client.consuming.missing_topics import MISSING_TOPIC_INTERVAL, MissingTopics
from tagwire.client.metadata import SHORTEST_REFRESH_INTERVAL, ClusterMetadata
from tagwire.client.network_client import NetworkClient
from tagwire.errors import ConfigError, Error, KafkaError
from tagwire.partitions import TopicPartition

# What is said of a topic that stays so until somebody changes the cluster. Source: Kafka's Metadata.
_REFUSALS: Final = (Error.TOPIC_AUTHORIZATION_FAILED, Error.INVALID_TOPIC_EXCEPTION)

_NOTHING: Final[frozenset[str]] = frozenset()


class TopicWatch:
    """The topics of one member.

    Attributes:
        topics: those subscribed to; with a pattern, those that it matched at last.
        refresh_at: when metadata is to be looked at again (seconds of the driver's clock).
    """

    def __init__(self, network: NetworkClient, settings: GroupSettings) -> None:
        self.topics = _NOTHING
        self.refresh_at = 0.0
        self._network = network
        self._settings = settings
        self._pattern: re.Pattern[str] | None = None
        self._group_topics = _NOTHING  # of all members, while this one leads them
        self._known: TopicRacks = {}
        self._assigned: TopicRacks | None = None  # what partitions were assigned by, while this member leads
        self._asked = 0  # how often metadata was
        self._subscribed = object()  # another one for each subscription
        self._refused: dict[str, Error] = {}  # topics that no later look mends
        self._told: dict[str, Error] = {}  # those of them that somebody has heard of
        self._missing = MissingTopics(settings.group)

    @property
    def is_wanted(self) -> bool:
        """Whether there is anything to join the group for."""
        return self._pattern is not None or bool(self.topics)

    @property
    def is_watching(self) -> bool:
        """Whether changes matter to this member: it leads the group, or has a pattern."""
        return self._pattern is not None or self._assigned is not None

    @property
    def has_pattern(self) -> bool:
        """Whether the topics are those that a pattern matches."""
        return self._pattern is not None

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """Those of the topics, and of all members' topics while this member leads, as they were seen last."""
        return frozenset(TopicPartition(topic, index) for topic, parts in self._known.items() for index in parts)

    @property
    def has_changed(self) -> bool:
        """Whether the group's topics are not what this member, who leads it, has assigned by."""
        return self._assigned is not None and self._assigned != self._known

    def subscribe(self, topics: frozenset[str], pattern: str | None) -> None:
        """Subscribes to these topics, or to those that the whole of `pattern` matches. Raises ConfigError: it is no
        regular expression."""
        try:
            self._pattern = None if pattern is None else re.compile(pattern)
        except re.error as error:
            raise ConfigError(f"pattern: {pattern!r}: is no regular expression: {error}") from None
        self.topics, self._subscribed = topics, object()
        self._told = {}
        self.refresh_at = 0.0

    def admits(self, topic: str) -> bool:
        """Whether a topic may be assigned: it is subscribed to, or the pattern matches it."""
        return topic in self.topics or (self._pattern is not None and self._pattern.fullmatch(topic) is not None)

    def add(self, topics: frozenset[str]) -> None:
        """Takes topics that the leader knew of first and the pattern matches."""
        self.topics |= topics

    async def refresh(self, deadline: float) -> None:
        """Looks at metadata anew; again where the subscription is another one meanwhile. Raises as
        `NetworkClient.refresh`."""
        subscribed = None
        while subscribed is not self._subscribed:
            if not self.is_wanted:
                return
            subscribed = self._subscribed
            names = None if self._pattern is not None else self.topics | self._group_topics
            asked, cluster = await self._ask(names, deadline)
            if asked != self._asked:
                return  # it was asked for anew meanwhile, and this tells of before
        if self._pattern is not None:
            self.topics = frozenset(name for name in cluster.topics if self._is_matched(cluster, name))
        self._take(cluster)

    async def lead(self, topics: frozenset[str], deadline: float) -> TopicRacks:
        """The topics of all members, whose changes matter from now on. Raises as `refresh`."""
        self._group_topics = topics
        _, cluster = await self._ask(self.topics | topics, deadline)
        self._take(cluster)
        self._assigned = self._known
        return topic_racks(cluster)

    def new_refusal(self) -> KafkaError | None:
        """Why topics that are named cannot be had, unless that was told before; None where all can, or may later."""
        if self._refused == self._told:
            return None
        self._told = self._refused
        if not self._refused:
            return None
        names = sorted(self._refused)
        return KafkaError(self._refused[names[0]], f"topics of group {self._settings.group!r}: {', '.join(names)}")

    def follow(self) -> None:
        """This member leads no more."""
        self._group_topics, self._assigned = _NOTHING, None

    async def _ask(self, names: frozenset[str] | None, deadline: float) -> tuple[int, ClusterMetadata]:
        """The metadata of topics, and which request told it."""
        self._asked += 1
        asked, creates = self._asked, self._settings.allow_auto_create
        return asked, await self._network.refresh(names, deadline, allow_auto_create=creates)

    def _take(self, cluster: ClusterMetadata) -> None:
        self._known = self._snapshot(cluster)
        self._refused = {
            name: topic.error
            for name in self.topics | self._group_topics
            if (topic := cluster.topics.get(name)) is not None and topic.error in _REFUSALS
        }
        names = self.topics | self._group_topics
        self._missing.note(cluster, names)
        wait = max(self._settings.metadata_max_age, SHORTEST_REFRESH_INTERVAL)
        if any(name not in self._known for name in names):
            wait = min(wait, MISSING_TOPIC_INTERVAL)
        self.refresh_at = self._network.now() + wait

    def _is_matched(self, cluster: ClusterMetadata, name: str) -> bool:
        topic = cluster.topics[name]
        if topic.error or (topic.is_internal and self._settings.exclude_internal_topics):
            return False
        return self._pattern is not None and self._pattern.fullmatch(name) is not None

    def _snapshot(self, cluster: ClusterMetadata) -> TopicRacks:
        """The partitions of the topics, with their racks only where this member has one: others do not look at them.
        A topic that cannot be used at the moment is as it was."""
        found = {}
        racks = topic_racks(cluster)
        for name in self.topics | self._group_topics:
            topic = cluster.topics.get(name)
            if topic is not None and topic.error and topic.error is not Error.UNKNOWN_TOPIC_OR_PARTITION:
                if name in self._known:
                    found[name] = self._known[name]
            elif name in racks:
                partitions = racks[name]
                found[name] = partitions if self._settings.rack else dict.fromkeys(partitions, frozenset[str]())
        return found
