"""`tagwire users` and `tagwire quotas`: SCRAM users, whose passwords stand in no command line, and client quotas."""

from __future__ import annotations

import io
import json
import os
import sys

import pytest

from tagwire import messages
from tagwire.broker import Broker, Listener
from tagwire.client import Admin, Client
from tagwire.errors import AuthenticationError, KafkaError, PartlyRefusedError

from ..client.fake_broker import FakeCluster

PASSWORD = "correct-horse"
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


@pytest.fixture(scope="module")
def broker():
    with Broker(listeners=[Listener(), Listener(sasl=MECHANISMS)], users={"root": "toor"}, fsync="never") as one:
        yield one


@pytest.fixture
def ran(run, broker):
    def ran(*arguments):
        return run("users", *arguments, "--bootstrap", broker.bootstrap)

    return ran


@pytest.fixture
def password_file(tmp_path):
    path = tmp_path / "password.txt"
    path.write_text(f"{PASSWORD}\nnothing of this line\n")
    return path


def can_log_in(broker, mechanism, password=PASSWORD):
    login = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism}
    try:
        with Client(
            broker.addresses[1], sasl_plain_username="alice", sasl_plain_password=password, timeout=5, **login
        ) as client:
            client.metadata([])
    except AuthenticationError:
        return False
    return True


def test_a_user_comes_in_with_the_password_of_a_file_until_it_is_removed(ran, broker, password_file):
    assert {json.loads(line)["user"] for line in ran("--json").out.splitlines()} == {"root"}
    assert ran("add", "alice", "--password-file", password_file).out == "alice has a password for SCRAM-SHA-512\n"
    assert [can_log_in(broker, mechanism) for mechanism in MECHANISMS] == [False, True]
    words = ("add", "alice", "--mechanism", "SCRAM-SHA-256", "--iterations", 8192, "--password-file", password_file)
    assert json.loads(ran(*words, "--json").out) == {
        "user": "alice",
        "mechanism": "SCRAM-SHA-256",
        "iterations": 8192,
        "set": True,
    }
    assert can_log_in(broker, "SCRAM-SHA-256")
    assert [line.split() for line in ran("list", "alice").out.splitlines()] == [
        ["user", "mechanism", "iterations"],
        ["alice", "SCRAM-SHA-256", "8192"],
        ["alice", "SCRAM-SHA-512", "4096"],
    ]
    assert (
        ran("remove", "alice", "--dry-run").out == "alice could lose its password for SCRAM-SHA-256 and SCRAM-SHA-512\n"
    )
    assert (
        ran("remove", "alice", "--mechanism", "SCRAM-SHA-256").out == "alice has no more password for SCRAM-SHA-256\n"
    )
    again = ran("remove", "alice", "--mechanism", "SCRAM-SHA-256")
    assert again == (2, "", "tagwire: user 'alice' has no password for SCRAM-SHA-256, but for SCRAM-SHA-512\n")
    assert json.loads(ran("remove", "alice", "--json").out)["removed"]
    assert "RESOURCE_NOT_FOUND" in ran("remove", "alice").err
    assert not can_log_in(broker, "SCRAM-SHA-512")


def test_a_password_comes_by_standard_input_or_by_a_variable(ran, broker, monkeypatch):
    monkeypatch.setenv("ALICES_PASSWORD", PASSWORD)
    both = ("--mechanism", MECHANISMS[0], "--mechanism", MECHANISMS[1])
    assert ran("add", "alice", *both, "--password-env", "ALICES_PASSWORD").code == 0
    assert all(can_log_in(broker, mechanism) for mechanism in MECHANISMS)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"other\r\n")))
    assert ran("add", "alice", "--password-file", "-").code == 0
    assert can_log_in(broker, "SCRAM-SHA-512", "other")
    assert ran("remove", "alice").code == 0


def test_a_password_that_nobody_says_is_asked_for_twice_and_not_shown(ran, broker, monkeypatch):
    asked = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("getpass.getpass", lambda *text, **options: asked.append(text) or PASSWORD)
    found = ran("add", "alice")
    assert (found.code, len(asked)) == (0, 2)
    assert PASSWORD not in found.out + found.err
    assert can_log_in(broker, "SCRAM-SHA-512")
    assert ran("remove", "alice").code == 0


@pytest.mark.parametrize("key", [KeyboardInterrupt, EOFError])  # Ctrl-C, Ctrl-D
def test_who_gives_up_while_a_password_is_asked_for_ends_the_command_quietly_with_130(ran, monkeypatch, key):
    def gives_up(*text, **options):
        raise key

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("getpass.getpass", gives_up)
    found = ran("add", "alice")
    assert (found.code, found.out, found.err.strip()) == (130, "", "Password of alice:")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"\nsecond line", "its first line is empty"),
        (b"", "its first line is empty"),
        (b"x" * 5000, "its first line has more than 4096 bytes"),
        (b"\xff\xfe", "its first line is not UTF-8"),
    ],
)
def test_a_file_that_has_no_password_is_told_without_showing_it(ran, tmp_path, text, says):
    (tmp_path / "p").write_bytes(text)
    found = ran("add", "alice", "--password-file", tmp_path / "p")
    assert (found.code, found.out) == (2, "")
    assert says in found.err
    assert "xxx" not in found.err


def test_a_variable_that_is_no_text_is_told_without_showing_it(ran, monkeypatch):
    monkeypatch.setitem(os.environ, "ALICES_PASSWORD", os.fsdecode(b"xxx\xff"))
    found = ran("add", "alice", "--password-env", "ALICES_PASSWORD")
    assert (found.code, found.out) == (2, "")
    assert "ALICES_PASSWORD is not UTF-8" in found.err
    assert "xxx" not in found.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add", "alice"), "give --password-file or --password-env"),
        (("add", "alice", "--password-file", "nowhere"), "nowhere: No such file"),
        (("add", "alice", "--password-file", "a", "--password-env", "B"), "give either"),
        (("add", "alice", "--password-env", "NOBODYS_PASSWORD"), "NOBODYS_PASSWORD is not set"),
        (("add", "alice", "--mechanism", "PLAIN", "--password-env", "HOME"), "'PLAIN' is not SCRAM-SHA-256 or"),
        (
            ("add", "alice", "--iterations", "7", "--password-env", "HOME"),
            "iterations of user 'alice'=7: allowed is 4096",
        ),
        (("list", "nobody"), "RESOURCE_NOT_FOUND (91): describe SCRAM user 'nobody'"),
    ],
)
def test_what_cannot_be_done_to_users_is_told_in_one_line(ran, words, says):
    found = ran(*words)
    assert (found.code, found.out) == (2, "")
    assert says in found.err
    assert found.err.count("\n") == 1


# Quotas --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def limits():
    """{entity: {quota: limit}} as a cluster keeps them."""
    return {}


@pytest.fixture
def quotas(run, limits):
    def described(request):
        kind = messages.DescribeClientQuotasResponse
        named = {each.entity_type: each.match for each in request.components}
        entries = [
            kind.EntryData(
                entity=[kind.EntityData(entity_type=one, entity_name=name) for one, name in entity],
                values=[kind.ValueData(key=key, value=value) for key, value in found.items()],
            )
            for entity, found in limits.items()
            if named.items() <= dict(entity).items()
        ]
        return kind(error_message=None, entries=entries)

    def altered(request):
        kind = messages.AlterClientQuotasResponse
        entries = []
        for entry in request.entries:
            entity = tuple((each.entity_type, each.entity_name) for each in entry.entity)
            if not request.validate_only:
                for op in entry.ops:
                    found = limits.setdefault(entity, {})
                    found.update({op.key: op.value})
                    if op.remove:
                        del found[op.key]
            told = [kind.EntityData(entity_type=one, entity_name=name) for one, name in entity]
            entries.append(kind.EntryData(error_message=None, entity=told))
        return kind(entries=entries)

    with FakeCluster() as cluster:
        cluster.serve({48: (0, 1), 49: (0, 1)}, {"DescribeClientQuotas": described, "AlterClientQuotas": altered})
        yield lambda *arguments: run("quotas", *arguments, "--bootstrap", cluster.bootstrap)


def test_quotas_are_set_listed_and_reset(quotas, limits):
    assert quotas().out.startswith("no quotas on ")
    words = ("alter", "--user", "alice", "--set", "producer_byte_rate=1048576", "--set", "request_percentage=12.5")
    assert quotas(*words, "--dry-run").out == "could change 2 quotas of user 'alice'\n"
    assert limits == {}
    assert quotas(*words).out == "changed 2 quotas of user 'alice'\n"
    assert [line.split() for line in quotas().out.splitlines()][1:] == [
        ["user", "'alice'", "producer_byte_rate", "1048576"],
        ["user", "'alice'", "request_percentage", "12.5"],
    ]
    assert json.loads(quotas("alter", "--user", "alice", "--reset", "request_percentage", "--json").out) == {
        "entity": {"user": "alice"},
        "quotas": {"request_percentage": None},
        "altered": True,
    }
    assert json.loads(quotas("--json").out) == {
        "entity": {"user": "alice"},
        "quotas": {"producer_byte_rate": 1048576.0},
    }


def test_defaults_are_null_and_filters_are_the_brokers(quotas, limits):
    assert quotas("alter", "--user-defaults", "--client-id", "app", "--set", "consumer_byte_rate=9").code == 0
    assert quotas("alter", "--ip-defaults", "--set", "connection_creation_rate=9").out.endswith("of default ip\n")
    assert limits.keys() == {(("user", None), ("client-id", "app")), (("ip", None),)}
    assert json.loads(quotas("list", "--client-id", "app", "--json").out)["entity"] == {
        "user": None,
        "client-id": "app",
    }
    assert quotas("list", "--user", "bob").out.startswith("no such quotas on ")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("alter", "--user", "a"), "nothing to change: give --set or --reset"),
        (("alter", "--user", "a", "--set", "x=1", "--reset", "x"), "in one way at a time"),
        (("alter", "--user", "a", "--set", "x=fast"), "x='fast' is no number"),
        (("alter", "--user", "a", "--set", "x=-1"), "allowed is a number from 0 on"),
        (("alter", "--user", "a", "--set", "x=nan"), "allowed is a number from 0 on"),
        (("alter", "--set", "x=1"), "allowed is a user, a client id, both, or an address alone"),
        (("alter", "--user", "a", "--ip", "::1", "--set", "x=1"), "or an address alone"),
        (("alter", "--user", "a", "--user-defaults", "--set", "x=1"), "give either a name or the defaults"),
        (("alter", "--user", "", "--set", "x=1"), "it is empty"),
    ],
)
def test_what_cannot_be_done_to_quotas_is_told_in_one_line(quotas, limits, words, says):
    found = quotas(*words)
    assert (found.code, found.out, limits) == (2, "", {})
    assert says in found.err
    assert found.err.count("\n") == 1


@pytest.mark.parametrize(("command", "says"), [("add", "has a password"), ("remove", "has no more password")])
def test_the_mechanism_that_was_done_is_told_beside_the_one_that_was_refused(
    ran, password_file, monkeypatch, command, says
):
    words = ("--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512")
    assert ran("add", "carol", *words, "--password-file", password_file).code == 0
    alter = Admin.alter_user_scram_credentials

    def half(self, alterations):
        alter(self, alterations[0])
        refused = {("carol", "SCRAM-SHA-512"): KafkaError(93, "alter SCRAM user 'carol'")}
        raise PartlyRefusedError(93, "alter SCRAM user 'carol'", refused, {("carol", "SCRAM-SHA-256"): None})

    monkeypatch.setattr(Admin, "alter_user_scram_credentials", half)
    found = ran(command, "carol", *words, *(["--password-file", password_file] * (command == "add")))
    assert (found.code, found.out) == (2, f"carol {says} for SCRAM-SHA-256\n")
    assert found.err == "tagwire: UNACCEPTABLE_CREDENTIAL (93): alter SCRAM user 'carol'\n"


def test_a_limit_without_a_number_is_json_all_the_same(quotas, limits):
    limits[("user", "alice"),] = {"producer_byte_rate": float("inf"), "consumer_byte_rate": float("nan")}

    def no_json(text):
        raise AssertionError(text)

    (row,) = (json.loads(line, parse_constant=no_json) for line in quotas("list", "--json").out.splitlines())
    assert row["quotas"] == {"producer_byte_rate": "Infinity", "consumer_byte_rate": "NaN"}
