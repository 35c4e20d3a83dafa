"""What administrators do, and what is told of it, at once and when the broker was away: topics that grow, are set
otherwise, lose records and go; groups and offsets that go; users, quotas, replicas, and a transaction that is open.

All of it is there as it was acknowledged. What a disk has refused is told as refused, and counts for nobody.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from tagwire import messages
from tagwire.client import (
    ANY_NAME,
    DEFAULT_NAME,
    EARLIEST,
    Append,
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
    NewTopic,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.errors import KafkaError, UnsupportedVersionError
from tagwire.partitions import TopicPartition
from tagwire.records import Record, write
from tests.simulation.workload.foreign import REQUEST_S, Enough, Speaking
from tests.simulation.workload.limiting import altered, described
from tests.simulation.workload.owning import Owner
from tests.simulation.workload.probing import NOT_NOW, PATIENCE, REFUSED, coordinator_of, error_of, produce_request
from tests.simulation.workload.stage import Spec, Stage

TOPIC: Final = "altered"
OF_PARTITIONS: Final = 3
RECORDS: Final = 5
LIST: Final = "leader.replication.throttled.replicas"
MECHANISM: Final = "SCRAM-SHA-256"
QUOTA: Final = "producer_byte_rate"
UNBOUNDED: Final = 1e12
"""Bytes a second that nobody takes."""

IS_TOPIC: Final = 2
SET: Final = 0
REFUSES: Final = ("write", "sync")

QUOTAS_FILE: Final = "tagwire-client-quotas"
TOPICS_FILE: Final = "tagwire-topics"

Look = Callable[[AsyncAdmin, AsyncClient], Awaitable[Any]]


class Altering(Speaking):
    """Does all of it, and looks.

    Attributes:
        due: what is to be told from now on, by the names of `LOOKS`.
        begun: who has a transaction open; None for nobody.
    """

    def __init__(self, stage: Stage, spec: Spec, breaks: Callable[[tuple[str, ...], str], Callable[[], None]]) -> None:
        super().__init__(stage, spec)
        self._breaks = breaks
        self.due: dict[str, Any] = {}
        self.begun: Owner | None = None

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        async with AsyncClient(properties) as client, AsyncAdmin(client) as admin:
            self.client, self.admin = client, admin
            self.nodes = sorted((await client.metadata()).brokers)
            for name in (TOPIC, f"{TOPIC}-gone"):
                await admin.create_topics([NewTopic(name, 1, -1, {})])
            acts = (
                self._configured,
                self._grown,
                self._placed,
                self._gone,
                self._emptied,
                self._offsets,
                self._users,
                self._quotas,
                self._cluster,
                self._open,
                self._refused_quotas,
                self._refused_configs,
                self._refusals,
            )
            for act in acts:
                with suppress(*REFUSED, Enough):
                    await self._done(act)
            await looked(self, admin, client, self.due, "was altered so just now")
            self.due.pop("replicas", None)  # brokers that start place partitions anew

    async def _done(self, act: Callable[[], Awaitable[Spec]]) -> None:
        """Nothing is wrong, and nobody else is there: each act succeeds."""
        try:
            self.due |= await act()
        except KafkaError as error:
            if (told := error.error.name) not in NOT_NOW:
                self.holds(-1, "Admin", f"what is {act.__name__.strip('_')} of {TOPIC}: {error}"[:200], told, "NONE")
            raise

    # Topics ----------------------------------------------------------------------------------------------------------

    async def _configured(self) -> Spec:
        at = ("topic", TOPIC)
        await self.admin.alter_configs({at: {"retention.ms": "777000", "max.message.bytes": "555555"}})
        await self.admin.alter_configs({at: {"max.message.bytes": None, LIST: Append("0:1")}})
        await self.admin.alter_configs({at: {LIST: Append("1:1")}})
        await self.admin.alter_configs({at: {"retention.ms": "1000"}}, validate_only=True)
        return {"configs": {"retention.ms": "777000", LIST: "0:1,1:1"}}

    async def _grown(self) -> Spec:
        await self.admin.create_partitions({TOPIC: OF_PARTITIONS + 2}, validate_only=True)
        await self.admin.create_partitions({TOPIC: OF_PARTITIONS})
        return {"partitions": [OF_PARTITIONS] * len(self.nodes)}

    async def _placed(self) -> Spec:
        """Replicas go where they are sent, and the first of them leads when somebody asks for it."""
        replicas = self.random.sample(self.nodes, len(self.nodes))
        at = TopicPartition(TOPIC, 0)
        await self.admin.alter_partition_reassignments({at: replicas})
        await self.admin.elect_leaders("preferred", [at])
        again = await self.admin.elect_leaders("preferred", [at])
        self.holds(replicas[0], "ElectLeaders", f"whether {at} needs an election once more", [*again.values()], [False])
        moving = await self.admin.list_partition_reassignments([at])
        self.holds(replicas[0], "ListPartitionReassignments", f"what moves of {at}", list(moving), [])
        return {"replicas": [replicas[0], replicas], "disks": {str(node): OF_PARTITIONS for node in self.nodes}}

    async def _gone(self) -> Spec:
        await self.admin.delete_topics(f"{TOPIC}-gone")
        return {"topics": [TOPIC]}

    async def _emptied(self) -> Spec:
        topic, at = await self.client.topic(TOPIC), TopicPartition(TOPIC, 0)
        records = [Record(b"key", b"value", timestamp=int(time.time() * 1000)) for _ in range(RECORDS)]
        node = topic.partitions[0].leader
        await self.said(node, produce_request(topic, 0, write(records)), f"{RECORDS} records of {at}", "NONE")
        found = await self.admin.delete_records({at: RECORDS - 1})
        self.holds(node, "DeleteRecords", f"where {at} starts, which was asked for", found[at], RECORDS - 1)
        return {"start": RECORDS - 1}

    # Groups, users and quotas --------------------------------------------------------------------------------------

    async def _offsets(self) -> Spec:
        places = [TopicPartition(TOPIC, index) for index in range(2)]
        for group in (f"{TOPIC}-1", f"{TOPIC}-2"):
            await self.admin.alter_group_offsets(group, {places[0]: 1, places[1]: 0})
        await self.admin.delete_group_offsets(f"{TOPIC}-1", [places[1]])
        await self.admin.delete_groups(f"{TOPIC}-2")
        return {"offsets": [[*places[0], 1]], "groups": [f"{TOPIC}-1"]}

    async def _users(self) -> Spec:
        salted = [
            UserScramCredentialUpsertion(f"{TOPIC}-{number}", MECHANISM, "a password", 4096 + number, b"salt")
            for number in (1, 2)
        ]
        await self.admin.alter_user_scram_credentials(salted)
        await self.admin.alter_user_scram_credentials(UserScramCredentialDeletion(f"{TOPIC}-2", MECHANISM))
        return {"users": {f"{TOPIC}-1": [[MECHANISM, 4097]]}}

    async def _quotas(self) -> Spec:
        for number, entity in enumerate(
            (
                ClientQuotaEntity(client_id=DEFAULT_NAME),
                ClientQuotaEntity(user=TOPIC),
                ClientQuotaEntity(user=DEFAULT_NAME, client_id=TOPIC),
                ClientQuotaEntity(user=DEFAULT_NAME, client_id=f"{TOPIC}-2"),
                ClientQuotaEntity(ip="192.0.2.1"),
            )
        ):
            name = "producer_byte_rate" if entity.ip is None else "connection_creation_rate"
            limit = UNBOUNDED if entity.ip is None else 1e6
            await altered(self, self.admin, entity, {name: limit + number})
        await altered(self, self.admin, ClientQuotaEntity(user=DEFAULT_NAME, client_id=f"{TOPIC}-2"), {QUOTA: None})
        return {"quotas": [[["user", ""], ["client-id", TOPIC]]]}

    # Others ----------------------------------------------------------------------------------------------------------

    async def _cluster(self) -> Spec:
        found = await self.admin.describe_cluster()
        return {"cluster": [found.cluster_id, self.nodes]}

    async def _open(self) -> Spec:
        """Of a transaction its coordinator and its partition's leader tell the same."""
        topic = await self.client.topic(TOPIC)
        owner = await Owner.begun(self, self.client, TOPIC, topic, 1, int(5000 * PATIENCE))
        if await owner.produce() != "NONE":
            raise Enough
        self.begun = owner
        return {"transaction": [["Ongoing", [[TOPIC, 1]]], [owner.producer_id, owner.epoch, 0]], "listed": [TOPIC]}

    # Refused ---------------------------------------------------------------------------------------------------------

    async def _refused_quotas(self) -> Spec:
        kind, name = messages.AlterClientQuotasRequest, f"{TOPIC}-refused"

        def request(limit: float) -> Any:
            entity = kind.EntityData(entity_type="client-id", entity_name=name)
            wanted = kind.OpData(key=QUOTA, value=limit, remove=False)
            return kind(entries=[kind.EntryData(entity=[entity], ops=[wanted])])

        await altered(self, self.admin, ClientQuotaEntity(client_id=name), {QUOTA: UNBOUNDED})

        async def told() -> Any:
            return (await self.admin.describe_client_quotas(ClientQuotaFilter(client_id=name)))[
                ClientQuotaEntity(client_id=name)
            ][QUOTA]

        await self._refused("quotas of", QUOTAS_FILE, request(UNBOUNDED + 1), told, UNBOUNDED)
        await altered(self, self.admin, ClientQuotaEntity(client_id=name), {QUOTA: UNBOUNDED + 2})
        return {}

    async def _refused_configs(self) -> Spec:
        kind, config = messages.IncrementalAlterConfigsRequest, "segment.ms"

        def request(value: str) -> Any:
            wanted = kind.AlterableConfig(name=config, config_operation=SET, value=value)
            resource = kind.AlterConfigsResource(resource_type=IS_TOPIC, resource_name=TOPIC, configs=[wanted])
            return kind(resources=[resource])

        async def told() -> Any:
            return (await self.admin.describe_configs(("topic", TOPIC)))[("topic", TOPIC)][config].value

        before = await told()
        await self._refused("configurations of", TOPICS_FILE, request("111111111"), told, before)
        return {}

    async def _refusals(self) -> Spec:
        """What cannot be is not told as done."""
        admin, missing, path = self.admin, f"{TOPIC}-missing", "/somewhere/else"
        leader, entity = self.nodes[0], ClientQuotaEntity(client_id=missing)
        at, other = TopicPartition(TOPIC, 0), TopicPartition(missing, 0)
        for api, call, answer in (
            (
                "AlterClientQuotas",
                admin.alter_client_quotas(ClientQuotaAlteration(entity, {QUOTA: 0})),
                "INVALID_REQUEST",
            ),
            ("CreatePartitions", admin.create_partitions({TOPIC: 1}), "INVALID_PARTITIONS"),
            ("CreateTopics", admin.create_topics([NewTopic(TOPIC, 1, -1, {})]), "TOPIC_ALREADY_EXISTS"),
            ("DeleteTopics", admin.delete_topics(missing), "UNKNOWN_TOPIC_OR_PARTITION"),
            ("DeleteGroups", admin.delete_groups(missing), "GROUP_ID_NOT_FOUND"),
            ("DeleteRecords", admin.delete_records({at: 1000}), "OFFSET_OUT_OF_RANGE"),
            (
                "IncrementalAlterConfigs",
                admin.alter_configs({("topic", TOPIC): {"retention.ms": "x"}}),
                "INVALID_CONFIG",
            ),
            (
                "AlterPartitionReassignments",
                admin.alter_partition_reassignments({at: [77]}),
                "INVALID_REPLICA_ASSIGNMENT",
            ),
            ("ElectLeaders", admin.elect_leaders("preferred", [other]), "UNKNOWN_TOPIC_OR_PARTITION"),
            ("AlterReplicaLogDirs", admin.alter_replica_log_dirs({(*at, leader): path}), "LOG_DIR_NOT_FOUND"),
            ("DescribeTransactions", admin.describe_transactions(missing), "TRANSACTIONAL_ID_NOT_FOUND"),
            (
                "AlterUserScramCredentials",
                admin.alter_user_scram_credentials(UserScramCredentialDeletion(missing, MECHANISM)),
                "RESOURCE_NOT_FOUND",
            ),
            ("DescribeAcls", admin.describe_acls(), "SECURITY_DISABLED" if self.stage.guards is None else "NONE"),
        ):
            told = "NONE"
            try:
                await call
            except KafkaError as error:
                told = error.error.name
            except UnsupportedVersionError:  # of an older release
                continue
            self.holds(-1, api, f"what cannot be for {TOPIC}", told, answer)
        return {}

    async def _refused(
        self, what: str, part: str, request: Any, told: Callable[[], Awaitable[Any]], before: object
    ) -> None:
        node = (await self.client.metadata()).controller_id
        heal = self._breaks((self.random.choice(REFUSES),), part)
        try:
            answer = error_of(await self.client.request(request, node=node))
        finally:
            heal()
        if answer == "KAFKA_STORAGE_ERROR":
            api = type(request).__name__.removesuffix("Request")
            self.holds(node, api, f"{what} {TOPIC}, of which a disk has refused a change", await told(), before)


class Altered(Speaking):
    """Looks again; then it takes all of that away."""

    def __init__(self, stage: Stage, spec: Spec, before: Altering) -> None:
        super().__init__(stage, spec)
        self._before = before

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        async with AsyncClient(properties) as client, AsyncAdmin(client) as admin:
            with suppress(*REFUSED):
                await described(self, admin)
            await looked(self, admin, client, self._before.due, "was altered so before its broker was away")
            if (owner := self._before.begun) is not None:
                with suppress(*REFUSED):
                    coordinator = await coordinator_of(client, owner.name, 1)
                    answer = await replace(owner, client=client, coordinator=coordinator).end(commit=True)
                    self.holds(coordinator, "EndTxn", f"the transaction of {TOPIC}", answer, "NONE")
                    found = [each.state for each in await admin.list_transactions() if each.transactional_id == TOPIC]
                    about = f"the state of {TOPIC}, whose transaction was committed"
                    self.holds(coordinator, "ListTransactions", about, found, ["CompleteCommit"])
            for what in (
                admin.delete_topics(TOPIC),
                admin.delete_groups(f"{TOPIC}-1"),
                altered(self, admin, ClientQuotaEntity(client_id=DEFAULT_NAME), {QUOTA: None}),
            ):
                with suppress(*REFUSED):
                    await what


async def looked(actor: Speaking, admin: AsyncAdmin, client: AsyncClient, due: Spec, why: str) -> None:
    """Notes what is told of all that is due."""
    for name, expected in due.items():
        with suppress(*REFUSED):
            actor.holds(-1, "Admin", f"{name} of what {why}", await LOOKS[name](admin, client), expected)


async def _configs(admin: AsyncAdmin, _: AsyncClient) -> Any:
    found = await admin.describe_configs(("topic", TOPIC))
    wanted = ("retention.ms", "max.message.bytes", LIST)
    return {
        name: entry.value for name, entry in found["topic", TOPIC].items() if name in wanted and not entry.is_default
    }


async def _partitions(_: AsyncAdmin, client: AsyncClient) -> Any:
    of = messages.MetadataRequest
    request = of(topics=[of.MetadataRequestTopic(name=TOPIC)])
    nodes = sorted((await client.metadata()).brokers)
    return [len((await client.request(request, node=node)).topics[0].partitions) for node in nodes]


async def _replicas(_: AsyncAdmin, client: AsyncClient) -> Any:
    found = (await client.topic(TOPIC)).partitions[0]
    return [found.leader, list(found.replicas)]


async def _disks(admin: AsyncAdmin, _: AsyncClient) -> Any:
    found = await admin.describe_log_dirs(None, [TOPIC])
    return {str(node): sum(len(each.replicas) for each in directories) for node, directories in found.items()}


async def _topics(admin: AsyncAdmin, _: AsyncClient) -> Any:
    return sorted(each.name for each in await admin.list_topics() if each.name.startswith(TOPIC))


async def _start(_: AsyncAdmin, client: AsyncClient) -> Any:
    at = TopicPartition(TOPIC, 0)
    return (await client.list_offsets({at: EARLIEST}))[at]


async def _group_offsets(admin: AsyncAdmin, _: AsyncClient) -> Any:
    found = await admin.group_offsets(f"{TOPIC}-1")
    return [[*at, found[at].offset] for at in sorted(found)]


async def _groups(admin: AsyncAdmin, _: AsyncClient) -> Any:
    return sorted(each.group for each in await admin.list_groups() if each.group.startswith(f"{TOPIC}-"))


async def _scram_users(admin: AsyncAdmin, _: AsyncClient) -> Any:
    found = await admin.describe_user_scram_credentials()
    told = {name: [[each.mechanism, each.iterations] for each in infos] for name, infos in found.items()}
    return {name: infos for name, infos in told.items() if name.startswith(TOPIC)}


async def _default_quotas(admin: AsyncAdmin, _: AsyncClient) -> Any:
    found = await admin.describe_client_quotas(ClientQuotaFilter(user=DEFAULT_NAME, client_id=ANY_NAME, strict=True))
    return [[["user", entity.user], ["client-id", entity.client_id]] for entity in sorted(found)]


async def _cluster(admin: AsyncAdmin, _: AsyncClient) -> Any:
    found = await admin.describe_cluster()
    return [found.cluster_id, sorted(found.brokers)]


async def _transaction(admin: AsyncAdmin, _: AsyncClient) -> Any:
    found = (await admin.describe_transactions(TOPIC))[TOPIC]
    at = TopicPartition(TOPIC, 1)
    (producer,) = (await admin.describe_producers([at]))[at]
    known = [producer.producer_id, producer.producer_epoch, producer.transaction_start]
    return [[found.state, [list(each) for each in found.partitions]], known]


async def _listed(admin: AsyncAdmin, _: AsyncClient) -> Any:
    found = await admin.list_transactions(states=["Ongoing"])
    return [each.transactional_id for each in found if each.transactional_id == TOPIC]


LOOKS: Final[dict[str, Look]] = {
    "configs": _configs,
    "partitions": _partitions,
    "replicas": _replicas,
    "disks": _disks,
    "topics": _topics,
    "start": _start,
    "offsets": _group_offsets,
    "groups": _groups,
    "users": _scram_users,
    "quotas": _default_quotas,
    "cluster": _cluster,
    "transaction": _transaction,
    "listed": _listed,
}
"""What is told of what was altered, by names."""
