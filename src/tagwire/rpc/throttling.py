"""Brokers that throttle a client (KIP-219): from which versions on that is the client's to do.

A response may hold `throttle_time_ms`. In older versions the broker has paused before it responded; in the versions
from here on it responds at once, and the client sends nothing more on the connection until the time has passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tagwire.spec.api_keys import ApiKey

# First version, by API key. APIs that came with KIP-219 or later pause on the client's side in every version.
_FROM: Final[Mapping[int, int]] = {
    ApiKey.PRODUCE: 6,
    ApiKey.FETCH: 8,
    ApiKey.LIST_OFFSETS: 3,
    ApiKey.METADATA: 6,
    ApiKey.OFFSET_COMMIT: 4,
    ApiKey.OFFSET_FETCH: 4,
    ApiKey.FIND_COORDINATOR: 2,
    ApiKey.JOIN_GROUP: 3,
    ApiKey.HEARTBEAT: 2,
    ApiKey.LEAVE_GROUP: 2,
    ApiKey.SYNC_GROUP: 2,
    ApiKey.DESCRIBE_GROUPS: 2,
    ApiKey.LIST_GROUPS: 2,
    ApiKey.API_VERSIONS: 2,
    ApiKey.CREATE_TOPICS: 3,
    ApiKey.DELETE_TOPICS: 2,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: 2,
    ApiKey.DESCRIBE_CONFIGS: 2,
}
_FROM_FIRST: Final = frozenset(
    {
        ApiKey.DELETE_RECORDS,
        ApiKey.INIT_PRODUCER_ID,
        *range(ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.DESCRIBE_CONFIGS),
        *range(ApiKey.ALTER_CONFIGS, ApiKey.SASL_AUTHENTICATE),
        *range(ApiKey.CREATE_PARTITIONS, ApiKey.ELECT_LEADERS),
    }
)
_FIRST_LATER_API: Final = ApiKey.ELECT_LEADERS


def pause_after(api: int, version: int, response: object) -> float:
    """Seconds for which `response`, to version `version` of an API, mutes the client; 0 where it does not."""
    milliseconds: int = getattr(response, "throttle_time_ms", 0)
    if milliseconds <= 0:
        return 0.0
    since = _FROM.get(api, 1 if api in _FROM_FIRST else 0 if api >= _FIRST_LATER_API else version + 1)
    return milliseconds / 1000 if version >= since else 0.0
