"""A broker, or a cluster, that is a program's only business: it runs until a signal stops it."""

from __future__ import annotations

import asyncio
import resource
import signal
import threading
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress

from tagwire.broker.cluster import Cluster
from tagwire.broker.event_loop import run
from tagwire.broker.kept_memory import keep_freed_memory
from tagwire.broker.network.server import Server
from tagwire.broker.registry import load_handlers
from tagwire.broker.settings import Settings
from tagwire.broker.telemetry.status import serving_status

IDLE_S = 1.0
"""How long after its start a broker loads the handlers that no client has asked for yet."""

BETWEEN_HANDLERS_S = 0.01
"""To load one takes a millisecond or two, and clients are served between two of them."""


def serve(settings: Settings, on_ready: Callable[[list[str]], None] = lambda addresses: None) -> None:
    """Run a broker in this thread, the program's main one, until SIGINT, SIGTERM or SIGHUP; each stops it in order.

    SIGHUP, by which a terminal that is closed ends what runs in it, stops no broker that was started to ignore it.

    While it runs, `tagwire.broker.telemetry.status.read_status` tells how it is to whoever may read its data directory.

    Args:
        settings: how it is to run.
        on_ready: called with the "host:port" of each listener when clients can connect.

    Raises:
        ConfigError: an address cannot be listened on.
        StorageError: the data directory is not ours, is in use, or cannot be read or written.
    """
    _allow_many_files()
    run(_until_signalled(settings, on_ready))


def serve_cluster(cluster: Cluster, on_ready: Callable[[dict[int, list[str]]], None]) -> None:
    """Run a cluster until one of the same signals, for which this thread, the program's main one, waits.

    Args:
        on_ready: called with the "host:port" of each listener of every node, by its id, when clients can connect.

    Raises:
        As `Cluster.start`.
    """
    _allow_many_files()
    # Not an Event: this thread may be about to wait for it when a signal comes, and hold what setting it takes.
    running = threading.Lock()
    running.acquire()

    def stop(*_: object) -> None:
        with suppress(RuntimeError):  # another signal has released it
            running.release()

    for number in _ending_signals():
        signal.signal(number, stop)
    with cluster:
        on_ready({node_id: node.addresses for node_id, node in cluster.nodes.items()})
        keep_freed_memory()
        running.acquire()


def _ending_signals() -> list[signal.Signals]:
    """SIGHUP only where it is not ignored, as nohup has it; SIGINT always, which shells ignore for what runs beside."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    return numbers if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [*numbers, signal.SIGHUP]


def _allow_many_files() -> None:
    """Take all the open files the system lets this program have: each client and each log in use is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _until_signalled(settings: Settings, on_ready: Callable[[list[str]], None]) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _ending_signals():
        loop.add_signal_handler(number, stopping.set)
    async with Server(settings) as server, AsyncExitStack() as while_running:
        if settings.data_dir is not None:
            await while_running.enter_async_context(serving_status(settings.data_dir, server.stats))
        on_ready(server.addresses)
        loading = asyncio.create_task(_make_ready())
        await stopping.wait()
        loading.cancel()


async def _make_ready() -> None:
    """Do what no start need wait for, while the broker is idle.

    The rest of the handlers is loaded: a release that is installed over one that runs must not mix with it.
    """
    await asyncio.sleep(IDLE_S)
    keep_freed_memory()
    for _ in load_handlers():
        await asyncio.sleep(BETWEEN_HANDLERS_S)
