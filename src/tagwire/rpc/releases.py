"""What Kafka's releases serve, seen from the side of a connection: ranges to assume, releases to name.

The table is `tagwire.spec.releases`: 0.8.2, 0.9.0, 0.10.0, and 2.8 to the newest. What began between 0.10.0 and 2.8 is
said to begin with 2.8.
"""

from __future__ import annotations

from functools import cache

from tagwire.rpc.ranges import Range, Ranges, overlap
from tagwire.spec import releases
from tagwire.spec.api_keys import ApiKey

_ANY: Range = (0, 32767)

# Keys that a broker lists or not as it is set up: telemetry needs a receiver; share and streams groups were previews.
_OPTIONAL_KEYS = frozenset(
    {
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        ApiKey.PUSH_TELEMETRY,
        *range(ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.ADD_RAFT_VOTER),
        *range(ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.UNREGISTER_CONTROLLER),
    }
)


@cache
def ranges_of(release: str) -> Ranges:
    """What brokers of `release` serve to clients: {API key: (lowest, highest)}. Where there were two kinds of clusters,
    up to 3.9, what either did: KRaft's lacked APIs at first.

    Args:
        release: a name of the table or a published version, such as 2.8, 3.9.1 or 0.9.0.

    Raises:
        ConfigError: the table has no such release.
    """
    found = releases.served(release, listener="either")
    return {api: (served.lowest, served.highest) for api, served in found.items()}


def serving(api: int, needed: Range = _ANY) -> str | None:
    """The releases whose brokers serve some version of `needed`, as people say it: "Kafka 2.8 or newer", "Kafka 3.9 or
    older", "Kafka 0.9.0 to 3.9". None where no release does."""
    names = releases.names()
    able = [name for name in names if api in ranges_of(name) and overlap(ranges_of(name)[api], needed)]
    if not able:
        return None
    if able[-1] == names[-1]:
        return "any Kafka" if able[0] == names[0] else f"Kafka {able[0]} or newer"
    return f"Kafka {able[-1]} or older" if able[0] == names[0] else f"Kafka {able[0]} to {able[-1]}"


def resembling(ranges: Ranges) -> list[str]:
    """The releases that a broker listing `ranges` may be, oldest first; several where they list the same.

    Brokers of ZooKeeper clusters (up to 3.9) count as well, and so do those with unstable versions enabled. APIs that
    a release lists only as it is set up are not compared.
    """
    return [name for name in releases.names() if any(_matches(ranges, listed) for listed in _listings(name))]


@cache
def _listings(release: str) -> list[Ranges]:
    kinds: list[releases.Listener] = ["broker"]
    rows = releases.names()
    if rows.index("2.8") <= rows.index(release) <= rows.index("3.9"):
        kinds.append("zkBroker")
    return [
        {api: (found.lowest, found.highest) for api, found in listed.items()}
        for kind in kinds
        for unstable in (False, True)
        if (listed := releases.advertised(release, listener=kind, unstable=unstable))
    ]


def _matches(ranges: Ranges, listed: Ranges) -> bool:
    compared = (set(ranges) | set(listed)) - _OPTIONAL_KEYS
    return all(ranges.get(api) == listed.get(api) for api in compared)
