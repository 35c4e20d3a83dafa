"""Talking to brokers over blocking sockets: Client, Producer, Consumer, Reader, Admin."""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tagwire.client.admin import (
        ANY_NAME,
        DEFAULT_NAME,
        AccessControlEntry,
        AccessControlEntryFilter,
        AclBinding,
        AclBindingFilter,
        Admin,
        Append,
        BrokerDescription,
        ClientQuotaAlteration,
        ClientQuotaEntity,
        ClientQuotaFilter,
        ClusterDescription,
        ConfigEntry,
        ConfigResource,
        FeatureUpdate,
        GroupDescription,
        GroupLag,
        GroupListing,
        GroupMember,
        LogDir,
        NewTopic,
        OffsetAndMetadata,
        PartitionEnd,
        PartitionLag,
        PartitionReassignment,
        ProducerState,
        Replica,
        ReplicaLogDirInfo,
        ResourcePattern,
        ResourcePatternFilter,
        ScramCredentialInfo,
        Subtract,
        TopicPartitionReplica,
        TransactionDescription,
        TransactionListing,
        UserScramCredentialDeletion,
        UserScramCredentialUpsertion,
    )
    from tagwire.client.client import Client
    from tagwire.client.consuming.consumer import Consumer
    from tagwire.client.consuming.consumer_settings import ConsumerOptions
    from tagwire.client.consuming.listener import RebalanceListener
    from tagwire.client.metadata import ClusterMetadata, Node, PartitionMetadata, TopicMetadata
    from tagwire.client.metrics import MetricValues
    from tagwire.client.oauth_endpoint import ClientCredentials
    from tagwire.client.oauth_login import TokenRefresh
    from tagwire.client.oauth_token import OAuthToken
    from tagwire.client.offset_ranges import Committed, Lag, Position
    from tagwire.client.offset_spec import AtTimestamp
    from tagwire.client.producing import (
        Delivery,
        GroupMetadata,
        Partitioner,
        Producer,
        ProducerIdentity,
        ProducerOptions,
        RecordMetadata,
        RowsDelivery,
        RowsMetadata,
        StickyPartition,
        end_transaction,
        murmur2,
        partition_of,
    )
    from tagwire.client.reader import Reader
    from tagwire.client.reader_settings import ReaderOptions
    from tagwire.client.security import Security
    from tagwire.partitions import EARLIEST, LATEST, TopicPartition

__all__ = [
    "ANY_NAME",
    "DEFAULT_NAME",
    "EARLIEST",
    "LATEST",
    "AccessControlEntry",
    "AccessControlEntryFilter",
    "AclBinding",
    "AclBindingFilter",
    "Admin",
    "Append",
    "AtTimestamp",
    "BrokerDescription",
    "Client",
    "ClientCredentials",
    "ClientQuotaAlteration",
    "ClientQuotaEntity",
    "ClientQuotaFilter",
    "ClusterDescription",
    "ClusterMetadata",
    "Committed",
    "ConfigEntry",
    "ConfigResource",
    "Consumer",
    "ConsumerOptions",
    "Delivery",
    "FeatureUpdate",
    "GroupDescription",
    "GroupLag",
    "GroupListing",
    "GroupMember",
    "GroupMetadata",
    "Lag",
    "LogDir",
    "MetricValues",
    "NewTopic",
    "Node",
    "OAuthToken",
    "OffsetAndMetadata",
    "PartitionEnd",
    "PartitionLag",
    "PartitionMetadata",
    "PartitionReassignment",
    "Partitioner",
    "Position",
    "Producer",
    "ProducerIdentity",
    "ProducerOptions",
    "ProducerState",
    "Reader",
    "ReaderOptions",
    "RebalanceListener",
    "RecordMetadata",
    "Replica",
    "ReplicaLogDirInfo",
    "ResourcePattern",
    "ResourcePatternFilter",
    "RowsDelivery",
    "RowsMetadata",
    "ScramCredentialInfo",
    "Security",
    "StickyPartition",
    "Subtract",
    "TokenRefresh",
    "TopicMetadata",
    "TopicPartition",
    "TopicPartitionReplica",
    "TransactionDescription",
    "TransactionListing",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
    "end_transaction",
    "murmur2",
    "partition_of",
]

# Each name is imported when it is used: all of them take twice as long as a Client, for which alone Spark starts
# processes.
_MODULES: Final = {
    "Client": "tagwire.client.client",
    "Consumer": "tagwire.client.consuming.consumer",
    "ConsumerOptions": "tagwire.client.consuming.consumer_settings",
    "RebalanceListener": "tagwire.client.consuming.listener",
    "ClusterMetadata": "tagwire.client.metadata",
    "Node": "tagwire.client.metadata",
    "PartitionMetadata": "tagwire.client.metadata",
    "TopicMetadata": "tagwire.client.metadata",
    "MetricValues": "tagwire.client.metrics",
    "ClientCredentials": "tagwire.client.oauth_endpoint",
    "TokenRefresh": "tagwire.client.oauth_login",
    "OAuthToken": "tagwire.client.oauth_token",
    "Committed": "tagwire.client.offset_ranges",
    "Lag": "tagwire.client.offset_ranges",
    "Position": "tagwire.client.offset_ranges",
    "AtTimestamp": "tagwire.client.offset_spec",
    "Delivery": "tagwire.client.producing",
    "GroupMetadata": "tagwire.client.producing",
    "Partitioner": "tagwire.client.producing",
    "Producer": "tagwire.client.producing",
    "ProducerIdentity": "tagwire.client.producing",
    "ProducerOptions": "tagwire.client.producing",
    "RecordMetadata": "tagwire.client.producing",
    "RowsDelivery": "tagwire.client.producing",
    "RowsMetadata": "tagwire.client.producing",
    "StickyPartition": "tagwire.client.producing",
    "end_transaction": "tagwire.client.producing",
    "murmur2": "tagwire.client.producing",
    "partition_of": "tagwire.client.producing",
    "Reader": "tagwire.client.reader",
    "ReaderOptions": "tagwire.client.reader_settings",
    "Security": "tagwire.client.security",
    "EARLIEST": "tagwire.partitions",
    "LATEST": "tagwire.partitions",
    "TopicPartition": "tagwire.partitions",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(_MODULES.get(name, "tagwire.client.admin")), name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
