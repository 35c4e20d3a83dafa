"""Versions that are on their way out, and versions that must not be used (docs/negotiation.md#marked-versions).

`deprecatedVersions` are served, and announced to go. `doNotUseVersions`, a map of versions to the reason, are served as
well, and no client is to choose them: versions with a fault, versions meant for brokers alone. Both say something of an
API, so they stand in its request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from tagwire.spec.api_keys import ApiKey
from tagwire.spec.keys import Keys
from tagwire.spec.versions import NONE, Versions

DEPRECATED: Final = "deprecatedVersions"
DO_NOT_USE: Final = "doNotUseVersions"
EXAMPLE: Final = '{"1": "commits the offset of another partition"}'
MAX_REASON: Final = 500


@dataclass(frozen=True, slots=True)
class DoNotUse:
    """Versions that no client is to choose.

    Attributes:
        versions: which.
        reason: why, one line.
    """

    versions: Versions
    reason: str

    def __str__(self) -> str:
        return f"{self.versions} ({self.reason})"


def read_deprecated(keys: Keys, doc: dict[str, Any], api_key: int, is_of_api: bool, valid: Versions) -> Versions:
    """The deprecated versions of one spec; what is wrong with them is noted."""
    deprecated = keys.versions(doc, DEPRECATED, "", NONE) or NONE
    if deprecated and is_of_api and api_key == ApiKey.API_VERSIONS:
        keys.problem("", f"{DEPRECATED}: versions of ApiVersions are never deprecated (KIP-35)")
    if not valid.covers(deprecated):
        keys.problem("", f"{DEPRECATED} {deprecated} reach outside validVersions {valid}")
    return deprecated


def read_do_not_use(keys: Keys, doc: dict[str, Any], kind: str, api_key: int, valid: Versions) -> tuple[DoNotUse, ...]:
    """The versions of one spec that must not be used, ascending; what is wrong with them is noted."""
    entries = keys.version_map(doc, DO_NOT_USE, EXAMPLE)
    if entries is None:
        return ()
    if kind != "request":
        keys.problem("", f"{DO_NOT_USE} belong to requests only, and hold for the response too")
    elif api_key == ApiKey.API_VERSIONS:
        keys.problem("", f"{DO_NOT_USE}: ApiVersions has none: a client begins with it, whatever its version (KIP-35)")
    found = []
    for versions, reason in entries:
        if not valid.covers(versions):
            keys.problem("", f"{DO_NOT_USE}: {versions} reaches outside validVersions {valid}")
        if not isinstance(reason, str) or not reason.strip() or len(reason) > MAX_REASON or not reason.isprintable():
            keys.problem("", f"{DO_NOT_USE}: {versions} needs its reason, one line of at most {MAX_REASON} characters")
            reason = ""
        found.append(DoNotUse(versions, reason.strip()))
    return tuple(found)
