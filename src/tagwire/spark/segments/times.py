"""Times in Kafka's files as Spark has them."""

from __future__ import annotations

from typing import Final

_MOST: Final = (2**63 - 1) // 1000


def microseconds(milliseconds: int) -> int | None:
    """Microseconds since 1970 UTC; None for a time so far away that 64 bits have no room for them: such a time is
    damage, or rubbish that a client sent, and no reason to tell nothing of the rest."""
    return milliseconds * 1000 if abs(milliseconds) <= _MOST else None
