"""What a broker keeps in memory: how much is in each collection of its objects, and what they count.

It is counted by walking from its server along the attributes of tagwire's own objects, so that it depends on nothing
but what happened: on no garbage that is still there, no release of Python, and no time.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

from .history import History

_OWN: Final = "tagwire."
_COMPILED: Final = "tagwire.kernel."
_GROWING: Final = (dict, list, set, deque, bytearray)
_HOLDING: Final = (dict, list, set, deque, tuple, frozenset)

_OF_THREADS: Final = ("_OwnedLock._holder",)
"""Which thread is in the midst of something: a number of the machine's, and nothing that is kept."""

OF_TRANSACTIONS: Final = (
    "GroupOffsets._pending",
    "Groups._in_transactions",
    "ProducerState._open",
    "Transactions._hanging",
    "Transactions._marked",
)
"""What is held of a transaction until it has ended. A restart reads the logs, and may keep some of it for ever, too."""


def kept_by(root: object) -> dict[str, int]:
    """By class and attribute, how many things the collections there hold, in all objects that `root` leads to; of whole
    numbers there, their sum."""
    kept: Counter[str] = Counter()
    seen = {id(root)}
    left: list[tuple[str, object]] = [("", root)]
    while left:
        where, thing = left.pop()
        if isinstance(thing, _GROWING):
            kept[where] += len(thing)
        for path, value in _parts(where, thing):
            if type(value) is int and _is_own(thing) and path not in _OF_THREADS:
                kept[path] += value
            if id(value) not in seen and (isinstance(value, (*_GROWING, *_HOLDING)) or _is_own(value)):
                seen.add(id(value))
                left.append((path, value))
    return {where: count for where, count in sorted(kept.items()) if count}


def _is_own(thing: object) -> bool:
    """Whether it is an object of tagwire's that changes: a member of an enumeration is there for ever."""
    module = type(thing).__module__
    return not isinstance(thing, Enum) and module.startswith(_OWN) and not module.startswith(_COMPILED)


def _parts(where: str, thing: Any) -> Iterator[tuple[str, object]]:
    if isinstance(thing, dict):
        for key, value in thing.items():
            yield where, key
            yield where, value
    elif isinstance(thing, _HOLDING):
        for value in thing:
            yield where, value
    elif _is_own(thing):
        for name, value in _attributes(thing):
            yield f"{type(thing).__name__}.{name}", value


def _attributes(thing: object) -> Iterator[tuple[str, object]]:
    yield from getattr(thing, "__dict__", {}).items()
    for kind in type(thing).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            mangled = f"_{kind.__name__.lstrip('_')}{name}" if name.startswith("__") else name
            if hasattr(thing, mangled):
                yield name, getattr(thing, mangled)


def note_kept(history: History, machine: str, before: dict[str, int], after: dict[str, int]) -> None:
    """Notes of which collections a broker had more than it has after a restart, when nobody has been there since, and
    which of its numbers were greater; and what it had of transactions."""
    grown = {where: [count, after.get(where, 0)] for where, count in before.items() if count > after.get(where, 0)}
    held = {where: before[where] for where in OF_TRANSACTIONS if where in before}
    history.note(machine, "kept", node=machine, more=grown, of_transactions=held)
