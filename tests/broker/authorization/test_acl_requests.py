"""CreateAcls, DescribeAcls and DeleteAcls over a wire: outcomes one by one, typed and bounded, and there again."""

from __future__ import annotations

import errno
from shutil import copytree

import pytest

from tagwire import messages
from tagwire.broker import Broker, Cluster
from tagwire.broker.authorization import authorizer
from tagwire.broker.registry import MOST_BYTES
from tagwire.errors import ConfigError, Error, StorageError

from .people import (
    ALL,
    ALTER,
    CLUSTER,
    DENY,
    DESCRIBE,
    GROUP,
    LITERAL,
    MATCH,
    OPTIONS,
    PREFIXED,
    READ,
    SUPER,
    TOPIC,
    WRITE,
    create,
    creation,
    delete,
    describe,
    grant,
    login,
    meant,
)


@pytest.fixture(scope="module")
def shared():
    with Broker(**OPTIONS) as broker:
        yield broker


@pytest.fixture
def admin(shared, connect):
    """A super user's wire, to a broker without ACLs."""
    wire = login(connect(shared.bootstrap), SUPER)
    delete(wire, meant())
    return wire


def listed(response):
    return [
        (found.resource_type, found.resource_name, found.pattern_type, one.principal, one.host, one.operation)
        for found in response.resources
        for one in found.acls
    ]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_what_is_created_is_described_and_deleted_in_every_version(admin, version):
    one, other = creation("t"), creation("g-", READ, DENY, kind=GROUP, pattern=PREFIXED, principal="User:*")
    assert [result.error_code for result in create(admin, one, other, one, version=version)] == [0, 0, 0]
    described = describe(admin, version=version)
    assert listed(described) == [
        (TOPIC, "t", LITERAL, "User:alice", "*", READ),
        (GROUP, "g-", PREFIXED, "User:*", "*", READ),
    ]
    (result,) = delete(admin, meant(name="g-1", pattern=MATCH), version=version)
    (gone,) = result.matching_acls
    assert (gone.resource_name, gone.permission_type) == ("g-", DENY)
    assert listed(describe(admin)) == [(TOPIC, "t", LITERAL, "User:alice", "*", READ)]


def test_acls_about_one_resource_are_described_together(admin):
    grant(admin, creation("t"), creation("u"), creation("t", WRITE))
    assert [(found.resource_name, len(found.acls)) for found in describe(admin).resources] == [("t", 2), ("u", 1)]


def test_an_acl_that_cannot_be_is_refused_and_the_others_are_created(admin):
    wrong = [
        creation("x", kind=CLUSTER),
        creation(""),
        creation("t", principal="alice"),
        creation("t", host=""),
        *(
            creation("t", host=host)
            for host in (
                "10.0.0.0/33",
                "10.0.0.0/008",
                "10.0.0/8",
                "::/129",
                "::ffff:10.0.0.0/104",
                "10.0.0.0/",
                "here/8",
                "10.0.0.0/255.0.0.0",
            )
        ),
        creation("t", pattern=MATCH),
        creation("t", pattern=1),
        creation("t", operation=1),
        creation("t", permission=1),
        creation("t", kind=1),
    ]
    results = create(admin, creation("t"), *wrong, creation("kafka-cluster", ALTER, kind=CLUSTER))
    assert [result.error_code for result in results] == [0, *[Error.INVALID_REQUEST] * len(wrong), 0]
    assert all(result.error_message for result in results[1:-1])
    assert len(listed(describe(admin))) == 2


@pytest.mark.parametrize("code", [0, -1, 16, 100, 127, -128])
@pytest.mark.parametrize("field", ["kind", "pattern", "operation", "permission"])
def test_a_number_that_is_no_type_is_an_error_of_its_own(admin, field, code):
    grant(admin, creation("t"))
    (refused, fine) = create(admin, creation("u", **{field: code}), creation("v"))
    assert (refused.error_code, fine.error_code) == (Error.INVALID_REQUEST, 0)
    assert str(code) in refused.error_message
    assert describe(admin, **{field: code}).error_code == Error.INVALID_REQUEST
    (refused, fine) = delete(admin, meant(**{field: code}), meant(name="v"))
    assert refused.error_code == Error.INVALID_REQUEST
    assert [gone.resource_name for gone in fine.matching_acls] == ["v"]


def test_filters_that_mean_nothing_and_filters_that_mean_the_same(admin):
    grant(admin, creation("t"))
    none, one, same = delete(admin, meant(name="nothing" * 1000), meant(name="t"), meant(kind=TOPIC))
    assert (none.error_code, none.matching_acls) == (0, [])
    assert [len(result.matching_acls) for result in (one, same)] == [1, 1]
    assert describe(admin).resources == []


def test_as_many_acls_as_a_request_may_change_are_created_at_once_and_one_more_is_too_many(admin, monkeypatch):
    monkeypatch.setattr(authorizer, "MOST_CHANGES", 1000)
    some = [creation(f"t{number}") for number in range(1000)]
    grant(admin, *some)
    assert {result.error_code for result in create(admin, *(creation(f"u{n}") for n in range(1001)))} == {
        Error.POLICY_VIOLATION
    }
    grant(admin, creation("v"))
    (refused,) = delete(admin, meant())
    assert refused.error_code == Error.POLICY_VIOLATION
    assert len(listed(describe(admin))) == 1001
    monkeypatch.undo()
    (deleted,) = delete(admin, meant())
    assert len(deleted.matching_acls) == 1001


def test_names_as_long_as_they_may_be_and_more_than_memory_is_given_to(admin, monkeypatch):
    name = "n" * 32_767
    grant(admin, creation(name), creation(name, pattern=PREFIXED))
    (found,) = {resource.resource_name for resource in describe(admin, name=name, pattern=MATCH).resources}
    assert found == name
    monkeypatch.setattr(authorizer, "MOST_BYTES", 70_000)
    (refused,) = create(admin, creation(name, WRITE))
    assert refused.error_code == Error.POLICY_VIOLATION
    assert "70000 bytes" in refused.error_message


def test_a_request_of_filters_that_would_take_long_is_refused(admin, monkeypatch):
    monkeypatch.setattr(authorizer, "MOST_SEARCHES", 2)
    grant(admin, creation("t"))
    assert {result.error_code for result in delete(admin, *[meant()] * 3)} == {Error.POLICY_VIOLATION}
    exact = meant(TOPIC, "t", LITERAL, "User:alice", "*", READ, 3)
    assert [len(result.matching_acls) for result in delete(admin, *[exact] * 3)] == [1, 1, 1]


def test_a_request_of_more_bytes_than_any_closes_the_connection(admin):
    many = [creation("n" * 30_000)] * (MOST_BYTES // 30_000 + 1)
    admin.send(messages.CreateAclsRequest(creations=many), 3)
    assert admin.is_closed()


def test_who_may_not_alter_the_cluster_is_refused_item_by_item(shared, admin, connect):
    alice = login(connect(shared.bootstrap), "alice")
    assert [result.error_code for result in create(alice, creation("t"), creation("u"))] == [31, 31]
    assert [result.error_code for result in delete(alice, meant(), meant())] == [31, 31]
    assert describe(alice).error_code == Error.CLUSTER_AUTHORIZATION_FAILED
    grant(admin, creation("kafka-cluster", DESCRIBE, kind=CLUSTER))
    assert len(describe(alice).resources) == 1
    grant(admin, creation("kafka-cluster", ALTER, kind=CLUSTER))
    grant(alice, creation("t"))


def test_what_the_disk_refuses_is_told_and_not_in_force(tmp_path, connect):
    with Broker(tmp_path / "data", **OPTIONS) as broker:
        admin = login(connect(broker.bootstrap), SUPER)
        grant(admin, creation("t"))
        broker.disk.fail("sync", errno.EIO)
        (refused,) = create(admin, creation("u"))
        assert refused.error_code == Error.KAFKA_STORAGE_ERROR
        (refused,) = delete(admin, meant())
        assert refused.error_code == Error.KAFKA_STORAGE_ERROR
        assert [name for _, name, *_ in listed(describe(admin))] == ["t"]
        broker.disk.mend()
        grant(admin, creation("u"))
    with Broker(tmp_path / "data", **OPTIONS) as broker:
        again = login(connect(broker.bootstrap), SUPER)
        assert [name for _, name, *_ in listed(describe(again))] == ["t", "u"]


def test_a_deletion_that_was_refused_and_may_be_stored_is_taken_back_before_the_acl_is_said_to_be_there(
    tmp_path, connect
):
    with Broker(tmp_path / "data", **OPTIONS) as broker:
        admin = login(connect(broker.bootstrap), SUPER)
        grant(admin, creation("t"))
        broker.disk.fail("sync", errno.EIO)
        (refused,) = delete(admin, meant())
        assert refused.error_code == Error.KAFKA_STORAGE_ERROR
        broker.disk.mend()
        grant(admin, creation("t"))
    with Broker(tmp_path / "data", **OPTIONS) as broker:
        again = login(connect(broker.bootstrap), SUPER)
        assert [name for _, name, *_ in listed(describe(again))] == ["t"]


def test_acls_outlive_a_broker_that_is_killed_and_a_line_that_it_was_writing(tmp_path, connect):
    with Broker(tmp_path / "data", **OPTIONS) as broker:
        admin = login(connect(broker.bootstrap), SUPER)
        grant(admin, creation("t"), creation("u", ALL, DENY))
        delete(admin, meant(name="t"))
        grant(admin, creation("v"))
        copytree(tmp_path / "data", tmp_path / "killed")  # what a kill would leave now
    with open(tmp_path / "killed" / "tagwire-acls", "ab") as file:
        file.write(b'12345678 {"add": [["TOPIC", "w", "LITE')
    with Broker(tmp_path / "killed", **OPTIONS) as broker:
        again = login(connect(broker.bootstrap), SUPER)
        assert [name for _, name, *_ in listed(describe(again))] == ["u", "v"]


def test_a_broken_file_keeps_the_broker_from_starting(tmp_path):
    with Broker(tmp_path, **OPTIONS):
        pass
    (tmp_path / "tagwire-acls").write_text("nothing\n")
    with pytest.raises(StorageError, match="tagwire-acls, line 1"):
        Broker(tmp_path, **OPTIONS).start()
    with Broker(tmp_path):  # whoever asks for no authorizer is not kept out by its file
        pass


def test_every_node_of_a_cluster_decides_by_the_same_acls(connect):
    with Cluster(nodes=2, **OPTIONS) as cluster:
        wires = [login(connect(node.bootstrap), SUPER) for node in cluster.nodes.values()]
        alice = login(connect(cluster.nodes[2].bootstrap), "alice")
        assert wires[0].create("t").error_code == 0
        assert alice.metadata().topics == []
        grant(wires[0], creation("t"))
        assert [topic.name for topic in alice.metadata().topics] == ["t"]
        assert len(describe(wires[1]).resources) == 1


@pytest.mark.parametrize(("release", "seen"), [("4.3", []), ("4.4", ["t"])])
def test_as_a_release_before_kip_1276_a_network_is_the_text_of_nobodys_host(connect, release, seen):
    with Broker(as_release=release, **OPTIONS) as broker:
        admin = login(connect(broker.bootstrap), SUPER)
        assert admin.create("t").error_code == 0
        grant(admin, creation("t", host="127.0.0.0/8"))
        (result,) = create(admin, creation("t", host="127.0.0.0/33"))
        assert result.error_code == (Error.INVALID_REQUEST if seen else 0)
        alice = login(connect(broker.bootstrap), "alice")
        assert [topic.name for topic in alice.metadata().topics] == seen


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"authorizer": "SimpleAclAuthorizer"}, "StandardAuthorizer or None"),
        ({"super_users": "User:a"}, 'needs authorizer="StandardAuthorizer"'),
        ({"allow_everyone_if_no_acl_found": True}, "allow_everyone_if_no_acl_found: needs authorizer"),
        ({"authorizer": "StandardAuthorizer", "super_users": "admin"}, "User:admin"),
        ({"authorizer": "StandardAuthorizer", "super_users": ["User:admin"]}, "semicolon|text"),
        ({"authorizer": "StandardAuthorizer", "allow_everyone_if_no_acl_found": 1}, "True or False"),
    ],
)
def test_a_setting_that_is_wrong_is_named(options, told):
    with pytest.raises(ConfigError, match=told):
        Broker(**options)


def test_an_authorizer_in_a_file_of_settings(tmp_path):
    from tagwire.broker.config_file import read_config

    file = tmp_path / "broker.toml"
    file.write_text('authorizer = "StandardAuthorizer"\nsuper_users = "User:a; User:b"\n')
    with Broker(**read_config(file)) as broker:
        assert broker._settings.super_user_set == {"User:a", "User:b"}
