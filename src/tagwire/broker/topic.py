"""A topic: what is known of one that exists, what a new one is to be, and which names there may be."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from tagwire.broker.partition import Partition
from tagwire.broker.storage.data_directory import TOPICS_FILE, StoredTopic
from tagwire.broker.topic_config import TopicConfig
from tagwire.errors import Error, KafkaError
from tagwire.messages import MetadataRequest
from tagwire.records.internal_topics import OFFSETS, TRANSACTIONS
from tagwire.rpc.version_gates import METADATA_NULLABLE_TOPIC_NAME

INTERNAL: Mapping[str, Mapping[str, str | None]] = {
    OFFSETS: {"cleanup.policy": "compact", "retention.ms": "-1", "segment.bytes": str(16 << 20)},
    TRANSACTIONS: {"cleanup.policy": "compact", "retention.ms": "-1", "segment.bytes": str(16 << 20)},
}
"""The topics in which the broker keeps its own state, and their configurations. Clients may read them."""

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that exists."""

    name: str
    topic_id: UUID
    configs: Mapping[str, str | None]
    config: TopicConfig
    partitions: tuple[Partition, ...]
    stored: StoredTopic = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stored", StoredTopic(self.name, self.topic_id, len(self.partitions), self.configs))

    @property
    def is_internal(self) -> bool:
        """Whether the broker keeps its own state in it."""
        return self.name in INTERNAL


def to_go_on_without(name: str) -> str:
    """What to do when a topic of the broker's own cannot be read."""
    return f"restore {name}-0 from a backup, or take {name} out of {TOPICS_FILE}: all it says is then forgotten"


Replicas = Callable[[int], Sequence[int]]
"""Which nodes are to hold a new partition, the preferred leader first, by its index; None leaves that open."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be created; its configurations are by Kafka's names."""

    name: str
    partitions: int
    configs: Mapping[str, str | None]
    replicas: Replicas | None = None


def check_topic_name(name: str) -> None:
    """Refuse a name that Kafka would: KafkaError INVALID_TOPIC_EXCEPTION. Only checked names may become paths."""
    if not _NAME.fullmatch(name) or name in (".", ".."):
        shown = name if len(name) <= 60 else name[:60] + "..."
        raise KafkaError(
            Error.INVALID_TOPIC_EXCEPTION,
            f"topic name {shown!r} is not 1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-', or is '.' or '..'",
        )


def has_early_ids(topics: Iterable[MetadataRequest.MetadataRequestTopic], version: int) -> bool:
    """Whether what a Metadata request names has ids, or no names, in a version that has fields for them and does not
    serve them: 10 and 11 (KIP-516; Kafka's KafkaApis)."""
    return version < METADATA_NULLABLE_TOPIC_NAME and any(topic.name is None or topic.topic_id.int for topic in topics)


def asked_for(topics: Sequence[MetadataRequest.MetadataRequestTopic]) -> Sequence[MetadataRequest.MetadataRequestTopic]:
    """Which topics a Metadata request asks for: where any has an id, those that have one, by that alone.

    Source: Kafka's KafkaApis.
    """
    ids = dict.fromkeys(topic.topic_id for topic in topics if topic.topic_id.int)
    return [MetadataRequest.MetadataRequestTopic(name=None, topic_id=each) for each in ids] if ids else topics


def unified(name: str) -> str:
    """A name as Kafka compares it with those of other topics. Source: Kafka's Topic."""
    return name.replace(".", "_")
