"""Looking after a cluster: topics, records, configs, groups and their offsets, transactions, the cluster itself."""

from tagwire.client.admin.admin import Admin
from tagwire.client.admin.cluster import BrokerDescription, ClusterDescription
from tagwire.client.admin.configs import Append, ConfigEntry, ConfigResource, Subtract
from tagwire.client.admin.group_offsets import OffsetAndMetadata
from tagwire.client.admin.groups import GroupDescription, GroupListing, GroupMember
from tagwire.client.admin.lags import GroupLag, PartitionEnd, PartitionLag
from tagwire.client.admin.log_dirs import LogDir, Replica
from tagwire.client.admin.topics import NewTopic
from tagwire.client.admin.transactions import ProducerState, TransactionDescription, TransactionListing

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
