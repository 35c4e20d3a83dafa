"""Which header version each version of a request or a response travels under (KIP-1313).

A spec says it in `headerVersions`, a map of body versions to header versions: `{"0-1": "1", "2+": "2"}`. Where it does
not, flexible versions travel under the first flexible header, as in all of Kafka's own messages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from tagwire.spec.api_keys import ApiKey
from tagwire.spec.keys import Keys, shown
from tagwire.spec.versions import HIGHEST, Versions

KEY: Final = "headerVersions"
EXAMPLE: Final = '{"0-1": "1", "2+": "2"}'
_NUMBER: Final = re.compile(r"\d{1,5}", re.ASCII)


@dataclass(frozen=True, slots=True)
class HeaderVersions:
    """A map of body versions to header versions.

    Attributes:
        ranges: body versions with the header version of all of them: ascending from 0, without gaps, the last one
            without an end; header versions never fall.
    """

    ranges: tuple[tuple[Versions, int], ...]

    def of(self, version: int) -> int:
        """The header version of body version `version`, by number: one above every valid version has its header all
        the same. A negative one, which a client may send, has that of 0."""
        for versions, header in self.ranges:
            if version <= versions.highest:
                return header
        return self.ranges[-1][1]

    def document(self) -> dict[str, str]:
        """The map as a spec writes it; ranges that follow each other and have the same header are one."""
        merged: list[tuple[Versions, int]] = []
        for versions, header in self.ranges:
            if merged and merged[-1][1] == header:
                versions = Versions(merged.pop()[0].lowest, versions.highest)
            merged.append((versions, header))
        return {str(versions): str(header) for versions, header in merged}

    def __str__(self) -> str:
        return ", ".join(f"{versions} under {header}" for versions, header in self.document().items())


def derived(kind: str, api_key: int, flexible: Versions) -> HeaderVersions:
    """The map of a request or response that states none: Kafka's rule before there were any (ApiMessageType).

    Flexible versions travel under request header 2 and response header 1, the others under 1 and 0. Version 0 of
    ControlledShutdown has request header 0; the response to ApiVersions has header 0 always (KIP-511).
    """
    if kind == "response" and api_key == ApiKey.API_VERSIONS:
        return HeaderVersions(((Versions(0, HIGHEST), 0),))
    plain = 1 if kind == "request" else 0
    first = flexible.lowest if flexible else HIGHEST + 1
    ranges = [(Versions(0, first - 1), plain), (Versions(first, HIGHEST), plain + 1)]
    if kind == "request" and api_key == ApiKey.CONTROLLED_SHUTDOWN and first > 0:
        ranges[0:1] = [(Versions(0, 0), 0), (Versions(1, first - 1), plain)]
    return HeaderVersions(tuple(entry for entry in ranges if entry[0]))


def read(
    keys: Keys, doc: dict[str, Any], kind: str, api_key: int, valid: Versions, flexible: Versions
) -> HeaderVersions | None:
    """The map of one spec, stated or derived; None for a message that has no header. What is wrong with it is noted.

    Whether the header versions exist is not judged here: see `tagwire.spec.module.header_problems`.
    """
    has_header = kind in ("request", "response")
    if not has_header:
        if doc.get(KEY) is not None:
            keys.problem("", f"{KEY} belong to requests and responses only")
        return None
    entries = keys.version_map(doc, KEY, EXAMPLE)
    if entries is None:
        return derived(kind, api_key, flexible)
    ranges = [(versions, _header_version(value)) for versions, value in entries]
    fault = next(
        (
            f"the header version of {versions} must be a number from 0 to {HIGHEST}, not {shown(value)}"
            for (versions, value), (_, header) in zip(entries, ranges)
            if header < 0
        ),
        None,
    )
    fault = fault or _fault(ranges, kind, api_key, valid)
    if fault is not None:
        keys.problem("", f"{KEY}: {fault}")
        return derived(kind, api_key, flexible)
    return HeaderVersions(tuple(ranges))


def _header_version(value: Any) -> int:
    """The number that `value` says; -1 for what is none."""
    if not isinstance(value, bool) and isinstance(value, int | str):
        text = str(value).strip()
        if _NUMBER.fullmatch(text) and int(text) <= HIGHEST:
            return int(text)
    return -1


def _fault(ranges: list[tuple[Versions, int]], kind: str, api_key: int, valid: Versions) -> str | None:
    """The first rule of the whole map that it breaks."""
    if ranges[0][0].lowest != 0:
        return f"the ranges must start at 0, not at {ranges[0][0].lowest}"
    for (versions, header), (following, next_header) in pairwise(ranges):
        if following.lowest != versions.highest + 1:
            return f"no header version for {Versions(versions.highest + 1, following.lowest - 1)}"
        if next_header < header:
            return f"header versions must not fall: {versions} has {header}, {following} has {next_header}"
    if not ranges[-1][0].is_open:
        return f"the last range must have no end ({ranges[-1][0].lowest}+), not be {ranges[-1][0]}"
    if ranges[-1][0].lowest > valid.highest:
        return f"{ranges[-1][0]} begins above the highest valid version, {valid.highest}"
    if kind == "response" and api_key == ApiKey.API_VERSIONS and any(header for _, header in ranges):
        return "the response to ApiVersions has header version 0 always, so that any client can read it (KIP-511)"
    return None
