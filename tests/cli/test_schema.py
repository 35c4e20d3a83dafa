"""`tagwire schema`: what a registry has, and whether a file fits it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..values.registry_server import Answer, RegistryServer, registry_server

SECRET = "pen,c=il-hunter2"


def record(*fields: dict[str, object]) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": list(fields)})


A: dict[str, object] = {"name": "a", "type": "int"}
B: dict[str, object] = {"name": "b", "type": "string"}
B_OR: dict[str, object] = {**B, "default": ""}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[RegistryServer]:
    with registry_server() as server:
        monkeypatch.setenv("TAGWIRE_REGISTRY", server.url)
        server.add("orders-value", record(A))
        server.add("orders-value", record(A, B_OR))
        server.add("money", "{}", "JSON")
        yield server


@pytest.fixture
def file(tmp_path: Path):
    def write(text: str, name: str = "order.avsc") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_subjects_are_listed(run, registry):
    assert run("schema").out == "money\norders-value\n"
    assert run("schema", "list", "ord").out == "orders-value\n"
    lines = run("schema", "list", "--long").out.splitlines()
    assert [line.split() for line in lines] == [
        ["subject", "type", "versions", "id"],
        ["money", "JSON", "1", "3"],
        ["orders-value", "AVRO", "1-2", "2"],
    ]
    for arguments in (("schema",), ("schema", "list"), ("schema", "list", "--long")):
        told = [json.loads(line) for line in run(*arguments, "--json").out.splitlines()]
        assert [one["subject"] for one in told] == ["money", "orders-value"]


def test_a_schemas_text_steers_no_terminal_and_is_itself_anywhere_else(run, registry, monkeypatch):
    text = "message A {\n\tint32 a = 1; // \x1b]0;title\x07\n}\n"
    registry.add("steering", text, "PROTOBUF")
    assert run("schema", "show", "steering", "--text").out == text
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    shown = run("schema", "show", "steering", "--text").out
    assert shown == "message A {\n        int32 a = 1; // \\x1b]0;title\\x07\n}\n"


def test_a_subject_that_is_deleted_while_they_are_listed_is_left_out(run, registry):
    gone = Answer(404, b'{"error_code": 40401, "message": "Subject not found"}')
    registry.misbehave = lambda request: gone if request.path.startswith("/subjects/money/") else None
    ran = run("schema", "list", "--long", "--json")
    assert [json.loads(line)["subject"] for line in ran.out.splitlines()] == ["orders-value"], ran.err


def test_a_schema_is_shown_by_its_subject_version_id_or_guid(run, registry):
    ran = run("schema", "show", "orders-value")
    assert ran.out.startswith(f"subject orders-value, version 2, id 2, guid {registry.guid(2)}, type AVRO\n\n{{\n")
    assert run("schema", "show", "orders-value", "--version", "1", "--text").out == record(A) + "\n"
    assert run("schema", "show", "--id", "1", "--text").out == record(A) + "\n"
    told = json.loads(run("schema", "show", "--guid", registry.guid(3).upper(), "--json").out)
    assert (told["type"], told["schema"], told["references"]) == ("JSON", "{}", [])


def test_what_a_registry_says_steers_no_terminal(run, registry):
    registry.add("evil\x1b[31m", "a \x1b[31m", "PROTOBUF", [("r\x1b", "money", 1)])
    assert "\x1b" not in run("schema").out
    assert "\x1b" not in run("schema", "show", "evil\x1b[31m").out
    assert "\x1b" not in run("schema", "list", "--long").out


def test_a_file_is_checked_by_the_registry_and_by_our_rules(run, registry, file):
    ran = run("schema", "check", "orders-value", file(record(A, B_OR)))
    assert (ran.code, ran.out) == (
        0,
        "orders-value: level BACKWARD, compared with version 2\nregistry: compatible\nour rules: compatible\n",
    )
    registry.compatible = ["reader field b has no default"]
    ran = run("schema", "check", "orders-value", file(record(A, B)), "--json")
    told = json.loads(ran.out)
    assert ran.code == 1
    assert told["registry"] == {"compatible": False, "messages": ["reader field b has no default"]}
    assert told["rules"]["compatible"] is True  # version 2 has b
    ran = run("schema", "check", "orders-value", file(record(A, B)), "--version", "1")
    assert ran.code == 1
    assert "registry: not compatible\n  reader field b has no default\n" in ran.out
    assert "our rules: not compatible\n  cannot read what version 1 wrote: " in ran.out


def test_our_rules_alone_find_what_the_registry_lets_pass(run, registry, file):
    for level, code in (
        ("BACKWARD", 0),
        ("backward_transitive", 1),
        ("FORWARD", 0),
        ("FULL_TRANSITIVE", 1),
        ("NONE", 0),
    ):
        ran = run("schema", "check", "orders-value", file(record(A, B)), "--level", level)
        assert ran.code == code, level
        assert ("version 1" in ran.out) == bool(code)
    assert "forbids nothing" in ran.out


def test_a_transitive_level_is_asked_of_every_version(run, registry, file):
    answer = json.dumps({"compatibilityLevel": "FULL_TRANSITIVE"}).encode()
    registry.misbehave = lambda request: Answer(200, answer) if request.path.startswith("/config") else None
    assert "version 1-2" in run("schema", "check", "orders-value", file(record(A, B_OR))).out
    assert [path.split("?")[0][-1] for path in registry.asked("/compatibility")] == ["1", "2"]


def test_a_file_is_registered_and_found_again(run, registry, file):
    path = file(record(A, {**B_OR, "name": "c"}))
    dry = run("schema", "register", "orders-value", path, "--dry-run")
    assert (dry.code, dry.out) == (0, f"orders-value: the registry would take {path}\n")
    assert not [each for each in registry.requests if each.path.endswith("/versions") and each.method == "POST"]
    for _ in range(2):
        assert run("schema", "register", "orders-value", path).out == "orders-value: version 3, id 4\n"
    told = json.loads(run("schema", "register", "new", path, "--json").out)
    assert (told["subject"], told["version"], told["id"], told["registered"]) == ("new", 1, 4, True)
    registry.compatible = ["no"]
    assert run("schema", "register", "orders-value", path, "--dry-run").code == 1
    assert json.loads(run("schema", "register", "new", path, "--dry-run", "--json").out)["messages"] == ["no"]


def test_a_new_subject_takes_no_schema_that_the_registry_cannot_parse(run, registry, file):
    said = b'{"error_code": 42201, "message": "Input schema is an invalid Avro schema"}'
    registry.misbehave = lambda request: Answer(422, said) if request.path == "/subjects/new" else None
    ran = run("schema", "register", "new", file('{"type": "recrod"}'), "--dry-run")
    assert (ran.code, ran.out) == (2, "")
    assert "invalid Avro schema" in ran.err
    assert not [each for each in registry.requests if each.path.endswith("/versions") and each.method == "POST"]


def test_references_and_formats_are_sent_as_they_are_named(run, registry, file):
    proto = file('syntax = "proto3"; import "money.proto"; message O {}', "order.proto")
    registry.add("money-proto", 'syntax = "proto3"; message M {}', "PROTOBUF")
    ran = run("schema", "register", "o", proto, "--reference", "money.proto=money-proto:1")
    assert ran.code == 0
    posted = next(each.body for each in registry.requests if each.method == "POST")
    assert posted["schemaType"] == "PROTOBUF"
    assert posted["references"] == [{"name": "money.proto", "subject": "money-proto", "version": 1}]
    odd = file("{}", "schema.txt")
    assert run("schema", "register", "o", odd, "--format", "json-schema").code == 0


def test_the_registry_is_where_the_command_line_says_first(run, registry, monkeypatch, tmp_path):
    monkeypatch.setenv("TAGWIRE_REGISTRY", "http://127.0.0.1:1")
    properties = tmp_path / "client.properties"
    lines = ["bootstrap.servers=127.0.0.1:1", "ssl.ca.location=no.pem", "schema.registry.url=http://127.0.0.1:1"]
    properties.write_text("\n".join(lines))
    for arguments in (
        ("schema", "list", "--registry", registry.url),
        ("schema", "--registry", registry.url, "list"),
        ("schema", "-X", f"schema.registry.url={registry.url}"),
        ("-X", f"schema.registry.url={registry.url}", "schema", "--properties", properties),
    ):
        assert run(*arguments).out == "money\norders-value\n", arguments
    monkeypatch.delenv("TAGWIRE_REGISTRY")
    properties.write_text(f"schema.registry.url={registry.url}\nbasic.auth.user.info=al:{SECRET}\n")
    assert run("schema", "--properties", properties).code == 0
    assert "Authorization" in registry.requests[-1].headers


ABSENT = [
    ("schema show order-value", "Did you mean 'orders-value'"),
    ("schema show orders-value --version 9", "40402"),
    ("schema show --id 99", "Schema 99 not found"),
    ("schema show --guid 00000000-0000-0000-0000-000000000000", "not found"),
    ("schema list order-v", "Did you mean 'orders-value'"),
    ("schema check order-value order.avsc", "Did you mean 'orders-value'"),
    ("schema check orders-value nosuch.avsc", "nosuch.avsc"),
    ("schema check orders-value order.avsc --version 9", "40402"),
    ("schema check orders-value order.avsc --level LOOSE", "LOOSE"),
    ("schema check orders-value order.avsc --reference money", "NAME=SUBJECT:VERSION"),
    ("schema check orders-value order.avsc --reference m=nosuch:1", "nosuch"),
    ("schema register orders-value order.txt", "--format"),
    ("schema show", "SUBJECT, --id or --guid"),
    ("schema show --id 1 --version 1", "--version"),
    ("schema --registry mock://x", "http://HOST:PORT"),
    ("schema --registry http://127.0.0.1:1 -X schema.registry.max.retries=0", "127.0.0.1:1: Connection refused"),
    ("schema -X schema.registry.ulr=http://h", "'url'"),
    ("schema -X basic.auth.user.inf=al:b", "basic.auth.user.info"),
]


@pytest.mark.parametrize(("command", "named"), ABSENT, ids=[command for command, _ in ABSENT])
def test_what_is_wrong_or_not_there_is_told_in_one_line(run, registry, file, tmp_path, monkeypatch, command, named):
    file(record(A))
    file("x", "order.txt")
    monkeypatch.chdir(tmp_path)
    ran = run(*command.split())
    assert (ran.code, ran.err.count("\n"), ran.out) == (2, 1, ""), ran
    assert named in ran.err


def test_no_secret_is_told(run, registry):
    registry.credentials = "Basic other"
    ran = run("schema", "-X", f"schema.registry.basic.auth.user.info=al:{SECRET}")
    assert (ran.code, "HTTP 401" in ran.err) == (2, True)
    ran = run("schema", "--registry", f"http://al:{SECRET}@127.0.0.1:1", "-X", "schema.registry.max.retries=0")
    assert ran.code == 2
    assert SECRET not in ran.out + ran.err
