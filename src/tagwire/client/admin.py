"""Changing topics: create, delete, list."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

from tagwire import messages
from tagwire.client.client import Client, connect
from tagwire.client.metadata import NO_NODE, TopicMetadata
from tagwire.client.retry import FIRST_PAUSE, Retry
from tagwire.client.transport import Link
from tagwire.errors import ConnectError, KafkaError

# Seconds that a new topic is waited for: brokers learn of it one after the other.
SETTLE_TIME: Final = 5.0

# From this version on DeleteTopics names a topic by a struct, before it by a string.
TOPIC_STRUCTS_FROM: Final = 6


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. -1 for partitions or replicas takes the broker's default."""

    name: str
    num_partitions: int = 1
    replication_factor: int = 1
    configs: Mapping[str, str] = field(default_factory=dict)


class Admin:
    """Topics of a cluster.

    Args:
        client: a client, which stays open, or bootstrap addresses, "HOST:PORT,HOST:PORT".
    """

    def __init__(self, client: Client | str) -> None:
        self._client, self._owns_client = connect(client)

    def close(self) -> None:
        """Closes the connections, where this object opened them."""
        if self._owns_client:
            self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def list_topics(self) -> list[TopicMetadata]:
        """Every topic, internal ones too, by name. Raises as `Client.metadata`."""
        return sorted(self._client.metadata().topics.values(), key=lambda topic: topic.name)

    def create_topics(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> None:
        """Creates topics, and waits a moment until the cluster knows them.

        Args:
            validate_only: only ask whether it could be done.

        Raises:
            KafkaError: with the code of the first topic that was refused; the text tells all of them. The others exist.
        """
        kind = messages.CreateTopicsRequest

        def request(link: Link, names: list[str], timeout_ms: int) -> Any:
            created = [
                kind.CreatableTopic(
                    name=topic.name,
                    num_partitions=topic.num_partitions,
                    replication_factor=topic.replication_factor,
                    configs=[
                        kind.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()
                    ],
                )
                for topic in topics
                if topic.name in names
            ]
            return kind(topics=created, timeout_ms=timeout_ms, validate_only=validate_only)

        names = [topic.name for topic in topics]
        self._change(names, request, lambda response: response.topics, "create")
        if not validate_only:
            self._await(names)

    def delete_topics(self, names: Sequence[str]) -> None:
        """Deletes topics with all their records.

        Raises:
            KafkaError: with the code of the first topic that was refused; the text tells all of them. The others are
            gone.
        """
        kind = messages.DeleteTopicsRequest

        def request(link: Link, names: list[str], timeout_ms: int) -> Any:
            if link.version(kind.api_key) >= TOPIC_STRUCTS_FROM:
                return kind(topics=[kind.DeleteTopicState(name=name) for name in names], timeout_ms=timeout_ms)
            return kind(topic_names=names, timeout_ms=timeout_ms)

        self._change(list(names), request, lambda response: response.responses, "delete")

    def _change(
        self,
        names: list[str],
        request: Callable[[Link, list[str], int], Any],
        results: Callable[[Any], list[Any]],
        verb: str,
    ) -> None:
        """Asks the controller, again where it is another one by now or not ready, until every topic has its answer."""
        deadline = self._client.deadline()
        timeout_ms = int(self._client.timeout * 1000)
        refused: dict[str, KafkaError] = {}
        left, retry = names, Retry(deadline)
        while left:
            try:
                link = self._client.controller(deadline)
            except ConnectError as error:
                retry.wait(error)
                self._client.refresh([], deadline)
                continue
            response = link.wait(self._client.send(link, request(link, left, timeout_ms), deadline), deadline)
            later: dict[str, KafkaError] = {}
            for result in results(response):
                if result.error_code:
                    said = f": {result.error_message}" if result.error_message else ""
                    refusal = KafkaError(result.error_code, f"{verb} topic {result.name!r}{said}")
                    again = refusal.retriable and not refusal.refreshes_metadata
                    (later if again else refused)[result.name] = refusal
            left = [name for name in left if name in later]
            if left:
                retry.wait(later[left[0]])
                self._client.refresh([], deadline)
        self._client.forget(names)
        if refused:
            first, *others = refused.values()
            raise KafkaError(first.code, "; ".join([first.message, *(str(other) for other in others)]))

    def _await(self, names: list[str]) -> None:
        until = time.monotonic() + min(SETTLE_TIME, self._client.timeout)
        while time.monotonic() < until:
            topics = self._client.metadata(names).topics
            if all(_usable(topics.get(name)) for name in names):
                return
            time.sleep(FIRST_PAUSE)


def _usable(topic: TopicMetadata | None) -> bool:
    return bool(
        topic
        and not topic.error
        and topic.partitions
        and all(partition.leader != NO_NODE for partition in topic.partitions.values())
    )
