"""AlterClientQuotas (key 49): set and remove quotas, each entity with its own outcome.

Versions 0-1. There are no quotas: to remove one changes nothing, to set one is refused. Source: KIP-546.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.handlers.describe_client_quotas import ENTITY_TYPES
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error, KafkaError

Request = messages.AlterClientQuotasRequest
Response = messages.AlterClientQuotasResponse

QUOTAS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
)


@handles(Request, versions="0-1")
async def alter_client_quotas(call: Call[Request]) -> Response:
    return Response(entries=[_result(entry) for entry in call.request.entries])


def _result(entry: Request.EntryData) -> Response.EntryData:
    result = Response.EntryData(
        error_message=None,
        entity=[
            Response.EntityData(entity_type=entity.entity_type, entity_name=entity.entity_name)
            for entity in entry.entity
        ],
    )
    try:
        _check(entry)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.message
    return result


def _check(entry: Request.EntryData) -> None:
    if not entry.entity:
        raise KafkaError(Error.INVALID_REQUEST, "no entity is named")
    for entity in entry.entity:
        if entity.entity_type not in ENTITY_TYPES:
            problem = f"entity type {entity.entity_type[:60]!r} is not {', '.join(ENTITY_TYPES)}"
            raise KafkaError(Error.INVALID_REQUEST, problem)
    for change in entry.ops:
        if change.key not in QUOTAS:
            raise KafkaError(Error.INVALID_REQUEST, f"quota {change.key[:60]!r} is not {', '.join(QUOTAS)}")
        if not change.remove:
            raise KafkaError(Error.INVALID_REQUEST, f"{change.key} cannot be set: this broker keeps no quotas")
