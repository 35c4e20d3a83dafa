"""Topics: list, create, delete, give more partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Final, cast

from tagwire import messages
from tagwire.client import arguments
from tagwire.client.admin.api_driver import AdminApi, ApiResult, ApiResults
from tagwire.client.metadata import NO_NODE, TopicMetadata
from tagwire.client.property_values import wrong
from tagwire.client.retry import FIRST_PAUSE
from tagwire.client.scheduling import sleep
from tagwire.errors import TagwireError
from tagwire.rpc.version_gates import DELETE_TOPICS_IDS

# Seconds that a new topic is waited for: brokers learn of it one after the other.
SETTLE_TIME: Final = 5.0


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. -1 for partitions or replicas takes the broker's default. Numbers and booleans among the
    configs are written as Kafka does."""

    name: str
    num_partitions: int = 1
    replication_factor: int = 1
    configs: Mapping[str, arguments.ConfigValue] = field(default_factory=dict)


_Send = Callable[[list[str], float], ApiResults[str, None]]
_Result = ApiResult[str, None]


class Topics(AdminApi):
    """Topics of a cluster."""

    async def list_topics(self) -> list[TopicMetadata]:
        """As `Admin.list_topics`."""
        known = await self._network.refresh(None, self._network.deadline())
        return sorted(known.topics.values(), key=lambda topic: topic.name)

    async def create_topics(
        self, topics: NewTopic | str | Sequence[NewTopic | str], *, validate_only: bool = False
    ) -> None:
        """As `Admin.create_topics`."""
        kind = messages.CreateTopicsRequest
        wanted = _new_topics(topics)

        async def send(names: list[str], deadline: float) -> ApiResults[str, None]:
            left = set(names)
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
                if topic.name in left
            ]
            request = kind(topics=created, timeout_ms=self._timeout_ms, validate_only=validate_only)
            controller = await self._network.controller(deadline)
            response = await self._network.request(controller, request, deadline)
            for topic in response.topics:
                yield _Result(topic.name, topic.error_code, topic.error_message)

        await self._change_topics({topic.name: topic.num_partitions for topic in wanted}, send, "create", validate_only)

    async def create_partitions(self, totals: Mapping[str, int], *, validate_only: bool = False) -> None:
        """As `Admin.create_partitions`."""
        kind = messages.CreatePartitionsRequest
        totals = _totals(totals)

        async def send(names: list[str], deadline: float) -> ApiResults[str, None]:
            grown = [kind.CreatePartitionsTopic(name=name, count=totals[name], assignments=None) for name in names]
            request = kind(topics=grown, timeout_ms=self._timeout_ms, validate_only=validate_only)
            controller = await self._network.controller(deadline)
            response = await self._network.request(controller, request, deadline)
            for topic in response.results:
                yield _Result(topic.name, topic.error_code, topic.error_message)

        await self._change_topics(totals, send, "add partitions to", validate_only)

    async def delete_topics(self, names: arguments.Names) -> None:
        """As `Admin.delete_topics`."""
        kind = messages.DeleteTopicsRequest
        deleted = arguments.names("names", names)

        async def send(names: list[str], deadline: float) -> ApiResults[str, None]:
            controller = await self._network.controller(deadline)
            if controller.version(kind.api_key) >= DELETE_TOPICS_IDS:
                topics = [kind.DeleteTopicState(name=name) for name in names]
                request = kind(topics=topics, timeout_ms=self._timeout_ms)
            else:
                request = kind(topic_names=names, timeout_ms=self._timeout_ms)
            response = await self._network.request(controller, request, deadline)
            for topic in response.responses:  # which tell no reason before version 5, and no name only by topic id
                yield _Result(topic.name or str(topic.topic_id), topic.error_code, topic.error_message)

        try:
            await self._drive(deleted, send, "delete topic", changes=True, moves=False)
        finally:
            self._network.forget(deleted)

    async def _change_topics(self, totals: Mapping[str, int], send: _Send, verb: str, validate_only: bool) -> None:
        """Changes how many partitions topics have, and waits for those that were changed, refused others or not."""
        changed: dict[str, int] = {}

        async def noted(names: list[str], deadline: float) -> ApiResults[str, None]:
            async with aclosing(send(names, deadline)) as results:
                async for result in results:
                    if not result.error:
                        changed[result.key] = totals.get(result.key, 1)
                    yield result

        refused: TagwireError | None = None
        try:
            await self._drive(list(totals), noted, f"{verb} topic", changes=True, moves=False)
        except TagwireError as error:
            refused = error
        finally:
            self._network.forget(totals)
        if changed and not validate_only:
            with suppress(TagwireError):  # that nobody tells of them now makes what is done no failure
                await self._until_known(changed)
        if refused is not None:
            raise refused

    async def _until_known(self, totals: Mapping[str, int]) -> None:
        until = self._network.now() + min(SETTLE_TIME, self._network.timeout)
        while self._network.now() < until:
            topics = (await self._network.refresh(list(totals), self._network.deadline())).topics
            if all(_usable(topics.get(name), total) for name, total in totals.items()):
                return
            await sleep(self._network.now() + FIRST_PAUSE)


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


def _usable(topic: TopicMetadata | None, total: int) -> bool:
    return bool(
        topic
        and not topic.error
        and len(topic.partitions) >= max(total, 1)
        and all(partition.leader != NO_NODE for partition in topic.partitions.values())
    )
