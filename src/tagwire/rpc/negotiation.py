"""Which version of an API to speak (KIP-35; Kafka's NodeApiVersions).

What a broker answers to ApiVersions holds
for the connection it came on and for no other.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from numbers import Integral
from typing import TypeGuard

from tagwire.errors import ConfigError, UnsupportedVersionError
from tagwire.rpc.names import api_key, api_name
from tagwire.rpc.ranges import Range, Ranges, overlap, range_text
from tagwire.rpc.releases import serving
from tagwire.spec.api_keys import API_NAMES
from tagwire.spec.versions import Versions

Excluded = Mapping[int, Container[int]]
"""Versions never to use, by API key."""

_NOTHING: Excluded = {}


def choose(api: int, ours: Ranges, theirs: Ranges, *, broker: str = "the broker", excluded: Excluded = _NOTHING) -> int:
    """The highest version of `api` in both ranges that is not excluded.

    Args:
        broker: how to call the other side in an error, such as "broker 2 at kafka-2:9092".
        excluded: as `exclusions` gives it.

    Raises:
        UnsupportedVersionError: nothing in common. The text names the API, both ranges, the broker and the releases
        that would do.
    """
    version = _highest(api, ours, theirs, excluded)
    if version is not None:
        return version
    raise UnsupportedVersionError(refusal(api, ours.get(api), theirs.get(api), broker, excluded))


def refusal(api: int, ours: Range | None, theirs: Range | None, broker: str, excluded: Excluded = _NOTHING) -> str:
    """One sentence: why no version of `api` can be spoken with `broker`."""
    name = api_name(api)
    serves = f"serves {name} {range_text(theirs)}" if theirs is not None else f"does not serve {name}"
    if ours is None:
        return f"{broker} {serves}; tagwire does not speak it"
    refused = [str(version) for version in range(ours[0], ours[1] + 1) if version in excluded.get(api, ())]
    without = f" without {', '.join(refused)}, which are excluded" if refused else ""
    able = None if refused else serving(api, ours)
    return f"{broker} {serves}; tagwire needs {range_text(ours)}{without}{f' ({able})' if able else ''}"


def negotiate(ours: Ranges, theirs: Ranges, *, excluded: Excluded = _NOTHING) -> dict[int, int]:
    """The version `choose` gives for every API that has one in common; the others are left out."""
    chosen = {api: _highest(api, ours, theirs, excluded) for api in sorted(ours)}
    return {api: version for api, version in chosen.items() if version is not None}


def exclusions(given: Mapping[str, int | str | Collection[int]]) -> dict[int, Container[int]]:
    """What a person excludes: `{"Produce": "5-6", "Fetch": [12]}`, by API name, ranges or versions.

    Raises:
        ConfigError: no such API, or no such range.
    """
    return {_key(name, "exclude"): _versions(name, versions) for name, versions in given.items()}


def ranges_from(given: Mapping[str, object], option: str) -> dict[int, Range]:
    """Ranges as people write them: `{"Produce": "3-9", "Fetch": 12, "337": [0, 1]}`, by API name or number.

    Args:
        option: where they were written, for the error.

    Raises:
        ConfigError: no such API, or no such range.
    """
    return {_key(name, option): _range(name, versions, option) for name, versions in given.items()}


def _highest(api: int, ours: Ranges, theirs: Ranges, excluded: Excluded) -> int | None:
    if api not in ours or api not in theirs:
        return None
    both = overlap(ours[api], theirs[api])
    if both is None:
        return None
    refused = excluded.get(api, ())
    return next((version for version in range(both[1], both[0] - 1, -1) if version not in refused), None)


def _key(name: str, option: str) -> int:
    key = api_key(name)
    if key is None:
        from difflib import get_close_matches  # not before something is wrong

        near = get_close_matches(name, API_NAMES.values(), 1)
        raise ConfigError(f"{option}: Kafka has no API {name!r}{f'; {near[0]} is one' if near else ''}")
    return key


def _range(name: str, value: object, option: str) -> Range:
    if _is_version(value):
        return int(value), int(value)
    if isinstance(value, str):
        found = _parsed(name, value, option)
        return found.lowest, found.highest
    if isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_version, value)):
        return int(value[0]), int(value[1])
    raise ConfigError(f"{option}: {name}={value!r}: allowed is a version, N-M, N+ or [N, M]")


def _versions(name: str, value: int | str | Collection[int]) -> Container[int]:
    if isinstance(value, str):
        return _parsed(name, value, "exclude")
    found = list(value) if isinstance(value, Iterable) else [value]
    if not all(map(_is_version, found)):
        raise ConfigError(f"exclude: {name}={value!r}: allowed is a version, N-M, N+ or [N, M, ...]")
    return frozenset(map(int, found))


def _is_version(value: object) -> TypeGuard[Integral]:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _parsed(name: str, text: str, option: str) -> Versions:
    try:
        found = Versions.parse(text)
    except ValueError as error:
        raise ConfigError(f"{option}: {name}: {error}") from None
    if not found:
        raise ConfigError(f"{option}: {name}={text!r}: holds no version")
    return found
