"""Looking after a cluster: topics, records, configs, groups and their offsets, transactions, who may do what, replicas,
the cluster itself."""

from typing import TYPE_CHECKING

from tagwire.names_on_demand import names_on_demand

if TYPE_CHECKING:
    from tagwire.client.admin.acls import (
        AccessControlEntry,
        AccessControlEntryFilter,
        AclBinding,
        AclBindingFilter,
        ResourcePattern,
        ResourcePatternFilter,
    )
    from tagwire.client.admin.admin import Admin
    from tagwire.client.admin.cluster import BrokerDescription, ClusterDescription
    from tagwire.client.admin.configs import Append, ConfigEntry, ConfigResource, Subtract
    from tagwire.client.admin.features import FeatureUpdate
    from tagwire.client.admin.group_offsets import OffsetAndMetadata
    from tagwire.client.admin.groups import GroupDescription, GroupListing, GroupMember
    from tagwire.client.admin.lags import GroupLag, PartitionEnd, PartitionLag
    from tagwire.client.admin.log_dirs import LogDir, Replica, ReplicaLogDirInfo, TopicPartitionReplica
    from tagwire.client.admin.quotas import (
        ANY_NAME,
        DEFAULT_NAME,
        ClientQuotaAlteration,
        ClientQuotaEntity,
        ClientQuotaFilter,
    )
    from tagwire.client.admin.reassignments import PartitionReassignment
    from tagwire.client.admin.scram_users import (
        ScramCredentialInfo,
        UserScramCredentialDeletion,
        UserScramCredentialUpsertion,
    )
    from tagwire.client.admin.topics import NewTopic
    from tagwire.client.admin.transactions import ProducerState, TransactionDescription, TransactionListing

__all__ = [
    "ANY_NAME",
    "DEFAULT_NAME",
    "AccessControlEntry",
    "AccessControlEntryFilter",
    "AclBinding",
    "AclBindingFilter",
    "Admin",
    "Append",
    "BrokerDescription",
    "ClientQuotaAlteration",
    "ClientQuotaEntity",
    "ClientQuotaFilter",
    "ClusterDescription",
    "ConfigEntry",
    "ConfigResource",
    "FeatureUpdate",
    "GroupDescription",
    "GroupLag",
    "GroupListing",
    "GroupMember",
    "LogDir",
    "NewTopic",
    "OffsetAndMetadata",
    "PartitionEnd",
    "PartitionLag",
    "PartitionReassignment",
    "ProducerState",
    "Replica",
    "ReplicaLogDirInfo",
    "ResourcePattern",
    "ResourcePatternFilter",
    "ScramCredentialInfo",
    "Subtract",
    "TopicPartitionReplica",
    "TransactionDescription",
    "TransactionListing",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
]

# A Reader needs few of these.
if not TYPE_CHECKING:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "tagwire.client.admin.acls": (
                "AccessControlEntry",
                "AccessControlEntryFilter",
                "AclBinding",
                "AclBindingFilter",
                "ResourcePattern",
                "ResourcePatternFilter",
            ),
            "tagwire.client.admin.admin": ("Admin",),
            "tagwire.client.admin.cluster": ("BrokerDescription", "ClusterDescription"),
            "tagwire.client.admin.configs": ("Append", "ConfigEntry", "ConfigResource", "Subtract"),
            "tagwire.client.admin.features": ("FeatureUpdate",),
            "tagwire.client.admin.group_offsets": ("OffsetAndMetadata",),
            "tagwire.client.admin.groups": ("GroupDescription", "GroupListing", "GroupMember"),
            "tagwire.client.admin.lags": ("GroupLag", "PartitionEnd", "PartitionLag"),
            "tagwire.client.admin.log_dirs": ("LogDir", "Replica", "ReplicaLogDirInfo", "TopicPartitionReplica"),
            "tagwire.client.admin.quotas": (
                "ANY_NAME",
                "DEFAULT_NAME",
                "ClientQuotaAlteration",
                "ClientQuotaEntity",
                "ClientQuotaFilter",
            ),
            "tagwire.client.admin.reassignments": ("PartitionReassignment",),
            "tagwire.client.admin.scram_users": (
                "ScramCredentialInfo",
                "UserScramCredentialDeletion",
                "UserScramCredentialUpsertion",
            ),
            "tagwire.client.admin.topics": ("NewTopic",),
            "tagwire.client.admin.transactions": ("ProducerState", "TransactionDescription", "TransactionListing"),
        },
    )
