"""What begins with which version of an API, where a request's fields alone do not say what may stand in them.

Both ends of a connection hold to these. Sources: facts/kafka_protocol.md 5.1, KIP-110, KIP-516, KIP-699, KIP-709,
KIP-890.
"""

from __future__ import annotations

from typing import Final

PRODUCE_RECORD_BATCHES: Final = 3
"""Produce carries record batches, and message sets before it."""

PRODUCE_ZSTD: Final = 7
"""Produce may carry Zstandard."""

PRODUCE_SECOND_TRANSACTIONS: Final = 12
"""Produce adds its partitions to a transaction of the second protocol itself."""

PRODUCE_TOPIC_IDS: Final = 13
FETCH_TOPIC_IDS: Final = 13
"""Topics are named by their ids alone."""

DELETE_TOPICS_IDS: Final = 6
"""Topics may be named by their ids; from here on each is a struct."""

FIND_COORDINATOR_KEYS: Final = 4
OFFSET_FETCH_GROUPS: Final = 8
"""Several keys, or groups, in one request."""

TXN_OFFSET_COMMIT_SECOND_TRANSACTIONS: Final = 5
END_TXN_SECOND_TRANSACTIONS: Final = 5
"""Transactions of the second protocol; those of the first end before it."""
