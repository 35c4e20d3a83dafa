"""Client quotas: what users, clients and addresses may take; describe, alter. Source: KIP-13, KIP-124, KIP-546."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from math import isfinite
from numbers import Real
from typing import Final, Literal

from tagwire import messages
from tagwire.client import arguments
from tagwire.client.admin.api_driver import AdminApi, ApiResult, ApiResults
from tagwire.client.property_values import wrong
from tagwire.errors import ConfigError, RemoteProtocolError
from tagwire.escaping import told


class _Names(Enum):
    ANY_NAME = "any name"

    def __repr__(self) -> str:
        return self.name


ANY_NAME: Final = _Names.ANY_NAME
"""In a filter: every name, and the default."""

DEFAULT_NAME: Final = ""
"""In an entity: all that have no quotas of their own."""

_EXACT: Final = 0
_DEFAULT: Final = 1
_ANY: Final = 2

# The attributes of an entity, by the types of KIP-546.
_TYPES: Final = {"user": "user", "client-id": "client_id", "ip": "ip"}

_ENTITY: Final = 'ClientQuotaEntity(user="alice")'


@dataclass(frozen=True, order=True, slots=True)
class ClientQuotaEntity:
    """Whom quotas are of: a user, a client id, a client id of a user, or an address.

    Attributes:
        user: without "User:"; None where it does not count, `DEFAULT_NAME`, "", for all users without quotas of their
            own.
        client_id, ip: likewise. An address stands alone.
    """

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None

    def __str__(self) -> str:
        named = {kind: getattr(self, attribute) for kind, attribute in _TYPES.items()}
        found = [f"{kind} {name!r}" if name else f"default {kind}" for kind, name in named.items() if name is not None]
        return ", ".join(found) or "nobody"


@dataclass(frozen=True, slots=True)
class ClientQuotaFilter:
    """Whose quotas are meant.

    Attributes:
        user: a name, `DEFAULT_NAME`, `ANY_NAME`, or None where it does not count.
        client_id, ip: likewise.
        strict: only entities that have no other part than those that count here.
    """

    user: str | Literal[_Names.ANY_NAME] | None = None
    client_id: str | Literal[_Names.ANY_NAME] | None = None
    ip: str | Literal[_Names.ANY_NAME] | None = None
    strict: bool = False


@dataclass(frozen=True, slots=True)
class ClientQuotaAlteration:
    """What becomes of an entity's quotas.

    Attributes:
        quotas: {name: limit}; None takes a quota away. The names are Kafka's: "producer_byte_rate",
            "consumer_byte_rate" (bytes a second), "request_percentage" (of one thread's time),
            "controller_mutation_rate" (partitions a second), and of an address "connection_creation_rate" (a second).
    """

    entity: ClientQuotaEntity
    quotas: Mapping[str, float | None] = field(default_factory=dict)


class Quotas(AdminApi):
    """Client quotas of a cluster."""

    async def describe_client_quotas(
        self, quota_filter: ClientQuotaFilter | None = None
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """As `Admin.describe_client_quotas`."""
        kind = messages.DescribeClientQuotasRequest
        wanted = ClientQuotaFilter() if quota_filter is None else quota_filter
        if not isinstance(wanted, ClientQuotaFilter):
            raise wrong("quota_filter", arguments.shown(wanted), 'ClientQuotaFilter(user="alice")')
        components = []
        for entity_type, attribute in _TYPES.items():
            name = getattr(wanted, attribute)
            if name is ANY_NAME:
                components.append(kind.ComponentData(entity_type=entity_type, match_type=_ANY, match=None))
            elif name == DEFAULT_NAME:
                components.append(kind.ComponentData(entity_type=entity_type, match_type=_DEFAULT, match=None))
            elif name is not None:
                match = arguments.name(attribute, name)
                components.append(kind.ComponentData(entity_type=entity_type, match_type=_EXACT, match=match))
        request = kind(components=components, strict=bool(wanted.strict))

        async def send(left: list[str], deadline: float) -> ApiResults[str, dict[ClientQuotaEntity, dict[str, float]]]:
            response = await self._request(None, request, deadline)
            found: dict[ClientQuotaEntity, dict[str, float]] = {}
            for entry in response.entries or ():
                entity = _entity((each.entity_type, each.entity_name) for each in entry.entity)
                if entity in found:
                    raise RemoteProtocolError(f"quotas of {entity} are told of twice")
                found[entity] = {each.key: each.value for each in entry.values}
            yield ApiResult("client quotas", response.error_code, response.error_message, found)

        return (await self._drive(["client quotas"], send, "describe"))["client quotas"]

    async def alter_client_quotas(
        self, alterations: ClientQuotaAlteration | Iterable[ClientQuotaAlteration], *, validate_only: bool = False
    ) -> None:
        """As `Admin.alter_client_quotas`."""
        kind = messages.AlterClientQuotasRequest
        shape = f'ClientQuotaAlteration({_ENTITY}, {{"producer_byte_rate": 1048576}}), or a list of them'
        wanted: dict[ClientQuotaEntity, dict[str, float | None]] = {}
        for each in arguments.several("alterations", alterations, ClientQuotaAlteration, shape):
            if _checked(each.entity) in wanted:
                raise ConfigError(f"alterations: {each.entity} is named twice")
            wanted[each.entity] = _limits(each)

        async def send(left: list[ClientQuotaEntity], deadline: float) -> ApiResults[ClientQuotaEntity, None]:
            request = kind(
                entries=[
                    kind.EntryData(
                        entity=[
                            kind.EntityData(entity_type=entity_type, entity_name=name or None)
                            for entity_type, name in _parts(entity)
                        ],
                        ops=[
                            kind.OpData(key=key, value=0.0 if limit is None else limit, remove=limit is None)
                            for key, limit in wanted[entity].items()
                        ],
                    )
                    for entity in left
                ],
                validate_only=validate_only,
            )
            controller = await self._network.controller(deadline)
            response = await self._network.request(controller, request, deadline)
            for entry in response.entries:
                entity = _entity((each.entity_type, each.entity_name) for each in entry.entity)
                yield ApiResult(entity, entry.error_code, entry.error_message)

        await self._drive(list(wanted), send, "alter quotas of", changes=True)


def _parts(entity: ClientQuotaEntity) -> list[tuple[str, str]]:
    """The types of KIP-546 with their names, of those that count."""
    named = ((kind, getattr(entity, attribute)) for kind, attribute in _TYPES.items())
    return [(kind, name) for kind, name in named if name is not None]


def _entity(parts: Iterable[tuple[str, str | None]]) -> ClientQuotaEntity:
    """Raises RemoteProtocolError for a type of entity that there is none of, or that comes twice."""
    found: dict[str, str] = {}
    for entity_type, name in parts:
        if entity_type not in _TYPES or _TYPES[entity_type] in found:
            raise RemoteProtocolError(f"quotas of an entity type {told(entity_type)!r}")
        found[_TYPES[entity_type]] = DEFAULT_NAME if name is None else name
    return ClientQuotaEntity(**found)


def _checked(given: object) -> ClientQuotaEntity:
    if not isinstance(given, ClientQuotaEntity):
        raise wrong("entity", arguments.shown(given), _ENTITY)
    parts = _parts(given)
    for kind, name in parts:
        arguments.name(kind, name)
    if not parts or (given.ip is not None and len(parts) > 1):
        raise wrong("entity", str(given), "a user, a client id, both, or an address alone")
    return given


def _limits(alteration: ClientQuotaAlteration) -> dict[str, float | None]:
    given: object = alteration.quotas
    if not isinstance(given, Mapping) or not given:
        raise wrong(f"quotas of {alteration.entity}", arguments.shown(given), '{"producer_byte_rate": 1048576}')
    found: dict[str, float | None] = {}
    for key, limit in given.items():
        name = arguments.name(f"a quota of {alteration.entity}", key)
        if limit is not None and (
            not isinstance(limit, Real) or isinstance(limit, bool) or not isfinite(limit) or limit < 0
        ):
            raise wrong(f"{told(name)} of {alteration.entity}", arguments.shown(limit), "a number from 0 on, or None")
        found[name] = None if limit is None else float(limit)
    return found
