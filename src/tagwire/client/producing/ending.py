"""Ending a transaction: by the producer that began it, or from another process that knows its identity."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Final

from tagwire import messages
from tagwire.client.client import Client
from tagwire.client.config import Bootstrap
from tagwire.client.coordinators import TRANSACTION
from tagwire.client.producing.delivery import Identity
from tagwire.client.producing.numbering import Coordinator
from tagwire.client.scheduling import run
from tagwire.client.transport import Link
from tagwire.errors import ConfigError, UnsupportedVersionError
from tagwire.partitions import TopicPartition
from tagwire.rpc.version_gates import END_TXN_TRANSACTION_V2

END_TXN: Final = 26


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """Who writes in transactions: enough to end one from another process, or to go on where this producer is.

    Attributes:
        producer_id, epoch: as the coordinator gave them; -1 for none.
        transactions: which protocol of transactions is used, 1 or 2; 0 without transactions.
        sequences: the next sequence number of each partition that has one.
    """

    producer_id: int
    epoch: int
    transactions: int = 0
    sequences: Mapping[TopicPartition, int] = field(default_factory=dict)


def end_transaction(
    client: Client | Bootstrap,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    *,
    commit: bool,
    transactions: int = 1,
    timeout: float | None = None,
) -> ProducerIdentity:
    """Ends a transaction of another process, which must not write to it any more. Nobody is fenced.

    It can be repeated: the same end of the same transaction succeeds again. So it is asked until a coordinator answers,
    through coordinators that move, concurrent changes and lost connections.

    Args:
        client: a client, which stays open, or what one is made of, as `Client` takes it: "HOST:PORT,HOST:PORT".
        transactional_id, producer_id, producer_epoch: exactly those that the transaction was begun with.
        transactions: the protocol that it was written with, `ProducerIdentity.transactions`.
        timeout: seconds to try; None as long as the client may take for one operation.

    Returns:
        The identity that the transactional id has from now on: the same, or with protocol 2 a new one.

    Raises:
        KafkaError: it cannot be ended like this: INVALID_TXN_STATE, INVALID_PRODUCER_EPOCH, PRODUCER_FENCED or
            INVALID_PRODUCER_ID_MAPPING where it ended otherwise, or somebody else has the id.
        RequestTimeoutError, ConnectError, ...: no answer in time; whether it is ended is not known.
        UnsupportedVersionError: the coordinator does not serve the protocol. ConfigError: there is no such protocol.
    """
    check_protocol(transactions)
    with nullcontext(client) if isinstance(client, Client) else Client(client) as used:
        ended = run(
            end(
                Coordinator(used.cluster, TRANSACTION, transactional_id),
                transactional_id,
                Identity(producer_id, producer_epoch),
                commit=commit,
                version=transactions,
                deadline=used.deadline() if timeout is None else time.monotonic() + timeout,
            )
        )
    return ProducerIdentity(ended.producer_id, ended.epoch, transactions)


def check_protocol(transactions: int) -> None:
    """Raises ConfigError for a protocol of transactions that does not exist."""
    if transactions not in (1, 2):
        raise ConfigError(f"transactions={transactions}: allowed is 1 or 2, as the identity of a producer has it")


async def end(
    coordinator: Coordinator, transactional_id: str, identity: Identity, *, commit: bool, version: int, deadline: float
) -> Identity:
    """Ends the transaction of `identity`; the identity that comes after it."""

    def request(link: Link) -> Any:
        if version > 1 and link.version(END_TXN) < END_TXN_TRANSACTION_V2:
            raise UnsupportedVersionError(
                f"{link.broker} serves EndTxn up to v{link.version(END_TXN)}; a transaction of protocol 2 needs "
                f"v{END_TXN_TRANSACTION_V2}"
            )
        return messages.EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            committed=commit,
        )

    answer = await coordinator.ask(
        request,
        lambda answer: [answer.error_code],
        deadline,
        f"{'commit' if commit else 'abort'} the transaction of {transactional_id!r}, producer {identity.producer_id} "
        f"at epoch {identity.epoch}",
        highest=END_TXN_TRANSACTION_V2 - (version == 1),
    )
    if version > 1 and answer.producer_id >= 0:
        return Identity(answer.producer_id, answer.producer_epoch)
    return identity
