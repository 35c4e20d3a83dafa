"""Who the clients are and what they speak: observations gathered by client."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from tagwire import messages
from tagwire.capture.observation import Endpoint, Observation, Place
from tagwire.rpc.ranges import Range
from tagwire.rpc.version_gates import ADD_PARTITIONS_TO_TXN_BROKERS
from tagwire.spec.api_keys import API_NAMES, ApiKey

_BEFORE_AUTHENTICATION: Final = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS, ApiKey.SASL_AUTHENTICATE})
ANONYMOUS: Final = "User:ANONYMOUS"
JAVA: Final = "apache-kafka-java"
"""The software name of Kafka's own client."""

MINUTE: Final = 60_000_000
"""In microseconds."""

MAX_CONNECTIONS: Final = 100_000
"""Connections whose offers are remembered; the one seen first is then forgotten."""

_OF_COORDINATORS: Final = frozenset(
    {
        ApiKey.WRITE_TXN_MARKERS,
        *range(ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY + 1),
    }
)
CLUSTER_APIS: Final = _OF_COORDINATORS | {
    key for key in API_NAMES if "broker" not in messages.request(key).spec.listeners
}
"""What only brokers and controllers send: APIs of no broker's listener today, and what coordinators ask of brokers, and
of each other. Source: Kafka's ApiKeys, which calls them cluster actions."""

_FOLLOWER: Final = re.compile(r"broker-\d+-fetcher-\d+|raft-client-\d+|(?:\w+:)?ReplicaFetcherThread-\d+-\d+", re.ASCII)
"""The client ids by which followers fetch, in versions of their own: of partitions, of the cluster's metadata, and the
last before Kafka 1.0. Source: Kafka's ReplicaFetcherManager and KafkaRaftManager."""


class Asker(Protocol):
    """What tells who sends on which connection: an observation, and the speaker of many."""

    @property
    def client(self) -> Endpoint: ...
    @property
    def broker(self) -> Endpoint: ...
    @property
    def client_id(self) -> str | None: ...
    @property
    def software_name(self) -> str: ...
    @property
    def software_version(self) -> str: ...
    @property
    def principal(self) -> str: ...


class Client(NamedTuple):
    """Who speaks, as far as requests and connections tell.

    Attributes:
        software_name, software_version: "" where the client did not tell.
        client_id: None where it sent null.
        principal: such as "User:alice", "" where none was seen, or nobody's.
        address: an IP address.
    """

    software_name: str
    software_version: str
    client_id: str | None
    principal: str
    address: str

    @property
    def software(self) -> str:
        """Name and version, "" where the client told neither."""
        return " ".join(filter(None, (self.software_name, self.software_version)))

    def __str__(self) -> str:
        software = self.software or "unnamed software"
        principal = f" as {self.principal}" if self.principal else ""
        return f"{software}, client id {self.client_id!r}{principal}, from {self.address or 'an unknown address'}"


@dataclass(slots=True)
class Use:
    """One version of one API as one client used it.

    Attributes:
        count: requests.
        first, last: when, in microseconds since 1970 UTC; -1 where no time is known.
        places: evidence: of the first request, and of the last where there were more.
        highest_offered: the newest version that a broker offered where this one was used; None where no offer was seen.
        error_codes: {code: how often a response carried it}.
    """

    count: int = 0
    first: int = -1
    last: int = -1
    places: tuple[Place, ...] = ()
    highest_offered: int | None = None
    error_codes: dict[int, int] = field(default_factory=dict)

    def merge(self, other: Use) -> None:
        """Takes in what `other` tells."""
        known = [use for use in (self, other) if use.places]
        timed = [use for use in known if use.first >= 0]
        first = min(timed or known, key=lambda use: (use.first, use.places[0]))
        last = max(timed or known, key=lambda use: (use.last, use.places[-1]))
        self.places = tuple(dict.fromkeys((first.places[0], last.places[-1])))
        self.first, self.last = first.first, last.last
        self.count += other.count
        offers = [use.highest_offered for use in known if use.highest_offered is not None]
        self.highest_offered = max(offers, default=None)
        for code, count in other.error_codes.items():
            self.error_codes[code] = self.error_codes.get(code, 0) + count


@dataclass(slots=True)
class Usage:
    """All that one client was seen to do.

    Attributes:
        apis: {API key: {version: its use}}.
        connections: on how many connections.
    """

    client: Client
    apis: dict[int, dict[int, Use]] = field(default_factory=dict)
    connections: int = 0

    @property
    def asks_versions(self) -> bool:
        """Whether it is known to ask brokers which versions they serve: it was seen to, or has a name, which brokers
        know by that alone, and log with all that comes later."""
        return ApiKey.API_VERSIONS in self.apis or bool(self.client.software_name)

    @property
    def is_broker(self) -> bool:
        """Whether it sends what only brokers and controllers send, or has the client id of a follower, which sends what
        consumers do."""
        if not CLUSTER_APIS.isdisjoint(self.apis) or is_follower(self.client):
            return True
        return any(each >= ADD_PARTITIONS_TO_TXN_BROKERS for each in self.apis.get(ApiKey.ADD_PARTITIONS_TO_TXN, ()))

    @property
    def count(self) -> int:
        return sum(use.count for versions in self.apis.values() for use in versions.values())

    def merge(self, other: Usage) -> None:
        for api, versions in other.apis.items():
            for version, use in versions.items():
                self.apis.setdefault(api, {}).setdefault(version, Use()).merge(use)
        self.connections += other.connections


class Offers:
    """What brokers were seen to offer: told of every observation in its order, it knows of each what had been offered.

    Some clients ask on their first connection only, which is then the only one that has their software's name, and take
    the response for all of a cluster: for a connection without such a request, the last response to one of that id,
    principal and address counts.
    """

    def __init__(self) -> None:
        self._of_connection: OrderedDict[tuple[Endpoint, Endpoint], dict[int, Range]] = OrderedDict()
        self._of_client: dict[Client, dict[int, Range]] = {}
        self._known: dict[frozenset[tuple[int, Range]], dict[int, Range]] = {}

    def is_new(self, seen: Asker) -> bool:
        """Whether its connection was not seen before, or not for a very long time."""
        return (seen.client, seen.broker) not in self._of_connection

    def highest(self, client: Client, seen: Observation) -> int | None:
        """The newest version of its API that was offered when it came; None where no offer was seen."""
        if seen.offered is not None:
            self.told(client, seen, seen.offered)
        return self.known(client, seen, seen.api_key)

    def told(self, client: Client, seen: Asker, offered: dict[int, Range]) -> None:
        """A broker offered this on a connection of the client."""
        # Brokers of one release offer the same to everybody: it is kept once.
        once = self._known.setdefault(frozenset(offered.items()), offered)
        self._remember(seen, once)
        self._of_client[_nameless(client)] = once

    def changes(self, client: Client, seen: Asker, offered: dict[int, Range], *, begins: bool) -> bool:
        """Whether to be told this would change what is known; `begins`: it is the first request of its connection."""
        own = offered if begins else self._of_connection.get((seen.client, seen.broker))
        return not self._of_client.get(_nameless(client)) == own == offered

    def known(self, client: Client, seen: Asker, api: int) -> int | None:
        """The newest version of an API that was offered on a connection, or else to its client; None where no offer was
        seen. The connection was seen with this."""
        connection = (seen.client, seen.broker)
        if connection not in self._of_connection:
            self._remember(seen, {})
        offers = self._of_connection[connection] or self._of_client.get(_nameless(client), {})
        offer = offers.get(api)
        return None if offer is None else offer[1]

    def _remember(self, seen: Asker, offered: dict[int, Range]) -> None:
        self._of_connection[seen.client, seen.broker] = offered
        if len(self._of_connection) > MAX_CONNECTIONS:
            self._of_connection.popitem(last=False)


class Census:
    """Gathers observations. Its size follows the number of clients, of connections and of minutes, not of requests.

    Attributes:
        timeline: {API key: {version: {minute since 1970 UTC: requests}}}, of requests whose time is known, but for
            those of followers: there are more of them than of all consumers, in versions of their own.
        offers: what brokers were seen to offer.
        begun: {(client's end, broker's end): who sent on it first, and where}, of the connections that are kept, so
            that others that saw the same ones can be counted together with this; None where they are counted.

    Args:
        keeps_connections: whether connections are kept, and not counted.
    """

    def __init__(self, *, keeps_connections: bool = False) -> None:
        self.begun: dict[tuple[Endpoint, Endpoint], tuple[Client, Place]] | None = {} if keeps_connections else None
        self.timeline: dict[int, dict[int, dict[int, int]]] = {}
        self._usages: dict[Client, Usage] = {}
        self.offers = Offers()

    def add_all(self, observations: Iterable[Observation]) -> None:
        for observation in observations:
            self.add(observation)

    def add(self, seen: Observation) -> None:
        """Takes in requests as they were seen, in their order."""
        client = client_of(seen)
        if self.offers.is_new(seen):
            self.add_connection(client, seen, seen.place)
        use = Use(
            seen.count,
            seen.time,
            seen.time,
            (seen.place,),
            self.offers.highest(client, seen),
            dict.fromkeys(seen.error_codes or (), seen.count),
        )
        self.add_use(client, seen.api_key, seen.api_version, use)
        if seen.time >= 0 and not is_follower(client):
            self.add_minute(seen.api_key, seen.api_version, seen.time // MINUTE, seen.count)

    def add_use(self, client: Client, api: int, version: int, use: Use) -> None:
        """Takes in what was gathered elsewhere."""
        self._usage(client).apis.setdefault(api, {}).setdefault(version, Use()).merge(use)

    def add_connection(self, client: Client, seen: Asker, place: Place) -> None:
        """A connection is new, on which the client sends first."""
        if self.begun is None:
            self.add_connections(client, 1)
        else:
            self.begun.setdefault((seen.client, seen.broker), (client, place))

    def add_connections(self, client: Client, count: int) -> None:
        """Counts connections of a client that no other counts."""
        self._usage(client).connections += count

    def add_minute(self, api: int, version: int, minute: int, count: int) -> None:
        """Counts requests in a minute since 1970 UTC."""
        minutes = self.timeline.setdefault(api, {}).setdefault(version, {})
        minutes[minute] = minutes.get(minute, 0) + count

    def uses(self) -> Iterator[tuple[Client, int, int, Use]]:
        """All uses that were gathered, as `add_use` takes them elsewhere: client, API, version, its use."""
        for client, usage in self._usages.items():
            for api, versions in usage.apis.items():
                for version, use in versions.items():
                    yield client, api, version, use

    def usages(self) -> list[Usage]:
        """Each client once, by name.

        What a connection said before it was authenticated is the client's whom it turned out to be, where there is one
        of that name. What was said by connections that named no software is the software's that others of the same id,
        principal and address named, where that is one: but of Kafka's own, which names itself on each connection, only
        what comes before that.
        """
        found: list[Usage] = []
        for usages in _alike(_named(self._usages.values()), principal="").values():
            early = [usage for usage in usages if not usage.client.principal and _only_begins(usage)]
            later = [usage for usage in usages if usage not in early] or early
            for usage in later:
                before = early if later is not early and usage.client.principal else []
                found.append(_whole(usage.client, [usage, *before]))
        return sorted(found, key=lambda usage: tuple(map(str, usage.client)))

    def _usage(self, client: Client) -> Usage:
        usage = self._usages.get(client)
        if usage is None:
            usage = self._usages[client] = Usage(client)
        return usage


def _named(usages: Iterable[Usage]) -> Iterator[Usage]:
    """The same, with the software's name where others tell it."""
    for alike in _alike(usages, software_name="", software_version="").values():
        unnamed = [usage for usage in alike if not usage.client.software]
        named = [usage for usage in alike if usage.client.software]
        if unnamed and len(named) == 1 and (named[0].client.software_name != JAVA or _only_begins(unnamed[0])):
            yield _whole(named[0].client, alike)
        else:
            yield from alike


def _alike(usages: Iterable[Usage], **blank: str) -> dict[Client, list[Usage]]:
    """Those whose clients differ in what is blanked only."""
    found: dict[Client, list[Usage]] = {}
    for usage in usages:
        found.setdefault(usage.client._replace(**blank), []).append(usage)
    return found


def _whole(client: Client, parts: Iterable[Usage]) -> Usage:
    whole = Usage(client)
    for part in parts:
        whole.merge(part)
    return whole


def _nameless(client: Client) -> Client:
    return client._replace(software_name="", software_version="")


def _only_begins(usage: Usage) -> bool:
    """Whether it did nothing but what comes before authentication."""
    return _BEFORE_AUTHENTICATION.issuperset(usage.apis)


def is_follower(client: Client) -> bool:
    """Whether it has the client id by which brokers and controllers follow a leader."""
    return _FOLLOWER.fullmatch(client.client_id or "") is not None


def client_of(seen: Asker) -> Client:
    """Whose it is."""
    principal = "" if seen.principal == ANONYMOUS else seen.principal
    return Client(seen.software_name, seen.software_version, seen.client_id, principal, seen.client.address)
