"""Talking to brokers over blocking sockets: Client, Producer, Reader, Admin."""

from tagwire.client.client import Client
from tagwire.client.metadata import ClusterMetadata, Node, PartitionMetadata, TopicMetadata, TopicPartition
from tagwire.client.offsets import EARLIEST, LATEST
from tagwire.client.partitioner import StickyPartition, murmur2, partition_of

__all__ = [
    "EARLIEST",
    "LATEST",
    "Client",
    "ClusterMetadata",
    "Node",
    "PartitionMetadata",
    "StickyPartition",
    "TopicMetadata",
    "TopicPartition",
    "murmur2",
    "partition_of",
]
