"""Looking after a cluster: topics, records, configs, groups and their offsets, transactions, who may do what, replicas,
the cluster itself."""

from importlib import import_module
from typing import TYPE_CHECKING, Final

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

# Each name is imported when it is used: a Reader needs few of them.
_MODULES: Final = {
    "AccessControlEntry": "tagwire.client.admin.acls",
    "AccessControlEntryFilter": "tagwire.client.admin.acls",
    "AclBinding": "tagwire.client.admin.acls",
    "AclBindingFilter": "tagwire.client.admin.acls",
    "ResourcePattern": "tagwire.client.admin.acls",
    "ResourcePatternFilter": "tagwire.client.admin.acls",
    "Admin": "tagwire.client.admin.admin",
    "BrokerDescription": "tagwire.client.admin.cluster",
    "ClusterDescription": "tagwire.client.admin.cluster",
    "Append": "tagwire.client.admin.configs",
    "ConfigEntry": "tagwire.client.admin.configs",
    "ConfigResource": "tagwire.client.admin.configs",
    "Subtract": "tagwire.client.admin.configs",
    "FeatureUpdate": "tagwire.client.admin.features",
    "OffsetAndMetadata": "tagwire.client.admin.group_offsets",
    "GroupDescription": "tagwire.client.admin.groups",
    "GroupListing": "tagwire.client.admin.groups",
    "GroupMember": "tagwire.client.admin.groups",
    "GroupLag": "tagwire.client.admin.lags",
    "PartitionEnd": "tagwire.client.admin.lags",
    "PartitionLag": "tagwire.client.admin.lags",
    "LogDir": "tagwire.client.admin.log_dirs",
    "Replica": "tagwire.client.admin.log_dirs",
    "ReplicaLogDirInfo": "tagwire.client.admin.log_dirs",
    "TopicPartitionReplica": "tagwire.client.admin.log_dirs",
    "ANY_NAME": "tagwire.client.admin.quotas",
    "DEFAULT_NAME": "tagwire.client.admin.quotas",
    "ClientQuotaAlteration": "tagwire.client.admin.quotas",
    "ClientQuotaEntity": "tagwire.client.admin.quotas",
    "ClientQuotaFilter": "tagwire.client.admin.quotas",
    "PartitionReassignment": "tagwire.client.admin.reassignments",
    "ScramCredentialInfo": "tagwire.client.admin.scram_users",
    "UserScramCredentialDeletion": "tagwire.client.admin.scram_users",
    "UserScramCredentialUpsertion": "tagwire.client.admin.scram_users",
    "NewTopic": "tagwire.client.admin.topics",
    "ProducerState": "tagwire.client.admin.transactions",
    "TransactionDescription": "tagwire.client.admin.transactions",
    "TransactionListing": "tagwire.client.admin.transactions",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(_MODULES[name]), name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
