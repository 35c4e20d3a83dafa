"""Errors: those that the protocol has, by the classes that the client promises, and nothing else."""

from __future__ import annotations

import builtins
from collections.abc import Iterator

from tests.simulation.history import Operation
from tests.simulation.judge.anomaly import Anomaly, anomaly
from tests.simulation.judge.facts import Facts

CALLERS_OWN = frozenset(
    {"builtins.TimeoutError", "asyncio.exceptions.CancelledError", "concurrent.futures._base.CancelledError"}
)
"""What a caller's own asyncio.timeout or cancellation raises."""

NEVER = frozenset(
    {
        "UNKNOWN_SERVER_ERROR",
        "CORRUPT_MESSAGE",
        "INVALID_REQUEST",
        "INVALID_FETCH_SIZE",
        "INVALID_REQUIRED_ACKS",
        "INCONSISTENT_VOTER_SET",
        "DUPLICATE_SEQUENCE_NUMBER",
        "INVALID_COMMIT_OFFSET_SIZE",
        "ILLEGAL_SASL_STATE",
    }
)
"""Errors that no caller may see whose requests are right, whatever brokers and connections do."""

BROKE_DOWN = " broke down: "
"""What a producer or a consumer says, of itself, after its own work has raised what none of it should."""


def unexpected(facts: Facts) -> Iterator[Anomaly]:
    """Calls raise the client's own errors, and none that says that a request, the broker, or the client itself was
    wrong."""
    for operation in facts.operations.all:
        error = operation.value.get("error")
        if not error or operation.f == "logged":
            continue
        is_own = error["type"].startswith("tagwire.") and BROKE_DOWN not in (error.get("message") or "")
        if not is_own and error["type"] not in CALLERS_OWN:
            what = f"{operation.f} of {operation.process} raised {error['type']}: {error['message']}"
            yield anomaly("unexpected-exception", what, operation)
        elif error.get("code") in NEVER:
            what = f"{operation.f} of {operation.process} raised {error['code']}: {error['message']}"
            yield anomaly("unexpected-error", what, operation)


def logged(facts: Facts) -> Iterator[Anomaly]:
    """Nothing logs an exception that it does not know of, or one that nobody fetched."""
    since = min((fault.began for fault in facts.operations.of("fault") if _of_the_disk(fault)), default=float("inf"))
    for line in facts.operations.of("logged"):
        value = line.invoked.value
        error = (value.get("error") or "").partition(":")[0]
        known = error.startswith("tagwire.") or error in CALLERS_OWN or (_is_os_error(error) and since <= line.began)
        message = value.get("message") or ""
        never = "was never retrieved" in message or "was destroyed but" in message
        if never or (error and not known and value.get("level") in ("ERROR", "CRITICAL")):
            yield anomaly("unexpected-log", f"{value.get('logger')} logged {error or message}", line)


def _of_the_disk(fault: Operation) -> bool:
    return "disk" in str(fault.value.get("fault"))


def _is_os_error(name: str) -> bool:
    found = getattr(builtins, name.removeprefix("builtins."), None)
    return isinstance(found, type) and issubclass(found, OSError)
