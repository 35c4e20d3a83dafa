"""What a read asks the brokers while it is planned: which partitions there are, and which offsets they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tagwire.errors import Error, KafkaError
from tagwire.spark.options import EARLIEST, LATEST, Offsets, Partition, TopicOptions

if TYPE_CHECKING:
    from tagwire.client import Client


class Cluster:
    """The brokers of one read. Connects when first asked; a pickled copy connects anew."""

    def __init__(self, options: TopicOptions) -> None:
        self._options = options
        self._client: Client | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_client": None}

    def partitions(self) -> list[Partition]:
        """The partitions the options select, in order.

        Raises:
            KafkaError: a topic or partition that is named does not exist or may not be read; the text names it.
            ConnectError: no broker could be reached.
        """
        selection = self._options.selection
        named = [*selection.assign, *selection.subscribe]
        client = self._connected()
        topics = client.metadata(named or None).topics
        if not named:
            topics = {
                name: topic for name, topic in topics.items() if not topic.is_internal and selection.matches(name)
            }
        found: list[Partition] = []
        for name, topic in topics.items():
            if topic.error:  # a topic that was just created is waited for
                topic = client.topic(name, client.deadline())
            for index in selection.assign.get(name, ()):
                if index not in topic.partitions:
                    raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"partition {name}-{index}")
            found += [(name, index) for index in selection.assign.get(name, topic.partitions)]
        return sorted(found)

    def held(self) -> tuple[Offsets, Offsets]:
        """First offset kept and next offset to be written, of every selected partition."""
        partitions = self.partitions()
        return self._offsets(partitions, EARLIEST), self._offsets(partitions, LATEST)

    def earliest(self, partitions: list[Partition]) -> Offsets:
        """First offset kept of these partitions."""
        return self._offsets(partitions, EARLIEST)

    def latest(self) -> Offsets:
        """Next offset to be written of every selected partition."""
        return self._offsets(self.partitions(), LATEST)

    def close(self) -> None:
        """Close the connections; the next question opens new ones."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _offsets(self, partitions: list[Partition], bound: int) -> Offsets:
        if not partitions:
            return {}
        answer = self._connected().list_offsets(dict.fromkeys(partitions, bound))
        return {(topic, index): offset for (topic, index), offset in answer.items()}

    def _connected(self) -> Client:
        if self._client is None:
            from tagwire.client import Client

            self._client = Client.from_properties(self._options.client)
        return self._client
