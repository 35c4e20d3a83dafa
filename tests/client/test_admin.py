"""Changing topics: sent to the controller, each refusal named."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from tagwire import messages
from tagwire.client import Admin, Client, NewTopic
from tagwire.errors import ConnectionLostError, Error, KafkaError, PartlyRefusedError

from .fake_broker import SERVED, Close, FakeCluster


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster(nodes=3) as three:
        yield three


def test_topics_are_created_listed_and_deleted(cluster: FakeCluster) -> None:
    with Admin(cluster.bootstrap) as admin:
        admin.create_topics([NewTopic("b", num_partitions=3, configs={"retention.ms": "-1"}), NewTopic("a")])
        assert [(topic.name, len(topic.partitions)) for topic in admin.list_topics()] == [("a", 1), ("b", 3)]
        asked = cluster.requests("CreateTopics")[0].topics[0]
        assert (asked.num_partitions, asked.replication_factor) == (3, 1)
        assert [(config.name, config.value) for config in asked.configs] == [("retention.ms", "-1")]
        admin.delete_topics(["a"])
        assert [topic.name for topic in admin.list_topics()] == ["b"]


@pytest.mark.parametrize("timeout", [float("inf"), 1e9])
def test_changes_may_take_as_long_as_they_like(cluster: FakeCluster, timeout: float) -> None:
    with Client(cluster.bootstrap, timeout=timeout) as client:
        Admin(client).create_topics("t")
    assert [request.timeout_ms for request in cluster.requests("CreateTopics")] == [2**31 - 1]


def test_changes_go_to_the_controller(cluster: FakeCluster) -> None:
    cluster.controller = 2
    with Admin(cluster.bootstrap) as admin:
        admin.create_topics([NewTopic("t")])
    assert [node for node, api, _, _ in cluster.seen if api == "CreateTopics"] == [2]


def test_a_controller_that_moved_is_found_again(cluster: FakeCluster) -> None:
    with Client(cluster.bootstrap) as client:
        Admin(client).create_topics([NewTopic("t")])
        cluster.controller = 1
        Admin(client).create_topics([NewTopic("u")])
    assert [node for node, api, _, _ in cluster.seen if api == "CreateTopics"] == [0, 0, 1]


def test_without_a_controller_any_broker_takes_changes(cluster: FakeCluster) -> None:
    kind = messages.MetadataResponse
    here = [kind.MetadataResponseBroker(node_id=0, host="127.0.0.1", port=cluster.brokers[0].port)]
    cluster.script("Metadata", lambda _: kind(brokers=here, controller_id=-1))
    with Admin(cluster.bootstrap) as admin:
        admin.create_topics([NewTopic("t")])
    assert "t" in cluster.topics


def test_only_asking_creates_nothing(cluster: FakeCluster) -> None:
    with Admin(cluster.bootstrap) as admin:
        admin.create_topics([NewTopic("t")], validate_only=True)
    assert cluster.topics == {}


def test_every_topic_that_was_refused_is_named(cluster: FakeCluster) -> None:
    cluster.topic("b")
    cluster.topic("c")
    with Admin(cluster.bootstrap) as admin:
        with pytest.raises(KafkaError) as caught:
            admin.create_topics([NewTopic("a"), NewTopic("b"), NewTopic("c")])
        assert caught.value.error is Error.TOPIC_ALREADY_EXISTS
        assert str(caught.value) == (
            "TOPIC_ALREADY_EXISTS (36): create topic 'b'; TOPIC_ALREADY_EXISTS (36): create topic 'c'"
        )
        assert "a" in cluster.topics


def test_what_was_refused_and_what_succeeded_are_told_apart(cluster: FakeCluster) -> None:
    cluster.topic("b")
    with Admin(cluster.bootstrap) as admin, pytest.raises(PartlyRefusedError) as caught:
        admin.create_topics([NewTopic("a"), NewTopic("b")])
    assert list(caught.value.succeeded) == ["a"]
    assert caught.value.refused["b"].error is Error.TOPIC_ALREADY_EXISTS
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), list(again.succeeded)) == (str(caught.value), ["a"])


def test_what_was_created_beside_a_refusal_is_waited_for(cluster: FakeCluster) -> None:
    cluster.topic("b")
    with Client(cluster.bootstrap) as client:
        client.metadata([])
        missing = messages.MetadataResponse.MetadataResponseTopic(name="a", error_code=Error.UNKNOWN_TOPIC_OR_PARTITION)
        known = messages.MetadataResponse.MetadataResponseBroker(
            node_id=0, host="127.0.0.1", port=cluster.brokers[0].port
        )
        late = messages.MetadataResponse(brokers=[known], controller_id=0, topics=[missing])
        cluster.script("Metadata", lambda _: late)
        with pytest.raises(KafkaError, match="create topic 'b'"):
            Admin(client).create_topics([NewTopic("a"), NewTopic("b")])
    asked = [[topic.name for topic in request.topics] for request in cluster.requests("Metadata")]
    assert asked == [[], ["a"], ["a"]]


@pytest.mark.parametrize("refused", [False, True])
def test_what_is_created_is_no_failure_though_nobody_tells_of_it_then(cluster: FakeCluster, refused: bool) -> None:
    cluster.topic("b")
    with Client(cluster.bootstrap, timeout=1) as client:
        client.metadata([])
        cluster.script("Metadata", *[Close()] * 100)
        if refused:
            with pytest.raises(KafkaError, match="create topic 'b'"):
                Admin(client).create_topics(["a", "b"])
        else:
            Admin(client).create_topics(["a"])
    assert "a" in cluster.topics


def test_deleting_what_does_not_exist_names_it(cluster: FakeCluster) -> None:
    with Admin(cluster.bootstrap) as admin, pytest.raises(KafkaError, match="delete topic 'missing'") as caught:
        admin.delete_topics(["missing"])
    assert caught.value.error is Error.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", [1, 3, 5, 6])
def test_topics_are_deleted_by_name_in_every_version(version: int) -> None:
    with FakeCluster(served={**SERVED, 20: (0, version)}) as cluster, Admin(cluster.bootstrap) as admin:
        cluster.topic("t")
        admin.delete_topics(["t"])
        assert cluster.topics == {}


def test_what_the_broker_says_is_told(cluster: FakeCluster) -> None:
    kind = messages.CreateTopicsResponse

    def refuse(message: Any) -> Any:
        said = "retention.ms must be at least -1"
        return kind(topics=[kind.CreatableTopicResult(name="t", error_code=Error.INVALID_CONFIG, error_message=said)])

    cluster.script("CreateTopics", refuse)
    with (
        Admin(cluster.bootstrap) as admin,
        pytest.raises(
            KafkaError, match=r"^INVALID_CONFIG \(40\): create topic 't': retention\.ms must be at least -1$"
        ),
    ):
        admin.create_topics([NewTopic("t", configs={"retention.ms": "-2"})])


def test_a_change_that_took_the_broker_too_long_is_not_sent_again(cluster: FakeCluster) -> None:
    kind = messages.CreateTopicsResponse

    def late(request: Any) -> Any:
        cluster.topic("t")
        return kind(topics=[kind.CreatableTopicResult(name="t", error_code=Error.REQUEST_TIMED_OUT)])

    cluster.script("CreateTopics", late)
    with Admin(cluster.bootstrap) as admin, pytest.raises(KafkaError, match="create topic 't'") as caught:
        admin.create_topics(["t"])
    assert caught.value.error is Error.REQUEST_TIMED_OUT
    assert len(cluster.requests("CreateTopics")) == 1


def test_a_change_whose_answer_is_lost_is_not_sent_again(cluster: FakeCluster) -> None:
    cluster.script("CreateTopics", Close())
    with Admin(cluster.bootstrap) as admin, pytest.raises(ConnectionLostError, match="CreateTopics v7"):
        admin.create_topics([NewTopic("t")])
    assert len(cluster.requests("CreateTopics")) == 1


def test_what_one_broker_has_changed_is_not_asked_for_again_when_another_is_away(cluster: FakeCluster) -> None:
    nodes, left = {"a": 0, "b": 1}, {"a", "b"}

    def coordinators(request: Any) -> Any:
        if left == {"b"}:
            cluster.brokers[1].start()
        kind = messages.FindCoordinatorResponse
        return kind(coordinators=[kind.Coordinator(key=key, node_id=nodes[key]) for key in request.coordinator_keys])

    def delete(request: Any) -> Any:
        kind = messages.DeleteGroupsResponse
        codes = {name: Error.NONE if name in left else Error.GROUP_ID_NOT_FOUND for name in request.groups_names}
        left.difference_update(codes)
        return kind(results=[kind.DeletableGroupResult(group_id=name, error_code=code) for name, code in codes.items()])

    cluster.serve({10: (4, 6), 42: (0, 2)}, {"FindCoordinator": coordinators, "DeleteGroups": delete})
    cluster.brokers[1].stop()
    with Admin(cluster.bootstrap) as admin:
        admin.delete_groups(["a", "b"])
    assert [request.groups_names for request in cluster.requests("DeleteGroups")] == [["a"], ["b"]]
