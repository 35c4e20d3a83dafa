"""The topics that a producer writes to, and how long what is known of their partitions is taken for granted."""

from __future__ import annotations

import time
from typing import Final

from tagwire.client.cluster import Cluster
from tagwire.client.config import ProduceSettings
from tagwire.client.metadata import TopicMetadata
from tagwire.client.producing.partitioner import TopicPlaces

# A topic's partitions are asked for again after as many seconds: it may have got more (metadata.max.age.ms of Kafka's
# clients).
MAX_AGE: Final = 300.0


class Topics:
    """`get` is for any thread, the rest for the sending thread, which the cluster belongs to.

    Attributes:
        is_due: whether it is time to ask for all of them again.
    """

    def __init__(self, cluster: Cluster, settings: ProduceSettings) -> None:
        self._cluster = cluster
        self._settings = settings
        self._known: dict[str, TopicPlaces] = {}
        self.get = self._known.get
        self._next_look = 0.0

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self._next_look

    async def ask(self, name: str, deadline: float) -> TopicPlaces:
        """The places of a topic, which is created where brokers do that. Raises as `Cluster.topic`."""
        return self._take(await self._cluster.topic(name, deadline, allow_auto_create=True))

    async def renew(self) -> None:
        """Asks for the partitions of all topics again; what is known of them is used meanwhile. Raises as
        `Cluster.refresh`."""
        self._next_look = time.monotonic() + MAX_AGE
        names = list(self._known)
        if names:
            await self._cluster.refresh(names, self._cluster.deadline())
        for name in names:
            known = self._cluster.known_topic(name)
            if known is not None:
                self._take(known)

    def _take(self, topic: TopicMetadata) -> TopicPlaces:
        compression = self._settings.topic_compression.get(topic.name, self._settings.compression)
        places = TopicPlaces(topic, compression, self._settings.batch_bytes)
        self._known[topic.name] = places
        return places
