"""What Java's clients, librdkafka and franz-go are told by our broker's ACLs: denied topic, group, transactional id.

Each program's arguments are: where the broker listens, a user and a password. It does what `TOLD` names, in that order,
and prints a line for each: its name, and Kafka's name of the error, as its client calls that, or NONE.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tagwire.broker import Broker, Listener
from tagwire.client import (
    AccessControlEntry,
    AclBinding,
    Admin,
    Client,
    NewTopic,
    ResourcePattern,
)

from .conftest import MODULES, NEW, not_run_without
from .group_members import HERE, SECONDS, franz_go
from .java_process import SMALL
from .peer import Peer, compiled

USERS = {"admin": "secret", "alice": "wonderland"}
TOPICS = ("shop.orders", "shop.secret", "other")


def java() -> tuple[str, ...]:
    """Java's newest clients, to be told their login on the command line."""
    peer = Peer.fetch(NEW, MODULES[NEW])
    path = ":".join(map(str, (compiled(peer, "AclClient"), *peer.jars)))
    return ("java", *SMALL, "-cp", path, "AclClient")


PROGRAMS: dict[str, Callable[[], tuple[str, ...]]] = {
    "Java": java,
    "librdkafka": lambda: (sys.executable, str(HERE / "members" / "acls_librdkafka.py")),
    "franz-go": lambda: franz_go("acls"),
}
TOLD = {
    "allowed-topic": "NONE",
    "denied-topic": "TOPIC_AUTHORIZATION_FAILED",
    "unnamed-topic": "TOPIC_AUTHORIZATION_FAILED",
    "allowed-group": "NONE",
    "denied-group": "GROUP_AUTHORIZATION_FAILED",
    "denied-read": "TOPIC_AUTHORIZATION_FAILED",
    "allowed-transaction": "NONE",
    "denied-transaction": "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
}

pytestmark = pytest.mark.nightly


def allowed(kind: str, name: str, permission: str = "allow") -> AclBinding:
    pattern = ResourcePattern(kind, name, "prefixed" if permission == "allow" else "literal")
    return AclBinding(pattern, AccessControlEntry("User:alice", "all", permission))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Alice may do what begins with `shop.`, but for one topic."""
    with Broker(
        tmp_path_factory.mktemp("acls") / "data",
        listeners=[Listener(sasl=("PLAIN",))],
        users=USERS,
        authorizer="StandardAuthorizer",
        super_users="User:admin",
        auto_create_topics=False,
    ) as running:
        with (
            Client(
                running.bootstrap,
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism="PLAIN",
                sasl_plain_username="admin",
                sasl_plain_password=USERS["admin"],
            ) as client,
            Admin(client) as admin,
        ):
            admin.create_topics([NewTopic(name) for name in TOPICS])
            kinds = ("topic", "group", "transactional_id")
            admin.create_acls([*(allowed(kind, "shop.") for kind in kinds), allowed("topic", "shop.secret", "deny")])
        yield running


@pytest.mark.parametrize("client", PROGRAMS)
def test_it_is_told_what_it_may_not_do_and_does_the_rest(broker: Broker, client: str, tmp_path: Path) -> None:
    with not_run_without():
        command = PROGRAMS[client]()
    log = tmp_path / "log"
    with log.open("w") as errors:
        done = subprocess.run(
            [*command, broker.bootstrap, "alice", USERS["alice"]],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            timeout=5 * SECONDS,
        )
    assert done.returncode == 0, log.read_text()[-1500:]
    said = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert {what: text.removeprefix("_") for what, text in said.items()} == TOLD
