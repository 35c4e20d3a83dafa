"""Topics: list, create, delete, give more partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from tagwire import messages
from tagwire.client import arguments
from tagwire.client.admin.asking import Asker, Outcome
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.config import wrong
from tagwire.client.metadata import NO_NODE, TopicMetadata
from tagwire.client.retry import FIRST_PAUSE
from tagwire.rpc.version_gates import DELETE_TOPICS_IDS

# Seconds that a new topic is waited for: brokers learn of it one after the other.
SETTLE_TIME: Final = 5.0

# From this version on DeleteTopics names a topic by a struct, before it by a string.


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. -1 for partitions or replicas takes the broker's default. Numbers and truth values among the
    configs are written as Kafka does."""

    name: str
    num_partitions: int = 1
    replication_factor: int = 1
    configs: Mapping[str, arguments.ConfigValue] = field(default_factory=dict)


Ask = Callable[[list[str], float], Iterator[Outcome]]


class Topics(Asker):
    """Topics of a cluster."""

    def list_topics(self) -> list[TopicMetadata]:
        """Every topic, internal ones too, by name. Raises as `Client.metadata`."""
        return sorted(self._client.metadata().topics.values(), key=lambda topic: topic.name)

    def create_topics(self, topics: NewTopic | str | Sequence[NewTopic | str], *, validate_only: bool = False) -> None:
        """Creates topics, and waits a moment until the cluster knows them.

        Args:
            topics: one or several; a name alone is a topic of one partition.
            validate_only: only ask whether it could be done.

        Raises:
            KafkaError: with the code of the first topic that was refused; the text tells all of them. The others exist.
            ConfigError: `topics` are none.
        """
        kind = messages.CreateTopicsRequest
        wanted = _new_topics(topics)

        def ask(names: list[str], deadline: float) -> Iterator[Outcome]:
            created = [
                kind.CreatableTopic(
                    name=topic.name,
                    num_partitions=topic.num_partitions,
                    replication_factor=topic.replication_factor,
                    configs=[
                        kind.CreatableTopicConfig(name=name, value=str(value)) for name, value in topic.configs.items()
                    ],
                )
                for topic in wanted
                if topic.name in names
            ]
            request = kind(topics=created, timeout_ms=self._timeout_ms, validate_only=validate_only)
            yield from _outcomes(self._from_controller(lambda connection: request, deadline).topics)

        self._change_topics({topic.name: topic.num_partitions for topic in wanted}, ask, "create", validate_only)

    def create_partitions(self, totals: Mapping[str, int], *, validate_only: bool = False) -> None:
        """Gives topics more partitions, and waits a moment until the cluster knows them.

        Args:
            totals: {topic: how many partitions it is to have in all}.
            validate_only: only ask whether it could be done.

        Raises:
            KafkaError: as `create_topics`; INVALID_PARTITIONS where a topic has as many already.
            ConfigError: `totals` means nothing.
        """
        kind = messages.CreatePartitionsRequest
        totals = _totals(totals)

        def ask(names: list[str], deadline: float) -> Iterator[Outcome]:
            grown = [kind.CreatePartitionsTopic(name=name, count=totals[name], assignments=None) for name in names]
            request = kind(topics=grown, timeout_ms=self._timeout_ms, validate_only=validate_only)
            yield from _outcomes(self._from_controller(lambda connection: request, deadline).results)

        self._change_topics(totals, ask, "add partitions to", validate_only)

    def delete_topics(self, names: arguments.Names) -> None:
        """Deletes topics, or the one that is named, with all their records.

        Raises:
            KafkaError: with the code of the first topic that was refused; the text tells all of them. The others are
            gone.
            ConfigError: `names` are none.
        """
        kind = messages.DeleteTopicsRequest
        doomed = arguments.names("names", names)

        def ask(names: list[str], deadline: float) -> Iterator[Outcome]:
            def request(connection: BrokerConnection) -> Any:
                if connection.version(kind.api_key) >= DELETE_TOPICS_IDS:
                    return kind(
                        topics=[kind.DeleteTopicState(name=name) for name in names], timeout_ms=self._timeout_ms
                    )
                return kind(topic_names=names, timeout_ms=self._timeout_ms)

            yield from _outcomes(self._from_controller(request, deadline).responses)

        try:
            self._settle(doomed, ask, "delete topic", changes=True, moves=False)
        finally:
            self._network.forget(doomed)

    def _change_topics(self, totals: Mapping[str, int], ask: Ask, verb: str, validate_only: bool) -> None:
        """Changes how many partitions topics have, and waits for those that were changed, refused others or not."""
        changed: dict[str, int] = {}

        def noted(names: list[str], deadline: float) -> Iterator[Outcome]:
            for outcome in ask(names, deadline):
                if not outcome.error:
                    changed[outcome.key] = totals.get(outcome.key, 1)
                yield outcome

        try:
            self._settle(list(totals), noted, f"{verb} topic", changes=True, moves=False)
        finally:
            self._network.forget(totals)
            if changed and not validate_only:
                self._await(changed)

    def _await(self, totals: Mapping[str, int]) -> None:
        until = self._network.now() + min(SETTLE_TIME, self._network.timeout)
        while self._network.now() < until:
            topics = self._client.metadata(list(totals)).topics
            if all(_usable(topics.get(name), total) for name, total in totals.items()):
                return
            self._network.sleep(self._network.now() + FIRST_PAUSE)


def _new_topics(given: object) -> list[NewTopic]:
    """Topics to create, as they are sent. Raises ConfigError."""
    found: list[NewTopic] = []
    several = isinstance(given, Iterable) and not isinstance(given, (str, Mapping))
    for topic in cast("Iterable[object]", given) if several else [given]:
        if isinstance(topic, str):
            topic = NewTopic(topic)
        if not isinstance(topic, NewTopic):
            raise wrong("topics", arguments.shown(topic), 'NewTopic("orders", num_partitions=3), "orders", or a list')
        count = _count("num_partitions", topic.name, topic.num_partitions)
        replicas = _count("replication_factor", topic.name, topic.replication_factor)
        configs = arguments.config_values(f"configs of {topic.name}", topic.configs)
        found.append(NewTopic(arguments.name("name of a topic", topic.name), count, replicas, configs))
    return found


def _totals(given: object) -> dict[str, int]:
    if not isinstance(given, Mapping):
        raise wrong("totals", arguments.shown(given), 'a dict by topic, {"orders": 6}')
    return {arguments.name("a key of totals", name): _count("totals", name, total) for name, total in given.items()}


def _count(option: str, topic: str, given: object) -> int:
    count = arguments.whole(given)
    if count is None:
        raise wrong(f"{option} of {topic!r}", arguments.shown(given), "a whole number")
    return count


def _outcomes(results: Sequence[Any]) -> Iterator[Outcome]:
    # DeleteTopics tells no reason before its version 5.
    for result in results:
        yield Outcome(result.name, result.error_code, result.error_message)


def _usable(topic: TopicMetadata | None, total: int) -> bool:
    return bool(
        topic
        and not topic.error
        and len(topic.partitions) >= max(total, 1)
        and all(partition.leader != NO_NODE for partition in topic.partitions.values())
    )
