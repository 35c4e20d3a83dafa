"""The versions this client speaks, per API; everything else it can only encode, at whatever version it is asked to.

From Kafka 0.11 on a broker serves all of these. Where a range stops short of the newest version:

- Produce and Fetch stop at 12: from 13 on topics are named by id only.
- Metadata starts at 4: before it a question about a topic may create the topic.

Ranges: facts/kafka_protocol.md section 4.
"""

from __future__ import annotations

from typing import Final

from tagwire import messages
from tagwire.rpc import Range, Ranges

OURS: Final[Ranges] = {
    0: (3, 12),  # Produce
    1: (4, 12),  # Fetch
    2: (1, 11),  # ListOffsets
    3: (4, 13),  # Metadata
    18: (0, 5),  # ApiVersions
    19: (2, 7),  # CreateTopics
    20: (1, 6),  # DeleteTopics
}


def range_of(api: int) -> Range:
    """What may be asked of the API with this key: the table's range, or for another API every version of its message.

    Raises KeyError for a key that no API has.
    """
    if api in OURS:
        return OURS[api]
    valid = messages.request(api).valid_versions
    return valid.lowest, valid.highest
