"""A broker that is a program's only business: it runs until a signal stops it."""

from __future__ import annotations

import asyncio
import resource
import signal
from collections.abc import Callable
from contextlib import suppress
from os import PathLike
from pathlib import Path

from tagwire.broker.event_loop import run
from tagwire.broker.server import Server
from tagwire.broker.settings import Settings, Unsupported
from tagwire.broker.topics import Fsync
from tagwire.rpc.frames import DEFAULT_MAX_FRAME_BYTES


def serve(
    data_dir: str | PathLike[str],
    host: str = "127.0.0.1",
    port: int = 9092,
    *,
    fsync: Fsync = "batch",
    num_partitions: int = 1,
    auto_create_topics: bool = True,
    unsupported: Unsupported = "close",
    max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES,
    on_ready: Callable[[str], None] = lambda bootstrap: None,
) -> None:
    """Run a broker in this thread, the program's main one, until SIGINT or SIGTERM; both stop it in order.

    Args:
        data_dir: where topics are kept.
        host, port: where to listen; port 0 takes a free one.
        fsync, num_partitions, auto_create_topics, unsupported, max_frame_bytes: see `Settings`.
        on_ready: called with "host:port" when clients can connect.

    Raises:
        ConfigError: an option is wrong, or the address cannot be listened on.
        StorageError: the data directory is not ours, is in use, or cannot be read or written.
    """
    settings = Settings(
        data_dir=Path(data_dir),
        host=host,
        port=port,
        fsync=fsync,
        num_partitions=num_partitions,
        auto_create_topics=auto_create_topics,
        unsupported=unsupported,
        max_frame_bytes=max_frame_bytes,
    )
    _allow_many_files()
    run(_until_signalled(settings, on_ready))


def _allow_many_files() -> None:
    """Take all the open files the system lets this program have: each client and each log in use is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _until_signalled(settings: Settings, on_ready: Callable[[str], None]) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    async with Server(settings) as server:
        on_ready(server.bootstrap)
        await stopping.wait()
