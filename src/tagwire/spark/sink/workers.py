"""What a Python worker keeps between tasks, and the driver's between micro-batches: connections, and producers' ids.

Workers are forked from one process and used again; what they keep is checked by process id, since a fork inherits
objects, but not their threads and not the right to their sockets.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tagwire.client import Client, Producer

_Key = tuple[int, tuple[tuple[str, str], ...]]

_producers: dict[_Key, Producer] = {}
_clients: dict[_Key, Client] = {}


@contextmanager
def shared_client(properties: Mapping[str, str]) -> Iterator[Client]:
    """A client of this process, set up like this, for one piece of work. After a failure it is not used again."""
    from tagwire.client import Client

    key = _key(properties)
    client = _clients.pop(key, None) or Client.from_properties(properties)
    try:
        yield client
    except BaseException:
        client.close()
        raise
    _clients[key] = client


@contextmanager
def shared_producer(properties: Mapping[str, str]) -> Iterator[Producer]:
    """A producer of this worker that is set up like this, for one task. After a failure it is not used again."""
    from tagwire.client import Client, Producer

    key = _key(properties)
    producer = _producers.pop(key, None) or Producer(Client.from_properties(properties))
    try:
        yield producer
    except BaseException:
        producer.close(0)
        raise
    _producers[key] = producer


def _key(properties: Mapping[str, str]) -> _Key:
    return os.getpid(), tuple(sorted(properties.items()))
