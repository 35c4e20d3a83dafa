"""`gc.freeze` in Spark's Python workers: what is loaded once is not collected over and over.

PySpark's worker collects garbage after every task. With Arrow, pandas and Kafka's messages loaded that takes 15 ms of a
core, and more with more modules: as much as a whole micro-batch, while Spark writes its checkpoint on the same cores.
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


def freezing_gc(items: Iterator[Item]) -> Iterator[Item]:
    """The same items; after the last one, `freeze_gc`."""
    yield from items
    freeze_gc()


def freeze_gc() -> None:
    """Exempt what is alive from garbage collection, in a worker that has loaded modules since it last did so."""
    global _modules
    if TaskContext.get() is not None and _modules != len(sys.modules):
        gc.collect()
        gc.freeze()
        _modules = len(sys.modules)
