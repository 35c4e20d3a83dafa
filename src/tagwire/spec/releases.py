"""Which versions of which APIs each Kafka release serves: 0.8.2, 0.9.0, 0.10.0, and 2.8 to the newest.

The table beside this file is made by scripts/rebuild_releases.py. From 2.8 on it states what the specs inside Kafka's
published client jars say; the three old releases are stated by hand there, with their source. APIs go by key: two have
changed their name, 56 (AlterIsr until 3.1) and 74 (ListClientMetricsResources until 4.0).

Patch releases share a row named by their line, such as 3.9, unless they serve different ranges: 4.0.0 dropped
JoinGroup 0-1, 4.0.1 brought them back. Deprecated versions are those of the row's newest patch.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from tagwire.errors import ConfigError
from tagwire.spec.api_keys import ApiKey
from tagwire.spec.versions import NONE, Versions

Listener = Literal["broker", "zkBroker", "either"]
"""Who responds: a broker of a KRaft cluster, or one of a ZooKeeper cluster (up to 3.9). Before 2.8, when there was one
kind, both names mean it. KRaft was a preview in 2.8 to 3.2, and lacked APIs: in 2.8 those of transactions. either: what
clients found at brokers of the one kind or the other, without what those of ZooKeeper clusters asked of each other."""

_TABLE: Final = Path(__file__).with_name("releases.json")
_RANGE: Final = re.compile(r"(?P<versions>\S+)(?: deprecated (?P<deprecated>\S+))?(?P<unstable> unstable)?")
_LINE: Final = re.compile(r"[1-9][0-9]*\.[0-9]+")  # not of 0.10: its newest patches are in no row


@dataclass(frozen=True, slots=True)
class ApiRange:
    """What one release serves of one API.

    Attributes:
        lowest: the oldest version served.
        highest: the newest version served.
        deprecated: the versions that the release announces to drop.
        unstable: whether the newest version that the release knows is unstable: brokers serve it only where
            `unstable.api.versions.enable` is set.
    """

    lowest: int
    highest: int
    deprecated: Versions = NONE
    unstable: bool = False

    @property
    def versions(self) -> Versions:
        """`lowest` to `highest`."""
        return Versions(self.lowest, self.highest)


def names() -> list[str]:
    """The releases of the table, oldest first."""
    return list(_table()["releases"])


def row_of(release: str) -> str:
    """The name of the row that a release stands in; a line that has several rows, such as 4.0, stands in that of its
    newest patch. Raises ConfigError as `served` does."""
    rows: dict[str, list[str]] = _table()["releases"]
    if release in rows:
        return release
    is_line = _LINE.fullmatch(release)
    for name, versions in reversed(rows.items()):
        if release in versions or (is_line and versions[-1].startswith(f"{release}.")):
            return name
    near = " and ".join(_nearest(release))
    raise ConfigError(
        f"release={release!r}: not in the table, which has {', '.join(rows)}, and the patches of those; nearest: {near}"
    )


def _nearest(release: str) -> list[str]:
    """The published versions just before and after a release, the newest for what is no number."""
    published = [version for versions in _table()["releases"].values() for version in versions]
    number = _number(release)
    before = [version for version in published if _number(version) <= number] if number else published
    after = [version for version in published if number and _number(version) > number]
    return before[-1:] + after[:1]


def _number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]{1,9}", release))


def patches(release: str) -> list[str]:
    """The published versions that a release's row stands for, oldest first; the last is what a line such as 4.0 means.
    Raises ConfigError as `served` does."""
    return list(_table()["releases"][row_of(release)])


def served(release: str, *, listener: Listener = "broker", unstable: bool = False) -> dict[int, ApiRange]:
    """What brokers of `release` serve, by API key in ascending order.

    Args:
        release: a name of `names()`, a published version such as 3.9.1, or a line such as 4.0: its newest patch.
        listener: which kind of broker.
        unstable: whether the brokers' unstable versions are enabled.

    Raises:
        ConfigError: the table has no such release, or the release no such brokers.
    """
    row = row_of(release)
    apis = _apis(row, listener)
    if not apis:
        raise ConfigError(f"listener={listener!r}: Kafka {row} has no such brokers: write 'broker'")
    if unstable:
        return dict(apis)
    stable = {key: replace(api, highest=api.highest - 1) if api.unstable else api for key, api in apis.items()}
    return {key: api for key, api in stable.items() if api.versions}


def advertised(release: str, *, listener: Listener = "broker", unstable: bool = False) -> dict[int, ApiRange]:
    """What brokers of `release` list in their ApiVersions response, which is not quite what they serve.

    From 4.0.0 on Produce is listed from version 0, for clients that find their compression types by it (KAFKA-18659);
    0.10.0 left out ControlledShutdown 0. Brokers without a telemetry receiver also leave out APIs 71 and 72. Empty for
    releases that have no ApiVersions. Arguments and errors are those of `served`.
    """
    apis = served(release, listener=listener, unstable=unstable)
    if ApiKey.API_VERSIONS not in apis:
        return {}
    if ApiKey.PRODUCE in apis:
        apis[ApiKey.PRODUCE] = replace(apis[ApiKey.PRODUCE], lowest=0)
    if row_of(release) == "0.10.0":
        apis[ApiKey.CONTROLLED_SHUTDOWN] = replace(apis[ApiKey.CONTROLLED_SHUTDOWN], lowest=1)
    return apis


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(_TABLE.read_text(encoding="utf-8"))
    return table


@cache
def _apis(row: str, listener: str) -> dict[int, ApiRange]:
    """The row as stated, unstable versions included."""
    table = _table()
    rows = list(table["releases"])
    if listener == "either":
        lasting = _apis(rows[-1], "broker")
        older = {key: api for key, api in _apis(row, "zkBroker").items() if key in lasting}
        return dict(sorted({**older, **_apis(row, "broker")}.items()))
    if listener not in table["listeners"]:
        raise ConfigError(f"listener={listener!r}: write one of {', '.join(table['listeners'])}, either")
    up_to_here = rows[: rows.index(row) + 1]
    found = {}
    for line in table["listeners"][listener]:
        last = next((line["since"][name] for name in reversed(up_to_here) if name in line["since"]), "none")
        if last != "none":
            found[line["key"]] = _range(last)
    return found


def _range(text: str) -> ApiRange:
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ConfigError(f"{_TABLE.name}: {text!r} is no range of versions")
    versions = Versions.parse(match["versions"])
    deprecated = Versions.parse(match["deprecated"] or "none")
    return ApiRange(versions.lowest, versions.highest, deprecated, bool(match["unstable"]))
