"""Which format the records in a Produce or Fetch are in, said by whoever sends them.

Record batches and the messages of the "int-headers" dialect both say magic 2, so nothing in their bytes tells them
apart. A request of a client that speaks a dialect therefore says so in a tagged field, which Kafka's brokers skip; so
does each partition of a response whose records are in it. What says nothing is in Kafka's own format. Before the
versions that have tagged fields a dialect cannot be spoken.
"""

from __future__ import annotations

from collections.abc import Mapping

from tagwire.codec.classes import Structure
from tagwire.rpc.version_gates import FETCH_TAGGED_FIELDS, PRODUCE_TAGGED_FIELDS
from tagwire.spec.api_keys import ApiKey

RECORD_DIALECT_TAG = 0x7477
"""Far above the tags that Kafka uses, which counts from 0."""

FIRST_TAGGED: Mapping[int, int] = {ApiKey.PRODUCE: PRODUCE_TAGGED_FIELDS, ApiKey.FETCH: FETCH_TAGGED_FIELDS}
"""By API key: the first version with tagged fields."""


def say_dialect(message: Structure, dialect: str | None, api_key: int, version: int) -> None:
    """Note in a Produce or Fetch request, or in a partition of a Fetch response, what its records are in.

    Nothing is noted for None, nor in a version that has no room for it.
    """
    if dialect is not None and version >= FIRST_TAGGED[api_key]:
        message.unknown_tags[RECORD_DIALECT_TAG] = dialect.encode()


def dialect_of(message: Structure) -> str | None:
    """What `say_dialect` noted; None where nothing was."""
    said = message.unknown_tags.get(RECORD_DIALECT_TAG)
    return None if said is None else bytes(said).decode("utf-8", "replace")
