"""DescribeTransactions (key 65): describe transactional ids: state, and the partitions of their open transactions.

Version 0.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.cluster_image import TRANSACTION
from tagwire.broker.coordinated import ManyKeys
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error

Request = messages.DescribeTransactionsRequest
Response = messages.DescribeTransactionsResponse


def _refused(transactional_id: str, error: Error) -> Response.TransactionState:
    return Response.TransactionState(transactional_id=transactional_id, error_code=error)


@handles(
    Request, versions="0-0", coordinated=ManyKeys(TRANSACTION, "transactional_ids", str, "transaction_states", _refused)
)
async def describe_transactions(call: Call[Request]) -> Response:
    return Response(
        transaction_states=[_describe(call, name) for name in dict.fromkeys(call.request.transactional_ids)]
    )


def _describe(call: Call[Request], transactional_id: str) -> Response.TransactionState:
    transaction = call.broker.transactions.get(transactional_id)
    if transaction is None:
        error = Error.TRANSACTIONAL_ID_NOT_FOUND if transactional_id else Error.INVALID_REQUEST
        return Response.TransactionState(transactional_id=transactional_id, error_code=error)
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(transaction.partitions):
        topics.setdefault(topic, []).append(index)
    return Response.TransactionState(
        transactional_id=transactional_id,
        transaction_state=transaction.state.label,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.started_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        topics=[Response.TopicData(topic=topic, partitions=indexes) for topic, indexes in topics.items()],
    )
