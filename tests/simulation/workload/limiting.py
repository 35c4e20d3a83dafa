"""Client quotas while all else goes wrong: who sets them and takes them away, and who writes more than they allow."""

from __future__ import annotations

from typing import Any

from tagwire.client import ClientQuotaAlteration, ClientQuotaEntity
from tagwire.client.aio import AsyncAdmin
from tagwire.errors import TagwireError
from tests.simulation.workload.producing import Producing
from tests.simulation.workload.stage import Actor, Spec, Stage, always, is_refusal

BYTES_A_SECOND = (300, 400, 800)
"""What those may write whose rate is bounded; each of them would write much more."""


class Limiting(Actor):
    """Alters a quota every now and then, and looks at all there are.

    Its spec: count (of changes), pace, clients (client ids whose rate is bounded) and others (such that nobody has).
    """

    def __init__(self, stage: Stage, spec: Spec) -> None:
        super().__init__(stage, spec)
        self.done = 0

    async def live(self) -> None:
        async with AsyncAdmin(self.stage.properties(self.process, 5.0)) as admin:
            while self.is_loading and self.done < self.spec["count"]:
                self.done += 1
                try:
                    await self._alter(admin)
                    if self.random.random() < 0.4:
                        await described(self, admin)
                except TagwireError:
                    pass  # it is noted
                await self.breathe(self.spec["pace"])
        self.is_done = True

    async def _alter(self, admin: AsyncAdmin) -> None:
        """Each limit is one that no other change sets. The first is a bounded client's."""
        clients, others = self.spec["clients"], self.spec["others"]
        if self.done <= len(clients) or self.random.random() < 0.25:
            entity = ClientQuotaEntity(client_id=clients[self.done % len(clients)])
            quotas: dict[str, float | None] = {"producer_byte_rate": self.random.choice(BYTES_A_SECOND) + self.done}
            if self.done > len(clients) and self.random.random() < 0.3:
                quotas = {"producer_byte_rate": None}
        else:
            entity = ClientQuotaEntity(client_id=self.random.choice(others))
            if self.random.random() < 0.5:
                entity = ClientQuotaEntity(user="somebody", client_id=entity.client_id)
            names = self.random.sample(["producer_byte_rate", "consumer_byte_rate"], self.random.choice([1, 1, 2]))
            quotas = {name: self.random.choice([None, 10_000.0 + self.done]) for name in names}
        await altered(self, admin, entity, quotas)


async def altered(actor: Actor, admin: AsyncAdmin, entity: ClientQuotaEntity, quotas: dict[str, float | None]) -> None:
    """Alters quotas, and notes it. Raises what the administrator's client does."""
    asked = {"entity": entity_told(entity), "quotas": quotas}
    alter = lambda: admin.alter_client_quotas(ClientQuotaAlteration(entity, quotas))  # noqa: E731
    await actor.noted("alter_quotas", asked, alter, has_no_effect=is_refusal)


async def described(actor: Actor, admin: AsyncAdmin) -> None:
    """Notes all quotas that there are. Raises likewise."""

    async def all_there_are() -> dict[str, Any]:
        found = await admin.describe_client_quotas()
        return {"quotas": [[entity_told(entity), found[entity]] for entity in sorted(found, key=entity_told)]}

    await actor.noted("describe_quotas", {}, all_there_are, lambda found: found, has_no_effect=always)


def entity_told(entity: ClientQuotaEntity) -> list[list[str]]:
    """As histories have it."""
    parts = {"user": entity.user, "client-id": entity.client_id, "ip": entity.ip}
    return [[kind, name] for kind, name in parts.items() if name is not None]


class Bounded(Producing):
    """A producer under one client id, whichever of its lives it is. Its spec: client_id, besides."""

    def __init__(self, stage: Stage, spec: Spec) -> None:
        super().__init__(stage, spec)
        self.told_along = {"client_id": spec["client_id"], "bytes": spec["value_size"]}

    def properties(self) -> dict[str, Any]:
        return super().properties() | {"client.id": self.spec["client_id"]}
