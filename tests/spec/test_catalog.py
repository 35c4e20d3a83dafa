"""The catalog states Kafka's messages: complete, consistent, and every version as Kafka served it.

The tables are of Kafka's trunk, widened by what 3.9 was the last to serve.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tagwire import spec
from tagwire.spec import Field, Message, Struct, Versions, releases
from tagwire.spec.api_keys import ApiKey

CATALOG = Path(spec.__file__).parent / "catalog"
PATHS = sorted(CATALOG.glob("*.json"))

# api key, name, versions, flexible versions
APIS = """
0 Produce 0-13 9+
1 Fetch 0-18 12+
2 ListOffsets 0-11 6+
3 Metadata 0-13 9+
4 LeaderAndIsr 0-7 4+
5 StopReplica 0-4 2+
6 UpdateMetadata 0-8 6+
7 ControlledShutdown 0-3 3+
8 OffsetCommit 0-10 8+
9 OffsetFetch 0-10 6+
10 FindCoordinator 0-6 3+
11 JoinGroup 0-9 6+
12 Heartbeat 0-4 4+
13 LeaveGroup 0-5 4+
14 SyncGroup 0-5 4+
15 DescribeGroups 0-6 5+
16 ListGroups 0-5 3+
17 SaslHandshake 0-1 none
18 ApiVersions 0-5 3+
19 CreateTopics 0-7 5+
20 DeleteTopics 0-6 4+
21 DeleteRecords 0-2 2+
22 InitProducerId 0-6 2+
23 OffsetForLeaderEpoch 0-4 4+
24 AddPartitionsToTxn 0-5 3+
25 AddOffsetsToTxn 0-4 3+
26 EndTxn 0-5 3+
27 WriteTxnMarkers 0-2 1+
28 TxnOffsetCommit 0-6 3+
29 DescribeAcls 0-3 2+
30 CreateAcls 0-3 2+
31 DeleteAcls 0-3 2+
32 DescribeConfigs 0-4 4+
33 AlterConfigs 0-2 2+
34 AlterReplicaLogDirs 0-2 2+
35 DescribeLogDirs 0-5 2+
36 SaslAuthenticate 0-2 2+
37 CreatePartitions 0-3 2+
38 CreateDelegationToken 0-3 2+
39 RenewDelegationToken 0-2 2+
40 ExpireDelegationToken 0-2 2+
41 DescribeDelegationToken 0-3 2+
42 DeleteGroups 0-3 2+
43 ElectLeaders 0-2 2+
44 IncrementalAlterConfigs 0-1 1+
45 AlterPartitionReassignments 0-1 0+
46 ListPartitionReassignments 0 0+
47 OffsetDelete 0 none
48 DescribeClientQuotas 0-1 1+
49 AlterClientQuotas 0-1 1+
50 DescribeUserScramCredentials 0 0+
51 AlterUserScramCredentials 0 0+
52 Vote 0-2 0+
53 BeginQuorumEpoch 0-1 1+
54 EndQuorumEpoch 0-1 1+
55 DescribeQuorum 0-2 0+
56 AlterPartition 0-3 0+
57 UpdateFeatures 0-2 0+
58 Envelope 0 0+
59 FetchSnapshot 0-1 0+
60 DescribeCluster 0-2 0+
61 DescribeProducers 0 0+
62 BrokerRegistration 0-4 0+
63 BrokerHeartbeat 0-2 0+
64 UnregisterBroker 0 0+
65 DescribeTransactions 0 0+
66 ListTransactions 0-2 0+
67 AllocateProducerIds 0 0+
68 ConsumerGroupHeartbeat 0-1 0+
69 ConsumerGroupDescribe 0-1 0+
70 ControllerRegistration 0 0+
71 GetTelemetrySubscriptions 0 0+
72 PushTelemetry 0 0+
73 AssignReplicasToDirs 0 0+
74 ListConfigResources 0-1 0+
75 DescribeTopicPartitions 0 0+
76 ShareGroupHeartbeat 0-1 0+
77 ShareGroupDescribe 0-1 0+
78 ShareFetch 0-2 0+
79 ShareAcknowledge 0-2 0+
80 AddRaftVoter 0-1 0+
81 RemoveRaftVoter 0 0+
82 UpdateRaftVoter 0 0+
83 InitializeShareGroupState 0 0+
84 ReadShareGroupState 0 0+
85 WriteShareGroupState 0-1 0+
86 DeleteShareGroupState 0 0+
87 ReadShareGroupStateSummary 0-1 0+
88 StreamsGroupHeartbeat 0-1 0+
89 StreamsGroupDescribe 0-1 0+
90 DescribeShareGroupOffsets 0-1 0+
91 AlterShareGroupOffsets 0 0+
92 DeleteShareGroupOffsets 0 0+
93 StreamsGroupTopologyDescriptionUpdate 0 0+
94 UnregisterController 0 0+
"""

# name, id (- for none), versions, flexible versions
OTHERS = """
RequestHeader - 0-2 2+
ResponseHeader - 0-1 1+
AbortedTxn - 0 none
ControlRecordTypeSchema - 0 none
EndTxnMarker - 0 none
ConsumerProtocolSubscription - 0-3 none
ConsumerProtocolAssignment - 0-3 none
RegisterBrokerRecord 0 0-4 0+
PartitionRecord 3 0-2 0+
PartitionChangeRecord 5 0-2 0+
BrokerRegistrationChangeRecord 17 0-3 0+
ZkMigrationStateRecord 21 0 0+
UnregisterControllerRecord 29 0 0+
RemoteLogSegmentMetadataSnapshotRecord 3 0 0+
LegacyOffsetCommitValue 0 0 none
OffsetCommitValue 1 0-4 4+
GroupMetadataValue 2 0-4 4+
StreamsGroupTopologyValue 23 0 0+
TransactionLogValue 0 0-1 1+
ShareUpdateValue 1 0 0+
SubscriptionInfoData - 1-11 none
"""

MESSAGE_KEYS = """
apiKey type listeners name validVersions deprecatedVersions doNotUseVersions flexibleVersions latestVersionUnstable
fields commonStructs
"""
FIELD_KEYS = """
name type versions nullableVersions taggedVersions tag default ignorable mapKey entityType flexibleVersions zeroCopy
about fields
"""
SERVED = ("ApiVersions", "Metadata", "CreateTopics", "DeleteTopics", "Produce", "Fetch", "ListOffsets")


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, refused where a key is given twice."""
    keys = Counter(key for key, _ in pairs)
    assert set(keys.values()) <= {1}, keys
    return dict(pairs)


@pytest.fixture(scope="module")
def documents() -> dict[str, dict[str, Any]]:
    """Every catalog file as strict JSON, by file name."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in PATHS}
    return {name: json.loads(text, object_pairs_hook=unique_keys) for name, text in texts.items()}


@pytest.fixture(scope="module")
def messages() -> dict[str, Message]:
    """Every catalog file as a checked message, by file name."""
    return {path.stem: spec.load(path) for path in PATHS}


def fields_of(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every field of a spec, however deep."""
    for owner in (document, *document.get("commonStructs", ())):
        pending = list(owner["fields"])
        while pending:
            field = pending.pop()
            yield field
            pending += field.get("fields", ())


def layout(struct: Struct, version: int, path: str) -> list[str]:
    """The fields that `version` writes in the struct at `path`, in order; `#` marks tagged ones, `?` nullable ones."""
    here = [field for field in struct.fields if version in field.versions]
    if path:
        head, _, rest = path.partition(".")
        inner = next(field.struct for field in here if field.name == head)
        assert inner is not None
        return layout(inner, version, rest)
    return [mark(field, version) for field in here]


def mark(field: Field, version: int) -> str:
    return field.name + "#" * field.is_tagged(version) + "?" * (version in field.nullable_versions)


def rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.strip().splitlines()]


def test_a_file_is_named_after_its_message(documents: dict[str, dict[str, Any]]) -> None:
    assert {name: document["name"] for name, document in documents.items()} == {name: name for name in documents}


def test_every_file_obeys_the_spec_language(messages: dict[str, Message]) -> None:
    assert [name for name, message in messages.items() if message.name != name or not message.valid_versions] == []


def test_keys_stand_in_one_order(documents: dict[str, dict[str, Any]]) -> None:
    for name, document in documents.items():
        assert list(document) == [key for key in MESSAGE_KEYS.split() if key in document], name
        for struct in document.get("commonStructs", ()):
            assert list(struct) == ["name", "versions", "fields"], name
        for field in fields_of(document):
            assert list(field) == [key for key in FIELD_KEYS.split() if key in field], (name, field["name"])


def test_values_are_spelled_one_way(documents: dict[str, dict[str, Any]]) -> None:
    for name, document in documents.items():
        assert document.get("latestVersionUnstable", True) is True, name
        for field in fields_of(document):
            flags = [field.get(key, True) for key in ("ignorable", "mapKey", "zeroCopy")]
            assert flags == [True, True, True], (name, field["name"])
            assert isinstance(field.get("default", ""), str), (name, field["name"])
            assert isinstance(field.get("tag", 0), int), (name, field["name"])


def test_lines_are_short_and_end_in_newlines() -> None:
    for path in PATHS:
        text = path.read_text(encoding="utf-8")
        assert text.endswith("}\n"), path.name
        assert "\t" not in text, path.name
        assert [line for line in text.splitlines() if len(line) > 120] == [], path.name


@pytest.mark.parametrize(("key", "name", "versions", "flexible"), rows(APIS))
def test_an_api_has_its_key_and_versions_in_request_and_response(
    messages: dict[str, Message], key: str, name: str, versions: str, flexible: str
) -> None:
    for kind in ("request", "response"):
        message = messages[name + kind.capitalize()]
        assert message.type == kind
        assert message.api_key == int(key)
        assert message.valid_versions == Versions.parse(versions)
        assert message.flexible_versions == Versions.parse(flexible)


def test_there_is_no_api_beside_the_table(messages: dict[str, Message]) -> None:
    apis = {name for _, name, _, _ in rows(APIS)}
    for kind in ("request", "response"):
        found = [message for message in messages.values() if message.type == kind]
        assert {message.name for message in found} == {name + kind.capitalize() for name in apis}
        assert sorted(message.api_key for message in found) == list(range(len(apis)))


@pytest.mark.parametrize(("name", "key", "versions", "flexible"), rows(OTHERS))
def test_a_message_that_is_no_api_has_its_versions(
    messages: dict[str, Message], name: str, key: str, versions: str, flexible: str
) -> None:
    message = messages[name]
    assert message.api_key == (-1 if key == "-" else int(key))
    assert message.valid_versions == Versions.parse(versions)
    assert message.flexible_versions == Versions.parse(flexible)


def test_every_coordinator_key_has_a_value_of_the_same_id(messages: dict[str, Message]) -> None:
    keys = {m.name.removesuffix("Key"): m.api_key for m in messages.values() if m.type == "coordinator-key"}
    values = {m.name.removesuffix("Value"): m.api_key for m in messages.values() if m.type == "coordinator-value"}
    assert keys == values
    assert len(keys) == 25


def test_only_requests_have_listeners_and_retired_ones_remember_zookeeper(messages: dict[str, Message]) -> None:
    assert [m.name for m in messages.values() if bool(m.listeners) != (m.type == "request")] == []
    assert {m.api_key for m in messages.values() if "zkBroker" in m.listeners} == {4, 5, 6, 7}


def test_deprecated_versions_are_the_ones_that_4_0_dropped(messages: dict[str, Message]) -> None:
    found = [message for message in messages.values() if message.deprecated_versions]
    deprecated = {message.name.removesuffix("Request"): str(message.deprecated_versions) for message in found}
    assert deprecated.pop("Produce") == "0-2"
    assert deprecated.pop("Fetch") == "0-3"
    assert {deprecated.pop(name) for name in ("CreateTopics", "OffsetCommit", "OffsetForLeaderEpoch")} == {"0-1"}
    assert len(deprecated) == 13
    assert set(deprecated.values()) == {"0"}


def test_deprecated_versions_are_those_that_3_7_to_3_9_announced_and_newer_releases_do_not_serve(
    messages: dict[str, Message],
) -> None:
    announced: dict[int, set[int]] = {}
    newest = releases.served(releases.names()[-1])
    for release in ("3.7", "3.8", "3.9"):
        for key, api in releases.served(release, unstable=True).items():
            gone = [version for version in api.deprecated if key not in newest or version not in newest[key].versions]
            announced.setdefault(key, set()).update(gone)
    for message in messages.values():
        if message.type == "request":
            assert set(message.deprecated_versions) == announced.get(message.api_key, set()), message.name


def test_versions_not_to_be_used_are_for_brokers_alone_or_were_early_access(messages: dict[str, Message]) -> None:
    marked = {m.name: [str(mark.versions) for mark in m.do_not_use_versions] for m in messages.values()}
    assert {name: versions for name, versions in marked.items() if versions} == {
        "AddPartitionsToTxnRequest": ["4-5"],
        "OffsetForLeaderEpochRequest": ["0-2"],
        "ShareAcknowledgeRequest": ["0"],
        "ShareFetchRequest": ["0"],
        "ShareGroupDescribeRequest": ["0"],
        "ShareGroupHeartbeatRequest": ["0"],
    }
    early = releases.served("3.9", unstable=True)
    for key in (ApiKey.SHARE_FETCH, ApiKey.SHARE_GROUP_HEARTBEAT):
        assert early[key].unstable
        assert early[key].versions == Versions(0, 0)
        assert releases.served("4.1")[key].versions == Versions(1, 1)


def test_only_the_newest_producer_id_request_is_unstable(messages: dict[str, Message]) -> None:
    assert [m.name for m in messages.values() if m.latest_version_unstable] == ["InitProducerIdRequest"]
    assert messages["InitProducerIdRequest"].stable_versions == Versions(0, 5)


@pytest.mark.parametrize(
    ("message", "version", "path", "names"),
    [
        ("ProduceRequest", 2, "", "Acks TimeoutMs TopicData"),
        ("ProduceRequest", 3, "", "TransactionalId? Acks TimeoutMs TopicData"),
        ("ProduceRequest", 12, "TopicData", "Name PartitionData"),
        ("ProduceRequest", 13, "TopicData", "TopicId PartitionData"),
        ("FetchRequest", 0, "", "ReplicaId MaxWaitMs MinBytes Topics"),
        ("FetchRequest", 0, "Topics.Partitions", "Partition FetchOffset PartitionMaxBytes"),
        ("FetchResponse", 0, "", "Responses"),
        ("FetchResponse", 0, "Responses.Partitions", "PartitionIndex ErrorCode HighWatermark Records?"),
        ("ListOffsetsRequest", 0, "Topics.Partitions", "PartitionIndex Timestamp MaxNumOffsets"),
        ("ListOffsetsRequest", 1, "Topics.Partitions", "PartitionIndex Timestamp"),
        ("ListOffsetsResponse", 0, "Topics.Partitions", "PartitionIndex ErrorCode OldStyleOffsets"),
        ("ListOffsetsResponse", 1, "Topics.Partitions", "PartitionIndex ErrorCode Timestamp Offset"),
        ("CreateTopicsRequest", 0, "", "Topics timeoutMs"),
        ("DeleteTopicsRequest", 0, "", "TopicNames TimeoutMs"),
        ("OffsetCommitRequest", 0, "", "GroupId Topics"),
        ("OffsetCommitRequest", 0, "Topics.Partitions", "PartitionIndex CommittedOffset CommittedMetadata?"),
        (
            "OffsetCommitRequest",
            1,
            "Topics.Partitions",
            "PartitionIndex CommittedOffset CommitTimestamp CommittedMetadata?",
        ),
        ("DescribeConfigsResponse", 0, "Results.Configs", "Name Value? ReadOnly IsDefault IsSensitive"),
        ("DescribeConfigsResponse", 1, "Results.Configs", "Name Value? ReadOnly ConfigSource IsSensitive Synonyms"),
        ("AlterPartitionRequest", 1, "Topics", "TopicName Partitions"),
        ("AlterPartitionRequest", 2, "Topics", "TopicId Partitions"),
        ("AlterPartitionResponse", 1, "Topics", "TopicName Partitions"),
        ("AlterPartitionResponse", 2, "Topics", "TopicId Partitions"),
        ("UpdateMetadataRequest", 0, "LiveBrokers", "Id V0Host V0Port"),
        ("UpdateMetadataRequest", 8, "LiveBrokers", "Id Endpoints Rack?"),
        ("StopReplicaRequest", 0, "", "ControllerId ControllerEpoch DeletePartitions UngroupedPartitions"),
        ("ShareFetchRequest", 0, "Topics.Partitions", "PartitionIndex PartitionMaxBytes AcknowledgementBatches"),
        ("ShareFetchRequest", 1, "Topics.Partitions", "PartitionIndex AcknowledgementBatches"),
        ("UpdateFeaturesResponse", 1, "", "ThrottleTimeMs ErrorCode ErrorMessage? Results"),
        ("UpdateFeaturesResponse", 2, "", "ThrottleTimeMs ErrorCode ErrorMessage?"),
        ("RequestHeader", 0, "", "RequestApiKey RequestApiVersion CorrelationId"),
        ("RequestHeader", 2, "", "RequestApiKey RequestApiVersion CorrelationId ClientId?"),
        (
            "ApiVersionsResponse",
            3,
            "",
            "ErrorCode ApiKeys ThrottleTimeMs SupportedFeatures# FinalizedFeaturesEpoch# FinalizedFeatures# "
            "ZkMigrationReady#",
        ),
    ],
)
def test_a_version_at_the_edge_of_a_change_has_its_own_layout(
    messages: dict[str, Message], message: str, version: int, path: str, names: str
) -> None:
    assert layout(messages[message].root, version, path) == names.split()


def test_a_client_id_is_dropped_silently_from_the_oldest_header_and_never_compact(messages: dict[str, Message]) -> None:
    client_id = messages["RequestHeader"].fields[-1]
    assert client_id.name == "ClientId"
    assert client_id.ignorable
    assert client_id.flexible_versions == Versions.parse("none")


def test_every_field_the_broker_serves_says_what_it_means(documents: dict[str, dict[str, Any]]) -> None:
    silent = [
        (name + kind, field["name"])
        for name in SERVED
        for kind in ("Request", "Response")
        for field in fields_of(documents[name + kind])
        if not field.get("about", "").endswith(".")
    ]
    assert silent == []
