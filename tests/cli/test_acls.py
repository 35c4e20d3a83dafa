"""`tagwire acls`: which ACLs the words of kafka-acls mean, against a broker that has an authorizer."""

from __future__ import annotations

import json

import pytest

from tagwire.broker import Broker


@pytest.fixture(scope="module")
def guarded():
    with Broker(fsync="never", authorizer="StandardAuthorizer", super_users="User:ANONYMOUS") as broker:
        yield broker


@pytest.fixture
def ran(run, guarded):
    def ran(*arguments):
        return run("acls", *arguments, "--bootstrap", guarded.bootstrap)

    yield ran
    ran("remove", "--all")


def told(found):
    assert (found.code, found.err) == (0, "")
    return [json.loads(line) for line in found.out.splitlines()]


def short(rows):
    return {
        (row["permission"], row["operation"], row["principal"], row["host"], row["resource_type"], row["name"])
        for row in rows
    }


def test_an_acl_is_added_listed_and_removed(ran):
    words = ("--allow-principal", "User:alice", "--operation", "read", "--topic", "flights")
    assert ran("list").out.startswith("no such ACLs on ")
    assert ran("add", *words, "--dry-run").out == "could add allow read to User:alice from *: topic 'flights'\n"
    assert ran("--json") == (0, "", "")
    assert ran("add", *words).out == "added allow read to User:alice from *: topic 'flights'\n"
    titles, row = [line.split() for line in ran().out.splitlines()]
    assert titles == ["resource", "name", "pattern", "principal", "permission", "operation", "host"]
    assert row == ["topic", "flights", "literal", "User:alice", "allow", "read", "*"]
    assert ran("remove", *words, "--dry-run").out == "could remove allow read to User:alice from *: topic 'flights'\n"
    assert told(ran("remove", *words, "--json"))[0]["removed"]
    assert ran("remove", *words).out.startswith("no such ACLs on ")


def test_what_is_denied_and_from_where_is_said_for_each(ran):
    added = ran(
        *("add", "--allow-principal", "User:a", "--allow-principal", "User:b", "--allow-host", "10.0.0.1"),
        *("--deny-principal", "User:*", "--topic", "t", "--group", "g", "--json"),
    )
    who = [("allow", "User:a", "10.0.0.1"), ("allow", "User:b", "10.0.0.1"), ("deny", "User:*", "*")]
    assert short(told(added)) == {
        (permission, "all", principal, host, kind, name)
        for permission, principal, host in who
        for kind, name in (("topic", "t"), ("group", "g"))
    }
    assert short(told(ran("list", "--principal", "User:a", "--json"))) == {
        ("allow", "all", "User:a", "10.0.0.1", kind, name) for kind, name in (("topic", "t"), ("group", "g"))
    }


def test_of_somebody_goes_without_an_operation_what_add_makes_of_the_same_words_and_no_other(ran):
    words = ("--allow-principal", "User:a", "--topic", "t")
    ran("add", *words)
    ran("add", *words, "--operation", "read")
    assert short(told(ran("remove", *words, "--json"))) == {("allow", "all", "User:a", "*", "topic", "t")}
    assert short(told(ran("list", "--json"))) == {("allow", "read", "User:a", "*", "topic", "t")}
    assert len(told(ran("remove", "--topic", "t", "--json"))) == 1  # of nobody, all that is said of the topic


def test_a_producer_and_a_consumer_get_what_kafka_gives_them(ran):
    producer = ran(
        *("add", "--producer", "--idempotent", "--allow-principal", "User:p", "--topic", "t"),
        *("--transactional-id", "mover", "--json"),
    )
    assert {row[1:2] + row[4:] for row in short(told(producer))} == {
        ("write", "topic", "t"),
        ("describe", "topic", "t"),
        ("create", "topic", "t"),
        ("write", "transactional_id", "mover"),
        ("describe", "transactional_id", "mover"),
        ("idempotent_write", "cluster", "kafka-cluster"),
    }
    words = ("--consumer", "--allow-principal", "User:c", "--topic", "t", "--group", "g")
    consumer = {("read", "topic", "t"), ("describe", "topic", "t"), ("read", "group", "g")}
    assert {row[1:2] + row[4:] for row in short(told(ran("add", *words, "--json")))} == consumer
    assert {row[1:2] + row[4:] for row in short(told(ran("remove", *words, "--json")))} == consumer
    assert len(told(ran("list", "--json"))) == 6


def test_names_and_prefixes_are_told_apart_and_match_finds_all_that_hold(ran):
    allow = ("add", "--allow-principal", "User:a", "--operation", "Describe-Configs")
    ran(*allow, "--topic", "flights")
    ran(*allow, "--topic", "fl", "--resource-pattern-type", "prefixed")
    ran(*allow, "--topic", "*")
    found = {row["pattern_type"] for row in told(ran("list", "--topic", "flights", "--json"))}
    assert found == {"literal"}
    matching = told(ran("list", "--topic", "flights", "--resource-pattern-type", "match", "--json"))
    assert {(row["name"], row["pattern_type"]) for row in matching} == {
        ("flights", "literal"),
        ("fl", "prefixed"),
        ("*", "literal"),
    }
    gone = told(ran("remove", "--topic", "fl", "--resource-pattern-type", "any", "--json"))
    assert [row["name"] for row in gone] == ["fl"]
    assert len(told(ran("remove", "--operation", "describe_configs", "--json"))) == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add", "--topic", "t"), "say who: --allow-principal or --deny-principal"),
        (("add", "--allow-principal", "User:a"), "name what it is about: --topic"),
        (("add", "--allow-principal", "alice", "--topic", "t"), "principal='alice': allowed is \"User:alice\""),
        (("add", "--allow-principal", "User:a", "--topic", "t", "--operation", "raed"), "Did you mean 'read'"),
        (
            ("add", "--allow-principal", "User:a", "--group", "g", "--operation", "write"),
            "write is not done to a group: there are read, describe",
        ),
        (("add", "--allow-principal", "User:a", "--topic", "t", "--resource-pattern-type", "any"), "literal, prefixed"),
        (("add", "--allow-host", "::1", "--topic", "t"), "it needs --allow-principal"),
        (("add", "--consumer", "--allow-principal", "User:a", "--topic", "t"), "it needs a --group"),
        (("add", "--producer", "--allow-principal", "User:a", "--group", "g"), "it needs a --topic"),
        (("add", "--producer", "--allow-principal", "User:a", "--topic", "t", "--group", "g"), "not about a group"),
        (
            ("add", "--producer", "--allow-principal", "User:a", "--topic", "t", "--operation", "read"),
            "leave --operation",
        ),
        (("add", "--idempotent", "--allow-principal", "User:a", "--topic", "t"), "it goes with --producer"),
        (("list", "--principal", "alice"), "'alice' is not TYPE:NAME, such as User:alice"),
        (("list", "--principal", "User:"), "'User:' is not TYPE:NAME, such as User:alice"),
        (("remove", "--allow-principal", "alice", "--topic", "t"), "'alice' is not TYPE:NAME, such as User:alice"),
        (("remove", "--deny-principal", ":alice"), "':alice' is not TYPE:NAME, such as User:alice"),
        (("remove",), "name resources or principals; or give --all"),
        (("remove", "--all", "--topic", "t"), "name resources or principals; or give --all"),
    ],
)
def test_what_means_nothing_is_told_in_one_line_and_changes_nothing(ran, words, says):
    found = ran(*words)
    assert (found.code, found.out) == (2, "")
    assert says in found.err
    assert found.err.count("\n") == 1
    assert ran("--json").out == ""


def test_a_cluster_without_an_authorizer_says_so(run):
    found = run("acls")
    assert (found.code, found.out) == (2, "")
    assert "SECURITY_DISABLED" in found.err
