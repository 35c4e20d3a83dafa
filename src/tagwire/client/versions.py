"""The versions this client speaks, per API; everything else it can only encode, at any version.

From Kafka 0.11 on a broker serves all of these. Where a range stops short of the newest version:

- InitProducerId stops at 5: 6 is for transactions in two phases, which Kafka has not settled yet.
- AddPartitionsToTxn stops at 3: from 4 on it is for brokers. TxnOffsetCommit stops at 5: 6 names topics by id only.
- Metadata starts at 4: before it a request about a topic may create the topic.
- JoinGroup starts at 2: before it a join is not waited for, and Kafka 4.0.0 does not serve it.
- DescribeAcls, CreateAcls and DeleteAcls start at 1: before it there are no prefixes.
- OffsetCommit and OffsetFetch stop at 9: from 10 on topics are named by id only.

Ranges: Kafka's message specs.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from tagwire import messages
from tagwire.client.option_types import of_type
from tagwire.errors import UnsupportedVersionError
from tagwire.rpc import (
    Excluded,
    Range,
    Ranges,
    api_name,
    choose,
    exclusions,
    is_deprecated,
    ranges_from,
    ranges_of,
)
from tagwire.rpc.apis import NO_APIS, Apis
from tagwire.rpc.sasl import OURS as SASL
from tagwire.spec.api_keys import API_NAMES, ApiKey

logger = logging.getLogger("tagwire.client")

ADMINISTRATION: Final[Ranges] = {
    ApiKey.DESCRIBE_ACLS: (1, 3),
    ApiKey.CREATE_ACLS: (1, 3),
    ApiKey.DELETE_ACLS: (1, 3),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (1, 2),
    ApiKey.ELECT_LEADERS: (0, 2),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (0, 1),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (0, 0),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (0, 1),
    ApiKey.ALTER_CLIENT_QUOTAS: (0, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (0, 0),
    ApiKey.UPDATE_FEATURES: (0, 2),
    ApiKey.LIST_CONFIG_RESOURCES: (0, 1),
}
"""What only an administrator asks for, each for one purpose alone."""

OURS: Final[Ranges] = {
    ApiKey.PRODUCE: (3, 13),
    ApiKey.FETCH: (4, 18),
    ApiKey.LIST_OFFSETS: (1, 11),
    ApiKey.METADATA: (4, 13),
    ApiKey.OFFSET_COMMIT: (2, 9),
    ApiKey.OFFSET_FETCH: (1, 9),
    ApiKey.FIND_COORDINATOR: (0, 6),
    ApiKey.JOIN_GROUP: (2, 9),
    ApiKey.HEARTBEAT: (0, 4),
    ApiKey.LEAVE_GROUP: (0, 5),
    ApiKey.SYNC_GROUP: (0, 5),
    ApiKey.DESCRIBE_GROUPS: (0, 6),
    ApiKey.LIST_GROUPS: (0, 5),
    ApiKey.API_VERSIONS: (0, 5),
    ApiKey.CREATE_TOPICS: (2, 7),
    ApiKey.DELETE_TOPICS: (1, 6),
    ApiKey.DELETE_RECORDS: (0, 2),
    ApiKey.INIT_PRODUCER_ID: (0, 5),
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 3),
    ApiKey.ADD_OFFSETS_TO_TXN: (0, 4),
    ApiKey.END_TXN: (0, 5),
    ApiKey.WRITE_TXN_MARKERS: (0, 2),
    ApiKey.TXN_OFFSET_COMMIT: (0, 5),
    ApiKey.DESCRIBE_CONFIGS: (1, 4),
    ApiKey.DESCRIBE_LOG_DIRS: (1, 5),
    ApiKey.CREATE_PARTITIONS: (0, 3),
    ApiKey.DELETE_GROUPS: (0, 3),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
    ApiKey.OFFSET_DELETE: (0, 0),
    ApiKey.DESCRIBE_CLUSTER: (0, 2),
    ApiKey.DESCRIBE_PRODUCERS: (0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: (0, 0),
    ApiKey.LIST_TRANSACTIONS: (0, 2),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (0, 1),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (0, 1),
    **ADMINISTRATION,
    **SASL,
}

# Sent where they are served, and not missed elsewhere: Metadata and DescribeGroups tell as much of what is there, and
# only who asks for KIP-848's groups needs ConsumerGroupHeartbeat, or for what an administrator does one of the others.
DISPENSABLE: Final = frozenset(
    {ApiKey.DESCRIBE_CLUSTER, ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE, *ADMINISTRATION}
)


def range_of(api: int) -> Range:
    """What may be requested of the API with this key: the table's range, or for another API every version of its
    message.

    Raises KeyError for a key that no API has.
    """
    if api in OURS:
        return OURS[api]
    valid = messages.request(api).valid_versions
    return valid.lowest, valid.highest


def speakable() -> dict[int, Range]:
    """What may be requested of every API there is."""
    return {api: range_of(api) for api in API_NAMES}


@dataclass(frozen=True, slots=True)
class VersionPolicy:
    """What a person says about versions.

    Attributes:
        excluded: never to be used.
        assumed: ranges to take for granted instead of requesting them; None requests them.
        fallback: ranges to take for granted of a broker that ends the connection on ApiVersions; None is an error.
        apis: APIs that are not Kafka's.
        warned: brokers and APIs that were told of in the log because a deprecated version is spoken to them.
    """

    excluded: Excluded = field(default_factory=dict)
    assumed: Ranges | None = None
    fallback: Ranges | None = None
    apis: Apis = field(default_factory=dict)
    warned: set[tuple[str, int]] = field(default_factory=set, compare=False)

    def choose(self, api: int, theirs: Ranges, broker: str, highest: int | None = None) -> int:
        """The version to speak, at most `highest`. Raises UnsupportedVersionError naming API, both ranges and
        broker."""
        lowest, own = self.apis[api].versions if api in self.apis else range_of(api)
        ours = {api: (lowest, own if highest is None else min(own, highest))}
        if self.assumed is not None and api not in self.assumed:
            raise UnsupportedVersionError(f"{broker}: the versions are fixed, and none is given for {api_name(api)}")
        version = choose(api, ours, theirs, broker=broker, excluded=self.excluded, apis=self.apis)
        if is_deprecated(api, version, self.apis) and (broker, api) not in self.warned:
            self.warned.add((broker, api))
            logger.warning("%s: %s %d is deprecated, and nothing newer is shared", broker, api_name(api), version)
        return version


def policy(
    exclude: Mapping[str, int | str | Collection[int]],
    versions: str | Mapping[str, object] | None,
    fallback: str | None,
    apis: Apis = NO_APIS,
) -> VersionPolicy:
    """The policy of a client's options. Raises ConfigError: no such API, range or release."""
    of_type("versions", versions, (str, Mapping), 'a release as text, "2.8", or a dict by API, {"Fetch": 12}')
    of_type("fallback", fallback, str, 'a release as text, such as "0.9.0"')
    of_type("exclude", exclude, Mapping, 'a dict by API, such as {"Produce": "5-6"}')
    assumed = ranges_of(versions) if isinstance(versions, str) else None
    if isinstance(versions, Mapping):
        assumed = ranges_from(versions, "versions")
    return VersionPolicy(exclusions(exclude), assumed, None if fallback is None else ranges_of(fallback), apis)
