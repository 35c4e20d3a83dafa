"""What a Python worker keeps between tasks: producers, whose connections and ids outlive a micro-batch.

Workers are forked from one process and used again; what they keep is checked by process id, since a fork inherits
objects, but not their threads and not the right to their sockets.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tagwire.client import Producer

_Key = tuple[int, tuple[tuple[str, str], ...]]

_producers: dict[_Key, Producer] = {}


@contextmanager
def shared_producer(properties: Mapping[str, str]) -> Iterator[Producer]:
    """A producer of this worker that is set up like this, for one task. After a failure it is not used again."""
    from tagwire.client import Client, Producer

    key = (os.getpid(), tuple(sorted(properties.items())))
    producer = _producers.pop(key, None) or Producer(Client.from_properties(properties))
    try:
        yield producer
    except BaseException:
        producer.close(0)
        raise
    _producers[key] = producer
