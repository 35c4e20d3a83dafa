"""Talking to brokers over blocking sockets: Client, Producer, Reader, Admin."""

from tagwire.client.admin import (
    Admin,
    Append,
    BrokerDescription,
    ClusterDescription,
    ConfigEntry,
    ConfigResource,
    GroupDescription,
    GroupLag,
    GroupListing,
    GroupMember,
    LogDir,
    NewTopic,
    OffsetAndMetadata,
    PartitionEnd,
    PartitionLag,
    ProducerState,
    Replica,
    Subtract,
    TransactionDescription,
    TransactionListing,
)
from tagwire.client.client import Client
from tagwire.client.consuming.consumer import Consumer
from tagwire.client.consuming.consumer_settings import ConsumerOptions
from tagwire.client.consuming.listener import RebalanceListener
from tagwire.client.metadata import ClusterMetadata, Node, PartitionMetadata, TopicMetadata
from tagwire.client.metrics import MetricValues
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
    "EARLIEST",
    "LATEST",
    "Admin",
    "Append",
    "AtTimestamp",
    "BrokerDescription",
    "Client",
    "ClusterDescription",
    "ClusterMetadata",
    "Committed",
    "ConfigEntry",
    "ConfigResource",
    "Consumer",
    "ConsumerOptions",
    "Delivery",
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
    "OffsetAndMetadata",
    "PartitionEnd",
    "PartitionLag",
    "PartitionMetadata",
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
    "RowsDelivery",
    "RowsMetadata",
    "Security",
    "StickyPartition",
    "Subtract",
    "TopicMetadata",
    "TopicPartition",
    "TransactionDescription",
    "TransactionListing",
    "end_transaction",
    "murmur2",
    "partition_of",
]
