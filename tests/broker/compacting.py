"""Compacting what a stopped broker has left."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from tagwire.broker import scheduler
from tagwire.broker.storage.data_directory import DataDirectory
from tagwire.broker.storage.files import Files
from tagwire.broker.topics import Topics


def compact_all(path, *, clean):
    """Close every segment of a stopped broker's logs and compact them."""

    async def run():
        data = DataDirectory(Files(), path)
        topics = Topics(Files(), data, pool, pool, "batch")
        topics.load()
        for partition in topics.partitions():
            partition.log.roll_if_due(2**60)
        scheduler.compact(topics, data, asyncio.Event())
        if clean:
            topics.close()
        else:
            topics.abandon()
        data.close(clean=clean)

    with ThreadPoolExecutor(1) as pool:
        asyncio.run(run())
