"""`tagwire broker`: runs until it is told to stop, and says in one line why it cannot."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tagwire import messages
from tagwire.broker import Broker
from tagwire.client import Client
from tagwire.rpc import NEED_DATA, Connection


@contextmanager
def started(*arguments):
    """`tagwire broker` as a process: it, and the addresses it listens on."""
    command = [sys.executable, "-m", "tagwire", "broker", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            ready = process.stdout.readline()
            yield process, ready.removeprefix("listening on ").partition(", data in ")[0].split(", ")
        finally:
            process.terminate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_it_says_where_it_listens_serves_and_stops_cleanly_at_a_signal(run, tmp_path, number):
    data = tmp_path / "data"
    with subprocess.Popen(
        [sys.executable, "-m", "tagwire", "broker", "--data", data, "--listen", "127.0.0.1:0", "--partitions", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        ready = process.stdout.readline()
        address = ready.removeprefix("listening on ").partition(",")[0]
        assert ready == f"listening on {address}, data in {data}\n"
        assert run("topics", "create", "t", "--bootstrap", address).code == 0
        process.send_signal(number)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (0, "", "")
    with Broker(data) as broker, Client(broker.bootstrap) as client:
        assert list(client.metadata().topics) == ["t"]


def test_a_directory_that_is_not_ours_is_named_and_left_alone(run, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    ran = run("broker", "--data", tmp_path, "--listen", "127.0.0.1:0")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("tagwire: ")
    assert str(tmp_path) in ran.err
    assert ran.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_directory_or_an_address_in_use_is_named(run, tmp_path):
    with Broker(tmp_path / "used") as broker:
        address = broker.bootstrap
        same_data = run("broker", "--data", tmp_path / "used", "--listen", "127.0.0.1:0")
        same_address = run("broker", "--data", tmp_path / "free", "--listen", address)
    assert (same_data.code, same_data.out) == (same_address.code, same_address.out) == (2, "")
    assert str(tmp_path / "used") in same_data.err
    assert address in same_address.err
    assert same_data.err.count("\n") == same_address.err.count("\n") == 1


def test_it_listens_on_several_addresses_and_tells_clients_of_others(tmp_path):
    with started(
        "--data", tmp_path / "data", "--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0",
        "--advertise", "127.0.0.1:0", "--advertise", "kafka.example.org:9093",
    ) as (_, addresses):  # fmt: skip
        with Client(addresses[0]) as client:
            (node,) = client.metadata().brokers.values()
            assert f"{node.host}:{node.port}" == addresses[0]
        answer = asked(addresses[1], messages.MetadataRequest(topics=None), 12)
        assert (answer.brokers[0].host, answer.brokers[0].port) == ("kafka.example.org", 9093)


def test_several_nodes_are_a_cluster_each_of_which_says_where_it_listens(tmp_path):
    data = tmp_path / "data"
    with started("--data", data, "--nodes", 3, "--listen", "127.0.0.1:0", "--partitions", 3) as (process, (first,)):
        ready = [first, *(process.stdout.readline() for _ in range(3))]
        addresses = [line.strip().removeprefix(f"node {at}: ") for at, line in enumerate(ready[:3], 1)]
        assert ready[3] == f"listening on {', '.join(addresses)}, data in {data}\n"
        with Client(addresses[2]) as client:
            told = client.metadata(["t"], allow_auto_create=True)
            assert {node: f"{at.host}:{at.port}" for node, at in told.brokers.items()} == dict(enumerate(addresses, 1))
            partitions = client.metadata(["t"]).topics["t"].partitions.values()
            assert {partition.leader for partition in partitions} == {1, 2, 3}
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (0, "", "")
    with Broker(data) as broker, Client(broker.bootstrap) as client:
        assert list(client.metadata().topics) == ["t"]


@pytest.mark.parametrize("nodes", [1, 2])
def test_programs_are_told_in_json_where_each_node_listens(tmp_path, nodes):
    listens = ("--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0")
    command = [sys.executable, "-m", "tagwire", "broker", "--data", tmp_path / "d", "--json", "--nodes", str(nodes)]
    with subprocess.Popen([*command, *listens], stdout=subprocess.PIPE, text=True) as process:
        told = json.loads(process.stdout.readline())
        process.terminate()
    assert process.returncode == 0
    assert told["data"] == str(tmp_path / "d")
    assert [node["node"] for node in told["nodes"]] == list(range(1, nodes + 1))
    assert len({address for node in told["nodes"] for address in node["addresses"]}) == 2 * nodes


def asked(address, message, version):
    host, _, port = address.rpartition(":")
    connection = Connection("client")
    with socket.create_connection((host, int(port)), timeout=20) as sock:
        sock.sendall(connection.send(message, version))
        while (event := connection.next_event()) is NEED_DATA:
            connection.receive(sock.recv(65536))
    return event.message


CONFIG = """
data = "kept"
fsync = "never"
num_partitions = 3
idle_timeout_s = 60

[[listeners]]
listen = "127.0.0.1:0"

[[listeners]]
listen = "127.0.0.1:0"
sasl = ["SCRAM-SHA-256"]

[users]
alice = { env = "ALICE_PASSWORD" }
"""


def test_a_file_says_what_no_option_does(tmp_path, monkeypatch):
    monkeypatch.setenv("ALICE_PASSWORD", "wonderland")
    (tmp_path / "broker.toml").write_text(CONFIG)
    with started("--config", tmp_path / "broker.toml", "--partitions", 2) as (_, (plain, guarded)):
        with Client(plain) as client:
            client.metadata(["t"], allow_auto_create=True)
            assert len(client.metadata(["t"]).topics["t"].partitions) == 2
        login = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-256"}
        with Client(guarded, sasl_plain_username="alice", sasl_plain_password="wonderland", **login) as client:
            assert set(client.metadata().topics) == {"t"}
    assert (tmp_path / "kept" / "t-1").is_dir()


BAD_FILES = [
    ("num_partitions = 0", "num_partitions=0 is not 1 to 1000"),
    ("num_partitions = true", "num_partitions=True is not a whole number"),
    ("partitions = 3", "partitions: no such setting; there are data, listeners, users"),
    ("auto_create_topics = 1", "auto_create_topics=1 is not true or false"),
    ("data = 3", "data=3 is not a text"),
    ("fsync = 'always'", "fsync='always' is not batch or interval or never"),
    ("data = [", "is no TOML"),
    ("listeners = 3", "listeners is not a list"),
    ("[[listeners]]\nlisten = 'here'", "listen='here' is not HOST:PORT"),
    ("[[listeners]]\nport = 9092", "listeners.port: no such setting"),
    ("[[listeners]]\nsasl = 'PLAIN'", "users: missing"),
    ("[[listeners]]\ntls = {}", "tls.certificate: missing"),
    ("[[listeners]]\ntls = { certificate = 'missing.pem' }", "missing.pem"),
    ("users = 3", "users is not a table"),
    ("[[listeners]]\nsasl = 'OAUTHBEARER'", "oauthbearer_validator: missing"),
    ("[oauthbearer]\nvalidator = 'none'", 'oauthbearer.validator is not "unsecured", nor "jwks" with a file'),
    ("[oauthbearer]\nvalidator = 'jwks'", 'oauthbearer.validator is not "unsecured", nor "jwks" with a file'),
    ("[oauthbearer]\nvalidator = 'jwks'\njwks = 'missing.json'", "missing.json': No such file"),
    ("[oauthbearer]\nvalidator = 'unsecured'\nclock_skew_s = 'no'", "oauthbearer.clock_skew_s='no' is not a number"),
    ("[oauthbearer]\nurl = 'http://x'", "oauthbearer.url: no such setting"),
    ("[users]\nalice = { env = 'NOT_THERE' }", "users.alice: the environment has no NOT_THERE"),
    ("[users]\nalice = { env = 'EMPTY' }", "users.alice: EMPTY is empty in the environment"),
    ("[[listeners]]\ntls = { certificate = 'b.pem', password = { env = 'EMPTY' } }", "tls.password: EMPTY is empty"),
    ("[users]\nalice = ['s3cret']", "users.alice is not a text"),
    ("[users]\nalice = { password = 's3cret' }", "users.alice is not a text"),
]


@pytest.mark.parametrize(("text", "said"), BAD_FILES)
def test_a_wrong_file_is_named_with_what_is_wrong_and_no_secret(run, tmp_path, monkeypatch, text, said):
    monkeypatch.setenv("EMPTY", "")
    path = tmp_path / "broker.toml"
    path.write_text(text)
    ran = run("broker", "--config", path, "--data", tmp_path / "data")
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert "s3cret" not in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--data"),
        (["--data", "x", "--listen", "9092"], "--listen='9092' is not HOST:PORT"),
        (["--data", "x", "--advertise", "a:1", "--advertise", "b:1"], "there are 2 for 1 addresses"),
        (["--data", "x", "--nodes", "101"], "--nodes"),
        (["--data", "x", "--nodes", "3", "--listen", "127.0.0.1:65534"], "65536"),
        (["--data", "x", "--fsync", "always"], "'always'"),
        (["--data", "x", "--register", "missing.toml"], "missing.toml"),
    ],
)
def test_misuse_is_told(run, arguments, said):
    ran = run("broker", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_a_release_that_nobody_knows_is_told(run, tmp_path):
    ran = run("broker", "--data", tmp_path / "data", "--listen", "127.0.0.1:0", "--as-release", "1.1")
    assert ran.code == 2
    assert "release='1.1'" in ran.err
    assert not (tmp_path / "data").exists()


def test_a_register_that_is_wrong_is_told_before_anything_is_made(run, tmp_path):
    register = tmp_path / "headers.toml"
    register.write_text('space = "local"\n[[entries]]\nkey = 5\nname = "app.name"\n')
    ran = run("broker", "--data", tmp_path / "data", "--listen", "127.0.0.1:0", "--register", register)
    assert ran.code == 2
    assert "key 5 of 'app.name'" in ran.err
    assert not (tmp_path / "data").exists()


def test_a_running_broker_tells_how_it_is(run, tmp_path):
    deep = tmp_path / ("d" * 80) / "data"
    deep.parent.mkdir(parents=True)
    with started("--data", deep, "--listen", "127.0.0.1:0", "--as-release", "3.9") as (_, (address,)):
        assert run("topics", "create", "flights", "--bootstrap", address).code == 0
        asked(address, messages.MetadataRequest(topics=None), 12)
        asked(address, messages.ProduceRequest(acks=1, timeout_ms=1, topic_data=[]), 1)
        told = run("broker", "--data", deep, "--stats", "--json")
        assert (told.code, told.err) == (0, "")
        document = json.loads(told.out)
        assert document["broker"]["data"] == str(deep)
        assert [(row["name"], row["partitions"]) for row in document["topics"]] == [("flights", 1)]
        counts = {(row["api"], row["version"]): row["count"] for row in document["requests"]}
        assert counts["Metadata", 12] >= 1
        (old,) = [row["old_versions"] for row in document["clients"] if row["old_versions"]]
        assert old == [{"api": "Produce", "version": 1, "served_by": "Kafka 0.9.0 to 3.9"}]
        people = run("broker", "--data", deep, "--stats")
        assert people.code == 0
        assert "Produce v1 (Kafka 0.9.0 to 3.9)" in people.out
        assert "flights" in people.out
    gone = run("broker", "--data", deep, "--stats")
    assert (gone.code, gone.out) == (2, "")
    assert f"no broker responds on {deep}" in gone.err


def test_the_log_can_be_json_lines(tmp_path):
    with started(
        "--data", tmp_path / "data", "--listen", "127.0.0.1:0", "--log-format", "json", "--log-level", "info"
    ) as (process, (address,)):
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=20) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert sock.recv(1) == b""
        process.terminate()
        lines = [json.loads(line) for line in process.communicate()[1].splitlines()]
    (closed,) = [line for line in lines if "closed" in line["message"]]
    assert (closed["level"], closed["logger"]) == ("info", "tagwire.broker")
    assert "web client" in closed["message"]
    assert closed["time"].endswith("+00:00")


def test_at_debug_every_request_is_logged_with_who_asked(tmp_path):
    with started(
        "--data", tmp_path / "data", "--listen", "127.0.0.1:0", "--log-format", "json", "--log-level", "debug"
    ) as (process, (address,)):
        asked(address, messages.MetadataRequest(topics=None), 12)
        process.terminate()
        lines = [json.loads(line) for line in process.communicate()[1].splitlines()]
    (told,) = [line for line in lines if line.get("api") == "Metadata"]
    assert (told["version"], told["client_id"], told["user"], told["level"]) == (12, "", "", "debug")
    assert told["response_bytes"] > told["request_bytes"] > 0
