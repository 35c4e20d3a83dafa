"""Prefetching: an iterator that runs in a thread, a few items ahead of its consumer.

Fetching, checksums and decoding release the interpreter's lock, so they go on while the worker writes rows to the JVM.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import Full, Queue
from typing import Any, TypeVar

Item = TypeVar("Item")
_END = object()
_LOOK_AGAIN = 0.1


def prefetched(items: Iterator[Item], most: int = 2) -> Iterator[Item]:
    """The same items, at most `most` of them made before they are taken.

    What `items` raises is raised after the items before it. When this iterator is closed, the thread closes `items` and
    ends; a process that exits does not wait for it.
    """
    queue: Queue[Any] = Queue(most)
    over = threading.Event()

    def put(item: Any) -> bool:
        while not over.is_set():
            try:
                queue.put(item, timeout=_LOOK_AGAIN)
            except Full:
                continue
            return True
        return False

    def run() -> None:
        error: BaseException | None = None
        try:
            for item in items:
                if not put((item, None)):
                    break
        except BaseException as raised:
            error = raised
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()
        put((_END, error))

    thread = threading.Thread(target=run, name="tagwire-prefetch", daemon=True)
    thread.start()
    try:
        while True:
            item, error = queue.get()
            if error is not None:
                raise error
            if item is _END:
                return
            yield item
    finally:
        over.set()
        thread.join()
