"""Which clients use which versions of an API: others as they were seen to, Kafka's own and tagwire's as they can."""

from __future__ import annotations

from dataclasses import dataclass

from tagwire.capture.census import CLUSTER_APIS
from tagwire.capture.software import seen
from tagwire.client.versions import OURS
from tagwire.reference.served import served
from tagwire.rpc.ranges import Range, overlap
from tagwire.rpc.version_gates import ADD_PARTITIONS_TO_TXN_BROKERS
from tagwire.spec import releases
from tagwire.spec.api_keys import ApiKey


@dataclass(frozen=True, slots=True)
class Speaker:
    """A client, and the versions of one API that it uses with brokers of some releases.

    Attributes:
        versions: {release of the brokers: such as "up to 13", or "7, 9"}, without those where it uses none.
        was_seen: whether it was seen to, rather than known to be able.
    """

    name: str
    versions: dict[str, str]
    was_seen: bool


def is_of_brokers(api: int) -> bool:
    """Whether only brokers and controllers ask it."""
    return api in CLUSTER_APIS


def brokers_releases() -> list[str]:
    """The releases of brokers with which clients were seen, oldest first."""
    told = {release for versions in seen().values() for by_release in versions.values() for release in by_release}
    return [name for name in releases.names() if name in told]


def speakers(api: int, name: str) -> list[Speaker]:
    """The clients that use an API, or can: tagwire, Kafka's own of some releases, then others by name. None of what
    brokers ask of each other.

    Args:
        name: the API's.
    """
    if is_of_brokers(api):
        return []
    brokers = brokers_releases()
    found = [Speaker("tagwire", _able(api, OURS.get(api), brokers), was_seen=False)]
    for release in brokers:
        able = _able(api, _javas(api, release), brokers)
        found.append(Speaker(f"Kafka's Java client {release}", able, was_seen=False))
    for software, versions in seen().items():
        for version, by_release in versions.items():
            used = {release: ", ".join(map(str, apis[name])) for release, apis in by_release.items() if apis.get(name)}
            found.append(Speaker(f"{software} {version}", used, was_seen=True))
    return [one for one in found if one.versions]


def _able(api: int, able: Range | None, brokers: list[str]) -> dict[str, str]:
    found = {}
    for release in brokers:
        there = _range(api, release)
        shared = None if able is None or there is None else overlap(able, there)
        if shared is not None:
            found[release] = f"up to {shared[1]}"
    return found


def _javas(api: int, release: str) -> Range | None:
    """What Kafka's client of a release can: all that its brokers do, but of what these ask of each other."""
    able = _range(api, release)
    if able is None or api != ApiKey.ADD_PARTITIONS_TO_TXN:
        return able
    return able[0], min(able[1], ADD_PARTITIONS_TO_TXN_BROKERS - 1)


def _range(api: int, release: str) -> Range | None:
    """What a release has of an API without what is unstable."""
    there = served(release).get(api)
    if there is None:
        return None
    stable = (there.range.lowest, there.range.highest - there.range.unstable)
    return stable if stable[0] <= stable[1] else None
