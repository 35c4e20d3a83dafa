"""ACLs, SCRAM users and client quotas: what is sent, what comes of the response, what is refused before it is sent."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tagwire import messages
from tagwire.client import (
    ANY_NAME,
    DEFAULT_NAME,
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    Admin,
    Client,
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
    ResourcePattern,
    ResourcePatternFilter,
    ScramCredentialInfo,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from tagwire.errors import (
    ConfigError,
    ConnectionLostError,
    Error,
    KafkaError,
    PartlyRefusedError,
    RemoteProtocolError,
    UnsupportedVersionError,
)

from .fake_broker import Close, FakeCluster

SERVED = {29: (1, 3), 30: (1, 3), 31: (1, 3), 48: (0, 1), 49: (0, 1), 50: (0, 0), 51: (0, 0)}

READ = AclBinding(ResourcePattern("topic", "orders"), AccessControlEntry("User:alice", "read"))
DENY = AclBinding(ResourcePattern("group", "app-", "prefixed"), AccessControlEntry("User:*", "all", "deny", "10.0.0.1"))

Answer = Callable[[Any], Any]


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster(nodes=2) as two:
        two.controller = 1
        two.serve(SERVED, {})
        yield two


@pytest.fixture
def admin(cluster: FakeCluster) -> Iterator[Admin]:
    with Client(cluster.bootstrap, timeout=5) as client, Admin(client) as one:
        yield one


def nodes(cluster: FakeCluster, api: str) -> list[int]:
    return [node for node, name, _, _ in cluster.seen if name == api]


def created(*codes: int) -> Answer:
    kind = messages.CreateAclsResponse
    return lambda _: kind(results=[kind.AclCreationResult(error_code=code, error_message="no") for code in codes])


def test_acls_are_created_as_kafka_numbers_them(cluster: FakeCluster, admin: Admin) -> None:
    cluster.script("CreateAcls", created(0, 0))
    admin.create_acls([READ, DENY])
    sent = [tuple(getattr(each, name) for name in each._fields) for each in cluster.requests("CreateAcls")[0].creations]
    assert sent == [(2, "orders", 3, "User:alice", "*", 3, 3), (3, "app-", 4, "User:*", "10.0.0.1", 2, 2)]


def test_every_acl_that_was_refused_is_named(cluster: FakeCluster, admin: Admin) -> None:
    cluster.script("CreateAcls", created(0, Error.INVALID_REQUEST))
    with pytest.raises(KafkaError) as caught:
        admin.create_acls([READ, DENY])
    assert caught.value.error is Error.INVALID_REQUEST
    assert str(caught.value) == (
        "INVALID_REQUEST (42): create ACL deny all to User:* from 10.0.0.1: group 'app-' prefixed: no"
    )


def test_thousands_of_refusals_are_told_in_short(cluster: FakeCluster, admin: Admin) -> None:
    cluster.script("CreateAcls", created(*[Error.SECURITY_DISABLED] * 10_000))
    acls = [AclBinding(ResourcePattern("topic", f"t{number}"), READ.entry) for number in range(10_000)]
    with pytest.raises(KafkaError, match=r"topic 't99': no; and 9900 more$") as caught:
        admin.create_acls(acls)
    assert len(str(caught.value)) < 20_000


@pytest.mark.parametrize("results", [(), (0, 0)])
def test_a_response_with_other_results_than_acls_is_none(
    cluster: FakeCluster, admin: Admin, results: tuple[int, ...]
) -> None:
    cluster.script("CreateAcls", created(*results))
    with pytest.raises(RemoteProtocolError, match=rf"create ACLs: {len(results)} results in the response to 1"):
        admin.create_acls(READ)


def test_acls_whose_answer_was_lost_are_not_created_again(cluster: FakeCluster, admin: Admin) -> None:
    cluster.script("CreateAcls", Close())
    with pytest.raises(ConnectionLostError):
        admin.create_acls(READ)
    assert len(cluster.requests("CreateAcls")) == 1


def described(request: Any) -> Any:
    kind = messages.DescribeAclsResponse
    acl = kind.AclDescription(principal="User:alice", host="*", operation=3, permission_type=3)
    odd = kind.AclDescription(principal="User:bob", host="*", operation=77, permission_type=2)
    found = [
        kind.DescribeAclsResource(resource_type=9, resource_name="new", pattern_type=3, acls=[odd]),
        kind.DescribeAclsResource(resource_type=2, resource_name="orders", pattern_type=3, acls=[acl]),
    ]
    return kind(resources=found, error_message=None)


def test_acls_are_described_and_what_has_no_name_yet_stays_a_number(cluster: FakeCluster, admin: Admin) -> None:
    cluster.script("DescribeAcls", described)
    found = admin.describe_acls()
    odd = AclBinding(ResourcePattern("9", "new"), AccessControlEntry("User:bob", "77", "deny"))
    assert found == [odd, READ]
    (asked,) = cluster.requests("DescribeAcls")
    assert tuple(getattr(asked, name) for name in asked._fields) == (1, None, 1, None, None, 1, 1)


def test_acls_are_filtered_by_the_broker(cluster: FakeCluster, admin: Admin) -> None:
    cluster.script("DescribeAcls", described)
    pattern = ResourcePatternFilter("topic", "orders", "match")
    admin.describe_acls(AclBindingFilter(pattern, AccessControlEntryFilter("User:alice", "read", "allow", "::1")))
    (asked,) = cluster.requests("DescribeAcls")
    assert tuple(getattr(asked, name) for name in asked._fields) == (2, "orders", 2, "User:alice", "::1", 3, 3)


def test_deleted_acls_are_told_by_filter(cluster: FakeCluster, admin: Admin) -> None:
    cluster.script("DeleteAcls", deleted(0))
    everything = AclBindingFilter()
    assert admin.delete_acls(everything) == {everything: [READ]}


def test_an_acl_that_could_not_be_deleted_is_named(cluster: FakeCluster, admin: Admin) -> None:
    cluster.script("DeleteAcls", deleted(Error.SECURITY_DISABLED))
    with pytest.raises(KafkaError, match="allow read to User:alice from \\*: topic 'orders': stuck") as caught:
        admin.delete_acls(AclBindingFilter(ResourcePatternFilter("topic", "orders")))
    assert caught.value.error is Error.SECURITY_DISABLED


def deleted(code: int) -> Answer:
    kind = messages.DeleteAclsResponse
    acl = kind.DeleteAclsMatchingAcl(
        error_code=code,
        error_message="stuck" if code else None,
        resource_type=2,
        resource_name="orders",
        pattern_type=3,
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=3,
    )
    return lambda _: kind(filter_results=[kind.DeleteAclsFilterResult(error_message=None, matching_acls=[acl])])


def test_users_as_resources_need_a_broker_that_knows_them(cluster: FakeCluster, admin: Admin) -> None:
    cluster.served.update({29: (1, 2), 30: (1, 2), 31: (1, 2)})
    acl = AclBinding(ResourcePattern("user", "alice"), AccessControlEntry("User:bob", "create_tokens"))
    calls = [
        lambda: admin.create_acls(acl),
        lambda: admin.describe_acls(AclBindingFilter(ResourcePatternFilter("user"))),
        lambda: admin.delete_acls(AclBindingFilter(ResourcePatternFilter("user"))),
    ]
    for call in calls:
        with pytest.raises(UnsupportedVersionError, match=r"Acls 1-2; tagwire needs 3 \(Kafka"):
            call()


def acl(**changed: Any) -> AclBinding:
    pattern = {"resource_type": "topic", "name": "orders"} | {
        name: changed.pop(name) for name in ("resource_type", "name", "pattern_type") if name in changed
    }
    return AclBinding(
        ResourcePattern(**pattern), AccessControlEntry(**{"principal": "User:a", "operation": "read"} | changed)
    )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (acl(resource_type="any"), "resource_type='any': allowed is topic, group"),
        (acl(resource_type="topics"), r"Did you mean 'topic'\?"),
        (acl(pattern_type="match"), "pattern_type='match': allowed is literal, prefixed"),
        (acl(operation="any"), "operation='any': allowed is all, read"),
        (acl(permission="permit"), "permission='permit': allowed is deny, allow"),
        (acl(principal="alice"), "principal='alice': allowed is \"User:alice\""),
        (acl(principal="User:"), "principal='User:'"),
        (acl(host=""), "host: it is empty"),
        (acl(name=""), "name of a resource: it is empty"),
        (acl(resource_type="cluster"), "name of a cluster='orders': allowed is 'kafka-cluster'"),
        ("topic", "acls='topic': allowed is AclBinding"),
        ([READ, "topic"], "one of acls='topic'"),
        (AclBinding("topic", "User:a"), "AclBinding of something else"),  # type: ignore[arg-type]
    ],
)
def test_an_acl_that_cannot_be_is_refused_before_anything_is_sent(
    cluster: FakeCluster, admin: Admin, given: Any, says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        admin.create_acls(given)
    assert cluster.seen == []


@pytest.mark.parametrize("given", ["topic", AclBindingFilter("topic"), AclBindingFilter(ResourcePatternFilter("x"))])  # type: ignore[arg-type]
def test_a_filter_that_means_nothing_is_refused(cluster: FakeCluster, admin: Admin, given: Any) -> None:
    for call in (admin.describe_acls, admin.delete_acls):
        with pytest.raises(ConfigError):
            call(given)
    assert cluster.seen == []


# SCRAM users ---------------------------------------------------------------------------------------------------------


def altered(**codes: int) -> Answer:
    kind = messages.AlterUserScramCredentialsResponse
    results = [
        kind.AlterUserScramCredentialsResult(user=name, error_code=code, error_message="no" if code else None)
        for name, code in codes.items()
    ]
    return lambda _: kind(results=results)


def test_a_password_is_salted_before_it_is_sent_and_with_other_salt_each_time(
    cluster: FakeCluster, admin: Admin
) -> None:
    cluster.script("AlterUserScramCredentials", altered(alice=0), altered(alice=0))
    for _ in range(2):
        admin.alter_user_scram_credentials(UserScramCredentialUpsertion("alice", "SCRAM-SHA-512", "wonderland", 5000))
    first, second = (request.upsertions[0] for request in cluster.requests("AlterUserScramCredentials"))
    assert (first.name, first.mechanism, first.iterations) == ("alice", 2, 5000)
    for sent in (first, second):
        assert len(sent.salt) >= 16
        assert sent.salted_password == hashlib.pbkdf2_hmac("sha512", b"wonderland", sent.salt, 5000)
    assert first.salt != second.salt
    assert nodes(cluster, "AlterUserScramCredentials") == [1, 1]


def test_no_request_names_a_user_twice_and_each_refusal_is_named(cluster: FakeCluster, admin: Admin) -> None:
    first = altered(alice=Error.UNACCEPTABLE_CREDENTIAL, bob=0)
    cluster.script("AlterUserScramCredentials", first, altered(alice=Error.RESOURCE_NOT_FOUND))
    with pytest.raises(PartlyRefusedError) as caught:
        admin.alter_user_scram_credentials(
            [
                UserScramCredentialUpsertion("alice", "SCRAM-SHA-256", "wonderland", salt=b"salt"),
                UserScramCredentialDeletion("alice", "SCRAM-SHA-512"),
                UserScramCredentialDeletion("bob", "SCRAM-SHA-256"),
            ]
        )
    assert str(caught.value) == (
        "UNACCEPTABLE_CREDENTIAL (93): alter SCRAM user 'alice': no; "
        "RESOURCE_NOT_FOUND (91): alter SCRAM user 'alice': no"
    )
    assert list(caught.value.refused) == [("alice", "SCRAM-SHA-256"), ("alice", "SCRAM-SHA-512")]
    assert list(caught.value.succeeded) == [("bob", "SCRAM-SHA-256")]
    one, two = cluster.requests("AlterUserScramCredentials")
    assert [(each.name, each.salt) for each in one.upsertions] == [("alice", b"salt")]
    assert [[(each.name, each.mechanism) for each in sent.deletions] for sent in (one, two)] == [
        [("bob", 1)],
        [("alice", 2)],
    ]
    assert two.upsertions == []


def test_a_password_that_is_set_is_told_though_that_of_another_mechanism_is_refused(
    cluster: FakeCluster, admin: Admin
) -> None:
    both = [UserScramCredentialUpsertion("alice", f"SCRAM-SHA-{bits}", "wonderland") for bits in (256, 512)]
    for second, code in ((altered(alice=Error.UNACCEPTABLE_CREDENTIAL), 93), (Close(), 13)):
        cluster.script("AlterUserScramCredentials", altered(alice=0), second)
        with pytest.raises(PartlyRefusedError, match="alter SCRAM user 'alice'") as caught:
            admin.alter_user_scram_credentials(both)
        assert caught.value.code == code
        assert list(caught.value.succeeded) == [("alice", "SCRAM-SHA-256")]
        assert list(caught.value.refused) == [("alice", "SCRAM-SHA-512")]


def test_no_text_has_a_password_in_it(cluster: FakeCluster, admin: Admin) -> None:
    wanted = UserScramCredentialUpsertion("alice", "SCRAM-SHA-256", "wonderland", salt=b"wonderland")
    assert repr(wanted) == "UserScramCredentialUpsertion(user='alice', mechanism='SCRAM-SHA-256', iterations=4096)"
    for given in (
        UserScramCredentialUpsertion("", "SCRAM-SHA-256", "wonderland"),
        UserScramCredentialUpsertion("alice", "PLAIN", "wonderland"),
        UserScramCredentialUpsertion("alice", "SCRAM-SHA-256", b"wonderland"),  # type: ignore[arg-type]
        UserScramCredentialUpsertion("alice", "SCRAM-SHA-256", "wonderland\udc80"),
        UserScramCredentialUpsertion("alice", "SCRAM-SHA-256", "wonderland", 4095),
        UserScramCredentialUpsertion("alice", "SCRAM-SHA-256", "wonderland", 16385),
        UserScramCredentialUpsertion("alice", "SCRAM-SHA-256", "wonderland", salt="wonderland"),  # type: ignore[arg-type]
        [wanted, wanted],
        {"alice": "wonderland"},
    ):
        with pytest.raises(ConfigError) as caught:
            admin.alter_user_scram_credentials(given)  # type: ignore[arg-type]
        assert "wonderland" not in repr(caught.value)
    assert cluster.seen == []


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (UserScramCredentialUpsertion("", "SCRAM-SHA-256", "x"), "user: it needs a name"),
        (
            UserScramCredentialUpsertion("a", "PLAIN", "x"),
            "mechanism='PLAIN': allowed is SCRAM-SHA-256 or SCRAM-SHA-512",
        ),
        (UserScramCredentialUpsertion("a", "SCRAM-SHA-256", ""), "password of user 'a': needs text that is not empty"),
        (
            UserScramCredentialUpsertion("a", "SCRAM-SHA-256", "x", 9),
            "iterations of user 'a'=9: allowed is 4096 to 16384",
        ),
        ([UserScramCredentialDeletion("a", "SCRAM-SHA-256")] * 2, "SCRAM-SHA-256 of user 'a' is named 2 times"),
    ],
)
def test_a_user_that_cannot_be_is_refused(admin: Admin, given: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        admin.alter_user_scram_credentials(given)


def scram_described(**users: int) -> Answer:
    kind = messages.DescribeUserScramCredentialsResponse
    infos = [kind.CredentialInfo(mechanism=2, iterations=8192), kind.CredentialInfo(mechanism=1, iterations=4096)]
    results = [
        kind.DescribeUserScramCredentialsResult(
            user=name, error_code=code, error_message=None, credential_infos=[] if code else infos
        )
        for name, code in users.items()
    ]
    return lambda _: kind(error_message=None, results=results)


def test_users_are_described_by_name_or_all(cluster: FakeCluster, admin: Admin) -> None:
    infos = [ScramCredentialInfo("SCRAM-SHA-256", 4096), ScramCredentialInfo("SCRAM-SHA-512", 8192)]
    cluster.script("DescribeUserScramCredentials", *[scram_described(bob=0, alice=0)] * 2)
    assert admin.describe_user_scram_credentials() == {"alice": infos, "bob": infos}
    assert admin.describe_user_scram_credentials(["bob", "alice"]) == {"alice": infos, "bob": infos}
    assert admin.describe_user_scram_credentials([]) == {}
    everybody, named = cluster.requests("DescribeUserScramCredentials")
    assert everybody.users is None
    assert [user.name for user in named.users] == ["bob", "alice"]


@pytest.mark.parametrize("users", [None, "bob"])
def test_a_user_that_cannot_be_described_is_named(cluster: FakeCluster, admin: Admin, users: str | None) -> None:
    cluster.script("DescribeUserScramCredentials", scram_described(bob=Error.RESOURCE_NOT_FOUND))
    with pytest.raises(KafkaError, match="'bob'") as caught:
        admin.describe_user_scram_credentials(users)
    assert caught.value.error is Error.RESOURCE_NOT_FOUND


# Quotas --------------------------------------------------------------------------------------------------------------


def test_quotas_are_set_and_taken_away(cluster: FakeCluster, admin: Admin) -> None:
    cluster.script("AlterClientQuotas", quotas_altered)
    both, default = ClientQuotaEntity(user="alice", client_id=DEFAULT_NAME), ClientQuotaEntity(user=DEFAULT_NAME)
    admin.alter_client_quotas(
        [
            ClientQuotaAlteration(both, {"producer_byte_rate": 1024, "request_percentage": None}),
            ClientQuotaAlteration(default, {"consumer_byte_rate": 0.5}),
        ],
        validate_only=True,
    )
    (sent,) = cluster.requests("AlterClientQuotas")
    assert sent.validate_only
    assert [[(each.entity_type, each.entity_name) for each in entry.entity] for entry in sent.entries] == [
        [("user", "alice"), ("client-id", None)],
        [("user", None)],
    ]
    assert [[(op.key, op.value, op.remove) for op in entry.ops] for entry in sent.entries] == [
        [("producer_byte_rate", 1024.0, False), ("request_percentage", 0.0, True)],
        [("consumer_byte_rate", 0.5, False)],
    ]
    assert nodes(cluster, "AlterClientQuotas") == [1]


def quotas_altered(request: Any, code: int = 0) -> Any:
    kind = messages.AlterClientQuotasResponse
    entries = [
        kind.EntryData(
            error_code=code,
            error_message="no" if code else None,
            entity=[
                kind.EntityData(entity_type=each.entity_type, entity_name=each.entity_name) for each in entry.entity
            ],
        )
        for entry in request.entries
    ]
    return kind(entries=entries)


def test_whose_quotas_were_refused_is_told(cluster: FakeCluster, admin: Admin) -> None:
    cluster.script("AlterClientQuotas", lambda request: quotas_altered(request, Error.INVALID_REQUEST))
    entity = ClientQuotaEntity(user="alice", client_id=DEFAULT_NAME)
    with pytest.raises(KafkaError, match="alter quotas of user 'alice', default client-id: no"):
        admin.alter_client_quotas(ClientQuotaAlteration(entity, {"producer_byte_rate": 1}))


def quotas_described(*entities: list[tuple[str, str | None]]) -> Answer:
    kind = messages.DescribeClientQuotasResponse
    entries = [
        kind.EntryData(
            entity=[kind.EntityData(entity_type=one, entity_name=name) for one, name in entity],
            values=[kind.ValueData(key="producer_byte_rate", value=7.0)],
        )
        for entity in entities
    ]
    return lambda _: kind(error_message=None, entries=entries)


def test_quotas_are_described_by_whom_they_are_of(cluster: FakeCluster, admin: Admin) -> None:
    cluster.script("DescribeClientQuotas", quotas_described([("client-id", "app"), ("user", None)], [("ip", "::1")]))
    wanted = ClientQuotaFilter(user=ANY_NAME, client_id="app", ip=DEFAULT_NAME, strict=True)
    assert admin.describe_client_quotas(wanted) == {
        ClientQuotaEntity(user=DEFAULT_NAME, client_id="app"): {"producer_byte_rate": 7.0},
        ClientQuotaEntity(ip="::1"): {"producer_byte_rate": 7.0},
    }
    (asked,) = cluster.requests("DescribeClientQuotas")
    assert asked.strict
    found = [(each.entity_type, each.match_type, each.match) for each in asked.components]
    assert found == [("user", 2, None), ("client-id", 0, "app"), ("ip", 1, None)]


@pytest.mark.parametrize(
    "entities", [[[("planet", "x")]], [[("user", "a"), ("user", "b")]], [[("user", "a")], [("user", "a")]]]
)
def test_an_answer_about_entities_that_there_are_not_is_none(
    cluster: FakeCluster, admin: Admin, entities: list[list[tuple[str, str | None]]]
) -> None:
    cluster.script("DescribeClientQuotas", quotas_described(*entities))
    with pytest.raises(RemoteProtocolError, match="quotas of"):
        admin.describe_client_quotas()


ALICE = ClientQuotaEntity(user="alice")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (ClientQuotaAlteration(ClientQuotaEntity(), {"a": 1}), "entity=nobody: allowed is a user"),
        (ClientQuotaAlteration(ClientQuotaEntity(user="a", ip="::1"), {"a": 1}), "or an address alone"),
        (ClientQuotaAlteration("alice", {"a": 1}), "entity='alice'"),  # type: ignore[arg-type]
        (ClientQuotaAlteration(ALICE, {}), "quotas of user 'alice'"),
        (ClientQuotaAlteration(ALICE, {"a": -1}), "a of user 'alice'=-1: allowed is a number from 0 on, or None"),
        (ClientQuotaAlteration(ALICE, {"a": float("nan")}), "a of user 'alice'=nan"),
        (ClientQuotaAlteration(ALICE, {"a": True}), "a of user 'alice'=True"),
        ([ClientQuotaAlteration(ALICE, {"a": 1})] * 2, "user 'alice' is named twice"),
        ({"user": "alice"}, "alterations=<dict>"),
    ],
)
def test_quotas_that_cannot_be_are_refused_before_anything_is_sent(
    cluster: FakeCluster, admin: Admin, given: Any, says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        admin.alter_client_quotas(given)
    with pytest.raises(ConfigError):
        admin.describe_client_quotas(given)
    assert cluster.seen == []


OLD: list[tuple[int, Callable[[Admin], Any], str]] = [
    (30, lambda admin: admin.create_acls(READ), "CreateAcls; tagwire needs 1-3"),
    (29, lambda admin: admin.describe_acls(), "DescribeAcls; tagwire needs 1-3"),
    (31, lambda admin: admin.delete_acls(AclBindingFilter()), "DeleteAcls; tagwire needs 1-3"),
    (50, lambda admin: admin.describe_user_scram_credentials(), "DescribeUserScramCredentials; tagwire needs 0"),
    (
        51,
        lambda admin: admin.alter_user_scram_credentials(UserScramCredentialDeletion("a", "SCRAM-SHA-256")),
        "AlterUserScramCredentials; tagwire needs 0",
    ),
    (48, lambda admin: admin.describe_client_quotas(), "DescribeClientQuotas; tagwire needs 0-1"),
    (
        49,
        lambda admin: admin.alter_client_quotas(ClientQuotaAlteration(ALICE, {"producer_byte_rate": 1})),
        "AlterClientQuotas; tagwire needs 0-1",
    ),
]


@pytest.mark.parametrize(("api", "call", "says"), OLD, ids=[str(row[0]) for row in OLD])
def test_what_a_broker_is_too_old_for_is_told_with_the_release_that_has_it(
    cluster: FakeCluster, admin: Admin, api: int, call: Callable[[Admin], Any], says: str
) -> None:
    del cluster.served[api]
    with pytest.raises(UnsupportedVersionError, match=rf"does not serve {says} \(Kafka \d\.\d or newer\)"):
        call(admin)
