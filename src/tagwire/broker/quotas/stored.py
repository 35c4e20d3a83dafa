"""The client quotas of a data directory: what they are of, stored, and which one counts for whom (KIP-546)."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, Final

from tagwire.broker.storage.files import Files
from tagwire.broker.stored_document import StoredDocument, fields_of
from tagwire.errors import Error, KafkaError

FILE: Final = "tagwire-client-quotas.json"

MOST_ENTITIES: Final = 10_000
"""All of them are written anew with each change."""

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
ENTITY_TYPES: Final = (USER, CLIENT_ID, IP)

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

_LONG, _INT = 2.0**63, 2.0**31 - 1
# What is whole has a largest value, what may be a fraction has none.
_OF_CLIENTS: Final[Mapping[str, float | None]] = {
    PRODUCER_BYTE_RATE: _LONG,
    CONSUMER_BYTE_RATE: _LONG,
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
_OF_ADDRESSES: Final[Mapping[str, float | None]] = {CONNECTION_CREATION_RATE: _INT}
_WHOLE_WITHIN: Final = 1e-6

Entity = tuple[tuple[str, str | None], ...]
"""What quotas are of: names by type, sorted; None for the default, whoever has none of his own."""

Quotas = Mapping[Entity, Mapping[str, float]]


class ClientQuotas:
    """The quotas that there are.

    Args:
        files, directory: where they are stored.
        executor: whose thread writes them.
    """

    def __init__(self, files: Files, directory: Path, executor: Executor) -> None:
        empty: Quotas = {}
        self._stored = StoredDocument(files, directory / FILE, executor, empty, _read, _write)

    def load(self) -> None:
        """Read those that were stored. Raises StorageError: the file cannot be read, or holds something else."""
        self._stored.load()

    @property
    def all(self) -> Quotas:
        """Every quota, never changed in place."""
        return self._stored.content

    async def change(self, changes: Mapping[Entity, Mapping[str, float | None]]) -> None:
        """Set quotas and, where they are None, remove them, on the disk first.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR: the disk refused. POLICY_VIOLATION: there would be too many entities.
                Nothing has changed then.
        """

        def decide(before: Quotas) -> tuple[Quotas, None]:
            after = dict(before)
            for entity, wanted in changes.items():
                merged = {**before.get(entity, {}), **wanted}
                kept = {key: value for key, value in merged.items() if value is not None}
                after.pop(entity, None)
                if kept:
                    after[entity] = kept
            if len(after) > max(MOST_ENTITIES, len(before)):
                raise KafkaError(Error.POLICY_VIOLATION, f"there may be quotas of {MOST_ENTITIES} entities")
            return (before if after == before else after), None

        await self._stored.change(decide)

    def of_client(self, quota: str, user: str, client_id: str) -> tuple[str, str, float] | None:
        """Which quota counts for a client: whose use counts together, by user and client id, and the bound.

        The first of: user and client id, the user's default client, the user; the same of the default user; the client
        id, the default client (KIP-55, KIP-257). A client without an id has no quota of client ids. None for no quota.
        """
        quotas = self._stored.content
        for name in (user, None):
            for client in (client_id, None) if client_id else ():
                if (bound := quotas.get(((CLIENT_ID, client), (USER, name)), {}).get(quota)) is not None:
                    return user, client_id, bound
            if (bound := quotas.get(((USER, name),), {}).get(quota)) is not None:
                return user, "", bound
        for client in (client_id, None) if client_id else ():
            if (bound := quotas.get(((CLIENT_ID, client),), {}).get(quota)) is not None:
                return "", client_id, bound
        return None

    def of_address(self, host: str) -> float | None:
        """How many connections a second an address may make; None for any number."""
        for name in (address_text(host), None):
            if (bound := self._stored.content.get(((IP, name),), {}).get(CONNECTION_CREATION_RATE)) is not None:
                return bound
        return None


def entity_of(named: list[tuple[str, str | None]]) -> Entity:
    """What a request names.

    Raises:
        KafkaError: INVALID_REQUEST: there is nothing that it could be.
    """
    found: dict[str, str | None] = {}
    for kind, name in named:
        if kind not in ENTITY_TYPES:
            raise _invalid(f"entity type {kind[:60]!r} is not {', '.join(ENTITY_TYPES)}")
        if kind in found:
            raise _invalid(f"entity type {kind} is named twice")
        if name == "":
            raise _invalid(f"an empty {kind} has no quota")
        found[kind] = name
    if not found:
        raise _invalid("no entity is named")
    if IP in found:
        if len(found) > 1:
            raise _invalid("an ip has quotas of its own, not together with a user or a client id")
        name = found[IP]
        if name is not None and (name := address_text(name)) is None:
            raise _invalid("an ip is an address, and no name of a host")
        found[IP] = name
    return tuple(sorted(found.items()))


def check_quota(entity: Entity, quota: str, value: float | None) -> None:
    """See whether an entity can have a quota; None for one that is to be removed.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    quotas = _OF_ADDRESSES if entity[0][0] == IP else _OF_CLIENTS
    if value is None:  # of any name, as in Kafka: it is not there then
        return
    if quota not in quotas:
        raise _invalid(f"quota {quota[:60]!r} is not {', '.join(quotas)}")
    if not 0 < value < math.inf:
        raise _invalid(f"{quota}={value} is not more than 0")
    most = quotas[quota]
    if most is not None and (value > most or value % 1 > _WHOLE_WITHIN):
        raise _invalid(f"{quota}={value} is not a whole number of at most {most:.0f}")


def address_text(host: str) -> str | None:
    """An IP address in the one way in which it is compared; None for what is none."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def _invalid(problem: str) -> KafkaError:
    return KafkaError(Error.INVALID_REQUEST, problem)


def _read(entries: list[Any]) -> Quotas:
    found: dict[Entity, Mapping[str, float]] = {}
    for entry in entries:
        fields = fields_of(entry, entity=dict, quotas=dict)
        if not all(isinstance(name, str | None) for name in fields["entity"].values()):
            raise TypeError("an entity's name is no text")
        try:
            entity = entity_of(list(fields["entity"].items()))
            for quota, value in fields["quotas"].items():
                if type(value) not in (int, float):
                    raise TypeError("a quota is no number")
                check_quota(entity, quota, value)
        except KafkaError as error:
            raise ValueError(error.message) from None
        if entity in found:
            raise ValueError("an entity stands in it twice")
        found[entity] = {quota: float(value) for quota, value in fields["quotas"].items()}
    return found


def _write(quotas: Quotas) -> list[Any]:
    return [{"entity": dict(entity), "quotas": dict(kept)} for entity, kept in quotas.items()]
