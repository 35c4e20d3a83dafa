"""Producer ids and epochs (KIP-98): what brokers know a producer by, and how its epoch is bumped (KIP-360)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tagwire import messages
from tagwire.errors import RemoteProtocolError
from tagwire.partitions import TopicPartition

MAX_EPOCH: Final = 2**15 - 1


class ProducerIdAndEpoch(NamedTuple):
    """What a batch is written under, with a sequence number; -1 for none."""

    producer_id: int = -1
    epoch: int = -1


NO_PRODUCER_ID: Final = ProducerIdAndEpoch()


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """Enough of a producer to end its transaction from another process, or to go on where it is.

    Attributes:
        producer_id, epoch: as the coordinator gave them; -1 for none.
        transaction_version: of its transactions, 1 or 2 (KIP-890); 0 without transactions.
        sequences: the next sequence number of each partition that has one; None where nobody knows them, as of a
            transaction of version 1 that another process has ended.
    """

    producer_id: int
    epoch: int
    transaction_version: int = 0
    sequences: Mapping[TopicPartition, int] | None = field(default_factory=dict)


def bump_epoch(producer: ProducerIdAndEpoch) -> ProducerIdAndEpoch:
    """The same producer id under the next epoch; `NO_PRODUCER_ID` where no epoch is left, or there is no id."""
    if producer == NO_PRODUCER_ID or producer.epoch >= MAX_EPOCH:
        return NO_PRODUCER_ID
    return ProducerIdAndEpoch(producer.producer_id, producer.epoch + 1)


def producer_id_in(response: messages.InitProducerIdResponse) -> ProducerIdAndEpoch:
    """What InitProducerId gives. Raises RemoteProtocolError for what is no producer id."""
    if response.producer_id < 0 or response.producer_epoch < 0:
        given = f"producer id {response.producer_id} at epoch {response.producer_epoch}"
        raise RemoteProtocolError(f"the response to InitProducerId gives {given}")
    return ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
