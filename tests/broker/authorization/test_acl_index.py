"""What ACLs decide, held against the rules read out one ACL after another, and how much is looked at for it."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from random import Random

import pytest

from tagwire.broker.authorization.acl_index import AclIndex, Verdict
from tagwire.broker.authorization.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = Permission.ALLOW, Permission.DENY
READ, WRITE, DESCRIBE, ALL = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALL


def acl(name, operation=READ, permission=ALLOW, *, principal="User:a", host="*", pattern=LITERAL, kind=TOPIC):
    return Acl(kind, name, pattern, principal, host, operation, permission)


def index(*acls):
    made = AclIndex()
    for each in acls:
        made.add(each)
    return made


def decide(made, name, operation=READ, principal="User:a", host="10.0.0.1", kind=TOPIC):
    return made.decide(principal, host, operation, kind, name)


def test_without_an_acl_about_a_resource_nothing_is_said_of_it():
    assert decide(index(acl("other")), "t") is Verdict.NOTHING


def test_an_acl_of_another_principal_says_that_this_one_is_denied():
    assert decide(index(acl("t", principal="User:b")), "t") is Verdict.DENIED


@pytest.mark.parametrize("operation", [READ, WRITE, Operation.DELETE, Operation.ALTER, ALL, DESCRIBE])
def test_operations_imply_describe(operation):
    assert decide(index(acl("t", operation)), "t", DESCRIBE) is Verdict.ALLOWED


def test_create_does_not_imply_describe_and_alter_configs_implies_describe_configs():
    assert decide(index(acl("t", Operation.CREATE)), "t", DESCRIBE) is Verdict.DENIED
    assert decide(index(acl("t", Operation.ALTER_CONFIGS)), "t", Operation.DESCRIBE_CONFIGS) is Verdict.ALLOWED


def test_who_is_denied_to_read_may_still_describe():
    made = index(acl("t", READ, DENY), acl("t", WRITE))
    assert decide(made, "t", DESCRIBE) is Verdict.ALLOWED
    assert decide(made, "t", READ) is Verdict.DENIED


@pytest.mark.parametrize(
    "denied",
    [
        acl("t", READ, DENY),
        acl("t", ALL, DENY),
        acl("*", READ, DENY),
        acl("t", READ, DENY, pattern=PREFIXED),
        acl("t", READ, DENY, principal="User:*"),
        acl("t", READ, DENY, host="10.0.0.1"),
    ],
)
def test_a_deny_wins_over_every_allow(denied):
    assert decide(index(acl("t"), acl("*", ALL), denied), "t") is Verdict.DENIED
    assert decide(index(denied, acl("t")), "t") is Verdict.DENIED


def test_a_prefix_is_no_wildcard_and_the_wildcard_is_no_prefix():
    assert decide(index(acl("t-", pattern=PREFIXED)), "t-1") is Verdict.ALLOWED
    assert decide(index(acl("t-", pattern=PREFIXED)), "t") is Verdict.NOTHING
    assert decide(index(acl("*", pattern=PREFIXED)), "t") is Verdict.NOTHING
    assert decide(index(acl("t*")), "t1") is Verdict.NOTHING
    assert decide(index(acl("*")), "t1") is Verdict.ALLOWED


def test_hosts_are_compared_as_they_are_written():
    made = index(acl("t", host="10.0.0.1"))
    assert decide(made, "t") is Verdict.ALLOWED
    assert decide(made, "t", host="10.0.0.2") is Verdict.DENIED


@pytest.mark.parametrize(
    ("network", "inside", "outside"),
    [
        ("10.1.0.0/16", ["10.1.0.0", "10.1.255.255"], ["10.2.0.0", "11.1.0.0", "0:0:0:0:0:0:a01:0"]),
        ("10.1.2.3/16", ["10.1.9.9"], ["10.2.2.3"]),
        ("10.1.2.3/32", ["10.1.2.3"], ["10.1.2.4"]),
        ("0.0.0.0/0", ["10.1.2.3"], ["0:0:0:0:0:0:0:1", "somewhere"]),
        ("010.001.02.3/08", ["10.9.9.9"], ["8.1.2.3"]),
        (
            "2001:db8::/32",
            ["2001:db8:0:0:0:0:0:1", "2001:db8:0:0:0:0:0:1%eth0"],
            ["2001:db9:0:0:0:0:0:1", "32.1.13.184"],
        ),
    ],
)
def test_a_host_that_is_a_network_is_every_address_in_it(network, inside, outside):
    made = index(acl("t", host=network), acl("u"), acl("u", READ, DENY, host=network))
    for host in inside:
        assert decide(made, "t", host=host) is Verdict.ALLOWED
        assert decide(made, "u", host=host) is Verdict.DENIED
    for host in outside:
        assert decide(made, "t", host=host) is Verdict.DENIED
        assert decide(made, "u", host=host) is Verdict.ALLOWED
    made.remove(acl("t", host=network))
    made.remove(acl("u", READ, DENY, host=network))
    assert decide(made, "t", host=inside[0]) is Verdict.NOTHING
    assert decide(made, "u", host=inside[0]) is Verdict.ALLOWED


@pytest.mark.parametrize("host", ["::ffff:10.1.2.0/120", "10.1.2.3/024", "10.1.2.3"])
def test_what_kafka_takes_for_no_network_is_the_text_of_one_host(host):
    made = index(acl("t", host=host))
    assert decide(made, "t", host=host) is Verdict.ALLOWED
    assert decide(made, "t", host="10.1.2.4") is Verdict.DENIED


def test_where_networks_are_not_known_one_is_the_text_of_a_host():
    made = AclIndex(with_networks=False)
    made.add(acl("t", host="10.0.0.0/8"))
    assert decide(made, "t", host="10.1.2.3") is Verdict.DENIED
    assert made.decide_any("User:alice", "10.1.2.3", READ, TOPIC) is Verdict.DENIED
    made.remove(acl("t", host="10.0.0.0/8"))
    assert decide(made, "t", host="10.1.2.3") is Verdict.NOTHING


def test_what_is_taken_out_says_nothing_any_more():
    made = index(acl("t"), acl("t", READ, DENY), acl("t", pattern=PREFIXED))
    made.remove(acl("t", READ, DENY))
    assert decide(made, "t") is Verdict.ALLOWED
    made.remove(acl("t"))
    made.remove(acl("t", pattern=PREFIXED))
    made.remove(acl("t"))
    assert decide(made, "t") is Verdict.NOTHING
    assert len(made) == 0


def is_meant(written, host):
    """Kafka's StandardAuthorizerData, with networks."""
    if "/" in written and host[0].isdigit():
        return ip_address(host) in ip_network(written, strict=False)
    return written in (host, "*")


def slowly(acls, principal, host, operation, kind, name):
    """The rules of KIP-11 and KIP-290, one ACL after another."""
    implies = {DESCRIBE: {READ, WRITE, Operation.DELETE, Operation.ALTER}}
    about = [
        one
        for one in acls
        if one.kind is kind and (name.startswith(one.name) if one.pattern is PREFIXED else one.name in (name, "*"))
    ]
    mine = [one for one in about if one.principal in (principal, "User:*") and is_meant(one.host, host)]
    if any(one.permission is DENY and one.operation in (operation, ALL) for one in mine):
        return Verdict.DENIED
    wanted = {operation, ALL} | implies.get(operation, set())
    if any(one.permission is ALLOW and one.operation in wanted for one in mine):
        return Verdict.ALLOWED
    return Verdict.DENIED if about else Verdict.NOTHING


def slowly_any(acls, principal, host, operation, kind):
    """Kafka's Authorizer.authorizeByResourceType."""
    mine = [
        one
        for one in acls
        if one.kind is kind
        and one.principal in (principal, "User:*")
        and is_meant(one.host, host)
        and one.operation in (operation, ALL)
    ]
    denied = {(one.pattern, one.name) for one in mine if one.permission is DENY}
    allowed = {(one.pattern, one.name) for one in mine if one.permission is ALLOW}
    if (LITERAL, "*") in denied:
        return Verdict.DENIED
    if (LITERAL, "*") in allowed:
        return Verdict.ALLOWED
    for pattern, name in allowed:
        if pattern is LITERAL and (LITERAL, name) in denied:
            continue
        if not any((PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1)):
            return Verdict.ALLOWED
    return Verdict.DENIED


HOSTS = ("*", "h", "10.1.2.3", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/16", "0.0.0.0/0", "2001:db8::/32", "::/0")


def random_acl(random):
    return Acl(
        random.choice([TOPIC, GROUP]),
        random.choice(["*", "a", "ab", "abc", "b", "ba"]),
        random.choice([LITERAL, PREFIXED]),
        random.choice(["User:a", "User:b", "User:*"]),
        random.choice(HOSTS),
        random.choice([ALL, READ, WRITE, DESCRIBE]),
        random.choice([ALLOW, ALLOW, DENY]),
    )


@pytest.mark.parametrize("seed", range(20))
def test_every_decision_is_that_of_the_rules_read_out(seed):
    random = Random(seed)
    made, held = AclIndex(), set()
    for _ in range(60):
        one = random_acl(random)
        if random.random() < 0.6:
            made.add(one)
            held.add(one)
        else:
            made.remove(one)
            held.discard(one)
        asked = (
            random.choice(["User:a", "User:b", "User:c"]),
            random.choice(["h", "i", "10.1.2.3", "10.9.9.9", "2001:db8:0:0:0:0:0:1"]),
            random.choice([READ, WRITE, DESCRIBE]),
            random.choice([TOPIC, GROUP]),
        )
        for name in ("a", "ab", "abcd", "b", "c"):
            assert made.decide(*asked, name) is slowly(held, *asked, name), (asked, name, held)
        assert made.decide_any(*asked) is slowly_any(held, *asked), (asked, held)
        assert set(made) == held


def everything(**meant):
    whole = {
        "kind": ResourceType.ANY,
        "name": None,
        "pattern": PatternType.ANY,
        "principal": None,
        "host": None,
        "operation": Operation.ANY,
        "permission": Permission.ANY,
    }
    return AclFilter(**{**whole, **meant})


@pytest.mark.parametrize(
    ("meant", "found"),
    [
        ({}, {"t", "te", "*", "x"}),
        ({"name": "test", "pattern": PatternType.MATCH}, {"te", "*"}),
        ({"name": "te", "pattern": PatternType.ANY}, {"te"}),
        ({"name": "te", "pattern": LITERAL}, set()),
        ({"name": "te", "pattern": PREFIXED}, {"te"}),
        ({"name": "t", "pattern": PatternType.MATCH}, {"t", "*"}),
        ({"pattern": PREFIXED}, {"te"}),
        ({"kind": GROUP}, {"x"}),
        ({"permission": DENY}, set()),
        ({"principal": "User:b"}, set()),
    ],
)
def test_a_filter_means_what_kip_290_says(meant, found):
    made = index(acl("t"), acl("te", pattern=PREFIXED), acl("*"), acl("x", kind=GROUP))
    assert {one.name for one in made.matching(everything(**meant))} == found


def test_a_filter_that_can_mean_one_acl_alone_finds_it():
    one = acl("t")
    meant = AclFilter(*one)
    assert meant.only == one
    assert index(one).matching(meant) == [one]
    assert index().matching(meant) == []


@pytest.mark.parametrize(
    "acls",
    [
        pytest.param([acl(f"t-{number}") for number in range(10_000)], id="topics"),
        pytest.param([acl(f"t-{number:04d}", pattern=PREFIXED) for number in range(10_000)], id="prefixes"),
        pytest.param([acl("t-9999", principal=f"User:{number}") for number in range(10_000)], id="principals"),
        pytest.param([acl("t-9999", host=f"h{number}") for number in range(10_000)], id="hosts"),
    ],
)
def test_a_decision_among_ten_thousand_looks_at_one_pattern_and_at_four_of_its_grants(acls):
    made = index(*acls)
    looked_at = []

    class Grants(dict):
        def get(self, who, default=None):
            looked_at.append(who)
            return super().get(who, default)

    for named in (made._patterns[TOPIC].literal, made._patterns[TOPIC].prefixed):
        for pattern in named.values():
            pattern.grants = Grants(pattern.grants)
    assert decide(made, "t-9999") is not Verdict.NOTHING
    assert len(looked_at) == 4
