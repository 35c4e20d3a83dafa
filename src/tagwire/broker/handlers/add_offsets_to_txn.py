"""AddOffsetsToTxn (key 25): let a transaction commit offsets of a group.

Versions 0-4. Before version 2, PRODUCER_FENCED is told as INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.cluster_image import TRANSACTION
from tagwire.broker.coordinated import OneKey
from tagwire.broker.handlers.init_producer_id import fencing_error
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error, KafkaError
from tagwire.rpc.version_gates import ADD_OFFSETS_TO_TXN_PRODUCER_FENCED

Request = messages.AddOffsetsToTxnRequest
Response = messages.AddOffsetsToTxnResponse


def _refused(call: Call[Request], error: Error) -> Response:
    return Response(error_code=error)


@handles(Request, versions="0-4", coordinated=OneKey(TRANSACTION, "transactional_id", _refused))
async def add_offsets_to_txn(call: Call[Request]) -> Response:
    request = call.request
    if not request.group_id:
        return Response(error_code=Error.INVALID_GROUP_ID)
    try:
        await call.broker.transactions.add_offsets(
            request.transactional_id, request.producer_id, request.producer_epoch
        )
    except KafkaError as error:
        return Response(error_code=fencing_error(error, call.version, ADD_OFFSETS_TO_TXN_PRODUCER_FENCED))
    return Response()
