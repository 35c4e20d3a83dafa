"""What each API asks for: one line for each that is served, as Kafka's KafkaApis and ControllerApis ask.

READ, WRITE, DELETE and ALTER imply DESCRIBE, and ALTER_CONFIGS implies DESCRIBE_CONFIGS. What `Special` does in steps
of its own stands in words; tests/interop/test_authorization.py holds all of it against Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tagwire import messages
from tagwire.broker.authorization import refusals, special_configs, special_groups, special_topics
from tagwire.broker.authorization.access import AnyCall
from tagwire.broker.authorization.acls import Operation, ResourceType
from tagwire.broker.authorization.rule import Cluster, Each, Named, Open, Rule, Shown, Special, Whole, by, itself
from tagwire.rpc.version_gates import OFFSET_COMMIT_TOPIC_IDS
from tagwire.spec.api_keys import ApiKey

READ, WRITE, DELETE, ALTER = Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER
DESCRIBE, CLUSTER_ACTION = Operation.DESCRIBE, Operation.CLUSTER_ACTION
DESCRIBE_CONFIGS, ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
TOPIC, GROUP, TRANSACTIONAL_ID = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID


def _committed_topic(call: AnyCall, topic: Any) -> str | None:
    """The topic of offsets; None for an id of none, which the handler refuses."""
    if call.version < OFFSET_COMMIT_TOPIC_IDS:
        return str(topic.name)
    found = call.broker.topics.by_id(topic.topic_id)
    return found.name if found is not None else None


_GROUP_READ = Named(READ, GROUP, "group_id")
_TRANSACTION_WRITE = Named(WRITE, TRANSACTIONAL_ID, "transactional_id")
_ONE = refusals.coordinated
_CODE = refusals.with_code
CLUSTER_REFUSED = refusals.CLUSTER_REFUSED

# Records -------------------------------------------------------------------------------------------------------------

_RECORDS: Final[Mapping[int, Rule]] = {
    ApiKey.PRODUCE: Special(
        "WRITE of each topic; WRITE of the transactional id for transactional batches", special_topics.produce
    ),
    ApiKey.FETCH: Special(
        "READ of each topic; CLUSTER_ACTION of the cluster for a replica (asked in handlers/fetch)", Open().respond
    ),
    ApiKey.LIST_OFFSETS: Each(DESCRIBE, TOPIC, "topics", by("name"), "topics", refusals.list_offsets_topic),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Each(
        DESCRIBE, TOPIC, "topics", by("topic"), "topics", refusals.epoch_topic, unless=CLUSTER_ACTION
    ),
    ApiKey.DELETE_RECORDS: Each(DELETE, TOPIC, "topics", by("name"), "topics", refusals.delete_records_topic),
    ApiKey.DESCRIBE_PRODUCERS: Each(READ, TOPIC, "topics", by("name"), "topics", refusals.producers_topic),
}

# Topics --------------------------------------------------------------------------------------------------------------

_TOPICS: Final[Mapping[int, Rule]] = {
    ApiKey.METADATA: Special(
        "DESCRIBE of each topic; CREATE of the cluster or the topic for one that is made; DESCRIBE of the cluster to be"
        " told what may be done to it",
        special_topics.metadata,
    ),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Special("DESCRIBE of each topic", special_topics.describe_topic_partitions),
    ApiKey.CREATE_TOPICS: Special(
        "CREATE of the cluster or of each topic; DESCRIBE_CONFIGS of a topic to be told its configuration",
        special_topics.create_topics,
    ),
    ApiKey.DELETE_TOPICS: Special("DELETE of the cluster or of each topic", special_topics.delete_topics),
    ApiKey.CREATE_PARTITIONS: Each(
        ALTER, TOPIC, "topics", by("name"), "results", refusals.create_partitions_topic, once=True
    ),
    ApiKey.DESCRIBE_CONFIGS: special_configs.DESCRIBED,
    ApiKey.ALTER_CONFIGS: special_configs.ALTERED,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: special_configs.INCREMENTALLY_ALTERED,
}

# Groups --------------------------------------------------------------------------------------------------------------

_GROUPS: Final[Mapping[int, Rule]] = {
    ApiKey.FIND_COORDINATOR: Special("DESCRIBE of each group or transactional id", special_groups.find_coordinator),
    ApiKey.JOIN_GROUP: Whole((_GROUP_READ,), _ONE),
    ApiKey.SYNC_GROUP: Whole((_GROUP_READ,), _ONE),
    ApiKey.HEARTBEAT: Whole((_GROUP_READ,), _ONE),
    ApiKey.LEAVE_GROUP: Whole((_GROUP_READ,), _ONE),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Special(
        "READ of the group; DESCRIBE of each topic that is subscribed to, by name or by a regular expression",
        special_groups.consumer_group_heartbeat,
    ),
    ApiKey.OFFSET_COMMIT: Whole(
        (_GROUP_READ,), _ONE, Each(READ, TOPIC, "topics", _committed_topic, "topics", refusals.commit_topic)
    ),
    ApiKey.OFFSET_FETCH: Special("DESCRIBE of each group and of each topic", special_groups.offset_fetch),
    ApiKey.OFFSET_DELETE: Whole(
        (Named(DELETE, GROUP, "group_id"),),
        _ONE,
        Each(READ, TOPIC, "topics", by("name"), "topics", refusals.offset_delete_topic),
    ),
    ApiKey.LIST_GROUPS: Shown(DESCRIBE, GROUP, "groups", "group_id", unless=DESCRIBE),
    ApiKey.DESCRIBE_GROUPS: Special("DESCRIBE of each group", special_groups.describe_groups),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Special(
        "DESCRIBE of each group, and of each topic that its members have", special_groups.consumer_group_describe
    ),
    ApiKey.DELETE_GROUPS: Each(DELETE, GROUP, "groups_names", itself, "results", refusals.deleted_group),
}

# Transactions --------------------------------------------------------------------------------------------------------

_TRANSACTIONS: Final[Mapping[int, Rule]] = {
    ApiKey.INIT_PRODUCER_ID: Special(
        "WRITE of the transactional id; without one, IDEMPOTENT_WRITE of the cluster or WRITE of any topic",
        special_groups.init_producer_id,
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: Special(
        "WRITE of the transactional id and of every topic", special_groups.add_partitions_to_txn
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: Whole((_TRANSACTION_WRITE, _GROUP_READ), _ONE),
    ApiKey.TXN_OFFSET_COMMIT: Whole(
        (_TRANSACTION_WRITE, _GROUP_READ),
        _ONE,
        Each(READ, TOPIC, "topics", by("name"), "topics", refusals.txn_commit_topic),
    ),
    ApiKey.END_TXN: Whole((_TRANSACTION_WRITE,), _ONE),
    ApiKey.WRITE_TXN_MARKERS: Whole((Cluster((ALTER, CLUSTER_ACTION)),), refusals.markers),
    ApiKey.LIST_TRANSACTIONS: Shown(DESCRIBE, TRANSACTIONAL_ID, "transaction_states", "transactional_id"),
    ApiKey.DESCRIBE_TRANSACTIONS: Special(
        "DESCRIBE of each transactional id, and of each topic to be told of it", special_groups.describe_transactions
    ),
}

# The cluster ---------------------------------------------------------------------------------------------------------

_CLUSTER: Final[Mapping[int, Rule]] = {
    ApiKey.API_VERSIONS: Open(),
    ApiKey.SASL_HANDSHAKE: Open(),
    ApiKey.SASL_AUTHENTICATE: Open(),
    ApiKey.DESCRIBE_CLUSTER: Special(
        "nothing; DESCRIBE of the cluster to be told what may be done to it", special_topics.describe_cluster
    ),
    ApiKey.DESCRIBE_ACLS: Whole(
        (Cluster((DESCRIBE,)),), _CODE(messages.DescribeAclsResponse, error_message=CLUSTER_REFUSED)
    ),
    ApiKey.CREATE_ACLS: Whole((Cluster((ALTER,)),), refusals.created_acls),
    ApiKey.DELETE_ACLS: Whole((Cluster((ALTER,)),), refusals.deleted_acls),
    ApiKey.DESCRIBE_LOG_DIRS: Whole((Cluster((DESCRIBE,)),), _CODE(messages.DescribeLogDirsResponse)),
    ApiKey.ALTER_REPLICA_LOG_DIRS: Whole((Cluster((ALTER,)),), refusals.moved_log_dirs),
    ApiKey.ELECT_LEADERS: Whole((Cluster((ALTER,)),), refusals.elected_leaders),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Whole((Cluster((ALTER,)),), refusals.reassigned),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Whole(
        (Cluster((DESCRIBE,)),), _CODE(messages.ListPartitionReassignmentsResponse, error_message=CLUSTER_REFUSED)
    ),
    ApiKey.LIST_CONFIG_RESOURCES: Whole((Cluster((DESCRIBE_CONFIGS,)),), _CODE(messages.ListConfigResourcesResponse)),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Whole(
        (Cluster((DESCRIBE_CONFIGS,)),),
        _CODE(messages.DescribeClientQuotasResponse, error_message=CLUSTER_REFUSED, entries=None),
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: Whole((Cluster((ALTER_CONFIGS,)),), refusals.altered_quotas),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Whole((Cluster((DESCRIBE,)),), refusals.described_users),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Whole((Cluster((ALTER,)),), refusals.altered_users),
}

RULES: Final[Mapping[int, Rule]] = {**_RECORDS, **_TOPICS, **_GROUPS, **_TRANSACTIONS, **_CLUSTER}
"""What an API asks for, by its key."""
