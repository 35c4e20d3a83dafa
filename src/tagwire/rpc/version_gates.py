"""Version gates: the first version of an API in which something holds that the fields of its messages do not say.

Each is named by its API and what begins with it. Both ends of a connection hold to them.
"""

from __future__ import annotations

from typing import Final

PRODUCE_RECORD_BATCHES: Final = 3
"""Record batches, and message sets before it (KIP-98)."""

PRODUCE_ZSTD: Final = 7
"""Records may be compressed with Zstandard (KIP-110)."""

PRODUCE_TAGGED_FIELDS: Final = 9
FETCH_TAGGED_FIELDS: Final = 12
"""Requests and responses have tagged fields (KIP-482)."""

PRODUCE_TRANSACTION_ABORTABLE: Final = 11
TXN_OFFSET_COMMIT_TRANSACTION_ABORTABLE: Final = 4
"""TRANSACTION_ABORTABLE is the error of what is in no open transaction, and INVALID_TXN_STATE before (KIP-890)."""

PRODUCE_TRANSACTION_V2: Final = 12
TXN_OFFSET_COMMIT_TRANSACTION_V2: Final = 5
END_TXN_TRANSACTION_V2: Final = 5
"""Transaction version 2 (KIP-890): Produce adds its partitions to the transaction itself, EndTxn raises the epoch."""

PRODUCE_CURRENT_LEADER: Final = 10
FETCH_CURRENT_LEADER: Final = 16
"""Who leads is told along with NOT_LEADER_OR_FOLLOWER (KIP-951)."""

FETCH_STORAGE_ERROR: Final = 6
"""A reader knows of logs that a disk has ended (KIP-112)."""

FETCH_ZSTD: Final = 10
"""Records may be compressed with Zstandard (KIP-110)."""

FETCH_FROM_FOLLOWER: Final = 11
"""Any replica serves a reader, and its rack is told (KIP-392)."""

PRODUCE_TOPIC_IDS: Final = 13
FETCH_TOPIC_IDS: Final = 13
"""Topics are named by their ids alone (KIP-516)."""

LIST_OFFSETS_LEADER_EPOCH: Final = 4
"""The leader epoch of the offset is told (KIP-320)."""

OFFSET_FOR_LEADER_EPOCH_CLIENTS: Final = 3
"""Clients may ask: from here on Describe of the topics is enough (KIP-320)."""

FETCH_RACK: Final = 11
"""The client tells its rack, and may be told which replica to read from (KIP-392)."""

FETCH_DIVERGING_EPOCH: Final = 12
"""The client tells the epoch of its last record, and is told where the logs diverge (KIP-595)."""

LIST_OFFSETS_MAX_TIMESTAMP: Final = 7
"""The record with the greatest timestamp may be requested (KIP-734)."""

METADATA_NULL_IS_ALL_TOPICS: Final = 1
"""Null requests all topics, and an empty list none; before it, an empty list requested all."""

METADATA_NULLABLE_TOPIC_NAME: Final = 12
"""A topic that is requested by its id alone may have no name (KIP-516)."""

FIND_COORDINATOR_KEYS: Final = 4
OFFSET_FETCH_ERROR: Final = 2
"""A group's error is told once, not for each partition."""

OFFSET_FETCH_GROUPS: Final = 8
"""Several keys, or groups, in one request (KIP-699, KIP-709)."""

OFFSET_FETCH_REQUIRE_STABLE: Final = 7
"""Offsets that an open transaction would replace can be waited for (KIP-447)."""

JOIN_GROUP_REBALANCE_TIMEOUT: Final = 1
"""The rebalance has a timeout of its own (KIP-62)."""

JOIN_GROUP_MEMBER_ID_REQUIRED: Final = 4
"""A member without an id gets one first, and joins with it (KIP-394)."""

JOIN_GROUP_NULLABLE_PROTOCOL: Final = 7
"""The response may name no protocol (KIP-559)."""

SYNC_GROUP_PROTOCOL: Final = 5
"""Every member says which protocol it takes to be chosen (KIP-559)."""

JOIN_GROUP_SKIP_ASSIGNMENT: Final = 9
"""A static leader may be told to skip the assignment (KIP-814)."""

CONSUMER_GROUP_HEARTBEAT_MEMBER_ID: Final = 1
"""The member makes its id itself (KIP-1082)."""

CONSUMER_GROUP_HEARTBEAT_PATTERN: Final = 1
"""A pattern may be subscribed to, which the broker resolves (KIP-848)."""

OFFSET_COMMIT_MEMBER_EPOCH: Final = 9
"""Members of KIP-848's groups commit by their epoch; what is wrong with it is told as that protocol's errors."""

LIST_GROUPS_STATES: Final = 4
"""Groups of some states alone may be requested (KIP-518)."""

LIST_GROUPS_TYPES: Final = 5
"""Groups of some types alone may be requested (KIP-848)."""

DESCRIBE_GROUPS_NOT_FOUND: Final = 6
"""A group that does not exist is an error, GROUP_ID_NOT_FOUND, and not only "Dead" (KIP-1043)."""

OFFSET_COMMIT_TOPIC_IDS: Final = 10
OFFSET_FETCH_TOPIC_IDS: Final = 10
"""Topics are named by their ids alone (KIP-848)."""

LEAVE_GROUP_MEMBERS: Final = 3
"""Several members in one request (KIP-345)."""

API_VERSIONS_CLIENT_SOFTWARE: Final = 3
"""Clients tell their name and version (KIP-511)."""

API_VERSIONS_FEATURES_FROM_0: Final = 4
"""Features are told that may be at level 0 (KIP-584, KAFKA-17011)."""

CREATE_TOPICS_THROTTLED: Final = 6
CREATE_PARTITIONS_THROTTLED: Final = 3
DELETE_TOPICS_THROTTLED: Final = 5
"""Who is over the quota of changes is refused, THROTTLING_QUOTA_EXCEEDED (KIP-599)."""

DELETE_TOPICS_IDS: Final = 6
"""Topics may be named by their ids; from here on each is a struct (KIP-516)."""

ADD_PARTITIONS_TO_TXN_BROKERS: Final = 4
"""Brokers alone ask, for several transactions at once and to verify them; clients stay below it (KIP-890)."""

INIT_PRODUCER_ID_PRODUCER_FENCED: Final = 4
ADD_PARTITIONS_TO_TXN_PRODUCER_FENCED: Final = 2
ADD_OFFSETS_TO_TXN_PRODUCER_FENCED: Final = 2
END_TXN_PRODUCER_FENCED: Final = 2
"""PRODUCER_FENCED is the error, which is INVALID_PRODUCER_EPOCH before it (KIP-588)."""

INIT_PRODUCER_ID_BUMP: Final = 3
"""A producer may request a new epoch of its own (KIP-360)."""

LIST_TRANSACTIONS_DURATION: Final = 1
"""Transactions that are open for long alone may be requested (KIP-994)."""

DESCRIBE_CLUSTER_FENCED: Final = 2
"""Brokers that are fenced may be requested too (KIP-1073)."""

LIST_CONFIG_RESOURCES_TYPES: Final = 1
"""Resources of all types may be requested; before it, client metrics alone (KIP-1142)."""

CREATE_ACLS_USER_RESOURCE: Final = 3
"""ACLs may be about users, whose delegation tokens others make (KIP-373); so it is of the two beside it."""

ELECT_LEADERS_UNCLEAN: Final = 1
"""A replica that is out of sync may be elected (KIP-460)."""

ELECT_LEADERS_ERROR: Final = 1
"""The response has an error of its own, beside those of partitions (KIP-460)."""

ALTER_PARTITION_REASSIGNMENTS_SAME_FACTOR: Final = 1
"""A change of the replication factor may be refused (KIP-860)."""

UPDATE_FEATURES_UPGRADE_TYPE: Final = 1
"""A downgrade is told apart by whether it loses anything, and may be tried out alone (KIP-778)."""

UPDATE_FEATURES_ONE_RESULT: Final = 2
"""All updates succeed or none does: the response tells of no feature alone."""
