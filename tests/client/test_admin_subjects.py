"""Groups, offsets and configs: whom a request goes to, what comes of the response, what an old broker cannot do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tagwire import messages
from tagwire.client import (
    Admin,
    Append,
    Client,
    ConfigEntry,
    ConfigResource,
    GroupMember,
    LogDir,
    OffsetAndMetadata,
    Replica,
    Subtract,
    TopicPartition,
)
from tagwire.errors import (
    ConfigError,
    ConnectError,
    ConnectionLostError,
    Error,
    KafkaError,
    PartlyRefusedError,
    RemoteProtocolError,
    UnsupportedVersionError,
)
from tagwire.rpc.names import api_name
from tagwire.spec.api_keys import ApiKey

from .admin_responses import SERVED, Looked
from .fake_broker import Close, FakeCluster, Silence

AT = TopicPartition("t", 0)


@pytest.fixture
def looked() -> Looked:
    return Looked(node=1)


@pytest.fixture
def cluster(looked: Looked) -> Iterator[FakeCluster]:
    with FakeCluster(nodes=2) as two:
        two.topic("t", 2)
        two.serve(SERVED, looked.responses())
        yield two


@pytest.fixture
def admin(cluster: FakeCluster) -> Iterator[Admin]:
    with Client(cluster.bootstrap, timeout=5) as client, Admin(client) as one:
        yield one


def requested_nodes(cluster: FakeCluster, api: str) -> list[int]:
    return [node for node, name, _, _ in cluster.seen if name == api]


@pytest.mark.parametrize("highest", [9, 7, 1], ids=["several groups", "one group", "the oldest"])
def test_offsets_of_a_group_are_written_and_read_at_its_coordinator(
    cluster: FakeCluster, admin: Admin, highest: int
) -> None:
    cluster.served[9] = (1, highest)
    admin.alter_group_offsets("g", {AT: 5, ("t", 1): OffsetAndMetadata(6)})
    found = admin.group_offsets("g", [AT, ("t", 1)])
    assert {at: committed.offset for at, committed in found.items()} == {("t", 0): 5, ("t", 1): 6}
    assert requested_nodes(cluster, "OffsetCommit") == requested_nodes(cluster, "OffsetFetch") == [1]


@pytest.mark.parametrize(("highest", "waits"), [(9, True), (8, True), (7, True), (6, False)])
def test_offsets_that_an_open_transaction_would_replace_are_waited_for_where_brokers_know_how(
    cluster: FakeCluster, admin: Admin, highest: int, waits: bool
) -> None:
    cluster.served[9] = (1, highest)
    admin.group_offsets("g", AT)
    assert [request.require_stable for request in cluster.requests("OffsetFetch")] == [waits]


@pytest.mark.parametrize("highest", [6, 3])
def test_coordinators_are_asked_for_together_or_one_by_one(cluster: FakeCluster, admin: Admin, highest: int) -> None:
    cluster.served[10] = (0, highest)
    with pytest.raises(KafkaError, match=r"GROUP_ID_NOT_FOUND.*describe group 'h'"):
        admin.describe_groups(["g", "h"])
    assert len(cluster.requests("FindCoordinator")) == (1 if highest == 6 else 2)


def test_a_coordinator_that_is_not_there_yet_is_waited_for(cluster: FakeCluster, admin: Admin) -> None:
    kind = messages.FindCoordinatorResponse
    late = kind(coordinators=[kind.Coordinator(key="g", error_code=Error.COORDINATOR_NOT_AVAILABLE)])
    cluster.script("FindCoordinator", lambda _: late)
    admin.alter_group_offsets("g", {AT: 5})
    assert len(cluster.requests("FindCoordinator")) == 2


def test_a_coordinator_that_moved_is_looked_for_again(cluster: FakeCluster, admin: Admin) -> None:
    kind = messages.DeleteGroupsResponse
    moved = kind(results=[kind.DeletableGroupResult(group_id="g", error_code=Error.NOT_COORDINATOR)])
    cluster.script("DeleteGroups", lambda _: moved)
    admin.delete_groups(["g"])
    assert len(cluster.requests("FindCoordinator")) == len(cluster.requests("DeleteGroups")) == 2


def test_a_change_whose_answer_was_lost_is_not_sent_again(cluster: FakeCluster, admin: Admin) -> None:
    cluster.script("DeleteGroups", Close())
    with pytest.raises(ConnectionLostError):
        admin.delete_groups(["g"])
    assert len(cluster.requests("DeleteGroups")) == 1


def test_groups_of_all_brokers_are_listed_once(cluster: FakeCluster, admin: Admin) -> None:
    assert [found.group for found in admin.list_groups()] == ["g"]
    assert sorted(requested_nodes(cluster, "ListGroups")) == [0, 1]


LISTS: list[tuple[str, Any, Any, Any]] = [
    (
        "ListGroups",
        messages.ListGroupsResponse,
        messages.ListGroupsResponse(groups=[messages.ListGroupsResponse.ListedGroup(group_id="here")]),
        lambda admin: [each.group for each in admin.list_groups()],
    ),
    (
        "ListTransactions",
        messages.ListTransactionsResponse,
        messages.ListTransactionsResponse(
            transaction_states=[
                messages.ListTransactionsResponse.TransactionState(
                    transactional_id="here", producer_id=1, transaction_state="Empty"
                )
            ]
        ),
        lambda admin: [each.transactional_id for each in admin.list_transactions()],
    ),
]


@pytest.mark.parametrize(("api", "kind", "full", "list_all"), LISTS, ids=[each[0] for each in LISTS])
def test_what_other_brokers_list_is_told_where_one_refuses_or_is_away(
    cluster: FakeCluster, api: str, kind: Any, full: Any, list_all: Any
) -> None:
    cluster.serve({66: (0, 1)}, {})
    with Client(cluster.bootstrap, timeout=2) as client, Admin(client) as admin:
        cluster.script(api, lambda _: full, lambda _: kind(error_code=Error.CLUSTER_AUTHORIZATION_FAILED))
        with pytest.raises(PartlyRefusedError, match=r"list .* of broker [01]$") as caught:
            list_all(admin)
        assert caught.value.error is Error.CLUSTER_AUTHORIZATION_FAILED
        told = {*caught.value.succeeded, *caught.value.refused}
        assert (told, [len(each) for each in caught.value.succeeded.values()]) == ({0, 1}, [1])
        cluster.script(api, lambda _: full, Silence())
        with pytest.raises(PartlyRefusedError, match=r"list .* of broker [01]: ") as caught:
            list_all(admin)
        assert caught.value.error is Error.REQUEST_TIMED_OUT
        assert [len(each) for each in caught.value.succeeded.values()] == [1]
        cluster.script(api, *[lambda _: kind(error_code=Error.CLUSTER_AUTHORIZATION_FAILED)] * 2)
        with pytest.raises(KafkaError) as refused:
            list_all(admin)
        assert not isinstance(refused.value, PartlyRefusedError)


def lack(cluster: FakeCluster, api: str, *nodes: int) -> None:
    """Has some brokers not serve an API, as older ones do beside newer ones."""
    respond = cluster.respond

    def older(name: str, message: Any, node: int) -> Any:
        response = respond(name, message, node)
        if name == "ApiVersions" and node in nodes:
            response.api_keys = [each for each in response.api_keys if api_name(each.api_key) != api]
        return response

    cluster.respond = older  # type: ignore[method-assign]


@pytest.mark.parametrize(("api", "kind", "full", "list_all"), LISTS, ids=[each[0] for each in LISTS])
def test_what_other_brokers_list_is_told_where_one_is_too_old_to(
    cluster: FakeCluster, api: str, kind: Any, full: Any, list_all: Any
) -> None:
    cluster.serve({66: (0, 1)}, {api: lambda _: full})
    lack(cluster, api, 1)
    with Admin(cluster.bootstrap) as admin, pytest.raises(PartlyRefusedError, match=f"broker 1.*{api}") as caught:
        list_all(admin)
    assert caught.value.error is Error.UNSUPPORTED_VERSION
    assert (list(caught.value.refused), [len(each) for each in caught.value.succeeded.values()]) == ([1], [1])


@pytest.mark.parametrize(("api", "kind", "full", "list_all"), LISTS, ids=[each[0] for each in LISTS])
def test_a_listing_that_every_broker_is_too_old_for_says_so(
    cluster: FakeCluster, api: str, kind: Any, full: Any, list_all: Any
) -> None:
    cluster.serve({66: (0, 1)}, {})
    lack(cluster, api, 0, 1)
    with Admin(cluster.bootstrap) as admin, pytest.raises(UnsupportedVersionError, match=api):
        list_all(admin)


def test_what_was_changed_is_told_though_another_broker_is_too_old(cluster: FakeCluster) -> None:
    kind = messages.FindCoordinatorResponse
    nodes = {"g": 0, "h": 1}
    cluster.serve(
        {},
        {
            "FindCoordinator": lambda request: kind(
                coordinators=[kind.Coordinator(key=key, node_id=nodes[key]) for key in request.coordinator_keys]
            ),
            "DeleteGroups": lambda _: deleted("g"),
        },
    )
    lack(cluster, "DeleteGroups", 1)
    with Admin(cluster.bootstrap) as admin:
        with pytest.raises(PartlyRefusedError, match=r"UNSUPPORTED_VERSION .*delete group 'h': ") as caught:
            admin.delete_groups(["h", "g"])
        assert list(caught.value.succeeded) == ["g"]


def test_a_broker_that_hangs_keeps_no_other_from_being_described(cluster: FakeCluster) -> None:
    with Client(cluster.bootstrap, timeout=2) as client, Admin(client) as admin:
        client.metadata([])
        cluster.script("DescribeConfigs", Silence())
        with pytest.raises(PartlyRefusedError, match=r"TIMED_OUT.*describe configs of broker '[01]': ") as caught:
            admin.describe_configs([("broker", "0"), ("broker", "1")])
        assert (len(caught.value.succeeded), len(caught.value.refused)) == (1, 1)
        with pytest.raises(PartlyRefusedError, match="describe configs of broker '7': no broker 7") as caught:
            admin.describe_configs([("broker", "7"), ("broker", "1")])
        assert list(caught.value.succeeded) == [("broker", "1")]


def test_what_was_changed_is_told_though_the_response_of_another_broker_was_lost(cluster: FakeCluster) -> None:
    cluster.brokers[1].stop()

    def coordinators(request: Any) -> Any:
        kind = messages.FindCoordinatorResponse
        nodes = {"g": 0, "h": 1}
        return kind(coordinators=[kind.Coordinator(key=key, node_id=nodes[key]) for key in request.coordinator_keys])

    cluster.serve({}, {"FindCoordinator": coordinators, "DeleteGroups": lambda _: deleted("g")})
    with Client(cluster.bootstrap, timeout=2) as client, Admin(client) as admin:
        with pytest.raises(PartlyRefusedError, match=r"NETWORK_EXCEPTION .*delete group 'h': ") as caught:
            admin.delete_groups(["h", "g"])
        assert list(caught.value.succeeded) == ["g"]
        assert len(cluster.requests("DeleteGroups")) == 1


def test_what_is_gone_by_the_second_attempt_is_not_listed(cluster: FakeCluster, admin: Admin) -> None:
    kind = messages.ListTransactionsResponse
    cluster.serve({66: (0, 1)}, {})
    listed = kind.TransactionState(transactional_id="gone", producer_id=1, transaction_state="Empty")
    cluster.script(
        "ListTransactions",
        lambda _: kind(transaction_states=[listed]),
        lambda _: kind(error_code=Error.COORDINATOR_LOAD_IN_PROGRESS),
        lambda _: kind(transaction_states=[]),
        lambda _: kind(transaction_states=[]),
    )
    assert admin.list_transactions() == []


def test_offsets_that_are_gone_by_the_second_attempt_are_not_told(cluster: FakeCluster, admin: Admin) -> None:
    kind = messages.OffsetFetchResponse

    def told(*partitions: Any) -> Any:
        topics = [kind.OffsetFetchResponseTopics(name="t", partitions=list(partitions))]
        return lambda _: kind(groups=[kind.OffsetFetchResponseGroup(group_id="g", topics=topics)])

    def partition(index: int, offset: int, error: Error = Error.NONE) -> Any:
        return kind.OffsetFetchResponsePartitions(partition_index=index, committed_offset=offset, error_code=error)

    cluster.script(
        "OffsetFetch",
        told(partition(0, 5), partition(1, -1, Error.UNSTABLE_OFFSET_COMMIT)),
        told(partition(0, -1), partition(1, 7)),
    )
    assert admin.group_offsets("g", ["t"]) == {TopicPartition("t", 1): OffsetAndMetadata(7)}


def test_members_are_described_with_what_they_hold(admin: Admin) -> None:
    found = admin.describe_groups(["g"])["g"]
    assert (found.state, found.type, found.assignor, found.coordinator) == ("Stable", "classic", "range", 1)
    assert found.members[0] == GroupMember("m", "app", "/h", None, (AT,))
    assert found.members[1].assignment == ()  # what is no assignment is no error


def test_all_refusals_are_told_and_the_first_gives_the_code(cluster: FakeCluster, admin: Admin) -> None:
    kind = messages.DeleteGroupsResponse
    refusals = [
        kind.DeletableGroupResult(group_id="g", error_code=Error.NON_EMPTY_GROUP),
        kind.DeletableGroupResult(group_id="h", error_code=Error.GROUP_ID_NOT_FOUND),
    ]
    cluster.script("DeleteGroups", lambda _: kind(results=refusals))
    with pytest.raises(KafkaError, match=r"delete group 'g'; GROUP_ID_NOT_FOUND .* delete group 'h'") as caught:
        admin.delete_groups(["g", "h"])
    assert caught.value.error is Error.NON_EMPTY_GROUP


def test_a_refusal_is_told_though_time_ends_while_something_else_is_tried_again(cluster: FakeCluster) -> None:
    kind = messages.DeleteGroupsResponse

    def refuse(message: Any) -> Any:
        codes = {"g": Error.NON_EMPTY_GROUP, "h": Error.COORDINATOR_LOAD_IN_PROGRESS, "i": Error.NONE}
        return kind(
            results=[
                kind.DeletableGroupResult(group_id=group, error_code=codes[group]) for group in message.groups_names
            ]
        )

    cluster.script("DeleteGroups", *[refuse] * 99)
    with Client(cluster.bootstrap, timeout=1) as client, Admin(client) as admin:
        with pytest.raises(KafkaError, match=r"delete group 'g'; COORDINATOR_LOAD_.* delete group 'h'") as caught:
            admin.delete_groups(["g", "h", "i"])
        assert caught.value.error is Error.NON_EMPTY_GROUP


def deleted(*groups: str) -> Any:
    kind = messages.DeleteGroupsResponse
    return kind(results=[kind.DeletableGroupResult(group_id=group) for group in groups])


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (deleted(), "delete group 'g': missing in the response"),
        (deleted("h"), "delete group 'h': twice in a response, or not requested"),
        (deleted("g", "g"), "delete group 'g': twice in a response, or not requested"),
    ],
)
def test_an_answer_about_other_things_is_none(cluster: FakeCluster, admin: Admin, answer: Any, says: str) -> None:
    cluster.script("DeleteGroups", lambda _: answer)
    with pytest.raises(RemoteProtocolError, match=says):
        admin.delete_groups(["g"])


@pytest.mark.parametrize("groups", [[], ["h"], ["g", "g"]])
def test_no_offsets_are_taken_from_an_answer_about_other_groups(
    cluster: FakeCluster, admin: Admin, groups: list[str]
) -> None:
    kind = messages.OffsetFetchResponse
    answer = kind(groups=[kind.OffsetFetchResponseGroup(group_id=group) for group in groups])
    cluster.script("OffsetFetch", lambda _: answer)
    with pytest.raises(RemoteProtocolError, match="offsets of group"):
        admin.group_offsets("g")


def test_a_partition_that_the_answer_is_silent_about_has_not_no_offset(cluster: FakeCluster, admin: Admin) -> None:
    kind = messages.OffsetFetchResponse
    cluster.script("OffsetFetch", lambda _: kind(groups=[kind.OffsetFetchResponseGroup(group_id="g")]))
    with pytest.raises(RemoteProtocolError, match="offsets of group 'g': t-0 is missing in the response"):
        admin.group_offsets("g", [AT])


def test_configs_are_set_reset_and_described(looked: Looked, admin: Admin) -> None:
    admin.alter_configs({("topic", "t"): {"retention.ms": "5"}})
    found = admin.describe_configs([("topic", "t")])[ConfigResource("topic", "t")]
    assert found["retention.ms"] == ConfigEntry("retention.ms", "5", "topic")
    assert (found["secret"].value, found["secret"].is_sensitive) == (None, True)
    admin.alter_configs({("topic", "t"): {"retention.ms": "6"}}, validate_only=True)
    assert looked.configs == {"retention.ms": "5"}
    admin.alter_configs({("topic", "t"): {"retention.ms": None}})
    assert admin.describe_configs([("topic", "t")])["topic", "t"]["retention.ms"].is_default


def test_lists_are_added_to_and_taken_from(cluster: FakeCluster, admin: Admin) -> None:
    admin.alter_configs({("topic", "t"): {"a": Append("x,y"), "b": Subtract("z"), "c": "v", "d": None}})
    (altered,) = cluster.requests("IncrementalAlterConfigs")[0].resources
    found = [(config.name, config.config_operation, config.value) for config in altered.configs]
    assert found == [("a", 2, "x,y"), ("b", 3, "z"), ("c", 0, "v"), ("d", 1, None)]


def test_a_brokers_own_configs_are_asked_of_it(cluster: FakeCluster, admin: Admin) -> None:
    admin.describe_configs([("broker", "1"), ("broker", "0")])
    assert sorted(requested_nodes(cluster, "DescribeConfigs")) == [0, 1]
    with pytest.raises(ConfigError, match="a broker is named by its id"):
        admin.describe_configs([("broker", "x")])
    with pytest.raises(ConfigError, match="kind='user': allowed is topic, broker"):
        admin.describe_configs([("user", "x")])


def test_a_topic_that_nobody_knows_is_waited_for_as_long_as_anywhere_else(
    cluster: FakeCluster, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tagwire.client.admin.api_driver.UNKNOWN_TOPIC_PATIENCE", 0.0)
    kind = messages.DescribeConfigsResponse
    refused = kind.DescribeConfigsResult(error_code=3, resource_type=2, resource_name="nosuch", configs=[])
    cluster.script("DescribeConfigs", *[lambda _: kind(results=[refused])] * 5)
    with pytest.raises(KafkaError, match=r"UNKNOWN_TOPIC_OR_PARTITION .* describe configs of topic 'nosuch'"):
        admin.describe_configs([("topic", "nosuch")])
    assert len(requested_nodes(cluster, "DescribeConfigs")) == 1


def test_a_config_that_is_refused_is_told_with_the_reason(admin: Admin) -> None:
    with pytest.raises(KafkaError, match=r"INVALID_CONFIG .* alter configs of topic 't': no number"):
        admin.alter_configs({("topic", "t"): {"retention.ms": "bad"}})


def consumer_groups(*errors: int) -> Any:
    """What a broker says of group `g`, or of no group, by the protocol of KIP-848."""
    kind = messages.ConsumerGroupDescribeResponse
    held = kind.Assignment(topic_partitions=[kind.TopicPartitions(topic_name="t", partitions=[1])])
    members = [kind.Member(member_id="m", client_id="app", client_host="/h", assignment=held)]
    groups = [kind.DescribedGroup(group_id="g", error_code=error, group_state="Stable") for error in errors]
    for group in groups:
        group.members, group.assignor_name = members, "uniform"
    return kind(groups=groups)


def test_groups_of_both_protocols_are_described(cluster: FakeCluster, admin: Admin) -> None:
    cluster.serve({69: (0, 1)}, {"ConsumerGroupDescribe": lambda _: consumer_groups(0)})
    found = admin.describe_groups(["g"])["g"]
    assert (found.type, found.assignor, found.members[0].assignment) == ("consumer", "uniform", (("t", 1),))


def test_share_groups_are_described_where_nothing_else_knows_them(cluster: FakeCluster, admin: Admin) -> None:
    kind = messages.ShareGroupDescribeResponse
    held = kind.Assignment(topic_partitions=[kind.TopicPartitions(topic_name="t", partitions=[0, 1])])
    group = kind.DescribedGroup(group_id="h", group_state="Stable", assignor_name="simple")
    group.members = [kind.Member(member_id="m", client_id="app", client_host="/h", assignment=held)]
    cluster.serve({77: (0, 1)}, {"ShareGroupDescribe": lambda _: kind(groups=[group])})
    found = admin.describe_groups(["g", "h"])
    assert (found["g"].type, found["h"].type) == ("classic", "share")
    assert found["h"].members == (GroupMember("m", "app", "/h", None, (AT, TopicPartition("t", 1))),)
    assert [request.group_ids for request in cluster.requests("ShareGroupDescribe")] == [["h"]]


def test_streams_groups_are_described_with_the_partitions_that_their_active_tasks_read(
    cluster: FakeCluster, admin: Admin
) -> None:
    kind = messages.StreamsGroupDescribeResponse
    part = kind.Subtopology(
        subtopology_id="0", source_topics=["t"], repartition_source_topics=[kind.TopicInfo(name="again")]
    )
    group = kind.DescribedGroup(group_id="h", group_state="Stable", topology=kind.Topology(subtopologies=[part]))
    tasks, standby = (kind.TaskIds(subtopology_id="0", partitions=own) for own in ([0, 1], [2]))
    held = kind.Assignment(active_tasks=[tasks], standby_tasks=[standby])
    group.members = [kind.Member(member_id="m", client_id="app", client_host="/h", instance_id="i", assignment=held)]
    cluster.topic("again")
    cluster.serve({89: (0, 0)}, {"StreamsGroupDescribe": lambda _: kind(groups=[group])})
    found = admin.describe_groups(["g", "h"])
    assert (found["g"].type, found["h"].type, found["h"].assignor) == ("classic", "streams", "")
    held_partitions = (TopicPartition("again", 0), AT, TopicPartition("t", 1))
    assert found["h"].members == (GroupMember("m", "app", "/h", "i", held_partitions),)
    assert [request.group_ids for request in cluster.requests("StreamsGroupDescribe")] == [["h"]]


@pytest.mark.parametrize("error", [Error.GROUP_ID_NOT_FOUND, Error.UNSUPPORTED_VERSION])
def test_a_group_that_is_not_of_the_newer_protocol_is_asked_for_as_a_classic_one(
    cluster: FakeCluster, admin: Admin, error: Error
) -> None:
    cluster.serve({69: (0, 1)}, {"ConsumerGroupDescribe": lambda _: consumer_groups(error)})
    assert admin.describe_groups(["g"])["g"].type == "classic"


def test_transactions_that_are_not_open_have_not_been_open_for_long(cluster: FakeCluster, admin: Admin) -> None:
    kind = messages.ListTransactionsResponse
    states = [
        kind.TransactionState(transactional_id=state, producer_id=1, transaction_state=state)
        for state in ("Empty", "Ongoing", "PrepareAbort", "CompleteCommit")
    ]
    cluster.serve({66: (0, 1)}, {"ListTransactions": lambda _: kind(transaction_states=states)})
    assert [each.state for each in admin.list_transactions(longer_than_ms=0)] == ["Ongoing", "PrepareAbort"]
    assert len(admin.list_transactions()) == 4


def test_disks_are_described_broker_by_broker(cluster: FakeCluster, admin: Admin) -> None:
    kind = messages.DescribeLogDirsResponse
    held = kind.DescribeLogDirsPartition(partition_index=0, partition_size=9, offset_lag=2, is_future_key=True)
    results = [
        kind.DescribeLogDirsResult(
            log_dir="/a", topics=[kind.DescribeLogDirsTopic(name="t", partitions=[held])], total_bytes=5, usable_bytes=4
        ),
        kind.DescribeLogDirsResult(log_dir="/b", error_code=Error.KAFKA_STORAGE_ERROR),
    ]
    cluster.serve({35: (1, 4)}, {"DescribeLogDirs": lambda _: kind(results=results)})
    assert admin.describe_log_dirs([1], [AT]) == {
        1: [
            LogDir("/a", Error.NONE, 5, 4, {AT: Replica(9, offset_lag=2, is_future=True)}),
            LogDir("/b", Error.KAFKA_STORAGE_ERROR),
        ]
    }
    (asked,) = cluster.requests("DescribeLogDirs")[0].topics
    assert (asked.topic, asked.partitions) == ("t", [0])
    assert admin.describe_log_dirs().keys() == {0, 1}


def test_a_broker_that_is_away_keeps_no_disk_of_the_others_from_being_described(
    cluster: FakeCluster, admin: Admin
) -> None:
    kind = messages.DescribeLogDirsResponse
    cluster.serve({35: (1, 4)}, {"DescribeLogDirs": lambda _: kind(results=[kind.DescribeLogDirsResult(log_dir="/a")])})
    assert admin.describe_log_dirs() == {0: [LogDir("/a")], 1: [LogDir("/a")]}
    cluster.brokers[1].stop()
    assert admin.describe_log_dirs() == {0: [LogDir("/a")], 1: [LogDir("", Error.BROKER_NOT_AVAILABLE)]}
    with pytest.raises(PartlyRefusedError, match=r"log directories of broker 1: .*refused") as caught:
        admin.describe_log_dirs([0, 1])
    assert caught.value.succeeded == {0: [LogDir("/a")]}
    with pytest.raises(ConnectError):
        admin.describe_log_dirs(1)


def test_a_broker_that_closes_an_idle_connection_is_not_away(cluster: FakeCluster, admin: Admin) -> None:
    kind = messages.DescribeLogDirsResponse
    cluster.serve({35: (1, 4)}, {"DescribeLogDirs": lambda _: kind(results=[kind.DescribeLogDirsResult(log_dir="/a")])})
    cluster.script("DescribeLogDirs", Close())
    assert admin.describe_log_dirs() == {0: [LogDir("/a")], 1: [LogDir("/a")]}


FILTERS: list[tuple[int, int, Any, str]] = [
    (16, 3, lambda admin: admin.list_groups(states=["Empty"]), r"serves ListGroups 0-3; tagwire needs 4-5 \(Kafka 2"),
    (16, 4, lambda admin: admin.list_groups(types=["share"]), r"serves ListGroups 0-4; tagwire needs 5 \(Kafka 3\.8"),
    (66, 0, lambda admin: admin.list_transactions(longer_than_ms=9), r"serves ListTransactions 0; tagwire needs 1-2"),
]


@pytest.mark.parametrize(("api", "highest", "call", "says"), FILTERS)
def test_a_filter_that_a_broker_is_too_old_for_is_told_with_the_release_that_has_it(
    cluster: FakeCluster, admin: Admin, api: int, highest: int, call: Any, says: str
) -> None:
    cluster.served[api] = (0, highest)
    with pytest.raises(UnsupportedVersionError, match=says):
        call(admin)


OLD: list[tuple[int, Any, str]] = [
    (44, lambda admin: admin.alter_configs({("topic", "t"): {"a": "b"}}), "IncrementalAlterConfigs; tagwire needs 0-1"),
    (37, lambda admin: admin.create_partitions({"t": 9}), "CreatePartitions; tagwire needs 0-3"),
    (21, lambda admin: admin.delete_records({AT: 1}), "DeleteRecords; tagwire needs 0-2"),
    (42, lambda admin: admin.delete_groups(["g"]), "DeleteGroups; tagwire needs 0-3"),
    (66, lambda admin: admin.list_transactions(), "ListTransactions; tagwire needs 0-2"),
    (35, lambda admin: admin.describe_log_dirs(), "DescribeLogDirs; tagwire needs [01]-5"),
]


@pytest.mark.parametrize(("api", "call", "says"), OLD, ids=[str(row[0]) for row in OLD])
def test_what_a_broker_is_too_old_for_is_told_with_the_release_that_has_it(
    cluster: FakeCluster, admin: Admin, api: int, call: Any, says: str
) -> None:
    cluster.served.pop(api, None)
    with pytest.raises(UnsupportedVersionError, match=rf"does not serve {says} \(Kafka \d\.\d or newer\)"):
        call(admin)


def test_a_cluster_is_described_by_metadata_where_there_is_nothing_newer(admin: Admin) -> None:
    found = admin.describe_cluster()
    assert (found.cluster_id, sorted(found.brokers)) == ("fake", [0, 1])


def test_all_leaders_are_elected_though_a_topic_has_gone_meanwhile(cluster: FakeCluster, admin: Admin) -> None:
    cluster.topic("gone")
    kind = messages.ElectLeadersResponse

    def elected(message: Any) -> Any:
        codes = {"t": [Error.NONE, Error.ELECTION_NOT_NEEDED], "gone": [Error.UNKNOWN_TOPIC_OR_PARTITION]}
        results = [
            kind.ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    kind.PartitionResult(partition_id=index, error_code=codes[topic.topic][index], error_message=None)
                    for index in topic.partitions
                ],
            )
            for topic in message.topic_partitions
        ]
        return kind(replica_election_results=results)

    cluster.serve({ApiKey.ELECT_LEADERS: (0, 2)}, {"ElectLeaders": elected})
    assert admin.elect_leaders() == {AT: True, TopicPartition("t", 1): False}
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        admin.elect_leaders(partitions="gone")
