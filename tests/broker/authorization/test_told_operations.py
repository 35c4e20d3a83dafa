"""What clients are told that they may do, by a broker without an authorizer: all that there is, as Kafka has it."""

from __future__ import annotations

import pytest

from tagwire import messages

# As a broker of Kafka without an authorizer tells them: the bits of AclEntry.supportedOperations.
TOPIC, GROUP, CLUSTER = 0b1101_1111_1000, 0b1101_0100_1000, 0b1_1111_1010_0000
NOT_TOLD = -(2**31)


@pytest.mark.parametrize("asked", [True, False])
def test_metadata_tells_all_operations_to_whoever_asks(wire, asked):
    wire.create("t")
    response = wire.ask(
        messages.MetadataRequest(
            topics=None, include_topic_authorized_operations=asked, include_cluster_authorized_operations=asked
        ),
        10,
    )
    (topic,) = response.topics
    told = (topic.topic_authorized_operations, response.cluster_authorized_operations)
    assert told == ((TOPIC, CLUSTER) if asked else (NOT_TOLD, NOT_TOLD))


@pytest.mark.parametrize("asked", [True, False])
def test_describe_cluster_tells_all_operations_to_whoever_asks(wire, asked):
    request = messages.DescribeClusterRequest(include_cluster_authorized_operations=asked)
    assert wire.ask(request, 1).cluster_authorized_operations == (CLUSTER if asked else NOT_TOLD)


def test_describe_topic_partitions_always_tells_them(wire):
    wire.create("t")
    request = messages.DescribeTopicPartitionsRequest(topics=[], response_partition_limit=1)
    assert [topic.topic_authorized_operations for topic in wire.ask(request, 0).topics] == [TOPIC]


def test_describe_groups_tells_them_of_groups_that_are_there(wire):
    # Before version 6 a group that is not there is a dead one, without an error.
    for version, told in ((5, GROUP), (6, NOT_TOLD)):
        request = messages.DescribeGroupsRequest(groups=["g"], include_authorized_operations=True)
        (group,) = wire.ask(request, version).groups
        assert group.authorized_operations == told


def test_consumer_group_describe_tells_nothing_of_a_group_that_is_missing(wire):
    request = messages.ConsumerGroupDescribeRequest(group_ids=["g"], include_authorized_operations=True)
    (group,) = wire.ask(request, 1).groups
    assert (group.error_code, group.authorized_operations) == (69, NOT_TOLD)
