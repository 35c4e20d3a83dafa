"""Whether a client works with a release of Kafka, judged by the versions it was seen to use.

A version that the release serves works. One that it does not serve is judged by what else is known:

- the client's software is Kafka's own, and its release is in the table: what that release's client can speak decides;
- the client asks for versions, the broker offered more, and the client stayed at this one: it cannot more, and breaks;
- it asks, and was seen to use a served version of the same API too: it goes with the broker;
- it asks, and used the newest that the broker offered, or what was offered was not seen: where releases of its
  software were tried, that decides; where not, this evidence does not tell whether it could more;
- it does not ask: it sends what it sends, and breaks.

Up to 3.5 an API may be served in ZooKeeper clusters and not yet in KRaft's: that is left open.

Ranges are those of `tagwire.spec.releases`, per exact release (4.0.0 is not 4.0.1), never a broker's own word for what
is deprecated. Source: KIP-896.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from tagwire.capture.census import JAVA, Client, Usage, Use
from tagwire.capture.software import oldest_that_works, software_of, works_with
from tagwire.errors import ConfigError
from tagwire.rpc.names import api_name
from tagwire.rpc.ranges import overlap
from tagwire.spec import releases
from tagwire.spec.api_keys import ApiKey
from tagwire.spec.releases import ApiRange


class Outcome(Enum):
    """What becomes of a client: the worst of what is found for its APIs."""

    WORKS = "works"
    UNCERTAIN = "uncertain"
    BREAKS = "breaks"


class Cause(Enum):
    """Why a version that is not served is, or is not, the end of a client."""

    FIXED = "the client was not seen to ask for versions"
    STAYS = "the client was offered more, and stayed there"
    CAPPED = "the broker was seen to offer no more, so what the client can is not known"
    LACKS = "this release of the client speaks no version that is served"
    ADAPTS = "the client goes with what a broker offers"
    WORKED = "this release of the client, or an older one, was tried, and works"
    BROKE = "this release of the client, or a newer one, was tried, and breaks"
    GONE = "the API is not served, and the client does not ask"
    WITHOUT = "the API is not served; whether the client, which asks, does without it is not known"
    ZOOKEEPER = "by brokers of ZooKeeper clusters, not by those of KRaft clusters, and the release has both"


_OUTCOMES: Final = {
    Cause.FIXED: Outcome.BREAKS,
    Cause.STAYS: Outcome.BREAKS,
    Cause.LACKS: Outcome.BREAKS,
    Cause.BROKE: Outcome.BREAKS,
    Cause.GONE: Outcome.BREAKS,
    Cause.CAPPED: Outcome.UNCERTAIN,
    Cause.WITHOUT: Outcome.UNCERTAIN,
    Cause.ZOOKEEPER: Outcome.UNCERTAIN,
    Cause.ADAPTS: Outcome.WORKS,
    Cause.WORKED: Outcome.WORKS,
}


_TRIED: Final = {True: Cause.WORKED, False: Cause.BROKE, None: Cause.CAPPED}

WALKED: Final = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.METADATA,
        ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_FETCH,
        ApiKey.FIND_COORDINATOR,
        ApiKey.JOIN_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.SYNC_GROUP,
    }
)
"""The APIs that all clients that were tried had need of: to produce, and to consume in a group."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Versions of an API that a release does not serve, and what follows.

    Attributes:
        api: the API's key.
        versions: {version: its use}, of those that are not served.
        served: what the release serves of the API, by brokers of either kind; None where it lacks it.
    """

    api: int
    versions: dict[int, Use]
    served: ApiRange | None
    cause: Cause

    @property
    def outcome(self) -> Outcome:
        return _OUTCOMES[self.cause]

    @property
    def count(self) -> int:
        """How many requests there were in those versions."""
        return sum(use.count for use in self.versions.values())

    def __str__(self) -> str:
        served = f"{self.served.versions} are served" if self.served is not None else "it is not served"
        used = ", ".join(map(str, sorted(self.versions)))
        return f"{api_name(self.api)} v{used}: {served}, {self.cause.value}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a client when its brokers are of `target`.

    Attributes:
        findings: what stands against it, and what only seems to.
        works_until: where it breaks: the newest release before `target` with which it works; None where there is none.
        upgrade: where it breaks: the oldest release of its software that is known to work with `target`, such as
            "librdkafka 1.9.0"; of Kafka's own client by the versions it speaks, of others by having been tried.
    """

    client: Client
    target: str
    outcome: Outcome
    findings: tuple[Finding, ...]
    works_until: str | None = None
    upgrade: str | None = None


def judge(usage: Usage, target: str) -> Verdict:
    """The verdict on one client.

    Args:
        usage: what it was seen to do.
        target: a release as `releases.names()` has them, or a published version such as 4.0.2.

    Raises:
        ConfigError: the table has no such release.
    """
    findings = _findings(usage, target)
    outcome = _worst(findings)
    if outcome is not Outcome.BREAKS:
        return Verdict(usage.client, target, outcome, findings)
    names = releases.names()
    before = names[: _index(target)]
    works_until = next((name for name in reversed(before) if _worst(_findings(usage, name)) is Outcome.WORKS), None)
    return Verdict(usage.client, target, outcome, findings, works_until, _upgrade(usage, target))


def features_of(usage: Usage) -> list[str]:
    """What of a broker the client depends on, as people call it."""
    return [
        name
        for name, (api, lowest) in FEATURES.items()
        if any(version >= lowest for version in usage.apis.get(api, ()))
    ]


def since(feature: str) -> str | None:
    """The first release whose brokers serve a feature, as a preview at least; None where that is 2.8 or older, which
    every target has."""
    api, lowest = FEATURES[feature]
    names = releases.names()
    first = next(name for name in names if api in (have := served_to_clients(name)) and have[api].highest >= lowest)
    return first if names.index(first) > names.index("2.8") else None


FEATURES: Final = {
    "record batches and headers": (ApiKey.PRODUCE, 3),
    "idempotent or transactional producing": (ApiKey.INIT_PRODUCER_ID, 0),
    "transactions": (ApiKey.ADD_PARTITIONS_TO_TXN, 0),
    "transactions of KIP-890": (ApiKey.END_TXN, 5),
    "consumer groups": (ApiKey.JOIN_GROUP, 0),
    "static membership": (ApiKey.JOIN_GROUP, 5),
    "consumer groups of KIP-848": (ApiKey.CONSUMER_GROUP_HEARTBEAT, 0),
    "share groups": (ApiKey.SHARE_GROUP_HEARTBEAT, 0),
    "streams groups": (ApiKey.STREAMS_GROUP_HEARTBEAT, 0),
    "fetch sessions": (ApiKey.FETCH, 7),
    "fetching from followers": (ApiKey.FETCH, 11),
    "topic ids": (ApiKey.FETCH, 13),
    "SASL": (ApiKey.SASL_HANDSHAKE, 0),
    "delegation tokens": (ApiKey.CREATE_DELEGATION_TOKEN, 0),
    "client metrics": (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0),
}
"""{feature: (API, its first version that is the feature)}."""


def _findings(usage: Usage, target: str) -> tuple[Finding, ...]:
    served = served_to_clients(target)
    found = []
    for api, versions in sorted(usage.apis.items()):
        have = served.get(api)
        outside = {version: use for version, use in sorted(versions.items()) if not _serves(have, version)}
        if not outside:
            continue
        cause = _cause(usage, api, outside, have, target)
        if have is None and (by_others := releases.served(target, listener="either").get(api)) is not None:
            beyond = {version: use for version, use in outside.items() if not _serves(by_others, version)}
            if not beyond or _OUTCOMES[_cause(usage, api, beyond, by_others, target)] is Outcome.WORKS:
                have, cause = by_others, Cause.ZOOKEEPER
        found.append(Finding(api, outside, have, cause))
    return tuple(found)


def served_to_clients(release: str) -> dict[int, ApiRange]:
    """What brokers of a release that people ran serve: of a ZooKeeper cluster, until KRaft was ready with 3.3. What
    KRaft's lacked from then on (users until 3.5, tokens until 3.6) is not among it."""
    names = releases.names()
    old = names.index("2.8") <= _index(release) < names.index("3.3")
    return releases.served(release, listener="zkBroker" if old else "broker")


def _cause(usage: Usage, api: int, outside: dict[int, Use], served: ApiRange | None, target: str) -> Cause:
    if served is None:
        return Cause.WITHOUT if usage.asks_versions else Cause.GONE
    spoken = _spoken(usage.client)
    if spoken is not None and api in spoken:
        able = overlap(_range(spoken[api]), _range(served)) is not None
        return Cause.ADAPTS if able and usage.asks_versions else Cause.LACKS
    if not usage.asks_versions:
        return Cause.FIXED
    below = {version: use for version, use in outside.items() if version < served.lowest}
    if any(_stayed(version, use) for version, use in below.items()):
        return Cause.STAYS
    if len(outside) < len(usage.apis[api]) or not below:
        return Cause.ADAPTS
    return _TRIED[works_with(*software_of(usage.client), target) if api in WALKED else None]


def _stayed(version: int, use: Use) -> bool:
    return use.highest_offered is not None and use.highest_offered > version


def _spoken(client: Client) -> dict[int, ApiRange] | None:
    """What a release of Kafka's own client speaks, which is what brokers of that release serve, of either kind."""
    release = re.match(r"\d+\.\d+\.\d+", client.software_version)
    if client.software_name != JAVA or release is None:
        return None
    try:
        return releases.served(release[0], listener="either", unstable=True)
    except ConfigError:
        return None


def _upgrade(usage: Usage, target: str) -> str | None:
    software, version = software_of(usage.client)
    if software != JAVA:
        tried = oldest_that_works(software, version, target)
        return None if tried is None else f"{software} {tried}"
    served = served_to_clients(target)
    needed = [api for api in usage.apis if api in served]
    for name in releases.names():
        spoken = releases.served(name, listener="either")
        if all(api in spoken and overlap(_range(spoken[api]), _range(served[api])) for api in needed):
            return f"{software} {name}"
    return None


def _serves(served: ApiRange | None, version: int) -> bool:
    return served is not None and served.lowest <= version <= served.highest


def _range(api: ApiRange) -> tuple[int, int]:
    return api.lowest, api.highest


def _worst(findings: tuple[Finding, ...]) -> Outcome:
    outcomes = {finding.outcome for finding in findings}
    return next((one for one in (Outcome.BREAKS, Outcome.UNCERTAIN) if one in outcomes), Outcome.WORKS)


def _index(target: str) -> int:
    """Of the release's row: a patch belongs to its line."""
    return releases.names().index(releases.row_of(target))
