"""The decisions of exactly-once queries: which micro-batch of which query is committed, by which transactions.

They are kept in the topic `__tagwire_commits`, of one partition, compacted: the last decision of each query is all that
anybody needs. A record's key is the exactly-once id and Spark's id of the query; its value is JSON. A decision, and the
record that it is carried out, are written in a transaction of the driver's transactional id, so that a fenced driver
cannot write them. See docs/exactly-once.md.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tagwire.errors import CorruptRecordError, Error, KafkaError, RequestTimeoutError, TagwireError

if TYPE_CHECKING:
    from tagwire.client import Client, NewTopic

TOPIC: Final = "__tagwire_commits"
PARTITION: Final = 0

_VERSION: Final = 1
_POLL_SECONDS: Final = 0.05
_REPLICAS: Final = 3
_CONFIGS: Final = {
    "cleanup.policy": "compact",
    # Every micro-batch reads the topic. What is not compacted yet, and markers of transactions, are kept this small.
    "segment.bytes": str(4 << 20),
    "min.cleanable.dirty.ratio": "0.1",
    "delete.retention.ms": str(10 * 60 * 1000),
}


@dataclass(frozen=True)
class TaskTransaction:
    """A transaction that a task has written and left open.

    Attributes:
        transactional_id, producer_id, epoch: exactly as its InitProducerId gave them.
        protocol: of transactions, 1 or 2 (KIP-890), that it was written with.
        rows: how many are in it.
    """

    transactional_id: str
    producer_id: int
    epoch: int
    protocol: int
    rows: int

    def __str__(self) -> str:
        return f"{self.transactional_id} (producer {self.producer_id}, epoch {self.epoch}, {self.rows} rows)"


@dataclass(frozen=True)
class Decision:
    """A micro-batch that is committed: all its transactions will be, whatever happens.

    Attributes:
        query_id: Spark's id of the query. It decides nothing for another query of the same exactly-once id.
        batch_id: the micro-batch.
        transactions: all that the micro-batch has written.
        done: whether all of them are ended.
    """

    query_id: str
    batch_id: int
    transactions: tuple[TaskTransaction, ...]
    done: bool = False

    def carried_out(self) -> Decision:
        """The word that it is done; what was listed is not needed any more."""
        return replace(self, transactions=(), done=True)

    def key(self, exactly_once_id: str) -> bytes:
        """Under which its query's last decision is kept."""
        return _prefix(exactly_once_id) + self.query_id.encode()

    def encode(self) -> bytes:
        return json.dumps({"version": _VERSION, **asdict(self)}, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, value: bytes, where: str) -> Decision:
        """Raises CorruptRecordError for what is no decision, or one of a version that is not known."""
        try:
            found: dict[str, Any] = json.loads(value)
            if found.pop("version") != _VERSION:
                raise CorruptRecordError(f"{where}: a decision of a version that this tagwire does not know")
            listed = tuple(TaskTransaction(**one) for one in found.pop("transactions"))
            return cls(transactions=listed, **found)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CorruptRecordError(f"{where}: not a decision: {error}") from None


class TopicUnfitError(TagwireError):
    """`__tagwire_commits` is not what decisions need."""


def ensure_topic(client: Client) -> None:
    """Makes sure that the topic is there and keeps what is written to it.

    Raises:
        TopicUnfitError: it has several partitions, or forgets by time or size.
        KafkaError: it could not be created or looked at.
    """
    from tagwire.client import Admin

    with Admin(client) as admin:
        found = client.metadata([TOPIC]).topics.get(TOPIC)
        if found is None or found.error is Error.UNKNOWN_TOPIC_OR_PARTITION:
            try:
                admin.create_topics([_new_topic(len(client.metadata([]).brokers))])
            except KafkaError as error:
                if error.error is not Error.TOPIC_ALREADY_EXISTS:
                    raise
            found = client.topic(TOPIC)  # another query may be making it
        if len(found.partitions) != 1:
            raise TopicUnfitError(f"topic {TOPIC} has {len(found.partitions)} partitions; decisions need exactly one")
        (configs,) = admin.describe_configs([("topic", TOPIC)]).values()
        policy = configs["cleanup.policy"].value
        if policy != "compact":
            raise TopicUnfitError(f"topic {TOPIC} has cleanup.policy={policy}; decisions need compact")


def _new_topic(brokers: int) -> NewTopic:
    """What it is made as: on as many brokers as Kafka keeps transactions on, where there are so many."""
    from tagwire.client import NewTopic

    replicas = min(_REPLICAS, brokers)
    configs = _CONFIGS | ({"min.insync.replicas": "2"} if replicas == _REPLICAS else {})
    return NewTopic(TOPIC, num_partitions=1, replication_factor=replicas, configs=configs)


def last_decisions(client: Client, exactly_once_id: str, deadline: float) -> dict[str, Decision]:
    """The last committed decision of each query of an exactly-once id, by Spark's query id. To be called once older
    drivers are fenced.

    Everything up to the end of the partition, as it is now, is read; what is still open there is waited for, since an
    open transaction of another exactly-once id may stand before ours.

    Raises:
        RequestTimeoutError: another query's transaction stayed open.
        CorruptRecordError: what is there is no decision.
    """
    import pyarrow.compute as pc

    from tagwire.client import EARLIEST, LATEST, Reader, TopicPartition

    at = TopicPartition(TOPIC, PARTITION)
    end = client.list_offsets({at: LATEST}, isolation="read_uncommitted")[at]
    while (stable := client.list_offsets({at: LATEST}, isolation="read_committed")[at]) < end:
        if time.monotonic() > deadline:
            raise RequestTimeoutError(
                f"{TOPIC}: another query's transaction is open at offset {stable}, and hides what comes up to {end}"
            )
        time.sleep(_POLL_SECONDS)
    found: dict[str, Decision] = {}
    first = client.list_offsets({at: EARLIEST})[at]
    if first == end:
        return found
    with Reader(client, {at: first}, end_offsets={at: end}, isolation="read_committed") as reader:
        for batch in reader:
            own = batch.filter(pc.starts_with(batch.column("key"), _prefix(exactly_once_id).decode()))
            for row in own.select(["offset", "key", "value"]).to_pylist():
                query_id = row["key"].removeprefix(_prefix(exactly_once_id)).decode()
                if row["value"] is None:  # somebody wants it forgotten
                    found.pop(query_id, None)
                else:
                    found[query_id] = Decision.decode(row["value"], f"{TOPIC}-{PARTITION}@{row['offset']}")
    return found


def _prefix(exactly_once_id: str) -> bytes:
    """What the keys of all queries of an exactly-once id begin with, and no other's: such an id holds no dot."""
    return exactly_once_id.encode() + b"."
