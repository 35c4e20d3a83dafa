"""Talking to brokers over blocking sockets: Client, Producer, Reader, Admin."""

from tagwire.client.admin import (
    Admin,
    Append,
    BrokerDescription,
    ClusterDescription,
    CommittedOffset,
    ConfigEntry,
    ConfigResource,
    GroupDescription,
    GroupListing,
    GroupMember,
    LogDir,
    NewTopic,
    ProducerState,
    Replica,
    Subtract,
    TransactionDescription,
    TransactionListing,
)
from tagwire.client.client import Client
from tagwire.client.delivery import Delivery
from tagwire.client.metadata import ClusterMetadata, Node, PartitionMetadata, TopicMetadata, TopicPartition
from tagwire.client.offsets import EARLIEST, LATEST
from tagwire.client.partitioner import StickyPartition, murmur2, partition_of
from tagwire.client.positions import AtTime, Committed, Lag, Position
from tagwire.client.producer import Producer
from tagwire.client.reader import Reader
from tagwire.client.security import Security

__all__ = [
    "EARLIEST",
    "LATEST",
    "Admin",
    "Append",
    "AtTime",
    "BrokerDescription",
    "Client",
    "ClusterDescription",
    "ClusterMetadata",
    "Committed",
    "CommittedOffset",
    "ConfigEntry",
    "ConfigResource",
    "Delivery",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "Lag",
    "LogDir",
    "NewTopic",
    "Node",
    "PartitionMetadata",
    "Position",
    "Producer",
    "ProducerState",
    "Reader",
    "Replica",
    "Security",
    "StickyPartition",
    "Subtract",
    "TopicMetadata",
    "TopicPartition",
    "TransactionDescription",
    "TransactionListing",
    "murmur2",
    "partition_of",
]
