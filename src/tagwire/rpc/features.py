"""Features: named sets of API ranges, usable or not on a set of brokers (KIP-35, the client scenario)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from tagwire.errors import ConfigError
from tagwire.rpc.names import api_name
from tagwire.rpc.negotiation import negotiate, not_to_be_used, ranges_from
from tagwire.rpc.ranges import Range, Ranges, intersect, overlap, range_text

CLIENT: Final = "client"
SPEC: Final = "spec"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a feature cannot be used: one API on one side.

    Attributes:
        api: the API's key.
        side: the broker's name as given, "client", or "spec" where the API's spec marks what is shared.
        needs: the feature's range.
        has: the side's range, or None where it lacks the API.
        reason: why what is shared of it must not be used, as its spec says; "" where nothing is shared.
    """

    api: int
    side: str
    needs: Range
    has: Range | None
    reason: str = ""

    def __str__(self) -> str:
        if self.reason:
            return f"needs {api_name(self.api)} {range_text(self.needs)}, which must not be used: {self.reason}"
        from tagwire.rpc.releases import serving

        has = f"has {range_text(self.has)}" if self.has is not None else "lacks it"
        able = serving(self.api, self.needs)
        release = f" ({able})" if able else ""
        return f"needs {api_name(self.api)} {range_text(self.needs)}{release}; {self.side} {has}"


@dataclass(frozen=True, slots=True)
class Usability:
    """Whether a feature can be used: true or false as it stands, and as text a sentence that says why."""

    feature: str
    obstacles: tuple[Obstacle, ...] = ()

    def __bool__(self) -> bool:
        return not self.obstacles

    def __str__(self) -> str:
        if not self.obstacles:
            return f"{self.feature} can be used"
        return f"{self.feature} cannot be used: {', and '.join(map(str, self.obstacles))}"


class Features:
    """What a client can do, each feature a name and the ranges of the APIs it takes. Iterates over the names.

    A feature is usable when each of its ranges overlaps the range that the client and all brokers share; it need not
    lie inside.

        features = Features({"exactly once": {22: (3, 5), 24: (3, 5)}})
        features.usable("exactly once", {"kafka-1": client.versions(node=1)})

    Args:
        features: {name: {API key: (lowest, highest)}}.
    """

    def __init__(self, features: Mapping[str, Ranges]) -> None:
        self._features = {name: dict(ranges) for name, ranges in features.items()}

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Features from a TOML file: a table for each, APIs by name or number, ranges as `"3-5"`, `"3+"`, 3 or [3, 5].

        Raises:
            ConfigError: no TOML, no such API, or no such range; the text names file and feature.
            OSError: the file cannot be read.
        """
        try:
            document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: {error}") from None
        for name, ranges in document.items():
            if not isinstance(ranges, dict):
                raise ConfigError(f"{path}, {name}: a feature is a table of APIs and their ranges")
        return cls({name: ranges_from(ranges, f"{path}, {name}") for name, ranges in document.items()})

    def __iter__(self) -> Iterator[str]:
        return iter(self._features)

    def usable(self, feature: str, brokers: Mapping[str, Ranges], client: Ranges | None = None) -> Usability:
        """Whether `feature` can be used on all of `brokers`, and if not, what stands against it.

        Where each side alone would do but not all together, the sides whose ranges bound what is shared are named.
        Versions that are marked as not to be used count for nothing.

        Args:
            brokers: {name: ranges}, for each the response of one connection.
            client: the client's own ranges; None leaves its side unrestricted.

        Raises:
            KeyError: no feature has this name.
        """
        sides = dict(brokers) if client is None else {**brokers, CLIENT: client}
        shared = intersect(*sides.values())
        found: list[Obstacle] = []
        for api, needs in sorted(self._features[feature].items()):
            both = overlap(needs, shared[api]) if api in shared else None
            if both is not None and api not in negotiate({api: needs}, {api: both}):
                found.append(Obstacle(api, SPEC, needs, both, not_to_be_used(api, both)[0].reason))
            elif sides and both is None:
                found += _obstacles(api, needs, sides)
        return Usability(feature, tuple(found))


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
