"""Spark's own Avro and Protobuf, fetched with Maven: what benches and interop tests compare our values with."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kafka_jars import MavenError, classpath

_GROUP: Final = "org.apache.spark"


def spark_avro(spark: str) -> list[Path]:
    """The jar with `from_avro` for a release of Spark, else the newest before it, which a newer Spark still loads. What
    reads Avro is in Spark itself, of its own release.

    Raises:
        MavenError: none could be fetched.
    """
    why: list[str] = []
    for version in dict.fromkeys((spark, "4.1.1")):
        try:
            return classpath(f"spark-avro-{version}", [], [(_GROUP, "spark-avro_2.13", version)])
        except MavenError as error:
            why.append(f"{version}: {error}")
    raise MavenError("; ".join(why))


def spark_protobuf(spark: str) -> list[Path]:
    """The jar with `from_protobuf` for a release of Spark.

    Raises:
        MavenError: it could not be fetched.
    """
    return classpath(f"spark-protobuf-{spark}", [], [(_GROUP, "spark-protobuf_2.13", spark)])
