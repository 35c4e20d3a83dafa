"""Producing: records and Arrow rows to partitions, idempotently, in transactions.

`producer` is what people use; its rules are in `producer_core`. Callers append records to batches
(`record_accumulator`, `partitioner`); the producer's own thread sends them (`sender`), in order (`partition_queue`) and
once (`idempotence`, `sequence_numbers`), in transactions (`transaction_manager`, `end_txn`);
`delivery` tells what became of them, and `produce_errors` what an error means.
"""

from tagwire.client.producing.batch_delivery import RecordMetadata, RowsMetadata
from tagwire.client.producing.delivery import Delivery, RowsDelivery
from tagwire.client.producing.end_txn import OpenTransaction, end_transaction, end_transactions
from tagwire.client.producing.partitioner import StickyPartition, murmur2, partition_of
from tagwire.client.producing.partitioners import Partitioner
from tagwire.client.producing.producer import Producer
from tagwire.client.producing.producer_id import ProducerIdentity
from tagwire.client.producing.settings import ProducerOptions
from tagwire.client.producing.transaction_manager import GroupMetadata

__all__ = [
    "Delivery",
    "GroupMetadata",
    "OpenTransaction",
    "Partitioner",
    "Producer",
    "ProducerIdentity",
    "ProducerOptions",
    "RecordMetadata",
    "RowsDelivery",
    "RowsMetadata",
    "StickyPartition",
    "end_transaction",
    "end_transactions",
    "murmur2",
    "partition_of",
]
