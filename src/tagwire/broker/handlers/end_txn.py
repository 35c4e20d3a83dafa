"""EndTxn (key 26): commit or abort a transaction.

Versions 0-5. The response follows when every partition of the transaction has its marker: what is read next is the
outcome. Ending a transaction again as it ended gets the response of the first time. Before version 2, PRODUCER_FENCED
is told as INVALID_PRODUCER_EPOCH; from version 5 on the response has the producer id and epoch of the next transaction
(KIP-890).
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.cluster_image import TRANSACTION
from tagwire.broker.coordinated import OneKey
from tagwire.broker.handlers.init_producer_id import fencing_error
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error, KafkaError
from tagwire.rpc.version_gates import END_TXN_PRODUCER_FENCED, END_TXN_TRANSACTION_V2

Request = messages.EndTxnRequest
Response = messages.EndTxnResponse


def _refused(call: Call[Request], error: Error) -> Response:
    return Response(error_code=error)


@handles(Request, versions="0-5", overlaps=True, coordinated=OneKey(TRANSACTION, "transactional_id", _refused))
async def end_txn(call: Call[Request]) -> Response:
    request, transactions = call.request, call.broker.transactions
    ended = request.transactional_id, request.producer_id, request.producer_epoch
    try:
        if call.version >= END_TXN_TRANSACTION_V2:
            producer_id, epoch = await transactions.end_with_epoch(*ended, commit=request.committed)
            return Response(producer_id=producer_id, producer_epoch=epoch)
        await transactions.end(*ended, commit=request.committed)
    except KafkaError as error:
        return Response(error_code=fencing_error(error, call.version, END_TXN_PRODUCER_FENCED))
    return Response()
