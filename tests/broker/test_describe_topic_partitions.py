"""DescribeTopicPartitions over a socket."""

from __future__ import annotations

import pytest

from tagwire import messages
from tagwire.broker import Broker
from tagwire.errors import Error

Request = messages.DescribeTopicPartitionsRequest


@pytest.fixture
def topics(wire):
    for name, partitions in (("a", 3), ("b", 2), ("c", 4)):
        wire.create(name, partitions)


def ask(wire, *names, limit=2000, cursor=None):
    at = None if cursor is None else Request.Cursor(topic_name=cursor[0], partition_index=cursor[1])
    topics = [Request.TopicRequest(name=name) for name in names]
    return wire.ask(Request(topics=topics, response_partition_limit=limit, cursor=at), 0)


def told(response):
    return {topic.name: [partition.partition_index for partition in topic.partitions] for topic in response.topics}


def at(response):
    cursor = response.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


def test_all_topics_are_told_by_name_where_none_is_requested(wire, topics):
    response = ask(wire)
    assert list(told(response).items()) == [("a", [0, 1, 2]), ("b", [0, 1]), ("c", [0, 1, 2, 3])]
    assert at(response) is None


def test_a_topic_is_told_as_by_metadata(wire, topics):
    (topic,) = ask(wire, "c").topics
    (same,) = (one for one in wire.metadata().topics if one.name == "c")
    assert (topic.error_code, topic.topic_id, topic.is_internal) == (0, same.topic_id, False)
    for partition, other in zip(topic.partitions, same.partitions, strict=True):
        for field in ("error_code", "partition_index", "leader_id", "leader_epoch", "replica_nodes", "isr_nodes"):
            assert getattr(partition, field) == getattr(other, field)
        assert (partition.eligible_leader_replicas, partition.last_known_elr, partition.offline_replicas) == (
            [],
            [],
            [],
        )


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 9])
def test_cursors_lead_through_all_partitions_a_few_at_a_time(wire, topics, limit):
    found, cursor, requests = {}, None, 0
    while requests == 0 or cursor is not None:
        response = ask(wire, limit=limit, cursor=cursor)
        assert sum(map(len, told(response).values())) <= limit
        for name, partitions in told(response).items():
            found.setdefault(name, []).extend(partitions)
        cursor, requests = at(response), requests + 1
    assert found == {"a": [0, 1, 2], "b": [0, 1], "c": [0, 1, 2, 3]}
    assert requests == -(-9 // limit)


def test_a_limit_below_one_is_taken_for_one(wire, topics):
    response = ask(wire, "b", limit=-5)
    assert (told(response), at(response)) == ({"b": [0]}, ("b", 1))


def test_no_response_has_more_partitions_than_the_broker_allows(wire, topics, monkeypatch):
    monkeypatch.setattr("tagwire.broker.handlers.describe_topic_partitions.MOST_PARTITIONS", 4)
    response = ask(wire, limit=2**31 - 1)
    assert (told(response), at(response)) == ({"a": [0, 1, 2], "b": [0]}, ("b", 1))


def test_what_is_requested_and_not_there_is_told_with_its_error(wire, topics):
    response = ask(wire, "b", "gone", "no such name!", "b")
    assert {topic.name: topic.error_code for topic in response.topics} == {
        "b": Error.NONE,
        "gone": Error.UNKNOWN_TOPIC_OR_PARTITION,
        "no such name!": Error.INVALID_TOPIC_EXCEPTION,
    }


def test_a_cursor_may_point_to_a_topic_that_is_gone_meanwhile(wire, topics):
    assert list(told(ask(wire, cursor=("aa", 7)))) == ["b", "c"]


def test_a_cursor_behind_the_last_partition_goes_on_with_the_next_topic(wire, topics):
    assert told(ask(wire, cursor=("b", 9))) == {"b": [], "c": [0, 1, 2, 3]}


@pytest.mark.parametrize("cursor", [("a", -1), ("c", 0)])
def test_a_cursor_that_cannot_be_is_refused(wire, topics, cursor):
    response = ask(wire, "a", "b", cursor=cursor)
    assert {topic.error_code for topic in response.topics} == {Error.INVALID_REQUEST}


def test_releases_that_did_not_have_it_do_not_serve_it(tmp_path, connect):
    for release, served in (("2.8", False), ("3.9", True)):
        with Broker(tmp_path / release, as_release=release) as broker:
            versions = connect(broker.bootstrap).ask(messages.ApiVersionsRequest(), 0)
            assert (Request.api_key in {api.api_key for api in versions.api_keys}) == served
