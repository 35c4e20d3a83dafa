"""Talking to brokers over blocking sockets: Client, Producer, Reader, Admin."""

from tagwire.client.admin import (
    Admin,
    BrokerDescription,
    ClusterDescription,
    CommittedOffset,
    ConfigEntry,
    ConfigResource,
    GroupDescription,
    GroupListing,
    GroupMember,
    NewTopic,
    ProducerState,
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
    "NewTopic",
    "Node",
    "PartitionMetadata",
    "Position",
    "Producer",
    "ProducerState",
    "Reader",
    "Security",
    "StickyPartition",
    "TopicMetadata",
    "TopicPartition",
    "TransactionDescription",
    "TransactionListing",
    "murmur2",
    "partition_of",
]
