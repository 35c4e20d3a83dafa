"""What is seen of a simulated broker from inside, and noted in the history: partitions, resources, lines of the log."""

from __future__ import annotations

import logging
import re
import time
from typing import TYPE_CHECKING, Any, Final, cast

from .disk_auditing import note_files
from .history import History
from .keeping import kept_by, note_kept
from .world.network_faults import told_late

if TYPE_CHECKING:
    from threading import RLock
    from uuid import UUID

    from tagwire.broker.partition import Partition

    from .simulated_host import SimulatedHost
    from .world.world import World

EVERY_S: Final = 1.0
AGAIN: Final = 10
"""As often as this is looked in vain at a partition that stands still before it is noted again."""

# A pool begins its threads as they are needed, and keeps them.
_POOLED: Final = re.compile(r"(tagwire-commit|tagwire-disk|asyncio)_\d+$")
LEAVING_S: Final = 25.0
"""Within this time after the last client, nothing of them is left: not even the longest fetch of any plan."""

STARTED_S: Final = 5.0
"""Within this time after a start, a broker has done what it does by itself."""

LOGGERS: Final = ("tagwire", "asyncio", "tests.simulation")


class Observer:
    """Looks while nobody runs, so that it changes nothing of what happens. One at a time."""

    def __init__(self, world: World, host: SimulatedHost, history: History) -> None:
        self._world = world
        self._host = host
        self._history = history
        self._lines = _Lines(world, history)
        self._is_over = False
        self._noted: dict[tuple[UUID, int], tuple[object, int]] = {}

    def begin(self) -> None:
        for name in LOGGERS:
            logging.getLogger(name).addHandler(self._lines)
        self._resources("start")
        self._look()

    def end(self) -> None:
        time.sleep(LEAVING_S)
        process = self._host.brokers.process
        # A connection whose client has gone unheard is kept until it has been silent for some minutes.
        if process is not None and told_late(self._world.network, process.host):
            time.sleep(LEAVING_S)
        self._is_over = True
        self._partitions()
        self._resources("end")
        note_files(self._world, "broker", self._history)  # as they are while it runs
        self._kept()
        if self._host.brokers.is_running:
            self._host.brokers.stop()
            # With what is only then written of what is appended to.
            note_files(self._world, "broker", self._history, is_stopped=True)

    def _look(self) -> None:
        if not self._is_over:
            self._partitions()
            self._world.after(EVERY_S, self._look)

    def _partitions(self) -> None:
        store = self._store
        if store is None:
            return
        for topic in store.topics:
            for partition in topic.partitions:
                state = _state(partition, self._world.now)
                if self._is_news((topic.topic_id, partition.index), state):
                    named = {"node": "broker", "topic": topic.name, "partition": partition.index}
                    self._history.note("broker", "partition_state", **named, **state)

    def _is_news(self, partition: tuple[UUID, int], state: dict[str, Any]) -> bool:
        """Whether a state is to be noted: what has changed, twice; what waits for somebody, each time; everything at
        the end. Whatever else stands still is most of all that could be seen."""
        before, looks = self._noted.get(partition, (None, 0))
        looks = looks + 1 if before == state else 0
        self._noted[partition] = state, looks
        waits = state["open"] or state["last_stable"] != state["high_watermark"]
        return self._is_over or waits or looks < 2 or looks % AGAIN == 0

    def _kept(self) -> None:
        """Compares what is in memory with what a restart finds on the disk: all else is of clients that have gone."""
        server = self._server
        if server is None:
            return
        before = kept_by(server)
        start = self._host.faults.begin("broker_stop")
        if start is not None:
            start()
        time.sleep(STARTED_S)
        if self._server is not None:
            note_kept(self._history, "broker", before, kept_by(self._server))

    def _resources(self, phase: str) -> None:
        process = self._host.brokers.process
        if process is None or process.is_dead:
            return
        # The broker's own: of what asyncio makes to wait inside of them, there is now more and now less.
        tasks = sum(
            "/tagwire/" in task.get_coro().cr_code.co_filename for loop in process.loops for task in loop.tasks()
        )
        # A log that is written to keeps its file open; what is open once more was left open by who has read it.
        files = self._world.open_files(process)
        store = self._store
        waits = 0 if store is None else sum(len(each._watchers) for each in store.topics.partitions())
        self._history.note(
            "broker",
            "resources",
            node="broker",
            phase=phase,
            tasks=tasks + waits,
            threads=sum(not _POOLED.search(baton.name) for baton in process.batons),
            descriptors=len(process.host.open) + len(files) - len(set(files)),
        )

    @property
    def _server(self) -> Any:
        broker = self._host.brokers.broker
        running = None if broker is None else broker._running
        return None if running is None else running[1]

    @property
    def _store(self) -> Any:
        server = self._server
        if server is None:
            return None
        return server.store if hasattr(server, "store") else server._store


def _state(partition: Partition, now: float) -> dict[str, Any]:
    log = partition.log
    # Past the check that whoever looks holds the lock: nobody runs.
    producers = [each for each in vars(log)["_producers"] if each.transaction_start is not None]
    return {
        "leader": partition.leadership.leader,
        "log_start": log.start_offset,
        "last_stable": log.stable_offset,
        "high_watermark": log.end_offset,
        "log_end": log.end_offset if log.is_offline else log._active.next_offset,
        "synced": log.recovery_point,
        "offline": log.is_offline,
        "size": sum(segment.size for segment in vars(log)["_segments"]),
        "open": [[each.producer_id, each.epoch, each.transaction_start, now] for each in producers],
    }


class _NoLock:
    """What logging does with a lock: by its methods until CPython 3.12, as a context since then."""

    def acquire(self) -> None:
        """Done."""

    def release(self) -> None:
        """Done."""

    def __enter__(self) -> None:
        """Done."""

    def __exit__(self, *raised: object) -> None:
        """Done."""


class _Lines(logging.Handler):
    """Warnings, and what is worse."""

    def __init__(self, world: World, history: History) -> None:
        super().__init__(logging.WARNING)
        self._world = world
        self._history = history

    def emit(self, record: logging.LogRecord) -> None:
        current = self._world.current
        error = None
        if record.exc_info is not None and record.exc_info[1] is not None:
            kind = type(record.exc_info[1])
            error = f"{kind.__module__}.{kind.__qualname__}: {record.exc_info[1]}"
        self._history.note(
            current.name if current is not None else "world",
            "logged",
            logger=record.name,
            level=record.levelname,
            message=record.getMessage(),
            error=error,
        )

    def createLock(self) -> None:  # noqa: N802 - logging's name; whoever logs has the baton, and must not wait
        self.lock = cast("RLock", _NoLock())
