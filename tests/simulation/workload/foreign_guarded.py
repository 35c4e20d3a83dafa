"""Who may do what, while it is changed and brokers are killed meanwhile: a superuser makes and deletes ACLs and users,
and some users ask for what they may do or not. Each of their requests has one right answer, which the judge works out.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tagwire import messages
from tagwire.client import NewTopic
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.client.metadata import TopicMetadata
from tagwire.errors import AuthenticationError, Error, KafkaError
from tagwire.partitions import TopicPartition
from tagwire.rpc.scram import salted_password
from tests.simulation.workload.guarded_requests import DOOMED, Asked, Listed, asked_always, asked_of, listed_of
from tests.simulation.workload.guards import (
    ALL,
    ALLOW,
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_NAME,
    CREATE,
    DELETE,
    DENY,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    GUARDED,
    IDEMPOTENT_WRITE,
    LITERAL,
    MADE,
    MECHANISM,
    PREFIXED,
    READ,
    ROOT,
    TOGGLED,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
    Acl,
    login,
    of_application,
    secret_of,
)
from tests.simulation.workload.probing import NOT_NOW, REFUSED, Probing, coordinator_of, error_of
from tests.simulation.workload.stage import Spec, Stage, always, is_refusal

REQUEST_S: Final = 20.0
HASTY_S: Final = 2.0
"""Of one who changes ACLs while brokers are killed: it has given up before they are back."""

TOPICS: Final = ("guarded", "guarded-more", "guarded-other")
GROUPS: Final = ("guarded-group", "guarded-group-more")
IDS: Final = ("guarded-id",)
NAMES: Final = {
    TOPIC: (*TOPICS, "*"),
    GROUP: (*GROUPS, "*"),
    TRANSACTIONAL_ID: (*IDS, "*"),
    CLUSTER: (CLUSTER_NAME,),
}
PREFIXES: Final = ("guard", "guarded-", "guarded-m", "guarded-o", "guarded-g", "guarded-group")
OPERATIONS: Final = {
    TOPIC: (ALL, READ, READ, WRITE, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS),
    GROUP: (ALL, READ, READ, DESCRIBE, DELETE),
    TRANSACTIONAL_ID: (ALL, WRITE, DESCRIBE),
    CLUSTER: (ALL, CREATE, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER, IDEMPOTENT_WRITE),
}
SHARED, UNLIKE = "guarded-", "guarding"
"""Prefixes of one length: of all that there is, and of nothing."""

ELSEWHERE: Final = "203.0.113.9"
"""Where nobody is."""

FIRST_ACLS: Final = 24
LISTS: Final = 0.25
"""Of what is asked for, what lists what somebody may be told of."""

TOGGLES: Final = 3
"""In each round."""

ITERATIONS: Final = 4096
MOST_SECRETS: Final = 1000


class Superuser(Probing):
    """One who changes ACLs and users, one request after the other.

    Attributes:
        known: ACLs that may be there.
        secrets: of users who were made, the numbers of secrets that they may have had, the last one last.
    """

    def __init__(self, stage: Stage, spec: Spec, known: list[Acl], secrets: dict[str, list[int]]) -> None:
        super().__init__(stage, spec)
        self.known = known
        self.secrets = secrets
        self.client: AsyncClient

    def root(self, request_timeout: float = REQUEST_S) -> dict[str, Any]:
        """As who it comes in."""
        return self.stage.properties(self.process, request_timeout, ROOT)

    async def make(self, admin: AsyncAdmin) -> None:
        """Lets there be groups, with offsets of all topics, and transactional ids."""
        for name in GROUPS:
            await admin.alter_group_offsets(name, {TopicPartition(topic, 0): 0 for topic in TOPICS})
        for name in IDS:
            node = await coordinator_of(self.client, name, 1)
            init = messages.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
            _checked(await self.client.request(init, node=node))

    async def change(self) -> None:
        """Makes or deletes some of what there is; it may be refused."""
        with suppress(KafkaError):
            await self._change()

    async def _change(self) -> None:
        if self.random.random() < self.spec.get("users", 0.35):
            await self._change_user()
        elif self.known and self.random.random() < 0.5:
            await self.delete(_filters(self.random, self.known))
        else:
            some = [drawn_acl(self.random) for _ in range(self.random.choice([1, 1, 2, 4]))]
            await self.create(some + self.random.sample(self.known, min(len(self.known), self.random.choice([0, 1]))))

    # ACLs ------------------------------------------------------------------------------------------------------------

    async def create(self, acls: list[Acl]) -> None:
        self.known += [acl for acl in acls if acl not in self.known]
        kind = messages.CreateAclsRequest
        creations = [
            kind.AclCreation(
                resource_type=type_,
                resource_name=name,
                resource_pattern_type=pattern,
                principal=principal,
                host=host,
                operation=operation,
                permission_type=permission,
            )
            for type_, name, pattern, principal, host, operation, permission in acls
        ]
        await self._changed("create_acls", {"acls": acls}, kind(creations=creations), lambda _: {})

    async def delete(self, filters: list[Acl]) -> None:
        kind = messages.DeleteAclsRequest
        written = [kind.DeleteAclsFilter(**_filter(one)) for one in filters]
        await self._changed("delete_acls", {"filters": filters}, kind(filters=written), _deleted)

    async def describe(self) -> None:
        """What ACLs there are, as any node says it."""
        request = messages.DescribeAclsRequest(**_filter([None] * 7))
        found: list[Acl] = []

        async def described() -> Spec:
            response = _checked(await self.client.request(request, node=await self._node()))
            found.extend(
                [one.resource_type, one.resource_name, one.pattern_type, *_entry(acl)]
                for one in response.resources
                for acl in one.acls
            )
            return {"acls": found}

        await self.noted("describe_acls", {}, described, lambda told: told, has_no_effect=always)
        own = of_application()
        self.known[:] = [acl for acl in found if acl not in own]

    async def _changed(self, f: str, asked: Spec, request: Any, answer: Callable[[Any], Spec]) -> None:
        async def answered() -> Any:
            return _checked(await self.client.request(request, node=await self._node()))

        await self.noted(f, asked, answered, answer, has_no_effect=is_refusal)

    async def _node(self) -> int:
        return self.random.choice(sorted((await self.client.metadata()).brokers))

    # Users -----------------------------------------------------------------------------------------------------------

    async def _change_user(self) -> None:
        user = self.random.choice(MADE)
        numbers = self.secrets.setdefault(user, [])
        kind = messages.AlterUserScramCredentialsRequest
        if numbers and self.random.random() < 0.35:
            gone = kind.ScramCredentialDeletion(name=user, mechanism=1)
            secret, request = None, kind(deletions=[gone], upsertions=[])
        else:
            secret = self.random.randrange(MOST_SECRETS)
            numbers.append(secret)
            salt = self.random.randbytes(16)
            upsertion = kind.ScramCredentialUpsertion(
                name=user,
                mechanism=1,
                iterations=ITERATIONS,
                salt=salt,
                salted_password=salted_password(MECHANISM, secret_of(user, secret), salt, ITERATIONS),
            )
            request = kind(deletions=[], upsertions=[upsertion])
        await self._changed("set_user", {"user": user, "secret": secret}, request, lambda _: {})


class Opening(Superuser):
    """Lets the application do everything, before it begins."""

    async def ask(self) -> None:
        async with AsyncClient(self.root()) as self.client:
            await self.create(of_application())


class Guarding(Superuser):
    """Makes what is asked for, and ACLs about it, and lets users ask while it changes those."""

    async def ask(self) -> None:
        async with AsyncClient(self.root()) as self.client, AsyncAdmin(self.root()) as admin:
            await admin.create_topics([NewTopic(name, 1, -1, {}) for name in TOPICS])
            await self.make(admin)
            await self.create([drawn_acl(self.random) for _ in range(FIRST_ACLS)])
            async with Users(self, self.client) as users:
                for _ in range(self.spec["rounds"]):
                    await users.ask(self.spec["requests"])
                    for _ in range(self.random.randint(1, 4)):
                        await self.change()
                    for _ in range(TOGGLES):
                        await self._toggle(users)
                await self.describe()

    async def _toggle(self, users: Users) -> None:
        """Lets somebody do what one request needs, and no more: asked before, meanwhile, without a part, and after."""
        places = await users.places()
        some = list(asked_of(*places.about)) + [asked_always()] * 8
        wanted = self.random.choices(some, [len(each.needs) for each in some])[0]
        acls = []
        for alternatives, _ in wanted.needs:
            operation, kind, name = self.random.choice(alternatives)
            acls.append([kind, name or TOPICS[0], LITERAL, f"User:{TOGGLED}", "*", operation, ALLOW])
        beside: list[Acl] = []
        if self.random.random() < 0.5:
            for acl in acls:
                if acl[0] != CLUSTER:
                    acl[1:3] = SHARED, PREFIXED
                    beside.append([acl[0], UNLIKE, *acl[2:]])

        async def asks() -> None:
            with suppress(*REFUSED):
                await users.asked(TOGGLED, wanted, places)

        await asks()
        await self.create(acls)
        if beside:
            await self.create(beside)
            await self.delete(beside)
        await asks()
        if len(acls) > 1:
            await self.delete([self.random.choice(acls)])
            await asks()
        await self.delete(acls)
        await asks()


class Changing(Superuser):
    """Changes one thing after the other until a broker does not answer, some seconds at most. Its spec: changes, at
    most so many; users, the share of those that are of users."""

    async def ask(self) -> None:
        async with AsyncClient(self.root(HASTY_S)) as self.client:
            for _ in range(self.spec["changes"]):
                await self.change()
                await self.sleep(self.random.choice([0.0, 0.05, 0.4]))


class Guarded(Superuser):
    """Looks whether all is as it was said, after a broker was away."""

    async def ask(self) -> None:
        async with AsyncClient(self.root()) as self.client, AsyncAdmin(self.root()) as admin:
            await self.describe()
            await self.make(admin)  # which a loss of power may have taken, by what their fsync promises
            async with Users(self, self.client) as users:
                await users.ask(self.spec["requests"])
            for user in MADE:
                for secret in self._tried(user):
                    await self._logs_in(user, secret)
            await self.describe()

    def _tried(self, user: str) -> list[int]:
        """Of each user the last secrets, and one that is nobody's."""
        return [*dict.fromkeys(self.secrets.get(user, [])[-3:]), MOST_SECRETS]

    async def _logs_in(self, user: str, secret: int) -> None:
        properties = self.stage.properties(self.process, REQUEST_S) | login(MECHANISM, user, secret_of(user, secret))

        async def let_in() -> bool:
            try:
                async with AsyncClient(properties) as client:
                    await client.metadata()
            except AuthenticationError:
                return False
            return True

        asked = {"user": user, "secret": secret}
        await self.noted("logged_in", asked, let_in, lambda found: {"answer": found}, has_no_effect=always)


class Users:
    """Some users, each with a connection of its own for as long as this is entered."""

    def __init__(self, asker: Superuser, root: AsyncClient) -> None:
        self._asker = asker
        self._root = root
        self._clients: dict[str, AsyncClient] = {}
        self._sessions: dict[str, _Session] = {}
        self._admin = AsyncAdmin(asker.root())

    async def __aenter__(self) -> Users:
        await self._admin.__aenter__()
        for user in (*GUARDED, TOGGLED):
            properties = self._asker.stage.properties(f"{self._asker.process}-{user}", REQUEST_S, user)
            self._clients[user] = await AsyncClient(properties).__aenter__()
        return self

    async def __aexit__(self, *raised: object) -> None:
        for client in self._clients.values():
            await client.__aexit__(None, None, None)
        await self._admin.__aexit__(None, None, None)

    async def places(self) -> Places:
        """What may be asked for now, and who is to be asked."""
        random = self._asker.random
        topics = {name: await self._root.topic(name) for name in TOPICS}
        topic, group, owner = topics[random.choice(TOPICS)], random.choice(GROUPS), random.choice(IDS)
        nodes = {
            "leader": topic.partitions[0].leader,
            "group": await coordinator_of(self._root, group, 0),
            "id": await coordinator_of(self._root, owner, 1),
            "any": random.choice(sorted((await self._root.metadata()).brokers)),
        }
        return Places((topic, group, owner), nodes)

    async def ask(self, count: int) -> None:
        """Lets each of them ask for so many things."""
        for user in GUARDED:
            with suppress(*REFUSED):
                places = await self.places()
                await self._reads_on(user, places)
                await self.asked(user, asked_always(), places)
            for _ in range(count):
                with suppress(*REFUSED):
                    await self._ask(user, places)

    async def _reads_on(self, user: str, places: Places) -> None:
        """Goes on with a fetch session, or begins one."""
        kind, session = messages.FetchRequest, self._sessions.pop(user, None)
        if session is None:
            session = _Session(places.about[0])
        topic = session.topic
        part = kind.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        named = kind.FetchTopic(topic=topic.name, topic_id=topic.topic_id, partitions=[part])
        request = kind(
            max_wait_ms=0,
            min_bytes=0,
            session_id=session.id,
            session_epoch=session.epoch,
            topics=[] if session.id else [named],
        )
        about = f"{topic.name} in a fetch session, for the {session.epoch + 1}. time"
        wanted = Asked("leader", request, about, [([[READ, TOPIC, topic.name]], "TOPIC_AUTHORIZATION_FAILED")])
        response = await self.asked(user, wanted, Places(places.about, {"leader": topic.partitions[0].leader}))
        if response.session_id:
            self._sessions[user] = _Session(topic, response.session_id, session.epoch + 1)

    async def _ask(self, user: str, places: Places) -> None:
        topic, group, owner = places.about
        wanted: list[Asked | Listed] = list(asked_of(topic, group, owner))
        if self._asker.random.random() < LISTS:
            wanted = list(listed_of(topic, group, TOPICS, (group,), (owner,)))
        await self.asked(user, self._asker.random.choice(wanted), places)

    async def asked(self, user: str, wanted: Asked | Listed, places: Places) -> Any:
        """The response to one request, which is noted."""
        if wanted.about == DOOMED:
            with suppress(KafkaError):  # it is there still
                await self._admin.create_topics([NewTopic(DOOMED, 1, -1, {})])
        found: list[Any] = []
        to = places.nodes[wanted.to]

        async def answered() -> Any:
            found.append(await self._clients[user].request(wanted.request, node=to, version=wanted.version))
            answer = wanted.of(found[0])
            if answer in NOT_NOW:
                raise KafkaError(Error[answer], "not now")
            return answer

        api = type(wanted.request).__name__.removesuffix("Request")
        asked: Spec = {"user": user, "node": to, "api": api, "about": wanted.about, "needs": wanted.needs}
        if isinstance(wanted, Listed):
            told = asked | {"among": [[name, alternatives] for name, alternatives in wanted.among.items()]}
            await self._asker.noted("listed", told, answered, lambda names: {"shown": names}, has_no_effect=always)
        else:
            told = asked | {"answers": list(wanted.answers)}
            await self._asker.noted("asked", told, answered, lambda answer: {"answer": answer}, has_no_effect=always)
        return found[0]


@dataclass(frozen=True)
class Places:
    """A topic, a group and a transactional id, and who leads or coordinates those."""

    about: tuple[TopicMetadata, str, str]
    nodes: dict[str, int]


@dataclass(frozen=True)
class _Session:
    """A fetch session of one topic: what it is called, and in which epoch the next request is."""

    topic: TopicMetadata
    id: int = 0
    epoch: int = 0


def drawn_acl(random: Random) -> Acl:
    """One about what is asked for."""
    kind = random.choices([TOPIC, GROUP, TRANSACTIONAL_ID, CLUSTER], [6, 3, 1, 1])[0]
    is_prefix = kind != CLUSTER and random.random() < 0.4
    name = random.choice(PREFIXES if is_prefix else NAMES[kind])
    principal = f"User:{random.choice(GUARDED)}" if random.random() < 0.85 else "User:*"
    host = "*" if random.random() < 0.9 else ELSEWHERE
    operation = random.choice(OPERATIONS[kind])
    permission = ALLOW if random.random() < 0.75 else DENY
    if principal == "User:*" and permission == DENY:
        operation = random.choice([each for each in OPERATIONS[kind] if each != ALL])
        name = name if kind == CLUSTER or is_prefix else NAMES[kind][0]
    return [kind, name, PREFIXED if is_prefix else LITERAL, principal, host, operation, permission]


def _filters(random: Random, known: list[Acl]) -> list[Acl]:
    """What some ACLs are deleted by: each by itself, or with all that are alike. Not those of others."""
    filters = []
    for acl in random.sample(known, min(len(known), random.choice([1, 1, 2]))):
        one = list(acl)
        if random.random() < 0.3:
            one[random.choice([1, 4, 5, 6])] = None
        filters.append(one)
    return filters


def _filter(one: Acl) -> Spec:
    kind, name, pattern, principal, host, operation, permission = one
    any_ = 1
    return {
        "resource_type_filter": any_ if kind is None else kind,
        "resource_name_filter": name,
        "pattern_type_filter": any_ if pattern is None else pattern,
        "principal_filter": principal,
        "host_filter": host,
        "operation": any_ if operation is None else operation,
        "permission_type": any_ if permission is None else permission,
    }


def _deleted(response: Any) -> Spec:
    found = [
        [acl.resource_type, acl.resource_name, acl.pattern_type, *_entry(acl)]
        for each in response.filter_results
        for acl in each.matching_acls
    ]
    return {"deleted": found}


def _entry(acl: Any) -> list[Any]:
    return [acl.principal, acl.host, acl.operation, acl.permission_type]


def _checked(response: Any) -> Any:
    if (error := error_of(response)) != "NONE":
        raise KafkaError(Error[error], "refused")
    return response
