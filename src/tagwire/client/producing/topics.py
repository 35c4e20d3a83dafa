"""The topics that a producer writes to, and how long what is known of their partitions is taken for granted."""

from __future__ import annotations

import time
from typing import Final

from tagwire.client.client import Client
from tagwire.client.config import ProduceSettings
from tagwire.client.producing.partitioner import TopicPlaces
from tagwire.errors import TagwireError

# A topic's partitions are asked for again after as many seconds: it may have got more (metadata.max.age.ms of Kafka's
# clients).
MAX_AGE: Final = 300.0


class Topics:
    """`get` is for any thread, the rest for the sending thread, which the client belongs to."""

    def __init__(self, client: Client, settings: ProduceSettings) -> None:
        self._client = client
        self._settings = settings
        self._known: dict[str, TopicPlaces] = {}
        self.get = self._known.get
        self._next_look = 0.0

    def ask(self, name: str, deadline: float) -> TopicPlaces:
        """The places of a topic, which is created where brokers do that. Raises as `Client.topic`."""
        topic = self._client.topic(name, min(deadline, self._client.deadline()), allow_auto_create=True)
        compression = self._settings.topic_compression.get(name, self._settings.compression)
        places = TopicPlaces(topic, compression, self._settings.batch_bytes)
        self._known[name] = places
        return places

    def renew(self) -> None:
        """Asks for the partitions of all topics again when they were asked for long ago."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + MAX_AGE
        names = list(self._known)
        self._client.forget(names)
        for name in names:
            try:
                self.ask(name, self._client.deadline())
            except TagwireError:  # sending will tell, if anything is to be sent
                continue
