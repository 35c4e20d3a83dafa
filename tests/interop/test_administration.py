"""What an administrator does by our client and our commands is what Kafka's own tools show, and the other way round.

One node of Kafka with two log directories, StandardAuthorizer, and a listener that asks for SCRAM.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tagwire.cli import main
from tagwire.client import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    Admin,
    Client,
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
    NewTopic,
    Producer,
    ResourcePattern,
    ResourcePatternFilter,
    ScramCredentialInfo,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from tagwire.errors import AuthenticationError, Error, KafkaError

from ..limits import wait_until
from .real_broker import RealBroker
from .real_node import PLAIN, SECONDS, RealNode, free_ports

LOGIN: Final = "LOGIN"
_SETTINGS: Final = """
log.dirs={folder}/one,{folder}/two
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.login.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
auto.leader.rebalance.enable=false
"""
_TOOLS: Final = "org.apache.kafka.tools"

Tool = Callable[..., str]


@pytest.fixture(scope="module")
def node(kafka: RealBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    folder = tmp_path_factory.mktemp("kafka-administration")
    controller, plain, login = free_ports(3)
    settings = _SETTINGS.format(folder=folder)
    one = RealNode(folder, {1: controller}, 1, {PLAIN: plain, LOGIN: login}, settings=settings)
    one.format(kafka.jars)
    with one.running(kafka.jars):
        yield one


@pytest.fixture(scope="module")
def bootstrap(node: RealNode) -> str:
    return node.address()


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> Iterator[Admin]:
    with Client(bootstrap, timeout=SECONDS) as client:
        one = Admin(client)
        one.create_topics([NewTopic("flights", 2, 1)])
        with Producer(client) as producer:
            for number in range(100):
                producer.send("flights", b"v" * 100, partition=number % 2)
        yield one


@pytest.fixture(scope="module")
def tool(kafka: RealBroker, node: RealNode) -> Tool:
    """Runs a tool of Kafka's; what it prints."""

    def run(program: str, *arguments: str) -> str:
        small = ["-Xmx200m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        command = ["java", *small, "-cp", ":".join(map(str, kafka.jars)), program, "--bootstrap-server"]
        done = subprocess.run([*command, node.address(), *arguments], capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    return run


def test_kafka_acls_lists_what_we_create_and_we_what_it_adds(admin: Admin, tool: Tool, bootstrap: str) -> None:
    words = ["--allow-principal", "User:app", "--topic", "orders-", "--resource-pattern-type", "prefixed"]
    assert main(["acls", "add", "--bootstrap", bootstrap, "--consumer", "--group", "g", *words]) == 0
    deny = AclBinding(
        ResourcePattern("transactional_id", "mover"), AccessControlEntry("User:*", "describe", "deny", "10.0.0.7")
    )
    admin.create_acls(deny)
    printed = tool(f"{_TOOLS}.AclCommand", "--list")
    pattern = r"ResourcePattern\(resourceType=(\w+), name=([^,]+), patternType=(\w+)\)`?:[^(]*((?:\([^)]*\)\s*)+)"
    theirs = {
        (*found.groups()[:3], *re.findall(r"=([^,)]+)", entry))
        for found in re.finditer(pattern, printed)
        for entry in re.findall(r"\([^)]*\)", found[4])
    }
    ours = admin.describe_acls()
    assert theirs == {
        (
            acl.pattern.resource_type.upper(),
            acl.pattern.name,
            acl.pattern.pattern_type.upper(),
            acl.entry.principal,
            acl.entry.host,
            acl.entry.operation.upper(),
            acl.entry.permission.upper(),
        )
        for acl in ours
    }
    assert len(ours) == 4
    theirs_too = ["--producer", "--idempotent", "--transactional-id", "mover", "--topic", "t", "--allow-principal"]
    tool(f"{_TOOLS}.AclCommand", "--add", *theirs_too, "User:theirs")
    assert main(["acls", "add", "--bootstrap", bootstrap, *theirs_too, "User:ours"]) == 0

    def of(principal: str) -> set[tuple[ResourcePattern, str]]:
        return {(acl.pattern, acl.entry.operation) for acl in admin.describe_acls() if acl.entry.principal == principal}

    wait_until(lambda: len(of("User:ours")) == len(of("User:theirs")) == 6)
    assert of("User:ours") == of("User:theirs")
    matching = AclBindingFilter(ResourcePatternFilter("topic", "orders-1", "match"))
    gone = admin.delete_acls(matching)[matching]
    assert {acl.entry.operation for acl in gone} == {"read", "describe"}
    assert len(admin.delete_acls(AclBindingFilter())[AclBindingFilter()]) == 14


def test_a_scram_user_and_quotas_are_what_kafka_configs_shows(admin: Admin, tool: Tool, node: RealNode) -> None:
    admin.alter_user_scram_credentials(
        [
            UserScramCredentialUpsertion("alice", "SCRAM-SHA-512", "wonderland", 8192),
            UserScramCredentialUpsertion("alice", "SCRAM-SHA-256", "wonderland"),
        ]
    )
    alice, default = ClientQuotaEntity(user="alice"), ClientQuotaEntity(user="", client_id="app")
    admin.alter_client_quotas(
        [
            ClientQuotaAlteration(alice, {"producer_byte_rate": 1048576, "request_percentage": 12.5}),
            ClientQuotaAlteration(default, {"consumer_byte_rate": 9}),
        ]
    )
    printed = tool("kafka.admin.ConfigCommand", "--describe", "--entity-type", "users", "--entity-name", "alice")
    assert "SCRAM-SHA-512=iterations=8192" in printed
    assert "SCRAM-SHA-256=iterations=4096" in printed
    assert "producer_byte_rate=1048576.0" in printed
    assert "request_percentage=12.5" in printed
    assert admin.describe_user_scram_credentials() == {
        "alice": [ScramCredentialInfo("SCRAM-SHA-256", 4096), ScramCredentialInfo("SCRAM-SHA-512", 8192)]
    }
    assert admin.describe_client_quotas() == {
        alice: {"producer_byte_rate": 1048576.0, "request_percentage": 12.5},
        default: {"consumer_byte_rate": 9.0},
    }
    assert admin.describe_client_quotas(ClientQuotaFilter(user="alice")).keys() == {alice}
    assert log_in(node, "wonderland")
    assert not log_in(node, "looking-glass")
    admin.alter_user_scram_credentials(UserScramCredentialDeletion("alice", "SCRAM-SHA-512"))
    wait_until(lambda: not log_in(node, "wonderland"))
    with pytest.raises(KafkaError, match="alter SCRAM user 'alice'") as caught:
        admin.alter_user_scram_credentials(UserScramCredentialDeletion("alice", "SCRAM-SHA-512"))
    assert caught.value.error is Error.RESOURCE_NOT_FOUND
    with pytest.raises(KafkaError, match="alter quotas of user 'alice'") as caught:
        admin.alter_client_quotas(ClientQuotaAlteration(alice, {"no_such_rate": 1}))
    assert caught.value.error is Error.INVALID_REQUEST


def log_in(node: RealNode, password: str) -> bool:
    login = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-512"}
    try:
        with Client(
            node.address(LOGIN), sasl_plain_username="alice", sasl_plain_password=password, timeout=SECONDS, **login
        ) as client:
            client.metadata([])
    except AuthenticationError:
        return False
    return True


def test_a_plan_is_one_for_kafkas_tool_too(
    admin: Admin, tool: Tool, bootstrap: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.json"
    assert main(["reassign", "generate", "flights", "--brokers", "1", "--bootstrap", bootstrap]) == 0
    plan.write_text(capsys.readouterr().out)
    assert main(["reassign", "verify", str(plan), "--bootstrap", bootstrap]) == 0
    printed = tool(f"{_TOOLS}.reassign.ReassignPartitionsCommand", "--verify", "--reassignment-json-file", str(plan))
    assert printed.count("is completed") == 2
    assert admin.list_partition_reassignments() == {}
    with pytest.raises(KafkaError, match="reassign partition flights-0") as caught:
        admin.alter_partition_reassignments({("flights", 0): [1, 9]})
    assert caught.value.error is Error.INVALID_REPLICA_ASSIGNMENT
    assert not any(admin.elect_leaders().values())


def test_a_replica_is_moved_to_another_directory(admin: Admin) -> None:
    leader = next(one for one in admin.list_topics() if one.name == "flights").partitions[0].leader
    replica = ("flights", 0, leader)
    before = admin.describe_replica_log_dirs([replica])[replica]
    (other,) = [one.path for one in admin.describe_log_dirs(leader)[leader] if one.path != before.path]
    admin.alter_replica_log_dirs({replica: other})
    wait_until(lambda: admin.describe_replica_log_dirs([replica])[replica].path == other)
    with pytest.raises(KafkaError, match=rf"move replica flights-0 on broker {leader}") as caught:
        admin.alter_replica_log_dirs({replica: "/nowhere"})
    assert caught.value.error is Error.LOG_DIR_NOT_FOUND


def test_features_are_what_kafka_features_describes(admin: Admin, tool: Tool) -> None:
    printed = tool(f"{_TOOLS}.FeatureCommand", "describe")
    found = admin.describe_features()
    told = dict(re.findall(r"^Feature: (\S+).*FinalizedVersionLevel: (\S+)", printed, re.MULTILINE))
    assert told.keys() == found.supported.keys()
    levels = {name: str(found.finalized.get(name, 0)) for name in told if name != "metadata.version"}
    assert levels == {name: level for name, level in told.items() if name != "metadata.version"}
    assert found.epoch >= 0
    _, highest = found.supported["group.version"]
    admin.update_features({"group.version": highest}, validate_only=True)
    with pytest.raises(KafkaError, match=r"update feature 'group\.version'") as caught:
        admin.update_features({"group.version": highest + 1})
    assert caught.value.error is Error.INVALID_UPDATE_VERSION
    assert {one.kind for one in admin.list_config_resources(["topic", "broker"])} == {"topic", "broker"}
