"""Which offset of a partition is meant, as people say it. Source: Kafka's OffsetSpec."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, slots=True)
class AtTimestamp:
    """The first record at or after a time; the end of the partition where there is none.

    Attributes:
        milliseconds: since 1970 UTC.
    """

    milliseconds: int


OffsetName = Literal["earliest", "latest"]
"""The first offset that is kept, or the next to be written."""

OffsetSpec = int | OffsetName | AtTimestamp | datetime
"""An offset, `EARLIEST` and `LATEST` among them, one of their names, or a time, with its zone."""
