"""Ending a transaction (EndTxn): by the producer that began it, or from another process that knows its identity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

from tagwire import messages
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.client import Client
from tagwire.client.config import Bootstrap
from tagwire.client.coordinator_client import CoordinatorClient
from tagwire.client.coordinators import TRANSACTION, coordinators
from tagwire.client.network_client import NetworkClient
from tagwire.client.producing.producer_id import ProducerIdAndEpoch, ProducerIdentity
from tagwire.client.scheduling import gather
from tagwire.errors import ConfigError, TagwireError, UnsupportedVersionError
from tagwire.partitions import TopicPartition
from tagwire.rpc.version_gates import END_TXN_TRANSACTION_V2
from tagwire.spec.api_keys import ApiKey


def end_transaction(
    client: Client | Bootstrap,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    *,
    commit: bool,
    transaction_version: int = 1,
    timeout: float | None = None,
) -> ProducerIdentity:
    """Ends a transaction of another process, which must not write to it any more. Nobody is fenced.

    It can be repeated: the same end of the same transaction succeeds again. So EndTxn is sent until a coordinator
    responds, through coordinators that move, concurrent changes and lost connections.

    Args:
        client: a client, which stays open, or what one is made of, as `Client` takes it: "HOST:PORT,HOST:PORT".
        transactional_id, producer_id, producer_epoch: exactly those that the transaction was begun with.
        transaction_version: of the transaction, 1 or 2: `ProducerIdentity.transaction_version`.
        timeout: seconds to try; None as long as the client may take for one operation.

    Returns:
        The producer id and epoch that the transactional id has from now on: with transaction version 2 other ones. With
        version 1 partitions go on counting, from what only the producer's own identity says.

    Raises:
        KafkaError: it cannot be ended like this: INVALID_TXN_STATE, INVALID_PRODUCER_EPOCH, PRODUCER_FENCED or
            INVALID_PRODUCER_ID_MAPPING where it ended otherwise, or somebody else has the id.
        RequestTimeoutError, ConnectError, ...: no response in time; whether it is ended is not known.
        UnsupportedVersionError: the coordinator does not serve that version of transactions.
        ConfigError: there is no such version.
    """
    check_transaction_version(transaction_version)
    with nullcontext(client) if isinstance(client, Client) else Client(client) as used:
        network = used.network
        ended = network.run(
            end(
                CoordinatorClient(network.core, TRANSACTION, transactional_id),
                transactional_id,
                ProducerIdAndEpoch(producer_id, producer_epoch),
                commit=commit,
                transaction_version=transaction_version,
                deadline=network.deadline() if timeout is None else network.now() + timeout,
            )
        )
    return _identity(ended, transaction_version)


MAX_ENDED_AT_ONCE: Final = 64
"""EndTxn requests under way at a time, on the connections to all coordinators together."""


@dataclass(frozen=True)
class OpenTransaction:
    """A transaction of another process.

    Attributes:
        transactional_id, producer_id, producer_epoch: exactly those that it was begun with.
        transaction_version: 1 or 2: `ProducerIdentity.transaction_version`.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    transaction_version: int = 1


def end_transactions(
    client: Client, transactions: Sequence[OpenTransaction], *, commit: bool, timeout: float
) -> list[ProducerIdentity | Exception]:
    """Ends several transactions of other processes beside each other, each as `end_transaction` would.

    One request finds all their coordinators, where brokers know that one (KIP-699), and nobody waits for the end of
    another to be requested, up to `MAX_ENDED_AT_ONCE`. What becomes of one decides nothing for the others.

    Args:
        transactions: each of another transactional id.
        timeout: seconds to try.

    Returns:
        For each, in their order, what `end_transaction` returns, or the error that it would raise.

    Raises:
        ConfigError: one has a version of transactions that does not exist; none is ended.
    """
    for one in transactions:
        check_transaction_version(one.transaction_version)
    network = client.network
    return network.run(_end_all(network.core, transactions, commit=commit, deadline=network.now() + timeout))


async def _end_all(
    network: NetworkClient, transactions: Sequence[OpenTransaction], *, commit: bool, deadline: float
) -> list[ProducerIdentity | Exception]:
    ids = [one.transactional_id for one in transactions]
    try:
        nodes = await coordinators(network, ids, TRANSACTION, min(deadline, network.deadline())) if ids else {}
    except TagwireError:
        nodes = {}  # of one of them, perhaps: each looks for its own
    ended: dict[int, ProducerIdentity | Exception] = {}
    left = iter(enumerate(transactions))

    async def end_one_by_one(left: Iterator[tuple[int, OpenTransaction]]) -> None:
        for at, one in left:
            name = one.transactional_id
            try:
                now = await end(
                    CoordinatorClient(network, TRANSACTION, name, nodes.get(name)),
                    name,
                    ProducerIdAndEpoch(one.producer_id, one.producer_epoch),
                    commit=commit,
                    transaction_version=one.transaction_version,
                    deadline=deadline,
                )
                ended[at] = _identity(now, one.transaction_version)
            except TagwireError as error:
                ended[at] = error

    works = [end_one_by_one(left) for _ in range(min(len(transactions), MAX_ENDED_AT_ONCE))]
    for error in await gather(works, network.now):
        if error is not None:
            raise error
    return [ended[at] for at in range(len(transactions))]


def _identity(ended: ProducerIdAndEpoch, transaction_version: int) -> ProducerIdentity:
    """Who goes on after an end: in an epoch that begins, or amid one of which nobody has told how far it is."""
    sequences: dict[TopicPartition, int] | None = {} if transaction_version > 1 else None
    return ProducerIdentity(ended.producer_id, ended.epoch, transaction_version, sequences)


def check_transaction_version(version: int) -> None:
    """Raises ConfigError for a version of transactions that does not exist."""
    if version not in (1, 2):
        raise ConfigError(f"transaction_version={version}: allowed is 1 or 2, as the identity of a producer has it")


async def end(
    coordinator: CoordinatorClient,
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    *,
    commit: bool,
    transaction_version: int,
    deadline: float,
) -> ProducerIdAndEpoch:
    """Ends the transaction of `producer`. The producer id and epoch that come after it."""
    is_v2 = transaction_version > 1

    def request(connection: BrokerConnection) -> messages.EndTxnRequest:
        if is_v2 and connection.version(ApiKey.END_TXN) < END_TXN_TRANSACTION_V2:
            raise UnsupportedVersionError(
                f"{connection.broker} serves EndTxn up to v{connection.version(ApiKey.END_TXN)}; a transaction of "
                f"version 2 needs v{END_TXN_TRANSACTION_V2}"
            )
        return messages.EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            committed=commit,
        )

    response = await coordinator.send(
        request,
        lambda response: [response.error_code],
        deadline,
        f"{'commit' if commit else 'abort'} the transaction of {transactional_id!r}, producer {producer.producer_id} "
        f"at epoch {producer.epoch}",
        highest=END_TXN_TRANSACTION_V2 - (not is_v2),
    )
    if is_v2 and response.producer_id >= 0:
        return ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
    return producer
