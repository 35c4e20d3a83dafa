"""DescribeClientQuotas (key 48): list the quotas of users, clients and addresses.

Versions 0-1. Source: KIP-546; Kafka's ClientQuotasImage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tagwire import messages
from tagwire.broker.quotas.stored import ENTITY_TYPES, IP, Entity, address_text
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error, KafkaError

Request = messages.DescribeClientQuotasRequest
Response = messages.DescribeClientQuotasResponse

EXACT, DEFAULT, ANY = range(3)
_ANY: Final = object()


@handles(Request, versions="0-1")
async def describe_client_quotas(call: Call[Request]) -> Response:
    try:
        wanted = _wanted(call.request)
    except KafkaError as error:
        return Response(error_code=error.code, error_message=error.message, entries=None)
    return Response(
        error_message=None,
        entries=[
            Response.EntryData(
                entity=[Response.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                values=[Response.ValueData(key=key, value=value) for key, value in quotas.items()],
            )
            for entity, quotas in call.broker.quotas.all.items()
            if _matches(entity, wanted, strict=call.request.strict)
        ],
    )


def _wanted(request: Request) -> Mapping[str, object]:
    """By type, a name, None for the default, or `_ANY`."""
    wanted: dict[str, object] = {}
    for component in request.components:
        kind, match = component.entity_type, component.match
        if kind in wanted:
            raise KafkaError(Error.INVALID_REQUEST, f"entity type {kind} is named twice")
        if not kind:
            raise KafkaError(Error.INVALID_REQUEST, "an entity type is empty")
        if kind not in ENTITY_TYPES:
            raise KafkaError(Error.UNSUPPORTED_VERSION, f"entity type {kind[:60]!r} is not {', '.join(ENTITY_TYPES)}")
        if component.match_type not in (EXACT, DEFAULT, ANY):
            raise KafkaError(Error.INVALID_REQUEST, f"match type {component.match_type} is not 0 to 2")
        if (component.match_type == EXACT) != (match is not None):
            raise KafkaError(Error.INVALID_REQUEST, "a name goes with match type 0, and with no other")
        if kind == IP and match is not None:
            match = address_text(match) or match
        wanted[kind] = _ANY if component.match_type == ANY else match
    if IP in wanted and len(wanted) > 1:
        raise KafkaError(Error.INVALID_REQUEST, "an ip has quotas of its own, not together with a user or a client id")
    return wanted


def _matches(entity: Entity, wanted: Mapping[str, object], *, strict: bool) -> bool:
    if strict and len(entity) != len(wanted):
        return False
    named = dict(entity)
    return all(kind in named and (match is _ANY or named[kind] == match) for kind, match in wanted.items())
