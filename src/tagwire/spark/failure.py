"""What went wrong inside Spark, in one line.

An error raised in a planner or a worker comes back as text inside a Java exception, under its traceback.
"""

from __future__ import annotations

import re

from tagwire import errors
from tagwire.errors import KafkaError, TagwireError

_OURS = re.compile(r"tagwire\.errors\.(\w+): (.+)")
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
    if name == KafkaError.__name__:
        known = _KAFKA.fullmatch(message)
        return KafkaError(int(known[1]), known[2] or "") if known else TagwireError(message)
    kind = getattr(errors, name, TagwireError)
    return kind(message) if isinstance(kind, type) and issubclass(kind, TagwireError) else TagwireError(message)
