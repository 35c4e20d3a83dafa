"""Looking after a cluster: topics, records, configs, groups and their offsets, transactions, the cluster itself."""

from tagwire.client.admin.cluster import BrokerDescription, Cluster, ClusterDescription
from tagwire.client.admin.configs import Append, ConfigEntry, ConfigResource, Configs, Subtract
from tagwire.client.admin.group_offsets import GroupOffsets, OffsetAndMetadata
from tagwire.client.admin.groups import GroupDescription, GroupListing, GroupMember
from tagwire.client.admin.lags import GroupLag, Lags, PartitionEnd, PartitionLag
from tagwire.client.admin.log_dirs import LogDir, LogDirs, Replica
from tagwire.client.admin.records import Records
from tagwire.client.admin.topics import NewTopic, Topics
from tagwire.client.admin.transactions import (
    ProducerState,
    TransactionDescription,
    TransactionListing,
    Transactions,
)

__all__ = [
    "Admin",
    "Append",
    "BrokerDescription",
    "ClusterDescription",
    "ConfigEntry",
    "ConfigResource",
    "GroupDescription",
    "GroupLag",
    "GroupListing",
    "GroupMember",
    "LogDir",
    "NewTopic",
    "OffsetAndMetadata",
    "PartitionEnd",
    "PartitionLag",
    "ProducerState",
    "Replica",
    "Subtract",
    "TransactionDescription",
    "TransactionListing",
]


class Admin(Topics, Records, Configs, Lags, GroupOffsets, Transactions, Cluster, LogDirs):
    """Looks after a cluster, for one thread.

    Each call speaks the highest version that the broker and tagwire share; what a broker is too old for is an
    UnsupportedVersionError that names the API, both ranges, the broker and the releases that would do. What may
    succeed later is tried again until the client's timeout; a change whose answer was lost is not.

        with Admin("kafka-1:9092") as admin:
            admin.create_topics([NewTopic("flights", num_partitions=4)])
            admin.alter_configs({("topic", "flights"): {"retention.ms": "-1"}})

    Args:
        client: a client, which stays open, or bootstrap addresses, "HOST:PORT,HOST:PORT".
    """
