"""Spark's Python workers with what each of them loads loaded already, in the process that they are forked from.

PySpark forks a worker for every plan of a read, a write or a stream, and for tasks; each one loads Arrow and the client
anew, which takes it most of a second. Python imports this module as it starts, where tests/spark/preloaded.py puts it
on the path. It leaves every other program as it is.
"""

from __future__ import annotations

import sys


def _load(module: str) -> None:
    import gc
    import importlib
    import os
    from contextlib import suppress

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy starts no threads then, which a fork would lose
    for name in (module, "pyarrow", "tagwire.records.arrow", "tagwire.spark.source.topic"):
        with suppress(ImportError):
            importlib.import_module(name)
    with suppress(ImportError):
        client = importlib.import_module("tagwire.client")
        for name in ("Admin", "Client", "Producer", "Reader"):  # which are imported when they are used
            getattr(client, name)
    gc.collect()
    gc.freeze()


_begun = sys.orig_argv
# Looking for data sources, which every session does once, needs nothing of them.
if "pyspark.daemon" in _begun and not _begun[-1].endswith(".lookup_data_sources"):
    _load(_begun[-1])
