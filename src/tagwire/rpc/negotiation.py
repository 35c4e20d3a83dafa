"""Which version of an API to speak (KIP-35; Kafka's NodeApiVersions).

A broker's response to ApiVersions holds for the connection it came on and for no other. A version that its spec marks
as not to be used is never chosen, and a deprecated one only where nothing else is shared: brokers serve both
(docs/negotiation.md#marked-versions).
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from numbers import Integral
from typing import TypeGuard

from tagwire.errors import ConfigError, UnsupportedVersionError
from tagwire.rpc.apis import NO_APIS, Apis, request_spec
from tagwire.rpc.names import api_key, api_name
from tagwire.rpc.ranges import Range, Ranges, overlap, range_text
from tagwire.rpc.releases import serving
from tagwire.spec.api_keys import API_NAMES
from tagwire.spec.lifecycle import DoNotUse
from tagwire.spec.versions import Versions

Excluded = Mapping[int, Container[int]]
"""Versions never to use, by API key."""

_NOTHING: Excluded = {}


def choose(
    api: int,
    ours: Ranges,
    theirs: Ranges,
    *,
    broker: str = "the broker",
    excluded: Excluded = _NOTHING,
    apis: Apis = NO_APIS,
) -> int:
    """The highest version of `api` in both ranges that is neither excluded nor marked as not to be used.

    One that is deprecated is chosen only where all of them are.

    Args:
        broker: how to call the other side in an error, such as "broker 2 at kafka-2:9092".
        excluded: as `exclusions` gives it.
        apis: APIs whose specs stand before Kafka's own.

    Raises:
        UnsupportedVersionError: nothing in common. The text names the API, both ranges, the broker, what is excluded or
        marked, and the releases that would do.
    """
    version = _highest(api, ours, theirs, excluded, apis)
    if version is not None:
        return version
    raise UnsupportedVersionError(refusal(api, ours.get(api), theirs.get(api), broker, excluded, apis))


def refusal(
    api: int,
    ours: Range | None,
    theirs: Range | None,
    broker: str,
    excluded: Excluded = _NOTHING,
    apis: Apis = NO_APIS,
) -> str:
    """One sentence: why no version of `api` can be spoken with `broker`."""
    name = api_name(api)
    serves = f"serves {name} {range_text(theirs)}" if theirs is not None else f"does not serve {name}"
    if ours is None:
        return f"{broker} {serves}; tagwire does not speak it"
    refused = [str(version) for version in range(ours[0], ours[1] + 1) if version in excluded.get(api, ())]
    without = f" without {', '.join(refused)}, which are excluded" if refused else ""
    shared = None if theirs is None else overlap(ours, theirs)
    marks = [] if shared is None else not_to_be_used(api, shared, apis)
    marked = "".join(f"; {mark.versions} must not be used: {mark.reason}" for mark in marks)
    able = None if refused or marks else serving(api, ours)
    return f"{broker} {serves}; tagwire needs {range_text(ours)}{without}{f' ({able})' if able else ''}{marked}"


def negotiate(ours: Ranges, theirs: Ranges, *, excluded: Excluded = _NOTHING, apis: Apis = NO_APIS) -> dict[int, int]:
    """The version `choose` gives for every API that has one in common; the others are left out."""
    chosen = {api: _highest(api, ours, theirs, excluded, apis) for api in sorted(ours)}
    return {api: version for api, version in chosen.items() if version is not None}


def is_deprecated(api: int, version: int, apis: Apis = NO_APIS) -> bool:
    """Whether the spec of an API marks a version as deprecated."""
    spec = request_spec(api, apis)
    return spec is not None and version in spec.deprecated_versions


def not_to_be_used(api: int, versions: Range, apis: Apis = NO_APIS) -> list[DoNotUse]:
    """What of `versions` the API's spec marks as not to be used, with the reasons."""
    spec = request_spec(api, apis)
    marks = () if spec is None else spec.do_not_use_versions
    found = [DoNotUse(mark.versions & Versions(*versions), mark.reason) for mark in marks]
    return [mark for mark in found if mark.versions]


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


def _highest(api: int, ours: Ranges, theirs: Ranges, excluded: Excluded, apis: Apis) -> int | None:
    if api not in ours or api not in theirs:
        return None
    both = overlap(ours[api], theirs[api])
    if both is None:
        return None
    refused = excluded.get(api, ())
    versions = [version for version in range(both[1], both[0] - 1, -1) if version not in refused]
    spec = request_spec(api, apis)
    if spec is not None and spec.do_not_use_versions:
        versions = [version for version in versions if spec.reason_not_to_use(version) is None]
    if spec is not None and spec.deprecated_versions:
        versions = [version for version in versions if version not in spec.deprecated_versions] or versions
    return versions[0] if versions else None


def _key(name: str, option: str) -> int:
    if not isinstance(name, str):  # such as a number: what is taken is "1"
        raise ConfigError(f'{option}: {name!r:.60}: needs the name of an API, such as "Fetch", as text')
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
