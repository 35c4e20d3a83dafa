"""Which releases serve which versions of an API: since when, deprecated since when, until when.

Of a release with both kinds of clusters, what brokers under KRaft serve counts, and what only those under ZooKeeper
serve is added, and marked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tagwire.errors import ConfigError
from tagwire.spec import Versions, releases
from tagwire.spec.releases import ApiRange, Listener

AT_THE_LATEST = frozenset({"0.8.2", "2.8"})
"""Rows before which the table has a gap: what is first seen in them may have begun earlier."""


@dataclass(frozen=True, slots=True)
class Served:
    """What brokers of one release serve of an API.

    Attributes:
        range: versions, with those deprecated.
        listener: broker, or zkBroker where only brokers of ZooKeeper clusters do.
    """

    range: ApiRange
    listener: Listener


@dataclass(frozen=True, slots=True)
class Era:
    """Consecutive releases that serve the same of an API.

    Attributes:
        first, last: rows of the table of releases.
        served: what they serve, or None.
    """

    first: str
    last: str
    served: Served | None

    @property
    def text(self) -> str:
        """`3.5 to 3.6`, `4.1 or newer`, `2.8`."""
        newest = releases.names()[-1]
        if self.last == newest:
            return f"{self.first} or newer" if self.first != newest else self.first
        return self.first if self.first == self.last else f"{self.first} to {self.last}"


@dataclass(frozen=True, slots=True)
class Life:
    """One version of an API through the releases; each is a row of the table, or None.

    Attributes:
        since: the first that serves it.
        deprecated: the first that announces to drop it.
        spared: the first after that which announces it no more, and serves it.
        removed: the first that serves it no longer, after all that did.
    """

    version: int
    since: str | None
    deprecated: str | None
    spared: str | None
    removed: str | None


@cache
def served(release: str) -> dict[int, Served]:
    """What brokers of a release serve, unstable versions included, by API key. Raises ConfigError for a release that
    the table lacks."""
    releases.row_of(release)
    found: dict[int, Served] = {}
    listeners: tuple[Listener, ...] = ("zkBroker", "broker")
    for listener in listeners:
        try:
            ranges = releases.served(release, listener=listener, unstable=True)
        except ConfigError:
            continue  # there were no such brokers
        found |= {api: Served(one, listener) for api, one in ranges.items()}
    return dict(sorted(found.items()))


def eras(api: int) -> list[Era]:
    """What was served when, oldest first; nothing for an API of no broker's."""
    found: list[Era] = []
    for release in releases.names():
        here = served(release).get(api)
        if found and found[-1].served == here:
            found[-1] = Era(found[-1].first, release, here)
        elif here is not None or found:
            found.append(Era(release, release, here))
    return found


def lives(api: int, versions: Versions) -> Iterator[Life]:
    """Each of `versions` through the releases."""
    rows = [(name, served(name).get(api)) for name in releases.names()]
    for version in versions:
        since = deprecated = spared = removed = None
        for name, here in rows:
            if here is None or version not in here.range.versions:
                removed = removed or (name if since is not None else None)
                continue
            since, removed = since or name, None
            if version in here.range.deprecated:
                deprecated, spared = deprecated or name, None
            elif deprecated is not None:
                spared = spared or name
        yield Life(version, since, deprecated, spared, removed)
