"""Kafka's own kafka-acls.sh, with its Java client, on our broker's ACLs."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tagwire.broker import Broker

from .authorization_people import PASSWORDS, SUPER
from .real_broker import RealBroker
from .real_node import SECONDS

ADDED = "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)"


def test_javas_command_adds_lists_and_removes_acls(kafka: RealBroker, tmp_path: Path) -> None:
    login = tmp_path / "login.properties"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    login.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={module} required username="{SUPER}" password="{PASSWORDS[SUPER]}";\n'
    )
    with Broker(sasl="PLAIN", users=PASSWORDS, authorizer="StandardAuthorizer", super_users=f"User:{SUPER}") as broker:

        def acls(*arguments: str) -> str:
            program = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", ":".join(map(str, kafka.jars))]
            connection = ["--bootstrap-server", broker.bootstrap, "--command-config", str(login)]
            command = [*program, "org.apache.kafka.tools.AclCommand", *connection, *arguments]
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
            return done.stdout

        about = ["--topic", "orders-", "--resource-pattern-type", "prefixed"]
        granted = ["--allow-principal", "User:alice", "--operation", "READ"]
        assert ADDED in acls("--add", *about, *granted)
        assert ADDED in acls("--list", "--topic", "orders-1", "--resource-pattern-type", "match")
        acls("--remove", "--force", *about, *granted)
        assert ADDED not in acls("--list")
