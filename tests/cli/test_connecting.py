"""How commands connect: properties from a file and from the command line, secrets untold."""

from __future__ import annotations

import json
import sys
from types import ModuleType

import pytest

from tagwire.doctor.__main__ import main as doctor
from tagwire.rpc import OAuthBearerServer, ScramServer, ValidatedToken, scram_credential

from ..client.admin_responses import SERVED, Looked
from ..client.fake_broker import FakeCluster

PASSWORD = "pen,c=il-hunter2"
LOGIN = ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=SCRAM-SHA-256", "sasl.username=alice"]


@pytest.fixture
def guarded():
    users = {"alice": scram_credential("SCRAM-SHA-256", PASSWORD)}
    with FakeCluster(sasl={"SCRAM-SHA-256": lambda: ScramServer("SCRAM-SHA-256", users.get)}) as cluster:
        cluster.topic("t")
        yield cluster


@pytest.fixture
def properties(tmp_path):
    def written(*lines):
        path = tmp_path / "client.properties"
        path.write_text("\n".join(lines), encoding="utf-8")
        return path

    return written


def test_properties_come_from_a_file(run, guarded, properties):
    path = properties("# how to get in", "! and more", "", *LOGIN, "sasl.password = pen,\\", "    c=il-hunter2")
    ran = run("--properties", path, "topics", "--bootstrap", guarded.bootstrap, "--json")
    assert (ran.code, json.loads(ran.out)["topic"]) == (0, "t")


@pytest.mark.parametrize(
    "lines",
    [
        ["client.id=x\\\\", "sasl.password=pen,c=il-hunter2"],
        [r"sasl.password=pen\,c\=\u0069l-hunter2"],
        ["sasl.password=pen,c=il-hunter2\\", "", "client.id=a\x85b"],
        [r"client.id=\ud83d\ude00\t\\", "sasl.password=pen,c=il-hunter2"],
    ],
)
def test_backslashes_in_a_file_escape_as_javas_do(run, guarded, properties, lines):
    ran = run("--properties", properties(*LOGIN, *lines), "topics", "--bootstrap", guarded.bootstrap, "--json")
    assert (ran.code, json.loads(ran.out)["topic"]) == (0, "t")


@pytest.mark.parametrize("text", [r"hunter2\u12", r"hunter2\u12g4", r"hunter2\ud83d"])
def test_an_escape_that_is_no_character_is_named_by_its_line_alone(run, properties, text):
    ran = run("--properties", properties("client.id=x", f"sasl.password={text}"), "topics")
    assert (ran.code, "line 2 has no four hexadecimal digits" in ran.err, "hunter" in ran.err) == (2, True, False)


def test_the_command_line_goes_before_the_file(run, guarded, properties, monkeypatch):
    monkeypatch.setenv("TAGWIRE_PROPERTIES", str(properties(*LOGIN, "sasl.password=wrong")))
    assert run("topics", "--bootstrap", guarded.bootstrap).code == 2
    assert run("-X", f"sasl.password={PASSWORD}", "topics", "--bootstrap", guarded.bootstrap).code == 0


@pytest.mark.parametrize(
    "command",
    [
        ("topics",),
        ("topics", "describe", "t"),
        ("consume", "t"),
        ("groups",),
        ("configs", "list"),
        ("versions",),
        ("lag",),
    ],
    ids=" ".join,
)
def test_properties_may_stand_behind_every_command_that_connects(run, guarded, properties, command):
    looked = Looked()
    guarded.serve(SERVED, looked.responses())
    wrong = ["--properties", properties(*LOGIN, "sasl.password=wrong")]
    given = ["-X", f"sasl.password={PASSWORD}", "--bootstrap", guarded.bootstrap]
    assert run(*wrong, *command, "--bootstrap", guarded.bootstrap).code == 2
    assert run(*wrong, *command, *given).code == 0
    assert run(*command, *wrong, *given).code == 0
    assert run("-X", "sasl.password=wrong", *command, *wrong, *given).code == 0


def test_a_file_on_the_command_line_goes_before_the_environments(run, guarded, properties, monkeypatch):
    named = properties(*LOGIN, f"sasl.password={PASSWORD}")
    named = named.rename(named.with_name("named.properties"))
    monkeypatch.setenv("TAGWIRE_PROPERTIES", str(properties(*LOGIN, "sasl.password=wrong")))
    assert run("topics", "--bootstrap", guarded.bootstrap).code == 2
    assert run("--properties", named, "topics", "--bootstrap", guarded.bootstrap).code == 0
    assert run("topics", "--bootstrap", guarded.bootstrap, "--properties", named).code == 0


def test_brokers_are_named_by_the_command_line_before_the_environment_and_that_before_a_file(
    run, guarded, properties, monkeypatch
):
    monkeypatch.setenv("TAGWIRE_BOOTSTRAP", "127.0.0.1:1")
    path = properties(*LOGIN, f"sasl.password={PASSWORD}", f"bootstrap.servers={guarded.bootstrap}")
    assert run("topics", "list", "--properties", path).code == 2
    assert run("topics", "list", "--properties", path, "-X", f"bootstrap.servers={guarded.bootstrap}").code == 0
    assert run("topics", "--bootstrap", guarded.bootstrap, "list", "--properties", path).code == 0
    monkeypatch.delenv("TAGWIRE_BOOTSTRAP")
    assert run("versions", "--properties", path).code == 0


def test_brokers_may_be_named_by_the_properties(run, guarded, properties, monkeypatch):
    monkeypatch.delenv("TAGWIRE_BOOTSTRAP")
    path = properties(*LOGIN, f"sasl.password={PASSWORD}", f"bootstrap.servers={guarded.bootstrap}")
    assert "t" in run("--properties", path, "topics").out
    assert run("--properties", path, "topics", "--bootstrap", "127.0.0.1:1").code == 2


def test_librdkafkas_names_of_properties_are_those_properties(run, guarded, properties, monkeypatch):
    monkeypatch.delenv("TAGWIRE_BOOTSTRAP")
    path = properties(*LOGIN, f"sasl.password={PASSWORD}", f"metadata.broker.list={guarded.bootstrap}")
    assert "t" in run("--properties", path, "topics").out
    other = properties(*LOGIN, f"sasl.password={PASSWORD}", "metadata.broker.list=127.0.0.1:1", "message.timeout.ms=9")
    ran = run("--properties", other, "topics", "-X", "delivery.timeout.ms=8", "--bootstrap", guarded.bootstrap)
    assert (ran.code, ran.err) == (0, "")


@pytest.mark.parametrize(
    "command", [("groups", "list"), ("configs", "describe", "topic/t"), ("topics", "describe", "t")]
)
def test_every_command_connects_alike(run, guarded, properties, command):
    path = properties(*LOGIN, "sasl.password=wrong-hunter2")
    ran = run("--properties", path, *command, "--bootstrap", guarded.bootstrap)
    assert (ran.code, ran.out) == (2, "")
    assert "refused the credentials (SCRAM-SHA-256)" in ran.err
    assert "hunter" not in ran.err


def test_what_one_command_was_told_is_forgotten_by_the_next(run, guarded):
    run("-X", "security.protocol=SSL", "topics", "--bootstrap", guarded.bootstrap)
    ran = run("versions", guarded.bootstrap)
    assert ran.code == 0


def test_a_line_that_is_no_property_is_named_by_its_number_alone(run, properties):
    ran = run("--properties", properties("client.id=x", "hunter2"), "topics")
    assert (ran.code, "line 2 is not key=value" in ran.err, "hunter" in ran.err) == (2, True, False)
    assert run("-X", "hunter2", "topics").code == 2
    ran = run("topics", "-X", "sasl.password:hunter2")
    assert (ran.code, "'sasl.password...' is not KEY=VALUE" in ran.err, "hunter" in ran.err) == (2, True, False)


@pytest.mark.parametrize("line", ["sasl.password: hunter2=x", "sasl.password hunter2=x", "sasl.password:hunter2=="])
def test_a_line_that_parts_as_java_may_and_we_do_not_is_named_by_its_number_alone(run, properties, line):
    ran = run("topics", "--properties", properties("client.id=us", line), "--bootstrap", "127.0.0.1:1")
    assert (ran.code, ran.out) == (2, "")
    assert "line 2 is not key=value" in ran.err
    assert "hunter2" not in ran.err


@pytest.mark.parametrize("text", ["sasl.password: hunter2=x", "sasl.password hunter2=x", "sasl.password:hunter2=="])
def test_a_property_of_the_command_line_that_is_none_is_told_without_what_may_be_its_value(run, text, capsys):
    ran = run("topics", "-X", text, "--bootstrap", "127.0.0.1:1")
    assert (ran.code, ran.out) == (2, "")
    assert "'sasl.password...' is not KEY=VALUE" in ran.err
    assert "hunter2" not in ran.err
    with pytest.raises(SystemExit):
        doctor(["127.0.0.1:1", "-X", text])
    assert "hunter2" not in "".join(capsys.readouterr())


def test_a_file_of_properties_that_is_not_utf_8_is_told_without_what_it_holds(run, tmp_path):
    path = tmp_path / "client.properties"
    path.write_bytes("client.id=x\nsasl.password=hünter2\n".encode("latin-1"))
    ran = run("--properties", path, "topics")
    assert (ran.code, f"{path}: is not UTF-8 at byte 27" in ran.err, "nter2" in ran.err) == (2, True, False)


def test_a_property_that_cannot_be_is_named(run):
    ran = run("-X", "security.protocol=TLS", "topics")
    assert (ran.code, "security_protocol='TLS'" in ran.err) == (2, True)


CLIENT_CREDENTIALS = [
    "security.protocol=SASL_PLAINTEXT",
    "sasl.mechanism=OAUTHBEARER",
    "sasl.oauthbearer.client.id=loader",
    f"sasl.oauthbearer.client.secret={PASSWORD}",
]


def test_a_token_comes_from_a_function_that_the_file_names(run, properties, monkeypatch):
    module = ModuleType("tokens_of_ours")
    module.fetch = lambda: "a.b-c"
    monkeypatch.setitem(sys.modules, "tokens_of_ours", module)
    seen = []

    def validated(token, extensions):
        seen.append(token)
        return ValidatedToken("loader")

    handler = "sasl.login.callback.handler.class=tokens_of_ours:fetch"
    with FakeCluster(sasl={"OAUTHBEARER": lambda: OAuthBearerServer(validated)}) as cluster:
        cluster.topic("t")
        path = properties(*CLIENT_CREDENTIALS[:2], handler)
        assert run("topics", "--bootstrap", cluster.bootstrap, "--properties", path).code == 0
    assert seen == ["a.b-c"]


def test_an_endpoint_that_is_away_is_told_without_the_secret(run, properties):
    away = [
        "sasl.oauthbearer.token.endpoint.url=http://127.0.0.1:1/token",
        "sasl.login.retry.backoff.max.ms=1",
    ]
    with FakeCluster(sasl={"OAUTHBEARER": lambda: OAuthBearerServer(lambda token, extensions: None)}) as cluster:
        ran = run("topics", "--bootstrap", cluster.bootstrap, "--properties", properties(*CLIENT_CREDENTIALS, *away))
    assert ran.code == 2
    assert "token endpoint http://127.0.0.1:1/token: Connection refused" in ran.err
    assert PASSWORD not in ran.out + ran.err
