"""What every room calls a partition, and the two ends of its log."""

from __future__ import annotations

from typing import Final, NamedTuple

LATEST: Final = -1
"""The offset after the last record; of committed records, the last stable offset. The timestamp that a ListOffsets
request has instead of a time, and the offset that Spark's options have instead of one."""

EARLIEST: Final = -2
"""The first offset that is kept. As `LATEST`."""

MAX_TIMESTAMP: Final = -3
"""The record with the greatest timestamp (KIP-734). Source: Kafka's ListOffsetsRequest."""

OFFSET_NAMES: Final = {"earliest": EARLIEST, "latest": LATEST}
"""The ends by the names that Kafka's tools and Spark's options have for them."""


class TopicPartition(NamedTuple):
    """One partition of a topic. Prints as `flights-3`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
