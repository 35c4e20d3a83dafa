"""What a Spark worker does once its task is read, so that the next one costs less.

A worker collects garbage after every task. With Arrow, pandas and Kafka's messages loaded that takes 15 ms of a core,
and more with more modules: as much as a whole micro-batch, while Spark writes its checkpoint on the same cores.
Source: pyspark.worker.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import TypeVar

from pyspark import TaskContext

Item = TypeVar("Item")

_modules = 0


def settled(items: Iterator[Item]) -> Iterator[Item]:
    """The same items; after the last one, what is loaded is out of the collector's sight."""
    yield from items
    settle()


def settle() -> None:
    """Hide what is alive from the collector, in a worker that loaded modules since it last did."""
    global _modules
    if TaskContext.get() is not None and _modules != len(sys.modules):
        gc.collect()
        gc.freeze()
        _modules = len(sys.modules)
