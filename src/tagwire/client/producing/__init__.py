"""Producing: records and Arrow rows to partitions, numbered, in transactions.

`producer` is what people use. Callers' threads gather records into batches (`gathering`, `partitioner`); the producer's
own thread (`thread`) sends them (`sending`), in order and once (`lanes`, `numbering`), in transactions
(`transactions`, `ending`); `delivery` tells what became of them.
"""

from tagwire.client.producing.delivery import Delivery, RowsDelivery
from tagwire.client.producing.ending import ProducerIdentity, end_transaction
from tagwire.client.producing.partitioner import StickyPartition, murmur2, partition_of
from tagwire.client.producing.producer import Producer
from tagwire.client.producing.transactions import GroupMetadata

__all__ = [
    "Delivery",
    "GroupMetadata",
    "Producer",
    "ProducerIdentity",
    "RowsDelivery",
    "StickyPartition",
    "end_transaction",
    "murmur2",
    "partition_of",
]
