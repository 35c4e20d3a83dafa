"""What a ListOffsets request may ask for beside a time, as its timestamp. Source: Kafka's ListOffsetsRequest."""

from __future__ import annotations

from typing import Final

LATEST: Final = -1
"""The offset after the last record; of committed records, the last stable offset."""

EARLIEST: Final = -2
"""The first offset that is kept."""

MAX_TIMESTAMP: Final = -3
"""The record with the greatest timestamp (KIP-734)."""
