"""What the doctor found, one line each, and how a check that fails is kept from ending the others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, TypeVar

from tagwire.escaping import printable

OK: Final = "ok"
"""Nothing is to be done."""
WARNING: Final = "warning"
"""Something works, and not as well as it could."""
PROBLEM: Final = "problem"
"""Something does not work."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's.

    Attributes:
        check: what was looked at: "java", "workers", "broker", ...
        state: `OK`, `WARNING` (works, but not all of it, or not for long) or `PROBLEM`.
        said: what was found, in one line.
        advice: what to do about it; "" where nothing has to be done.
    """

    check: str
    state: str
    said: str
    advice: str = ""

    def __post_init__(self) -> None:
        for name in ("said", "advice"):
            object.__setattr__(self, name, printable(" ".join(getattr(self, name).split())))


Check = Callable[[], Iterable[Finding]]


def guarded(name: str, check: Check) -> Iterator[Finding]:
    """What `check` finds; where it raises, a problem that says what, so that the checks after it are made all the same.

    What is looked at is broken in ways that nobody foresaw: a package that raises when it is imported, a file that
    cannot be read.
    """
    try:
        yield from check()
    except Exception as error:
        said = f"this check itself failed: {type(error).__name__}: {error}"
        yield Finding(name, PROBLEM, said, "the checks beside it may say why; else please report this line")


def in_background(work: Callable[[], T]) -> Future[T]:
    """Runs `work` in a thread that ends with the process: a name server that never answers keeps nobody waiting."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="tagwire-doctor", daemon=True).start()
    return future
