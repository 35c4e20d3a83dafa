"""The versions that both ends hold to are those at which the catalog's fields begin."""

from __future__ import annotations

from typing import Any

import pytest

from tagwire import messages
from tagwire.rpc import version_gates


@pytest.mark.parametrize(
    ("version", "message", "path"),
    [
        (version_gates.PRODUCE_TOPIC_IDS, messages.ProduceRequest, ["topic_data", "topic_id"]),
        (version_gates.FETCH_TOPIC_IDS, messages.FetchRequest, ["topics", "topic_id"]),
        (version_gates.DELETE_TOPICS_IDS, messages.DeleteTopicsRequest, ["topics"]),
        (version_gates.DELETE_TOPICS_IDS, messages.DeleteTopicsRequest, ["topics", "topic_id"]),
        (version_gates.FIND_COORDINATOR_KEYS, messages.FindCoordinatorRequest, ["coordinator_keys"]),
        (version_gates.OFFSET_FETCH_GROUPS, messages.OffsetFetchRequest, ["groups"]),
        (version_gates.PRODUCE_RECORD_BATCHES, messages.ProduceRequest, ["transactional_id"]),
        (version_gates.END_TXN_TRANSACTION_V2, messages.EndTxnResponse, ["producer_epoch"]),
        (
            version_gates.LIST_OFFSETS_LEADER_EPOCH,
            messages.ListOffsetsResponse,
            ["topics", "partitions", "leader_epoch"],
        ),
        (version_gates.JOIN_GROUP_REBALANCE_TIMEOUT, messages.JoinGroupRequest, ["rebalance_timeout_ms"]),
        (version_gates.JOIN_GROUP_SKIP_ASSIGNMENT, messages.JoinGroupResponse, ["skip_assignment"]),
        (version_gates.LEAVE_GROUP_MEMBERS, messages.LeaveGroupRequest, ["members"]),
        (version_gates.API_VERSIONS_CLIENT_SOFTWARE, messages.ApiVersionsRequest, ["client_software_name"]),
        (version_gates.LIST_CONFIG_RESOURCES_TYPES, messages.ListConfigResourcesRequest, ["resource_types"]),
    ],
)
def test_what_begins_with_a_version_is_a_field_that_begins_with_it(version: int, message: Any, path: list[str]) -> None:
    struct = message.spec.root
    for name in path:
        field = next(field for field in struct.fields if field.attribute == name)
        struct = field.struct
    assert field.versions.lowest == version


@pytest.mark.parametrize(
    ("version", "message", "path"),
    [
        (version_gates.METADATA_NULL_IS_ALL_TOPICS, messages.MetadataRequest, ["topics"]),
        (version_gates.METADATA_NULLABLE_TOPIC_NAME, messages.MetadataResponse, ["topics", "name"]),
        (version_gates.JOIN_GROUP_NULLABLE_PROTOCOL, messages.JoinGroupResponse, ["protocol_name"]),
    ],
)
def test_what_may_be_null_from_a_version_on_is_nullable_from_it_on(version: int, message: Any, path: list[str]) -> None:
    struct = message.spec.root
    for name in path:
        field = next(field for field in struct.fields if field.attribute == name)
        struct = field.struct
    assert field.nullable_versions.lowest == version


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (version_gates.PRODUCE_TAGGED_FIELDS, messages.ProduceRequest),
        (version_gates.FETCH_TAGGED_FIELDS, messages.FetchResponse),
    ],
)
def test_tagged_fields_begin_with_the_flexible_versions(version: int, message: Any) -> None:
    assert message.spec.flexible_versions.lowest == version
