"""The names of topics that KIP-848 assigns by their ids (ConsumerMembershipManager's topic names cache)."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from tagwire import messages
from tagwire.client.network_client import NetworkClient
from tagwire.errors import RemoteProtocolError


class TopicNames:
    """What the topics of one member are called.

    Attributes:
        known: names by topic id.
    """

    def __init__(self, network: NetworkClient) -> None:
        self.known: dict[UUID, str] = {}
        self._network = network

    async def resolve(self, ids: Iterable[UUID], deadline: float) -> None:
        """Takes the names of those that the broker knows; it may know of the others later.

        Raises as `NetworkClient.request_any`, and RemoteProtocolError where two topics are said to have one name.
        """
        kind = messages.MetadataRequest
        wanted = set(ids)
        topics = [kind.MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in sorted(wanted)]
        message = kind(topics=topics, allow_auto_topic_creation=False)
        _, response = await self._network.request_any(message, deadline)
        taken = {name for topic_id, name in self.known.items() if topic_id in wanted}
        for topic in response.topics:
            if topic.topic_id not in wanted or topic.error_code or not topic.name:
                continue
            if topic.name in taken:
                raise RemoteProtocolError(f"Metadata: topic {topic.name!r} is told to have two ids")
            taken.add(topic.name)
            self.known[topic.topic_id] = topic.name

    def keep(self, ids: Iterable[UUID]) -> None:
        """Forgets the names of all others."""
        kept = set(ids)
        self.known = {topic_id: name for topic_id, name in self.known.items() if topic_id in kept}
