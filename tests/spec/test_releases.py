"""The table of Kafka's releases says what each release serves on its brokers' listeners."""

from __future__ import annotations

import pytest

from tagwire.errors import ConfigError
from tagwire.messages import request
from tagwire.spec import Versions, releases
from tagwire.spec.api_keys import API_NAMES
from tagwire.spec.releases import ApiRange

# What brokers of KRaft clusters serve, by the specs inside its client jars: deprecated versions follow the slash, a
# star marks an unstable highest version. 4.0 is 4.0.1 and later.
NEWEST = """
key name 3.9 4.0.1 4.1 4.2 4.3 4.4
0 Produce 0-11/0-2 3-12 3-13 3-13 3-13 3-13
1 Fetch 0-17/0-3 4-17 4-18 4-18 4-18 4-18
2 ListOffsets 0-9/0 1-10 1-10 1-11 1-11 1-11
3 Metadata 0-12 0-13 0-13 0-13 0-13 0-13
8 OffsetCommit 0-9/0-1 2-9 2-10* 2-10 2-10 2-10
9 OffsetFetch 0-9/0 1-9 1-10* 1-10 1-10 1-10
10 FindCoordinator 0-6 0-6 0-6 0-6 0-6 0-6
11 JoinGroup 0-9 0-9 0-9 0-9 0-9 0-9
12 Heartbeat 0-4 0-4 0-4 0-4 0-4 0-4
13 LeaveGroup 0-5 0-5 0-5 0-5 0-5 0-5
14 SyncGroup 0-5 0-5 0-5 0-5 0-5 0-5
15 DescribeGroups 0-5 0-6 0-6 0-6 0-6 0-6
16 ListGroups 0-5 0-5 0-5 0-5 0-5 0-5
17 SaslHandshake 0-1 0-1 0-1 0-1 0-1 0-1
18 ApiVersions 0-4 0-4 0-4 0-4 0-4 0-5
19 CreateTopics 0-7/0-1 2-7 2-7 2-7 2-7 2-7
20 DeleteTopics 0-6/0 1-6 1-6 1-6 1-6 1-6
21 DeleteRecords 0-2 0-2 0-2 0-2 0-2 0-2
22 InitProducerId 0-5 0-5 0-6* 0-6* 0-6* 0-6*
23 OffsetForLeaderEpoch 0-4/0-1 2-4 2-4 2-4 2-4 2-4
24 AddPartitionsToTxn 0-5 0-5 0-5 0-5 0-5 0-5
25 AddOffsetsToTxn 0-4 0-4 0-4 0-4 0-4 0-4
26 EndTxn 0-4 0-5 0-5 0-5 0-5 0-5
27 WriteTxnMarkers 0-1 1 1 1-2 1-2 1-2
28 TxnOffsetCommit 0-4 0-5 0-5 0-5 0-5 0-6
29 DescribeAcls 0-3/0 1-3 1-3 1-3 1-3 1-3
30 CreateAcls 0-3/0 1-3 1-3 1-3 1-3 1-3
31 DeleteAcls 0-3/0 1-3 1-3 1-3 1-3 1-3
32 DescribeConfigs 0-4/0 1-4 1-4 1-4 1-4 1-4
33 AlterConfigs 0-2 0-2 0-2 0-2 0-2 0-2
34 AlterReplicaLogDirs 0-2/0 1-2 1-2 1-2 1-2 1-2
35 DescribeLogDirs 0-4/0 1-4 1-4 1-4 1-5 1-5
36 SaslAuthenticate 0-2 0-2 0-2 0-2 0-2 0-2
37 CreatePartitions 0-3 0-3 0-3 0-3 0-3 0-3
38 CreateDelegationToken 0-3/0 1-3 1-3 1-3 1-3 1-3
39 RenewDelegationToken 0-2/0 1-2 1-2 1-2 1-2 1-2
40 ExpireDelegationToken 0-2/0 1-2 1-2 1-2 1-2 1-2
41 DescribeDelegationToken 0-3/0 1-3 1-3 1-3 1-3 1-3
42 DeleteGroups 0-2 0-2 0-2 0-2 0-2 0-3
43 ElectLeaders 0-2 0-2 0-2 0-2 0-2 0-2
44 IncrementalAlterConfigs 0-1 0-1 0-1 0-1 0-1 0-1
45 AlterPartitionReassignments 0 0 0-1 0-1 0-1 0-1
46 ListPartitionReassignments 0 0 0 0 0 0
47 OffsetDelete 0 0 0 0 0 0
48 DescribeClientQuotas 0-1 0-1 0-1 0-1 0-1 0-1
49 AlterClientQuotas 0-1 0-1 0-1 0-1 0-1 0-1
50 DescribeUserScramCredentials 0 0 0 0 0 0
51 AlterUserScramCredentials 0 0 0 0 0 0
55 DescribeQuorum 0-2 0-2 0-2 0-2 0-2 0-2
57 UpdateFeatures 0-1 0-2 0-2 0-2 0-2 0-2
60 DescribeCluster 0-1 0-2 0-2 0-2 0-2 0-2
61 DescribeProducers 0 0 0 0 0 0
64 UnregisterBroker 0 0 0 0 0 0
65 DescribeTransactions 0 0 0 0 0 0
66 ListTransactions 0-1 0-1 0-2 0-2 0-2 0-2
68 ConsumerGroupHeartbeat 0 0-1 0-1 0-1 0-1 0-1
69 ConsumerGroupDescribe 0 0-1 0-1 0-1 0-1 0-1
71 GetTelemetrySubscriptions 0 0 0 0 0 0
72 PushTelemetry 0 0 0 0 0 0
74 ListConfigResources 0 0 0-1 0-1 0-1 0-1
75 DescribeTopicPartitions 0 0 0 0 0 0
76 ShareGroupHeartbeat 0* 0* 1 1 1 1
77 ShareGroupDescribe 0* 0* 1 1 1 1
78 ShareFetch 0* 0* 1 1-2 1-2 1-2
79 ShareAcknowledge 0* 0* 1 1-2 1-2 1-2
80 AddRaftVoter 0 0 0 0-1 0-1 0-1
81 RemoveRaftVoter 0 0 0 0 0 0
83 InitializeShareGroupState 0* 0* 0 0 0 0
84 ReadShareGroupState 0* 0* 0 0 0 0
85 WriteShareGroupState 0* 0* 0 0-1 0-1 0-1
86 DeleteShareGroupState 0* 0* 0 0 0 0
87 ReadShareGroupStateSummary 0* 0* 0 0-1 0-1 0-1
88 StreamsGroupHeartbeat none none 0* 0 0 0-1
89 StreamsGroupDescribe none none 0* 0 0 0-1
90 DescribeShareGroupOffsets none none 0 0-1 0-1 0-1
91 AlterShareGroupOffsets none none 0 0 0 0
92 DeleteShareGroupOffsets none none 0 0 0 0
93 StreamsGroupTopologyDescriptionUpdate none none none none none 0
94 UnregisterController none none none none none 0
"""

# What only brokers of ZooKeeper clusters serve.
ZOOKEEPER_ONLY = """
4 LeaderAndIsr 0-7
5 StopReplica 0-4
6 UpdateMetadata 0-8
7 ControlledShutdown 0-3
56 AlterPartition 0-3
58 Envelope 0
67 AllocateProducerIds 0
"""

# The releases whose jars carry no specs.
OLDEST = """
key name 0.8.2 0.9.0 0.10.0
0 Produce 0 0-1 0-2
1 Fetch 0 0-1 0-2
2 ListOffsets 0 0 0
3 Metadata 0 0 0-1
4 LeaderAndIsr 0 0 0
5 StopReplica 0 0 0
6 UpdateMetadata 0 0-1 0-2
7 ControlledShutdown 0 0-1 0-1
8 OffsetCommit 0-1 0-2 0-2
9 OffsetFetch 0-1 0-1 0-1
10 FindCoordinator 0 0 0
11 JoinGroup none 0 0
12 Heartbeat none 0 0
13 LeaveGroup none 0 0
14 SyncGroup none 0 0
15 DescribeGroups none 0 0
16 ListGroups none 0 0
17 SaslHandshake none none 0
18 ApiVersions none none 0
"""

NAMES = "0.8.2 0.9.0 0.10.0 2.8 3.0 3.1 3.2 3.3 3.4 3.5 3.6 3.7 3.8 3.9 4.0.0 4.0.1 4.1 4.2 4.3 4.4"


def column(table: str, release: str) -> dict[int, str]:
    """One release's column of a table: API key -> how its range is written."""
    header, *lines = (line.split() for line in table.strip().splitlines())
    place = header.index(release)
    assert [line[1] for line in lines] == [API_NAMES[int(line[0])] for line in lines]
    return {int(line[0]): line[place] for line in lines if line[place] != "none"}


def written(api: ApiRange) -> str:
    """A range as the tables above write it."""
    deprecated = f"/{api.deprecated}" if api.deprecated else ""
    return f"{api.versions}{deprecated}" + "*" * api.unstable


def ranges(apis: dict[int, ApiRange]) -> dict[int, str]:
    return {key: written(api) for key, api in apis.items()}


@pytest.mark.parametrize("release", ["3.9", "4.0.1", "4.1", "4.2", "4.3", "4.4"])
def test_a_release_knows_what_its_table_says(release: str) -> None:
    assert ranges(releases.served(release, unstable=True)) == column(NEWEST, release)


@pytest.mark.parametrize("release", ["0.8.2", "0.9.0", "0.10.0"])
@pytest.mark.parametrize("listener", ["broker", "zkBroker"])
def test_a_release_before_listeners_had_names_serves_the_same_on_both(
    release: str, listener: releases.Listener
) -> None:
    assert ranges(releases.served(release, listener=listener)) == column(OLDEST, release)


def test_zookeeper_brokers_serve_what_zookeeper_controllers_ask() -> None:
    kraft = ranges(releases.served("3.9"))
    zookeeper = ranges(releases.served("3.9", listener="zkBroker"))
    rows = [line.split() for line in ZOOKEEPER_ONLY.strip().splitlines()]
    assert {key: zookeeper[key] for key in zookeeper.keys() - kraft.keys()} == {int(row[0]): row[2] for row in rows}
    assert {API_NAMES[key] for key in kraft.keys() - zookeeper.keys()} == {
        "DescribeQuorum",
        "UnregisterBroker",
        "GetTelemetrySubscriptions",
        "PushTelemetry",
        "ListConfigResources",
        "DescribeTopicPartitions",
        "AddRaftVoter",
        "RemoveRaftVoter",
    }


def test_the_preview_of_kraft_in_2_8_lacked_transactions_that_zookeeper_brokers_served() -> None:
    transactions = {22, 24, 25, 26, 28}
    assert releases.served("2.8").keys().isdisjoint(transactions)
    assert releases.served("2.8", listener="zkBroker").keys() >= transactions
    assert releases.served("3.0").keys() >= transactions


def test_either_kind_of_broker_is_what_clients_found_at_one_of_them() -> None:
    either, kraft, zookeeper = (releases.served("2.8", listener=kind) for kind in ("either", "broker", "zkBroker"))
    assert either.keys() == kraft.keys() | (zookeeper.keys() & releases.served("4.4").keys())
    assert list(either) == sorted(either)
    assert all(api in (kraft.get(key), zookeeper.get(key)) for key, api in either.items())
    assert releases.served("4.4", listener="either") == releases.served("4.4")


def test_releases_stand_in_order_and_differing_patches_apart() -> None:
    assert releases.names() == NAMES.split()


def test_joining_a_group_the_oldest_way_was_dropped_in_4_0_0_alone() -> None:
    join = {release: releases.served(release)[11].versions for release in ("3.9", "4.0.0", "4.0.1", "4.1")}
    assert join == {"3.9": Versions(0, 9), "4.0.0": Versions(2, 9), "4.0.1": Versions(0, 9), "4.1": Versions(0, 9)}
    ours, theirs = (releases.served(release) for release in ("4.0.0", "4.0.1"))
    assert [key for key in ours if ours[key] != theirs[key]] == [11]


def test_a_published_version_means_the_row_it_belongs_to() -> None:
    assert releases.patches("3.9") == ["3.9.0", "3.9.1", "3.9.2"]
    assert releases.served("3.9.1") == releases.served("3.9")
    assert releases.served("4.0.2") == releases.served("4.0.1")
    every = [version for name in releases.names() for version in releases.patches(name)]
    assert len(every) == len(set(every)) >= 49


def test_a_line_means_its_newest_patch() -> None:
    assert releases.row_of("4.0") == "4.0.1"
    assert releases.patches("4.0")[-1] == "4.0.2"
    assert releases.served("4.0") == releases.served("4.0.2") != releases.served("4.0.0")
    assert releases.advertised("4.0") == releases.advertised("4.0.2")


@pytest.mark.parametrize(
    ("release", "near"),
    [
        ("4.5", "4.4.0"),
        ("3.9.7", "3.9.2 and 4.0.0"),
        ("2.5", "0.10.0.1 and 2.8.0"),
        ("4", "3.9.2 and 4.0.0"),
        ("0.10", "0.9.0.1 and 0.10.0.0"),
        ("trunk", "4.4.0"),
    ],
)
def test_what_is_near_to_an_unknown_release_is_named(release: str, near: str) -> None:
    with pytest.raises(ConfigError, match=f"nearest: {near}$"):
        releases.served(release)


@pytest.mark.parametrize("release", ["4", "2.7", "3.9.99", "", "latest"])
def test_an_unknown_release_is_an_error_that_names_the_known_ones(release: str) -> None:
    with pytest.raises(ConfigError, match=r"0\.8\.2, .*, 4\.0\.0, 4\.0\.1, 4\.1") as caught:
        releases.served(release)
    assert repr(release) in str(caught.value)


def test_no_zookeeper_broker_is_left_in_4_0_0() -> None:
    with pytest.raises(ConfigError, match=r"4\.0\.0 has no such brokers"):
        releases.served("4.0.0", listener="zkBroker")


def test_an_unknown_listener_is_an_error() -> None:
    with pytest.raises(ConfigError, match="broker, zkBroker"):
        releases.served("3.9", listener="controller")  # type: ignore[arg-type]


def test_unstable_versions_are_served_only_where_they_are_enabled() -> None:
    assert releases.served("4.1")[22] == ApiRange(0, 5, unstable=True)
    assert releases.served("4.1", unstable=True)[22] == ApiRange(0, 6, unstable=True)
    share_group_heartbeat = 76
    assert share_group_heartbeat not in releases.served("3.9")
    assert releases.served("3.9", unstable=True)[share_group_heartbeat] == ApiRange(0, 0, unstable=True)


@pytest.mark.parametrize("release", ["4.0.0", "4.0.1", "4.1", "4.2", "4.3", "4.4"])
def test_brokers_that_refuse_the_oldest_produce_requests_advertise_them_all_the_same(release: str) -> None:
    real, listed = releases.served(release), releases.advertised(release)
    assert real[0].lowest == 3
    assert listed[0].versions == Versions(0, real[0].highest)
    assert {key: api for key, api in listed.items() if key != 0} == {k: api for k, api in real.items() if k != 0}


def test_before_4_0_brokers_advertise_what_they_serve() -> None:
    for release in releases.names():
        if release.startswith(("2.", "3.")):
            assert releases.advertised(release) == releases.served(release), release


def test_0_10_0_did_not_advertise_the_oldest_shutdown_request() -> None:
    assert releases.served("0.10.0")[7].versions == Versions(0, 1)
    assert releases.advertised("0.10.0")[7].versions == Versions(1, 1)


def test_releases_before_the_api_existed_advertise_nothing() -> None:
    assert releases.advertised("0.8.2") == releases.advertised("0.9.0") == {}


def test_the_answer_is_the_callers_own() -> None:
    releases.served("3.9").clear()
    releases.served("3.9", unstable=True).clear()
    releases.advertised("3.9").clear()
    assert len(releases.served("3.9")) > 60


def test_the_catalog_has_every_version_that_any_release_serves() -> None:
    for release in releases.names():
        for listener in ("broker", "zkBroker"):
            if listener == "zkBroker" and release.startswith("4."):
                continue
            for key, api in releases.served(release, listener=listener, unstable=True).items():  # type: ignore[arg-type]
                assert request(key).valid_versions.covers(api.versions), (release, API_NAMES[key])
