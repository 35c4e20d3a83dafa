"""ACLs whose hosts are networks (KIP-1276): made, told and held as by Kafka, which has them from 4.4 on."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network
from random import Random
from typing import Final

import pytest

from tagwire import messages
from tagwire.broker import Broker, Listener
from tagwire.broker.authorization.host_networks import HostNetworks, network_of
from tagwire.client import AccessControlEntry, AclBinding, Admin, Client, ResourcePattern
from tagwire.errors import KafkaError

from .authorization_peer import Wire
from .authorization_people import PASSWORDS
from .conftest import NEW, Count, Peers, Programs
from .real_node import PLAIN, SECONDS, RealNode, free_ports

pytestmark = pytest.mark.nightly

WHO: Final = "nobody"
SOURCES: Final = ("127.0.0.1", "127.0.0.2", "127.1.2.3", "127.255.255.254")
ADDRESSES: Final = (*SOURCES, "0:0:0:0:0:0:0:1", "2001:db8:0:0:0:0:0:1", "2001:db9:0:0:0:0:0:0", "10.1.2.3", "*")

HOSTS: Final = (
    "*",
    "127.0.0.1",
    "127.0.0.0/8",
    "127.0.0.1/32",
    "127.0.0.1/31",
    "127.0.0.3/31",
    "127.1.2.3/16",
    "127.0.0.0/0",
    "127.000.0.01/08",
    "127.0.0.1/008",
    "127.0.0.0/33",
    "127.0.0.0/-1",
    "127.0.0/8",
    "127.0.0.0/",
    "/8",
    "127.0.0.256/8",
    "127.0.0.0/255.0.0.0",
    "localhost/8",
    " 127.0.0.0/8",
    "127.0.0.0/8 ",
    "127.0.0.0/8/8",
    "0x7f.0.0.1/8",
    "10.0.0.0/8",
    "::/0",
    "::1/128",
    "::1/129",
    "::/",
    "::g/8",
    "1::1::/8",
    "2001:DB8::/32",
    "2001:db8::1/032",
    "::127.0.0.1/128",
    "::ffff:127.0.0.1/104",
    "::ffff:7f00:1/128",
    "1.2.3.4:5/8",
)

_SETTINGS: Final = """
sasl.enabled.mechanisms=PLAIN
listener.name.login.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required {users};
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""

Addresses = tuple[str, str]
"""Where a super user comes without a login, and where `WHO` logs in."""


@pytest.fixture(scope="module", params=["4.3.1", "4.4.0"])
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def kafkas(release: str, programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Addresses]:
    jars = programs(release).jars
    controller, plain, login = free_ports(3)
    users = f'user_{WHO}="{PASSWORDS[WHO]}"'
    folder = tmp_path_factory.mktemp("kafka-networks")
    settings = _SETTINGS.format(users=users)
    node = RealNode(folder, {1: controller}, 1, {PLAIN: plain, "LOGIN": login}, settings=settings)
    node.format(jars)
    with node.running(jars):
        yield node.address(), node.address("LOGIN")


@pytest.fixture(scope="module")
def ours(release: str) -> Iterator[Addresses]:
    with Broker(
        listeners=[Listener(), Listener(sasl=("PLAIN",))],
        users={WHO: PASSWORDS[WHO]},
        authorizer="StandardAuthorizer",
        super_users="User:ANONYMOUS",
        as_release=release.rpartition(".")[0],
        auto_create_topics=False,
    ) as broker:
        plain, login = broker.addresses
        yield plain, login


def created(admin: Admin, topic: str, permission: str, host: str) -> str:
    pattern, entry = ResourcePattern("topic", topic), AccessControlEntry(f"User:{WHO}", "describe", permission, host)
    try:
        admin.create_acls(AclBinding(pattern, entry))
    except KafkaError as error:
        return error.error.name
    return "created"


def seen(bootstrap: str, source: str, topics: list[str]) -> dict[str, int]:
    """Error codes of topics, of which there is none: whoever may describe one is told so."""
    wire = Wire(bootstrap, WHO, source)
    request = messages.MetadataRequest
    asked = request(
        topics=[request.MetadataRequestTopic(name=name) for name in topics], allow_auto_topic_creation=False
    )
    found = {topic.name: topic.error_code for topic in wire.ask(asked, 8).topics}
    wire.close()
    return found


def test_networks_are_made_told_and_held_as_by_kafka(
    kafkas: Addresses, ours: Addresses, release: str, peers: Peers, count: Count
) -> None:
    acls = [
        (f"{by}-{permission}-{n}", permission, host)
        for by in ("java", "tagwire")
        for permission in ("allow", "deny")
        for n, host in enumerate(HOSTS)
    ]
    became: dict[str, list[str]] = {}
    for bootstrap, _ in (kafkas, ours):
        with Client(bootstrap, timeout=SECONDS) as client, Admin(client) as admin:
            for topic, permission, _ in acls:
                if permission == "deny":
                    assert created(admin, topic, "allow", "*") == "created"
            became[bootstrap] = [created(admin, *acl) for acl in acls if acl[0].startswith("tagwire")]
    by_java = [acl for acl in acls if acl[0].startswith("java")]
    asked = [
        "\t".join((bootstrap, topic, permission.upper(), host))
        for bootstrap, _ in (kafkas, ours)
        for topic, permission, host in by_java
    ]
    *told, theirs_text, our_text = peers(NEW).ask(
        "AclAdmin", [*asked, *(f"{bootstrap}\tdescribe" for bootstrap, _ in (kafkas, ours))]
    )
    hosts = [host for _, _, host in by_java]
    assert dict(zip(hosts, told[: len(hosts)])) == dict(zip(hosts, told[len(hosts) :]))
    assert dict(zip(hosts, became[kafkas[0]])) == dict(zip(hosts, became[ours[0]]))
    assert set(told) == ({"created"} if release < "4.4" else {"created", "InvalidRequestException"})
    assert theirs_text == our_text
    described = []
    for bootstrap, _ in (kafkas, ours):
        with Client(bootstrap, timeout=SECONDS) as client, Admin(client) as admin:
            described.append(admin.describe_acls())
    assert described[0] == described[1]
    topics = [topic for topic, _, _ in acls]
    allowed = 0
    for source in SOURCES:
        theirs, we = (seen(login, source, topics) for _, login in (kafkas, ours))
        assert theirs == we, source
        assert set(we.values()) == {3, 29}
        allowed += sum(code == 3 for code in we.values())
    cells = len(SOURCES) * len(topics)
    count(f"ACLs of networks beside Kafka {release}: {len(acls)} made, {cells} requests decided, {allowed} allowed")


def test_a_host_is_a_network_to_both_and_every_address_in_it(peers: Peers, count: Count) -> None:
    """By the classes of Kafka that decide; ours takes no prefix with a sign, and no zone."""
    random = Random(1276)
    pairs = [(host, address) for host in HOSTS if "/" in host for address in ADDRESSES]
    for _ in range(2000):
        bits = random.choice((32, 128))
        number = random.getrandbits(bits) & random.getrandbits(bits)
        length = random.randrange(1, bits + 1)
        network = ip_network((number, length) if bits == 128 else (number.to_bytes(4), length), strict=False)
        edges = [int(network[0]) - 1, int(network[0]), int(network[-1]), int(network[-1]) + 1]
        kind = type(network.network_address)
        pairs += [(str(network), str(kind(edge))) for edge in edges if 0 < edge < 1 << bits]
    wrong = []
    for (host, address), told in zip(pairs, peers(NEW).ask("AclHosts", ["\t".join(pair) for pair in pairs])):
        networks = HostNetworks()
        networks.add(host)
        answer = "inside" if host in networks.around(address) else "outside"
        if (answer if network_of(host) is not None else "refused") != told:
            wrong.append((host, address, told))
    assert wrong == []
    count(f"hosts that are networks: {len(pairs)} pairs of one and an address decided as by Kafka's CidrUtils")
