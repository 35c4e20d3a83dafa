"""Talking to brokers over blocking sockets: Client, Producer, Reader, Admin."""

from tagwire.client.admin import Admin, NewTopic
from tagwire.client.client import Client
from tagwire.client.delivery import Delivery
from tagwire.client.metadata import ClusterMetadata, Node, PartitionMetadata, TopicMetadata, TopicPartition
from tagwire.client.offsets import EARLIEST, LATEST
from tagwire.client.partitioner import StickyPartition, murmur2, partition_of
from tagwire.client.producer import Producer
from tagwire.client.reader import Reader

__all__ = [
    "EARLIEST",
    "LATEST",
    "Admin",
    "Client",
    "ClusterMetadata",
    "Delivery",
    "NewTopic",
    "Node",
    "PartitionMetadata",
    "Producer",
    "Reader",
    "StickyPartition",
    "TopicMetadata",
    "TopicPartition",
    "murmur2",
    "partition_of",
]
