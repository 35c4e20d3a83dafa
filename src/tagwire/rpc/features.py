"""Features: named sets of API ranges, usable or not on a set of brokers (KIP-35, the client scenario)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tagwire.rpc.names import api_name
from tagwire.rpc.negotiation import Range, Ranges, intersect, overlap, range_text


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a feature cannot be used: one API on one side.

    Attributes:
        api: the API's key.
        side: the broker's name as given, or "client".
        needs: the feature's range.
        has: the side's range, or None where it lacks the API.
    """

    api: int
    side: str
    needs: Range
    has: Range | None

    def __str__(self) -> str:
        has = f"has {range_text(self.has)}" if self.has is not None else "lacks it"
        return f"needs {api_name(self.api)} {range_text(self.needs)}; {self.side} {has}"


class Features:
    """What a client can do, each feature a name and the ranges of the APIs it takes.

    A feature is usable when each of its ranges overlaps the range that the client and all brokers share; it need not
    lie inside.
    """

    def __init__(self, features: Mapping[str, Ranges]) -> None:
        self._features = {name: dict(ranges) for name, ranges in features.items()}

    def usable(self, brokers: Mapping[str, Ranges], client: Ranges | None = None) -> dict[str, bool]:
        """Whether each feature can be used on all of `brokers`; `client` None leaves the client's side
        unrestricted."""
        return {name: not self.obstacles(name, brokers, client) for name in self._features}

    def obstacles(self, name: str, brokers: Mapping[str, Ranges], client: Ranges | None = None) -> list[Obstacle]:
        """What stands against the feature `name`, empty when it is usable. Raises KeyError for a name that is no
        feature.

        Where each side alone would do but not all together, the sides whose ranges bound what is shared are named.
        """
        sides = dict(brokers) if client is None else {**brokers, "client": client}
        shared = intersect(*sides.values())
        found: list[Obstacle] = []
        for api, needs in sorted(self._features[name].items()):
            if sides and (api not in shared or overlap(needs, shared[api]) is None):
                found += _obstacles(api, needs, sides)
        return found


def _obstacles(api: int, needs: Range, sides: Mapping[str, Ranges]) -> list[Obstacle]:
    alone = [
        Obstacle(api, side, needs, ranges.get(api))
        for side, ranges in sides.items()
        if api not in ranges or overlap(needs, ranges[api]) is None
    ]
    if alone:
        return alone
    highest_low = max(ranges[api][0] for ranges in sides.values())
    lowest_high = min(ranges[api][1] for ranges in sides.values())
    return [
        Obstacle(api, side, needs, ranges[api])
        for side, ranges in sides.items()
        if ranges[api][0] == highest_low or ranges[api][1] == lowest_high
    ]
