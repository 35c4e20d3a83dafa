"""Where a reader or a member goes on that has no position, or one that its partition does not hold."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tagwire.partitions import EARLIEST, LATEST

NO_RESET: Final = "none"
OFFSET_RESETS: Final = (NO_RESET, "earliest", "latest", "by_duration:DURATION, such as by_duration:P1DT12H")
"""How it is written (Kafka's `auto.offset.reset`; by_duration: KIP-1106)."""

MAX_MILLISECONDS: Final = 2**63 - 1

_DURATION: Final = re.compile(
    r"P(?=.)(?:(?P<days>\d{1,9})D)?"
    r"(?:T(?=.)(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,9}(?:\.\d{1,9})?)S)?)?",
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class OffsetReset:
    """Kafka's AutoOffsetResetStrategy.

    Attributes:
        timestamp: `EARLIEST` or `LATEST`; None for a duration.
        milliseconds: how long before now the first record wanted was written at the earliest.
    """

    timestamp: int | None
    milliseconds: int = 0

    def at(self, now: float) -> int:
        """The timestamp to look up.

        Args:
            now: seconds since 1970 UTC.
        """
        return max(int(now * 1000) - self.milliseconds, 0) if self.timestamp is None else self.timestamp


def offset_reset(text: str) -> OffsetReset | None:
    """What is meant by one of `OFFSET_RESETS`; None for "none". Raises ValueError for anything else."""
    if text == NO_RESET:
        return None
    if text in ("earliest", "latest"):
        return OffsetReset(EARLIEST if text == "earliest" else LATEST)
    name, _, duration = text.partition(":")
    match = _DURATION.fullmatch(duration)
    if name != "by_duration" or match is None:
        raise ValueError(text)
    days, hours, minutes = (int(match[part] or 0) for part in ("days", "hours", "minutes"))
    seconds = ((days * 24 + hours) * 60 + minutes) * 60 + float(match["seconds"] or 0)
    return OffsetReset(None, int(seconds * 1000))
