"""The topic that rows are replayed into: whether it has their partitions, looked at before any is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tagwire.errors import ConfigError, Error, KafkaError
from tagwire.spark.failure import reason

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tagwire.client import Client


@dataclass(frozen=True)
class Target:
    """A topic, and the rows for it.

    Attributes:
        partitions: that it has, or that it gets when it is created.
        is_there: whether it exists.
        rows: how many are to be written.
    """

    topic: str
    partitions: int
    is_there: bool
    rows: int


def target_of(
    rows: DataFrame,
    properties: Mapping[str, str],
    topic: str,
    *,
    partitions: int | None = None,
    keep_partitions: bool = True,
) -> Target:
    """Looks at the rows, in one pass over them, and at the topic; writes nothing.

    Args:
        rows: with a column `partition`.
        properties: of the client, `bootstrap.servers` among them.
        partitions: how many the topic has or gets; None takes as many as it has, or as the rows come from.
        keep_partitions: whether each row goes to the partition of its number.

    Raises:
        ConfigError: the topic has, or would get, fewer partitions than the rows name, or not `partitions`.
        KafkaError, ConnectError, ...: as the brokers respond. TagwireError: Spark cannot read the rows.
    """
    from tagwire.client import Client

    count, needed = _counted(rows)
    with Client.from_properties(properties) as client:
        there = _partitions(client, topic)
    if there is not None and partitions is not None and partitions != there:
        raise ConfigError(f"topic {topic!r}: has {_some(there)} already, not {partitions}")
    has = there or partitions or max(needed, 1)
    if keep_partitions and needed > has:
        raise ConfigError(
            f"topic {topic!r}: has {_some(has)}, and rows come from partition {needed - 1}: give it {needed}, "
            "or let the keys say where rows go"
            if there is not None
            else f"topic {topic!r}: would get {_some(has)}, and rows come from partition {needed - 1}: give it {needed}"
        )
    return Target(topic, has, there is not None, count)


def create(target: Target, properties: Mapping[str, str]) -> None:
    """Creates a topic that is not there, replicated as the brokers are set.

    Raises:
        ConfigError: somebody has created it meanwhile, with fewer partitions. KafkaError, ConnectError, ...: as the
            brokers respond.
    """
    from tagwire.client import Admin, Client, NewTopic

    with Client.from_properties(properties) as client:
        try:
            Admin(client).create_topics(NewTopic(target.topic, target.partitions, replication_factor=-1))
        except KafkaError as error:
            if error.error is not Error.TOPIC_ALREADY_EXISTS:
                raise
            there = _partitions(client, target.topic) or 0
            if there < target.partitions:
                raise ConfigError(f"topic {target.topic!r}: was created meanwhile, with {_some(there)}") from None


def _counted(rows: DataFrame) -> tuple[int, int]:
    """How many rows there are, and how many partitions a topic needs for theirs."""
    from pyspark.sql import functions as F  # noqa: N812

    try:
        found = rows.agg(F.count(F.lit(1)).alias("rows"), F.max("partition").alias("last")).collect()[0]
    except Exception as error:
        raise reason(error) from error
    return found.rows, 0 if found.last is None else found.last + 1


def _partitions(client: Client, topic: str) -> int | None:
    """How many partitions a topic has; None where it does not exist. Raises KafkaError: it may not be used."""
    found = client.metadata([topic]).topics.get(topic)
    if found is None or found.error is Error.UNKNOWN_TOPIC_OR_PARTITION:
        return None
    return len((found if found.error is Error.NONE else client.topic(topic)).partitions)


def _some(partitions: int) -> str:
    return "1 partition" if partitions == 1 else f"{partitions} partitions"
