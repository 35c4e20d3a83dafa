"""The topics that a producer writes to, and for how long what is known of their partitions is used."""

from __future__ import annotations

from tagwire.client.config import ProduceSettings
from tagwire.client.metadata import SHORTEST_REFRESH_INTERVAL, PartitionMetadata, TopicMetadata
from tagwire.client.network_client import NetworkClient
from tagwire.client.producing.partitioner import TopicPartitioner
from tagwire.client.producing.partitioners import deciding
from tagwire.client.retry import LONGEST_PAUSE
from tagwire.errors import TagwireError


class ProducerMetadata:
    """Kafka's class of this name. `get` is for any thread, the rest for the sending thread.

    Attributes:
        is_refresh_due: whether it is time to request all of them again.
    """

    def __init__(self, network: NetworkClient, settings: ProduceSettings) -> None:
        self._network = network
        self._settings = settings
        self._known: dict[str, TopicPartitioner] = {}
        self._used_at: dict[str, float] = {}
        self._hashing, self._function = deciding(settings.partitioner, ignore_keys=settings.ignore_keys)
        self.get = self._known.get
        self._next_refresh = 0.0

    @property
    def is_refresh_due(self) -> bool:
        return self._network.now() >= self._next_refresh

    def used(self, name: str) -> None:
        """Something is sent to the topic."""
        self._used_at[name] = self._network.now()

    async def partitions(self, name: str, deadline: float) -> dict[int, PartitionMetadata]:
        """The partitions of a topic, as `fetch` finds it."""
        await self.fetch(name, deadline)
        topic = await self._network.topic(name, deadline)
        return dict(sorted(topic.partitions.items()))

    async def fetch(self, name: str, deadline: float, partition: int | None = None) -> TopicPartitioner:
        """The partitioner of a topic, which is created where brokers do that. Raises as `NetworkClient.topic`.

        Args:
            partition: one that is wanted. Where the topic lacks it as last heard, metadata is refreshed, and again for
                as long as a missing topic is waited for: it may just have been added, and brokers lag behind.
        """
        topic = await self._network.topic(name, deadline, allow_auto_create=True)
        if partition is not None and partition >= len(topic.partitions):
            await self._network.partitions(name, [partition], deadline)
            topic = await self._network.topic(name, deadline)
        self.used(name)
        return self._remember(topic)

    async def refresh(self) -> None:
        """Requests the partitions of all topics again, but for those that are not used any more; what is known of them
        is used meanwhile. Raises as `NetworkClient.refresh`."""
        now, max_age = self._network.now(), max(self._settings.metadata_max_age, SHORTEST_REFRESH_INTERVAL)
        self._next_refresh = now + max_age
        idle = [name for name, used_at in self._used_at.items() if now - used_at >= self._settings.metadata_max_idle]
        for name in idle:
            del self._used_at[name]
            self._known.pop(name, None)
        self._network.forget(idle)
        names = list(self._known)
        if names:
            try:
                await self._network.refresh(names, self._network.deadline())
            except TagwireError:
                self._next_refresh = self._network.now() + min(max_age, LONGEST_PAUSE)
                raise
        for name in self._known.keys() & names:
            known = self._network.known_topic(name)
            if known is not None:
                self._remember(known)

    def take_news(self, name: str) -> None:
        """What was heard of a topic, since somebody looked for its leaders, is what its records go by from now on: made
        anew it may have fewer partitions, and what goes to others is failed."""
        topic, partitioner = self._network.known_topic(name), self._known.get(name)
        if topic is not None and partitioner is not None and not partitioner.is_of(topic):
            self._remember(topic)

    def _remember(self, topic: TopicMetadata) -> TopicPartitioner:
        compression = self._settings.topic_compression.get(topic.name, self._settings.compression)
        partitioner = TopicPartitioner(
            topic,
            compression,
            self._settings.batch_bytes,
            self._settings.level_of(compression),
            self._hashing,
            self._function,
        )
        self._known[topic.name] = partitioner
        return partitioner
