"""Which version of an API to speak (KIP-35; facts/kafka_protocol.md 9, "Version choice").

A range is (lowest, highest), both included; ranges are kept by API key. What a broker answers to ApiVersions holds
for the connection it came on and for no other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tagwire.errors import UnsupportedVersionError
from tagwire.rpc.names import api_name

Range = tuple[int, int]
Ranges = Mapping[int, Range]
Excluded = Mapping[str, Collection[int]]

_NOTHING: Excluded = {}


def choose(api: int, ours: Ranges, theirs: Ranges, *, broker: str = "the broker", excluded: Excluded = _NOTHING) -> int:
    """The highest version of `api` in both ranges that is not excluded.

    Args:
        broker: how to call the other side in an error, such as "broker 2 at kafka-2:9092".
        excluded: versions never to use, by API name: `{"Fetch": [12]}`.

    Raises:
        UnsupportedVersionError: nothing in common. The text names the API, both ranges and the broker.
    """
    version = _highest(api, ours, theirs, excluded)
    if version is not None:
        return version
    name = api_name(api)
    serves = f"serves {name} {range_text(theirs[api])}" if api in theirs else f"does not serve {name}"
    needs = f"needs {range_text(ours[api])}" if api in ours else "does not speak it"
    refused = sorted(set(excluded.get(name, ())))
    without = f" without {', '.join(map(str, refused))}" if refused else ""
    raise UnsupportedVersionError(f"{broker} {serves}; tagwire {needs}{without}")


def negotiate(ours: Ranges, theirs: Ranges, *, excluded: Excluded = _NOTHING) -> dict[int, int]:
    """The version `choose` gives for every API that has one in common; the others are left out."""
    chosen = {api: _highest(api, ours, theirs, excluded) for api in sorted(ours)}
    return {api: version for api, version in chosen.items() if version is not None}


def intersect(*sides: Ranges) -> dict[int, Range]:
    """The range of every API that all sides share. An API that one side lacks, or with nothing in common, is left
    out."""
    if not sides:
        return {}
    shared = set(sides[0]).intersection(*sides[1:])
    ranges = {api: overlap(*(side[api] for side in sides)) for api in sorted(shared)}
    return {api: both for api, both in ranges.items() if both is not None}


def overlap(*ranges: Range) -> Range | None:
    """The versions that all ranges hold, or None."""
    lowest = max(low for low, _ in ranges)
    highest = min(high for _, high in ranges)
    return (lowest, highest) if lowest <= highest else None


def range_text(versions: Range) -> str:
    """`(0, 3)` is "0-3", `(3, 3)` is "3"."""
    lowest, highest = versions
    return str(lowest) if lowest == highest else f"{lowest}-{highest}"


def _highest(api: int, ours: Ranges, theirs: Ranges, excluded: Excluded) -> int | None:
    if api not in ours or api not in theirs:
        return None
    both = overlap(ours[api], theirs[api])
    if both is None:
        return None
    refused = excluded.get(api_name(api), ()) if excluded else ()
    return next((version for version in range(both[1], both[0] - 1, -1) if version not in refused), None)
