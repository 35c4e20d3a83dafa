"""Which releases serve which versions of an API: since when, deprecated since when, until when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tagwire.errors import ConfigError
from tagwire.spec import Versions, releases
from tagwire.spec.releases import ApiRange, Listener


@dataclass(frozen=True, slots=True)
class Era:
    """Consecutive releases that serve the same of an API.

    Attributes:
        first, last: rows of the table of releases.
        served: what they serve, or None.
    """

    first: str
    last: str
    served: ApiRange | None

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
        removed: the first that serves it no longer, after all that did.
    """

    version: int
    since: str | None
    deprecated: str | None
    removed: str | None


@cache
def served(release: str, listener: Listener = "broker") -> dict[int, ApiRange]:
    """As `releases.served`, unstable versions included; empty where the release has no such brokers."""
    try:
        return releases.served(release, listener=listener, unstable=True)
    except ConfigError:
        return {}


def listener_of(api: int) -> Listener | None:
    """Whose answers tell about an API: a broker's, or a ZooKeeper cluster's where only those serve it. None where no
    broker of the table serves it: controllers ask and answer it among themselves, or no release has it yet."""
    kinds: tuple[Listener, ...] = ("broker", "zkBroker")
    for listener in kinds:
        if any(api in served(release, listener) for release in releases.names()):
            return listener
    return None


def eras(api: int) -> list[Era]:
    """What was served when, oldest first; nothing for an API of no broker's."""
    listener = listener_of(api)
    if listener is None:
        return []
    found: list[Era] = []
    for release in releases.names():
        here = served(release, listener).get(api)
        if found and found[-1].served == here:
            found[-1] = Era(found[-1].first, release, here)
        elif here is not None or found:
            found.append(Era(release, release, here))
    return found


def lives(api: int, versions: Versions) -> Iterator[Life]:
    """Each of `versions` through the releases."""
    listener = listener_of(api)
    names = releases.names() if listener is not None else []
    for version in versions:
        since = deprecated = removed = None
        for name in names:
            here = served(name, listener or "broker").get(api)
            serves = here is not None and version in here.versions
            if serves and since is None:
                since = name
            if serves and deprecated is None and here is not None and version in here.deprecated:
                deprecated = name
            if serves:
                removed = None
            elif since is not None and removed is None:
                removed = name
        yield Life(version, since, deprecated, removed)
