"""Errors across Spark's processes, in one line: as they leave a planner or worker, and as the driver gets them back.

An error raised in a planner or a worker comes back as text inside a Java exception, under its traceback. Our own
errors say what is wrong and where, so they go without one, unless the environment variable `TAGWIRE_TRACEBACK` is set.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar

from tagwire import errors
from tagwire.errors import HeaderRegisterError, KafkaError, LogTruncationError, PartlyRefusedError, TagwireError

Kind = TypeVar("Kind", bound=type)
Function = TypeVar("Function", bound=Callable[..., Any])

TRACEBACK = "TAGWIRE_TRACEBACK"
"""The environment variable that, set to anything, keeps tracebacks: of commands, planners and workers."""

_CALLED = (
    "__init__",
    "schema",
    "reader",
    "streamReader",
    "writer",
    "streamWriter",
    "partitions",
    "read",
    "write",
    "commit",
    "abort",
    "initialOffset",
    "latestOffset",
    "prepareForTriggerAvailableNow",
)
_WORKERS = "PYTHON_WORKER_FACTORY_"
_HIDE = "SPARK_HIDE_TRACEBACK"  # what PySpark 4.0 and later look at when they write an error down

_OURS = re.compile(r"\btagwire(?:\.\w+)*\.(\w+Error): (.+)")
_KAFKA = re.compile(r"\w+ \((-?\d+)\)(?:: (.*))?")
_CAUSE = re.compile(r"Caused by: (?:[\w.$]+\.)?(\w+): (.+)")
_PYTHON = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\w[\w.]*)(?:: (.+))?")
_LONGEST = 500


def reason(error: BaseException) -> TagwireError:
    """The error of ours that `error` is or carries as text; else a `TagwireError` with Spark's reason in one line."""
    if isinstance(error, TagwireError):
        return error
    text = str(error)
    trace = text + "\n" + (getattr(error, "_stackTrace", None) or "")
    ours = _OURS.search(trace)
    if ours:
        return _rebuilt(ours[1], ours[2].strip())
    raised = _PYTHON.search(trace)
    if raised:
        return TagwireError(f"Python in Spark: {raised[1]}: {(raised[2] or '').strip()}"[:_LONGEST])
    causes = _CAUSE.findall(trace)
    if causes:
        return TagwireError(f"Spark: {causes[-1][0]}: {causes[-1][1].strip()}"[:_LONGEST])
    first = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    kind = type(error).__name__
    return TagwireError(f"Spark: {first}" if first.startswith("[") else f"{kind}: {first}")


def _rebuilt(name: str, message: str) -> TagwireError:
    kind = getattr(errors, name, TagwireError)
    if not (isinstance(kind, type) and issubclass(kind, TagwireError)):
        return TagwireError(message)
    if issubclass(kind, KafkaError):
        known = _KAFKA.fullmatch(message)
        if known is None:
            return TagwireError(message)
        made = KafkaError if kind in (LogTruncationError, PartlyRefusedError) else kind  # the text has what they are of
        return made(int(known[1]), known[2] or "")
    return HeaderRegisterError([message]) if kind is HeaderRegisterError else kind(message)


def without_traceback(function: Function) -> Function:
    """`function`, whose `TagwireError`s Spark reports without a traceback.

    A Python process of Spark's reports one error and ends, so no other error loses its traceback. In other processes,
    and for other errors, nothing changes.
    """

    @wraps(function)
    def called(*args: Any, **named: Any) -> Any:
        try:
            found = function(*args, **named)
        except TagwireError:
            _hide()
            raise
        return _items(found) if isinstance(found, Iterator) else found

    return called  # type: ignore[return-value]


def without_tracebacks(kind: Kind) -> Kind:
    """`kind`, with `without_traceback` on every method that Spark calls."""
    for name in _CALLED:
        if name in vars(kind):
            setattr(kind, name, without_traceback(vars(kind)[name]))
    return kind


def _items(items: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from items
    except TagwireError:
        _hide()
        raise


def _hide() -> None:
    if not os.environ.get(TRACEBACK) and any(name.startswith(_WORKERS) for name in os.environ):
        os.environ[_HIDE] = "1"
