"""Brokers that ask a client to pause (KIP-219): from which versions on that is the client's to do.

An answer may hold `throttle_time_ms`. In older versions the broker has paused before it answered; in the versions from
here on it answers at once, and the client sends nothing more on the connection until the time has passed.
"""

from __future__ import annotations

from typing import Final

# First version, by API key. APIs that came with KIP-219 or later pause on the client's side in every version.
_FROM: Final = {
    0: 6,  # Produce
    1: 8,  # Fetch
    2: 3,  # ListOffsets
    3: 6,  # Metadata
    8: 4,  # OffsetCommit
    9: 4,  # OffsetFetch
    10: 2,  # FindCoordinator
    11: 3,  # JoinGroup
    12: 2,  # Heartbeat
    13: 2,  # LeaveGroup
    14: 2,  # SyncGroup
    15: 2,  # DescribeGroups
    16: 2,  # ListGroups
    18: 2,  # ApiVersions
    19: 3,  # CreateTopics
    20: 2,  # DeleteTopics
    23: 2,  # OffsetForLeaderEpoch
    32: 2,  # DescribeConfigs
}
_FROM_FIRST: Final = frozenset({21, 22, *range(24, 32), *range(33, 43)}) - {36}
_FIRST_LATER_API: Final = 43


def pause_after(api: int, version: int, answer: object) -> float:
    """Seconds for which `answer`, to version `version` of an API, asks for silence; 0 where it does not."""
    milliseconds: int = getattr(answer, "throttle_time_ms", 0)
    since = _FROM.get(api, 1 if api in _FROM_FIRST else 0 if api >= _FIRST_LATER_API else version + 1)
    return milliseconds / 1000 if milliseconds > 0 and version >= since else 0.0
