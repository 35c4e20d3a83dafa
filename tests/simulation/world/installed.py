"""Puts simulated clocks, threads, sockets and randomness in the place of the standard library's.

To be called before tagwire is imported, once for all worlds. Outside of a running world, clocks, sockets and randomness
are the real ones still.
"""

from __future__ import annotations

import asyncio
import asyncio.runners
import concurrent.futures
import concurrent.futures.thread
import http.client  # noqa: F401  (so that it has the real sockets, as all of the standard library that is imported here)
import logging  # noqa: F401
import os
import queue
import random
import selectors
import ssl  # noqa: F401
import sys
import threading
import time
import types
import urllib.request  # noqa: F401
import uuid
from typing import Any

from . import primitives, processes, real, scheduler, threads
from .loop import SimulatedLoop, cancel_all_tasks, wait
from .scheduler import EPOCH_S, UPTIME_S
from .selecting import SimulatedSelector
from .socket_module import SocketModule
from .turns import gather, wait_for

PROCESS_ID = 1000

_real_getpid = os.getpid
_is_done = False


def install() -> None:
    """Does it. Later calls do nothing."""
    global _is_done
    if _is_done:
        return
    if any(name == "tagwire" or name.startswith("tagwire.") for name in sys.modules):
        raise RuntimeError("tagwire was imported before the standard library was replaced")
    _is_done = True
    _install_threads()
    _install_clocks()
    _install_randomness()
    _install_loops()
    sys.modules["socket"] = _Sockets("socket")


def _install_threads() -> None:
    replaced: dict[str, Any] = {
        "Lock": primitives.Lock,
        "RLock": primitives.RLock,
        "Condition": primitives.Condition,
        "Event": primitives.Event,
        "Thread": threads.Thread,
        "current_thread": threads.current_thread,
        "_allocate_lock": primitives.Lock,
    }
    for name, value in replaced.items():
        setattr(threading, name, value)
    queue.SimpleQueue = primitives.SimpleQueue  # type: ignore[misc, assignment]
    for module in (concurrent.futures, concurrent.futures.thread):
        module.ThreadPoolExecutor = threads.ThreadPoolExecutor  # type: ignore[assignment, misc]


def _install_clocks() -> None:
    uptime_ns = int(UPTIME_S * 1e9)
    epoch_ns = int(EPOCH_S * 1e9)

    def monotonic_ns() -> int:
        world = scheduler.running
        return uptime_ns + world.ns if world is not None else real.clocks["monotonic_ns"]()

    def monotonic() -> float:
        world = scheduler.running
        return (uptime_ns + world.ns) / 1e9 if world is not None else real.clocks["monotonic"]()

    def time_ns() -> int:
        world = scheduler.running
        if world is None:
            return real.clocks["time_ns"]()
        offset = world.current.process.wall_offset if world.current is not None else 0.0
        return epoch_ns + world.ns + int(offset * 1e9)

    def wall() -> float:
        return time_ns() / 1e9 if scheduler.running is not None else real.clocks["time"]()

    def sleep(seconds: float) -> None:
        world = scheduler.running
        if world is None:
            real.sleep(seconds)
        elif seconds > 0:
            world.block("time", seconds)
        else:
            world.step()

    for name, value in {
        "monotonic": monotonic,
        "perf_counter": monotonic,
        "monotonic_ns": monotonic_ns,
        "perf_counter_ns": monotonic_ns,
        "time": wall,
        "time_ns": time_ns,
        "sleep": sleep,
    }.items():
        setattr(time, name, value)


def _urandom(size: int) -> bytes:
    world = scheduler.running
    if world is None or world.current is None:
        return real.urandom(size)
    return world.current.process.random.randbytes(size)


def _getpid() -> int:
    """A broker writes it into its lock file, and the disk's free space tells how long it is."""
    return PROCESS_ID if scheduler.running is not None else _real_getpid()


class _Random(real.Random):
    """Where no seed is given, the process gives one."""

    def __init__(self, x: Any = None) -> None:
        super().__init__(x if x is not None else int.from_bytes(_urandom(32), "big"))


def _install_randomness() -> None:
    os.urandom = _urandom
    os.getpid = _getpid
    random._urandom = _urandom  # type: ignore[attr-defined]
    random.Random = _Random  # type: ignore[misc]
    uuid._generate_time_safe = None  # type: ignore[attr-defined]


def _install_loops() -> None:
    def new_event_loop() -> asyncio.AbstractEventLoop:
        return SimulatedLoop() if scheduler.running is not None else asyncio.SelectorEventLoop()

    asyncio.new_event_loop = asyncio.events.new_event_loop = new_event_loop
    asyncio.wait_for = asyncio.tasks.wait_for = wait_for
    asyncio.gather = asyncio.tasks.gather = gather
    asyncio.runners._cancel_all_tasks = cancel_all_tasks  # type: ignore[attr-defined]
    sys.modules["uvloop"] = None  # type: ignore[assignment]
    selectors.PollSelector = _selector  # type: ignore[misc, assignment]


def _selector() -> Any:
    return SimulatedSelector(wait) if scheduler.running is not None else real.PollSelector()


class _Sockets(types.ModuleType):
    """The module `socket`: simulated in the world, and real outside of it."""

    def __getattr__(self, name: str) -> Any:
        if name in ("socket", "socketpair", "create_server", "getaddrinfo") and scheduler.running is not None:
            return getattr(_simulated, name)
        return getattr(real.socket_module, name)


_simulated = SocketModule(lambda: processes.current().host)
