"""Spark's own Kafka connector, fetched with Maven: the peer that the Spark bench and the interop tests compare with."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from kafka_jars import Coordinates, MavenError, classpath

_GROUP: Final = "org.apache.spark"
_CLIENTS: Final[list[Coordinates]] = [
    ("org.apache.kafka", "kafka-clients", "3.9.1"),
    ("org.apache.commons", "commons-pool2", "2.12.1"),
]


class Connector(NamedTuple):
    """A connector that was fetched. `version`: of its two jars, where they differ both."""

    version: str
    jars: list[Path]


def connector_of(source: str, tokens: str) -> list[Path]:
    """The jars of one release of the connector, with a token provider of one that is not newer.

    Raises:
        MavenError: they could not be fetched.
    """
    alone = [
        (_GROUP, "spark-sql-kafka-0-10_2.13", source),
        (_GROUP, "spark-token-provider-kafka-0-10_2.13", tokens),
    ]
    return classpath(f"spark-connector-{source}-{tokens}", _CLIENTS, alone)


def connector(spark: str) -> Connector:
    """The connector for a release of Spark; else the newest before it, whose classes the newer Spark still loads.

    Raises:
        MavenError: none could be fetched.
    """
    why: list[str] = []
    # Where a repository lacks one of the two jars, an older one of the token provider does: its part is small.
    for source, tokens in ((spark, spark), ("4.2.0", "4.2.0"), ("4.2.0", "4.0.0")):
        version = source if source == tokens else f"{source}, token provider {tokens}"
        try:
            return Connector(version, connector_of(source, tokens))
        except MavenError as error:
            why.append(f"{version}: {error}")
    raise MavenError("; ".join(why))
