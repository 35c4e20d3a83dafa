"""ListTransactions (key 66): list the transactional ids that this broker coordinates.

Versions 0-1; only those in some states or of some producers, from version 1 only those whose last transaction was begun
longer ago than a time. As with Kafka that leaves out neither those whose last transaction has ended nor those that have
had none: KIP-994 speaks of transactions that run, and TransactionStateManager asks when they began alone.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.clock import wall_ms
from tagwire.broker.cluster_image import TRANSACTION
from tagwire.broker.registry import Call, handles
from tagwire.broker.transactions.transaction import State, Transaction

Request = messages.ListTransactionsRequest
Response = messages.ListTransactionsResponse

_FENCING = "PrepareEpochFence"
"""A state of Kafka's, that no transaction has here: what fences is stored as an abort."""


@handles(Request, versions="0-1")
async def list_transactions(call: Call[Request]) -> Response:
    known = {_FENCING, *(state.label for state in State)}
    return Response(
        unknown_state_filters=[name for name in call.request.state_filters if name not in known],
        transaction_states=[
            Response.TransactionState(
                transactional_id=transaction.transactional_id,
                producer_id=transaction.producer_id,
                transaction_state=transaction.state.label,
            )
            for transaction in call.broker.transactions
            if call.broker.coordinates(TRANSACTION, transaction.transactional_id)
            and _is_requested(call.request, transaction)
        ],
    )


def _is_requested(request: Request, transaction: Transaction) -> bool:
    if request.state_filters and transaction.state.label not in request.state_filters:
        return False
    if request.producer_id_filters and transaction.producer_id not in request.producer_id_filters:
        return False
    if request.duration_filter < 0:
        return True
    return wall_ms() - transaction.started_ms > request.duration_filter
