"""AlterClientQuotas (key 49): set and remove quotas, each entity with its own outcome.

Versions 0-1. What is set is stored and counts at once, on every node. With validate_only nothing changes. An ip is an
address; Kafka takes names of hosts as well, and resolves them. Source: KIP-546; Kafka's ClientQuotaControlManager.
"""

from __future__ import annotations

from collections import Counter

from tagwire import messages
from tagwire.broker.quotas.stored import Entity, check_quota, entity_of
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error, KafkaError

Request = messages.AlterClientQuotasRequest
Response = messages.AlterClientQuotasResponse

Named = tuple[tuple[str, str | None], ...]


@handles(Request, versions="0-1")
async def alter_client_quotas(call: Call[Request]) -> Response:
    times = Counter(_meant(_named(entry)) for entry in call.request.entries)
    changes: dict[Entity, dict[str, float | None]] = {}
    outcomes: dict[Named, KafkaError | Entity] = {}
    for entry in call.request.entries:
        named = _named(entry)
        if named in outcomes:
            continue
        try:
            if times[_meant(named)] > 1:
                raise KafkaError(Error.INVALID_REQUEST, "an entity is named twice")
            entity = entity_of(list(named))
            changes[entity] = _changes(entity, entry)
            outcomes[named] = entity
        except KafkaError as error:
            outcomes[named] = error
    if changes and not call.request.validate_only:
        try:
            await call.broker.quotas.change(changes)
        except KafkaError as error:
            outcomes = {named: was if isinstance(was, KafkaError) else error for named, was in outcomes.items()}
    return Response(entries=[_result(named, outcome) for named, outcome in outcomes.items()])


def _named(entry: Request.EntryData) -> Named:
    return tuple((entity.entity_type, entity.entity_name) for entity in entry.entity)


def _meant(named: Named) -> Entity | frozenset[tuple[str, str | None]]:
    """The entity, which may be written in several ways: an address, and in any order."""
    try:
        return entity_of(list(named))
    except KafkaError:
        return frozenset(named)


def _changes(entity: Entity, entry: Request.EntryData) -> dict[str, float | None]:
    changes: dict[str, float | None] = {}
    for change in entry.ops:
        if change.key in changes:
            raise KafkaError(Error.INVALID_REQUEST, f"quota {change.key[:60]!r} is named twice")
        value = None if change.remove else change.value
        check_quota(entity, change.key, value)
        changes[change.key] = value
    return changes


def _result(named: Named, outcome: KafkaError | Entity) -> Response.EntryData:
    result = Response.EntryData(
        error_message=None,
        entity=[Response.EntityData(entity_type=kind, entity_name=name) for kind, name in named],
    )
    if isinstance(outcome, KafkaError):
        result.error_code, result.error_message = outcome.code, outcome.message
    return result
