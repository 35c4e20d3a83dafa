"""Clients and producers that a worker keeps between tasks, and the driver between micro-batches.

Workers are forked from one process and reused. The caches are keyed by process id, since a fork inherits objects, but
neither their threads nor the right to use their sockets. Source: Spark's InternalKafkaProducerPool.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from tagwire.errors import TagwireError

if TYPE_CHECKING:
    from tagwire.client import Client, Producer

_Key = tuple[int, tuple[tuple[str, str], ...]]

_producers: dict[_Key, Producer] = {}
_clients: dict[_Key, Client] = {}


@contextmanager
def cached_client(properties: Mapping[str, str]) -> Iterator[Client]:
    """A client with these properties, alone for this block. It is closed after a failure, else kept."""
    from tagwire.client import Client

    key = _key(properties)
    client = _clients.pop(key, None) or Client.from_properties(properties)
    try:
        yield client
    except BaseException:
        client.close()
        raise
    if _clients.setdefault(key, client) is not client:  # another thread has brought back one meanwhile
        client.close()


@contextmanager
def cached_producer(properties: Mapping[str, str]) -> Iterator[Producer]:
    """A producer with these properties, alone for this block. It is closed after a failure, else kept."""
    from tagwire.client import Client, Producer

    key = _key(properties)
    producer = _producers.pop(key, None) or Producer(Client.from_properties(properties))
    try:
        yield producer
    except BaseException:
        with suppress(TagwireError):  # what was not delivered by now is not what failed
            producer.close(0)
        raise
    if _producers.setdefault(key, producer) is not producer:
        producer.close()


def _key(properties: Mapping[str, str]) -> _Key:
    return os.getpid(), tuple(sorted(properties.items()))
