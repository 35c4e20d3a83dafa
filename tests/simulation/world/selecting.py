"""A selector of simulated sockets, for the blocking driver and for simulated event loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from selectors import SelectorKey
from typing import Any

from .sockets import SimulatedSocket


class SimulatedSelector:
    """What `selectors.PollSelector` is for sockets of the system.

    Args:
        wait: called with this selector and how long to wait at most, seconds or None, each time that somebody selects;
            it returns when `is_ready`, or when the time is over. It is where another thread may run.
        random: in which order sockets are told that are ready at once; None as they were registered.

    Attributes:
        wake: called when a socket may have become ready.
    """

    def __init__(self, wait: Callable[[SimulatedSelector, float | None], None], random: Random | None = None) -> None:
        self._wait = wait
        self._random = random
        self._keys: dict[SimulatedSocket, SelectorKey] = {}
        self._marks: dict[SimulatedSocket, Callable[[], None]] = {}
        self._candidates: dict[SimulatedSocket, None] = {}
        self.wake: Callable[[], None] = lambda: None

    def register(self, fileobj: SimulatedSocket, events: int, data: Any = None) -> SelectorKey:
        if fileobj in self._keys:
            raise KeyError(f"{fileobj!r} is registered")
        if fileobj.is_gone:
            raise ValueError(f"Invalid file descriptor: {fileobj.fileno()}")

        def mark() -> None:
            self._candidates[fileobj] = None
            self.wake()

        self._marks[fileobj] = mark
        fileobj.watchers[mark] = None
        return self._set(fileobj, events, data)

    def unregister(self, fileobj: SimulatedSocket) -> SelectorKey:
        key = self._keys.pop(fileobj)
        fileobj.watchers.pop(self._marks.pop(fileobj), None)
        self._candidates.pop(fileobj, None)
        return key

    def modify(self, fileobj: SimulatedSocket, events: int, data: Any = None) -> SelectorKey:
        if fileobj not in self._keys:
            raise KeyError(f"{fileobj!r} is not registered")
        return self._set(fileobj, events, data)

    def _set(self, fileobj: SimulatedSocket, events: int, data: Any) -> SelectorKey:
        key = self._keys[fileobj] = SelectorKey(fileobj, fileobj.fileno(), events, data)  # type: ignore[arg-type]
        self._candidates[fileobj] = None
        return key

    def get_key(self, fileobj: SimulatedSocket) -> SelectorKey:
        return self._keys[fileobj]

    def get_map(self) -> Mapping[SimulatedSocket, SelectorKey]:
        return self._keys

    def is_ready(self) -> bool:
        """Whether `select` has something to tell."""
        return bool(self._ready())

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        ready = self._ready()
        self._wait(self, 0.0 if ready else timeout)
        if not ready:
            ready = self._ready()
        if self._random is not None and len(ready) > 1:
            self._random.shuffle(ready)
        return ready

    def _ready(self) -> list[tuple[SelectorKey, int]]:
        ready: list[tuple[SelectorKey, int]] = []
        if not self._candidates:
            return ready
        for sock in list(self._candidates):
            key = self._keys[sock]
            if sock.is_gone or not (found := sock.events() & key.events):
                del self._candidates[sock]
            else:
                ready.append((key, found))
        return ready

    def close(self) -> None:
        for sock in list(self._keys):
            self.unregister(sock)
