"""Whatever a broker answers, a client raises tagwire's own errors and nothing else, and is done in its time.

Each story talks to an embedded broker through a proxy that changes one answer: its bytes, so that it is cut short or
nonsense, or its values, so that it is well-formed and odd. `TAGWIRE_SEED=7` changes other ones.
"""

from __future__ import annotations

import itertools
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import Random
from typing import Any, Final

import pytest

from tagwire import messages
from tagwire.broker import Broker
from tagwire.client import (
    ANY_NAME,
    EARLIEST,
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    Admin,
    Client,
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
    Committed,
    ConfigResource,
    Consumer,
    NewTopic,
    Producer,
    Reader,
    ResourcePattern,
    ResourcePatternFilter,
    TopicPartition,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from tagwire.client.versions import OURS
from tagwire.errors import KafkaError, TagwireError
from tagwire.rpc import api_name, encode_response_header

from ..kernel.differential.mutations import MUTATION_WEIGHTS, MUTATIONS
from ..kernel.differential.outcomes import structures
from ..kernel.differential.seed import SEED, seed_of_environment
from ..limits import stretch
from .mutating_proxy import Asked, MutatingProxy

ROUNDS = 25
CONSUMER_ROUNDS = 8
"""Of the stories in which a member waits out its session where it is not told better."""
SECONDS = 0.3
"""What a call may take; a proxy that changes one answer lets the attempts after it succeed at once."""

AT = TopicPartition("topic", 0)
NUMBERS = itertools.count()


def read(client: Client, **options: Any) -> None:
    with Reader(
        client, {AT: Committed(), ("topic", 1): EARLIEST}, stop_at_end=True, group="group", **options
    ) as reader:
        for _ in reader:
            pass
        reader.commit()
        reader.committed()
        reader.lag()


def read_objects(client: Client) -> None:
    with Reader(client, {AT: EARLIEST}, stop_at_end=True, isolation="read_committed") as reader:
        for record in reader.records():
            assert isinstance(record.headers, tuple)


def consume(client: Client, **options: Any) -> None:
    options = {"group": f"consumers-{next(NUMBERS)}", "offset_reset": "earliest", "auto_commit": False, **options}
    consumer = Consumer(client, max_poll_interval=1.0, **options)
    try:
        consumer.subscribe("topic")
        until = time.monotonic() + 1.0
        while not consumer.poll(0.05) and time.monotonic() < until:
            pass
        consumer.commit(timeout=SECONDS)
        consumer.poll(0.1)
    finally:
        consumer.close(SECONDS)


def consume_classic(client: Client) -> None:
    consume(client, heartbeat_interval=0.02, session_timeout=1.0)


def consume_new(client: Client) -> None:
    consume(client, protocol="consumer")


def produce(client: Client) -> None:
    with Producer(client, timeout=client.timeout, max_block=client.timeout) as producer:
        deliveries = [producer.send("topic", b"value", b"key", [("h", b"v")]) for _ in range(3)]
        producer.flush(client.timeout)
        for delivery in deliveries:
            delivery.result(client.timeout)


def transact(client: Client) -> None:
    seconds = client.timeout
    with Producer(client, transactional_id="mover", timeout=seconds, max_block=seconds) as producer:
        producer.init_transactions(seconds)
        with producer.transaction():
            producer.send("topic", b"value")
            producer.send_offsets({AT: 2}, "group")


def administer_topics(client: Client) -> None:
    admin, name = Admin(client), f"more-{next(NUMBERS)}"
    admin.create_topics([NewTopic(name)])
    admin.create_partitions({name: 3})
    admin.list_topics()
    admin.delete_records({AT: 0})
    admin.delete_topics([name])


def administer_configs(client: Client) -> None:
    admin, at = Admin(client), ConfigResource("topic", "topic")
    admin.alter_configs({at: {"retention.ms": "-1"}})
    admin.describe_configs([at])


def administer_groups(client: Client) -> None:
    admin, group = Admin(client), f"group-{next(NUMBERS)}"
    admin.alter_group_offsets(group, {AT: 1, ("topic", 1): 1})
    admin.list_groups()
    admin.describe_groups([group])
    admin.group_offsets(group)
    admin.delete_group_offsets(group, [AT])
    admin.delete_groups([group])


def administer_transactions(client: Client) -> None:
    admin = Admin(client)
    for found in admin.list_transactions():
        admin.describe_transactions([found.transactional_id])
    admin.describe_producers([AT])
    admin.fence_producers(["nobody"])


def administer_access(client: Client) -> None:
    """A refusal is an answer, too: the broker before which this runs has no authorizer."""
    admin = Admin(client)
    acl = AclBinding(ResourcePattern("topic", "topic"), AccessControlEntry("User:alice", "read"))
    set_quota, reset_quota = (
        ClientQuotaAlteration(ClientQuotaEntity(ip="::1"), {"connection_creation_rate": rate}) for rate in (9, None)
    )
    for call in (
        lambda: admin.create_acls(acl),
        lambda: admin.describe_acls(),
        lambda: admin.delete_acls(AclBindingFilter(ResourcePatternFilter("topic", "topic"))),
        lambda: admin.alter_user_scram_credentials(UserScramCredentialUpsertion("alice", "SCRAM-SHA-256", "secret")),
        lambda: admin.describe_user_scram_credentials(),
        lambda: admin.alter_user_scram_credentials(UserScramCredentialDeletion("alice", "SCRAM-SHA-256")),
        lambda: admin.alter_client_quotas(set_quota),
        lambda: admin.describe_client_quotas(ClientQuotaFilter(ip=ANY_NAME)),
        lambda: admin.alter_client_quotas(reset_quota),
    ):
        with suppress(KafkaError):
            call()


def administer_replicas(client: Client) -> None:
    admin = Admin(client)
    for broker in admin.describe_log_dirs(partitions=[AT]):
        for replica, found in admin.describe_replica_log_dirs([(*AT, broker)]).items():
            admin.alter_replica_log_dirs({replica: found.path or "/"})
        admin.alter_partition_reassignments({AT: [broker]})
    admin.list_partition_reassignments()
    admin.elect_leaders("preferred", AT)
    admin.elect_leaders()
    admin.list_config_resources()
    admin.describe_features()


def look(client: Client) -> None:
    admin = Admin(client)
    admin.describe_cluster()
    admin.describe_log_dirs()
    client.features()
    client.metadata()
    client.list_offsets({AT: EARLIEST})


STORIES: tuple[Callable[[Client], None], ...] = (
    read,
    read_objects,
    consume_classic,
    consume_new,
    produce,
    transact,
    administer_topics,
    administer_configs,
    administer_groups,
    administer_transactions,
    administer_access,
    administer_replicas,
    look,
)
OLDER: Final = "3.9"
"""A release whose transactions are of version 1."""

RUNS: Final = (*((story, None) for story in STORIES), (transact, OLDER))
"""Each story, and before a broker of which release."""

ASKED_BY_NO_STORY = {
    "SaslAuthenticate",
    "SaslHandshake",
    "UpdateFeatures",
    "WriteTxnMarkers",
}
"""Of the APIs that our client asks for; their answers are mutated with those of all APIs, by tests/kernel/differential.
"""


PORTS: Final[set[int]] = set()


@contextmanager
def before_a_broker(release: str | None = None) -> Iterator[MutatingProxy]:
    made = MutatingProxy()
    PORTS.add(made.port)
    with Broker(advertise=f"127.0.0.1:{made.port}", fsync="never", as_release=release) as broker:
        made.forward_to(int(broker.bootstrap.rpartition(":")[2]))
        with Client(f"127.0.0.1:{made.port}") as client:
            Admin(client).create_topics([NewTopic("topic", num_partitions=2)])
            with Producer(client, linger=0) as producer:
                for number in range(20):
                    producer.send("topic", b"%d" % number, partition=number % 2)
            transact(client)
        yield made
    made.close()


@pytest.fixture(scope="module")
def proxies() -> Iterator[dict[str | None, MutatingProxy]]:
    with before_a_broker() as newest, before_a_broker(OLDER) as older:
        yield {None: newest, OLDER: older}


@pytest.fixture(autouse=True)
def nobody_else_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers may name any host and port."""
    look_up = socket.getaddrinfo

    def only(host: Any, port: Any, *others: Any, **more: Any) -> Any:
        if host != "127.0.0.1" or port not in PORTS:
            raise socket.gaierror(socket.EAI_NONAME, "not in this test")
        return look_up(host, port, *others, **more)

    monkeypatch.setattr(socket, "getaddrinfo", only)


@pytest.fixture
def lost_threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What ended threads that nobody asks."""
    found: list[str] = []
    monkeypatch.setattr(threading, "excepthook", lambda told: found.append(f"{told.thread}: {told.exc_value!r}"))
    return found


def bytes_changed(asked: Asked, frame: bytes, chance: Random) -> bytes:
    body, other = frame[4:], chance.randbytes(chance.randrange(40))
    for _ in range(chance.choice((1, 1, 2))):
        body = chance.choices(MUTATIONS, MUTATION_WEIGHTS)[0](body, chance, other)
    return frame[:4] + body


def ended_early(asked: Asked, frame: bytes, chance: Random) -> bytes:
    """The answer without its last fields: what is left could be the empty arrays that end many."""
    return frame[: max(4, len(frame) - chance.randrange(1, 10))] + b"\1\0\0"[: chance.randrange(1, 4)]


def values_changed(asked: Asked, frame: bytes, chance: Random) -> bytes:
    """The answer with one or two values that nobody expects, if it can be written so."""
    kind = getattr(messages, f"{api_name(asked.api_key)}Response")
    header = encode_response_header(asked.api_key, asked.version, int.from_bytes(frame[:4], "big", signed=True))
    try:
        message = kind.decode(frame[len(header) :], asked.version)
    except TagwireError:  # what an older broker says of a version of ApiVersions that it does not know
        return bytes_changed(asked, frame, chance)
    for _ in range(20):
        target = chance.choice(list(structures(message)))
        name = chance.choice(target._fields)
        before = getattr(target, name)
        setattr(target, name, odd(before, chance))
        try:
            changed = header + message.encode(asked.version)
        except TagwireError:
            setattr(target, name, before)
            continue
        if changed != frame and chance.random() < 0.7:
            return changed
    return bytes_changed(asked, frame, chance)


def odd(value: Any, chance: Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return chance.choice((0, -1, -2, 1, 3, 35, 999, (1 << 31) - 1, -(1 << 31), (1 << 63) - 1, value + 1))
    if isinstance(value, str):
        return chance.choice((None, "", "x", "topic", "other", "\0", "é" * 200, "127.0.0.1", "Ongoing"))
    if isinstance(value, list):
        return chance.choice((None, [], value * 2, value[:-1], value[::-1], value[:1] * 3))
    if isinstance(value, bytes | memoryview):
        data = bytes(value)
        return chance.choice((None, b"", b"\0", data[:-1], data * 2, bytes_changed(Asked(0, 0), data, chance)))
    return None


@pytest.mark.parametrize("change", [bytes_changed, ended_early, values_changed], ids=lambda change: change.__name__)
@pytest.mark.parametrize(
    ("story", "release"), RUNS, ids=[f"{story.__name__}-{release or 'newest'}" for story, release in RUNS]
)
def test_whatever_one_answer_says_only_tagwires_errors_are_raised(
    proxies: dict[str | None, MutatingProxy],
    story: Callable[[Client], None],
    release: str | None,
    change: Callable[[Asked, bytes, Random], bytes],
    lost_threads: list[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL)
    proxy = proxies[release]
    failures = []
    for number in range(CONSUMER_ROUNDS if story in (consume_classic, consume_new) else ROUNDS):
        seed = f"{seed_of_environment()}/{story.__name__}/{change.__name__}/{number}"
        chance = Random(seed)
        proxy.arm(
            chance.choice((0, 1, 2, 3, chance.randrange(12))),
            lambda asked, frame, chance=chance: change(asked, frame, chance),
        )
        began = time.monotonic()
        try:
            with Client(f"127.0.0.1:{proxy.port}", timeout=SECONDS) as client:
                story(client)
        except TagwireError:
            pass
        except Exception as error:
            failures.append(f"{error!r}: {seed} changed {told(proxy)}")
        assert time.monotonic() - began < 30 * stretch(), f"{seed} changed {told(proxy)}"
        if lost_threads:
            failures.append(f"{lost_threads.pop()}: {seed} changed {told(proxy)}")
    assert failures == [], f"{SEED}={seed_of_environment()}"


def told(proxy: MutatingProxy) -> str:
    if proxy.changed is None:
        return "nothing"
    (api, version), frame = proxy.changed
    return f"{api_name(api)} v{version} to {frame.hex()}"


def test_the_stories_ask_for_all_that_a_client_asks_for() -> None:
    asked = set()
    # The others have been told of producers that there never were.
    with before_a_broker() as newest, before_a_broker(OLDER) as older:
        for story, release in RUNS:
            proxy = newest if release is None else older
            proxy.arm(0, lambda asked, frame: frame)
            with Client(f"127.0.0.1:{proxy.port}") as client:
                story(client)
            asked |= {each.api_key for each in proxy.asked}
    assert {api_name(key) for key in OURS} - {api_name(key) for key in asked} == ASKED_BY_NO_STORY
