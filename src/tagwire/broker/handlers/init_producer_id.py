"""InitProducerId (key 22): give a producer its id and epoch.

Versions 0-4. Without a transactional id: an id that nobody had, at epoch 0. With one: the id's producer at a higher
epoch, which fences whoever used it before; an open transaction of theirs is aborted first, and the response waits for
that. From version 3 a producer may say what it had, and is fenced itself if that is not the latest; before version 4
that is told as INVALID_PRODUCER_EPOCH. Source: KIP-98, KIP-588.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.cluster_image import TRANSACTION
from tagwire.broker.coordinated import OneKey
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error, KafkaError
from tagwire.rpc.version_gates import INIT_PRODUCER_ID_PRODUCER_FENCED

Request = messages.InitProducerIdRequest
Response = messages.InitProducerIdResponse


NONE = -1
"""The producer id and the epoch of whoever had none."""


def _refused(call: Call[Request], error: Error) -> Response:
    return Response(error_code=error, producer_epoch=-1)


@handles(Request, versions="0-4", coordinated=OneKey(TRANSACTION, "transactional_id", _refused))
async def init_producer_id(call: Call[Request]) -> Response:
    request = call.request
    try:
        if (request.producer_id == NONE) != (request.producer_epoch == NONE):
            raise KafkaError(Error.INVALID_REQUEST, "a producer id goes with its epoch")
        if request.transactional_id is None:
            return Response(producer_id=await call.broker.producer_ids.take(), producer_epoch=0)
        producer_id, epoch = await call.broker.transactions.initialize(
            request.transactional_id, request.transaction_timeout_ms, request.producer_id, request.producer_epoch
        )
    except KafkaError as error:
        return Response(
            error_code=fencing_error(error, call.version, INIT_PRODUCER_ID_PRODUCER_FENCED), producer_epoch=-1
        )
    return Response(producer_id=producer_id, producer_epoch=epoch)


def fencing_error(error: KafkaError, version: int, first_with_fenced: int) -> Error:
    """What a client of `version` is told: PRODUCER_FENCED is younger than the APIs that respond with it."""
    if error.error is Error.PRODUCER_FENCED and version < first_with_fenced:
        return Error.INVALID_PRODUCER_EPOCH
    return error.error
