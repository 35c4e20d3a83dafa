"""The versions that both ends hold to are those at which the catalog's fields begin, and stand in one file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tagwire
from tagwire import messages
from tagwire.rpc import version_gates

SOURCE = Path(tagwire.__file__).parent
ROOMS = ("broker", "client", "rpc", "capture", "cli", "spark")


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
        (version_gates.LIST_GROUPS_STATES, messages.ListGroupsRequest, ["states_filter"]),
        (version_gates.LIST_GROUPS_TYPES, messages.ListGroupsRequest, ["types_filter"]),
        (version_gates.LIST_TRANSACTIONS_DURATION, messages.ListTransactionsRequest, ["duration_filter"]),
        (version_gates.DESCRIBE_CLUSTER_FENCED, messages.DescribeClusterRequest, ["include_fenced_brokers"]),
        (version_gates.ELECT_LEADERS_UNCLEAN, messages.ElectLeadersRequest, ["election_type"]),
        (version_gates.ELECT_LEADERS_ERROR, messages.ElectLeadersResponse, ["error_code"]),
        (
            version_gates.ALTER_PARTITION_REASSIGNMENTS_SAME_FACTOR,
            messages.AlterPartitionReassignmentsRequest,
            ["allow_replication_factor_change"],
        ),
        (version_gates.UPDATE_FEATURES_UPGRADE_TYPE, messages.UpdateFeaturesRequest, ["validate_only"]),
        (version_gates.INIT_PRODUCER_ID_BUMP, messages.InitProducerIdRequest, ["producer_epoch"]),
        (
            version_gates.CONSUMER_GROUP_HEARTBEAT_PATTERN,
            messages.ConsumerGroupHeartbeatRequest,
            ["subscribed_topic_regex"],
        ),
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


def is_api_version(node: ast.expr) -> bool:
    """Whether this is the version of a request or of a connection: `call.version`, `connection.version(...)`."""
    found = node.func if isinstance(node, ast.Call) else node
    return isinstance(found, ast.Attribute) and found.attr == "version"


def thresholds() -> Iterator[tuple[str, ast.expr]]:
    """What versions are compared with, by more or less, and where."""
    for path in (path for room in ROOMS for path in (SOURCE / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
                sides = (node.left, node.comparators[0])
                if any(map(is_api_version, sides)):
                    yield f"{path.relative_to(SOURCE)}:{node.lineno}", sides[is_api_version(sides[0])]


def test_versions_are_compared_with_version_gates_and_not_with_numbers() -> None:
    found = list(thresholds())
    assert len(found) > 20
    assert [where for where, side in found if isinstance(side, ast.Constant) and side.value] == []
    named = {(where, side.id) for where, side in found if isinstance(side, ast.Name) and side.id.isupper()}
    assert {each for each in named if not hasattr(version_gates, each[1])} == set()
