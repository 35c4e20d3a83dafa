"""`tagwire groups` and `tagwire configs`: what is printed, what is changed, what is refused."""

from __future__ import annotations

import json

import pytest

from tagwire.client import Admin, GroupListing, NewTopic
from tagwire.errors import Error, KafkaError, PartlyRefusedError

from ..client.admin_responses import SERVED, Looked
from ..client.fake_broker import FakeCluster


@pytest.fixture
def looked():
    return Looked()


@pytest.fixture
def cluster(looked):
    with FakeCluster() as one:
        for partition, end in zip(one.topic("t", 2), (10, 0)):
            partition.end = end
        one.serve(SERVED, looked.responses())
        yield one


@pytest.fixture
def ran(run, cluster):
    def ran(*arguments):
        return run(*arguments, "--bootstrap", cluster.bootstrap)

    return ran


def rows(text):
    return [line.split() for line in text.splitlines()]


def test_groups_are_listed(ran):
    assert rows(ran("groups", "list").out) == [["group", "state", "type"], ["g", "Empty", "classic"]]
    assert json.loads(ran("groups", "list", "--json").out) == {
        "group": "g",
        "state": "Empty",
        "type": "classic",
        "protocol_type": "",
    }


def test_a_group_is_described_with_its_lag(ran, looked):
    looked.committed = {("t", 0): 4, ("gone", 0): 1}
    out = rows(ran("groups", "describe", "g").out)
    assert out[1][:7] == ["gone", "0", "1", "-", "-", "-", "-"]
    assert out[1][7:] == ["the", "topic", "does", "not", "exist"]
    assert out[2] == ["t", "0", "4", "10", "6", "app", "/h", "-"]
    assert " ".join(out[-1]) == "g is Stable (classic), 2 members, 6 records behind."
    told = [json.loads(line) for line in ran("groups", "describe", "g", "--json").out.splitlines()]
    assert [row["lag"] for row in told] == [None, 6]
    assert (told[1]["group"], told[1]["state"], told[1]["member_id"]) == ("g", "Stable", "m")


def test_all_groups_are_described_where_that_is_asked_for(ran, looked):
    looked.committed = {("t", 0): 4}
    assert ran("groups", "describe", "--all").out == ran("groups", "describe", "g").out
    assert ran("groups", "describe", "--all", "--json").out == ran("groups", "describe", "g", "--json").out
    assert ran("groups", "describe").code == ran("groups", "describe", "g", "--all").code == 2
    looked.group_exists = False
    assert ran("groups", "describe", "--all").out.startswith("no groups on ")


@pytest.mark.parametrize("group", ["topics", "groups", "configs", "headers", "spec"])
def test_a_group_of_commands_alone_lists(run, cluster, monkeypatch, group):
    monkeypatch.setenv("TAGWIRE_BOOTSTRAP", cluster.bootstrap)
    alone = run(group)
    assert (alone.code, alone.out) == (0, run(group, "list").out)
    assert alone.out
    assert [json.loads(line) for line in run(group, "--json").out.splitlines()]
    assert run(group, "--json", "list").code == 2  # the list would not hear of it


@pytest.mark.parametrize(
    ("to", "after"),
    [("earliest", [0, 0]), ("latest", [10, 0]), ("3", [3, 0]), ("99", [10, 0]), ("2030-01-01", [10, 0])],
)
def test_offsets_are_reset_within_what_partitions_hold(ran, looked, to, after):
    looked.has_members, looked.committed = False, {("t", 0): 4}
    dry = ran("groups", "offsets", "reset", "g", "--to", to, "--dry-run", "--json")
    assert [json.loads(line)["after"] for line in dry.out.splitlines()] == after
    assert looked.committed == {("t", 0): 4}
    assert ran("groups", "offsets", "reset", "g", "--to", to, "--topic", "t").code == 0
    assert looked.committed == {("t", 0): after[0], ("t", 1): after[1]}


@pytest.mark.parametrize(("by", "after"), [(3, 7), (-3, 1), (-99, 0), (99, 10)])
def test_offsets_are_moved_from_where_they_are(ran, looked, by, after):
    looked.has_members, looked.committed = False, {("t", 0): 4}
    out = ran("groups", "offsets", "reset", "g", "--by", by, "--topic", "t").out
    assert rows(out)[1:] == [["t", "0", "4", str(after)]]
    assert looked.committed == {("t", 0): after}


@pytest.mark.parametrize(
    "named", [("--topic", "t", "--partition", 0, "--partition", 1), ("--topic", "t", "--topic", "u")]
)
def test_what_is_named_and_has_no_offset_to_be_moved_from_is_told_and_nothing_moves(ran, looked, cluster, named):
    cluster.topic("u", 1)
    looked.has_members, looked.committed = False, {("t", 0): 4}
    found = ran("groups", "offsets", "reset", "g", "--by", 1, *named)
    assert (found.code, found.out, looked.committed) == (2, "", {("t", 0): 4})
    assert "group 'g' has committed nothing of topic" in found.err


def test_one_partition_alone_is_reset(ran, looked):
    looked.has_members = False
    assert ran("groups", "offsets", "reset", "g", "--to", "latest", "--topic", "t", "--partition", 1).code == 0
    assert looked.committed == {("t", 1): 0}


def test_a_group_with_members_is_not_reset(ran, looked):
    found = ran("groups", "offsets", "reset", "g", "--to", "latest", "--topic", "t")
    assert (found.code, found.out, looked.committed) == (2, "", {})
    assert "NON_EMPTY_GROUP (68): reset group 'g': it has 2 members; stop them first" in found.err


def test_a_group_that_does_not_exist_begins_where_it_is_reset_to(ran, looked):
    assert ran("groups", "offsets", "reset", "new", "--to", "3", "--topic", "t").code == 0
    assert looked.committed == {("t", 0): 3, ("t", 1): 0}


def test_offsets_are_forgotten(ran, looked):
    looked.committed = {("t", 0): 4, ("u", 0): 1}
    dry = ran("groups", "offsets", "delete", "g", "--topic", "t", "--dry-run", "--json")
    assert json.loads(dry.out) == {"topic": "t", "partition": 0, "before": 4, "after": None}
    assert len(looked.committed) == 2
    assert rows(ran("groups", "offsets", "delete", "g", "--topic", "t").out)[1:] == [["t", "0", "4", "-"]]
    assert looked.committed == {("u", 0): 1}


def test_a_group_that_committed_nothing_needs_a_topic(ran, looked):
    looked.has_members = False
    found = ran("groups", "offsets", "reset", "g", "--to", "latest")
    assert found == (2, "", "tagwire: group 'g' has committed nothing; name a --topic\n")
    assert ran("groups", "offsets", "reset", "g", "--to", "soon").code == 2
    assert ran("groups", "offsets", "reset", "g").err.startswith("tagwire: Invalid value: give either --to or --by")
    assert ran("groups", "offsets", "reset", "g", "--to", "latest", "--by", "1").code == 2


def test_a_group_is_deleted_once(ran):
    assert ran("groups", "delete", "g").out == "deleted g\n"
    again = ran("groups", "delete", "g")
    assert (again.code, again.out) == (2, "")
    assert "GROUP_ID_NOT_FOUND" in again.err


def test_deleting_is_told_to_programs_too(ran):
    assert json.loads(ran("groups", "delete", "g", "--json").out) == {"group": "g", "deleted": True}


def test_configs_are_shown_and_changed(ran, looked):
    assert rows(ran("configs", "describe", "topic/t").out)[1:] == [["secret", "(secret)", "broker", "file"]]
    assert ran("configs", "alter", "topic/t", "--set", "retention.ms=5").out == "changed 1 config of topic/t\n"
    assert rows(ran("configs", "describe", "topic/t").out)[1] == ["retention.ms", "5", "topic"]
    assert ran("configs", "alter", "topic/t", "--reset", "retention.ms").code == 0
    assert looked.configs == {"retention.ms": None}
    told = [json.loads(line) for line in ran("configs", "describe", "topic/t", "--all", "--json").out.splitlines()]
    assert [(row["name"], row["source"]) for row in told] == [("retention.ms", "default"), ("secret", "broker file")]


def test_what_is_no_default_is_listed_of_all_brokers_and_topics(ran, looked):
    looked.configs["retention.ms"] = "5"
    told = [json.loads(line) for line in ran("configs", "--json").out.splitlines()]
    assert [(row["resource"], row["name"], row["value"]) for row in told] == [
        ("broker/0", "retention.ms", "5"),
        ("broker/0", "secret", None),
        ("topic/t", "retention.ms", "5"),
        ("topic/t", "secret", None),
    ]


def test_a_topic_that_is_deleted_while_configs_are_listed_is_left_out(run, monkeypatch, bootstrap):
    with Admin(bootstrap) as admin:
        admin.create_topics([NewTopic(name, configs={"retention.ms": "5"}) for name in ("stays-set", "goes-set")])
    describe = Admin.describe_configs

    def deletes_first(self, *arguments):
        monkeypatch.undo()
        with Admin(bootstrap) as admin:
            admin.delete_topics(["goes-set"])
        return describe(self, *arguments)

    monkeypatch.setattr(Admin, "describe_configs", deletes_first)
    told = run("configs", "--json", "--bootstrap", bootstrap)
    assert told.code == 0, told.err
    resources = {json.loads(line)["resource"] for line in told.out.splitlines()}
    assert ("topic/stays-set" in resources, "topic/goes-set" in resources) == (True, False)


def test_configs_that_are_not_told_keep_no_others_from_being_listed(run, looked):
    describe = looked.DescribeConfigs

    def refusing(request):
        response = describe(request)
        for result in response.results:
            if result.resource_name == "u":
                result.error_code, result.configs = Error.TOPIC_AUTHORIZATION_FAILED, []
        return response

    with FakeCluster(nodes=2) as two:
        two.topic("t")
        two.topic("u")
        two.serve(SERVED, {**looked.responses(), "DescribeConfigs": refusing})
        two.brokers[1].stop()
        told = run("configs", "--json", "--bootstrap", two.bootstrap, "-X", "request.timeout.ms=3000")
    assert told.code == 0
    assert {json.loads(line)["resource"] for line in told.out.splitlines()} == {"broker/0", "topic/t"}
    away, refused = told.err.splitlines()
    assert f"127.0.0.1:{two.brokers[1].port}" in away
    assert refused == "TOPIC_AUTHORIZATION_FAILED (29): describe configs of topic 'u'"


def test_a_cluster_that_tells_of_no_configs_is_an_error(ran, looked, cluster):
    describe = looked.DescribeConfigs

    def refusing(request):
        response = describe(request)
        for result in response.results:
            result.error_code, result.configs = Error.CLUSTER_AUTHORIZATION_FAILED, []
        return response

    cluster.serve({}, {"DescribeConfigs": refusing})
    told = ran("configs")
    assert (told.code, told.out, told.err.count("\n")) == (2, "", 1)
    assert "CLUSTER_AUTHORIZATION_FAILED (31): describe configs of broker '0'" in told.err


def test_configs_that_are_lists_get_more_and_less(ran, cluster):
    arguments = ("topic/t", "--append", "a=x", "--subtract", "b=y", "--reset", "c", "--dry-run", "--json")
    told = [json.loads(line) for line in ran("configs", "alter", *arguments).out.splitlines()]
    assert told == [{"resource": "topic/t", "name": name, "altered": False} for name in "abc"]
    (asked,) = cluster.requests("IncrementalAlterConfigs")
    assert asked.validate_only
    assert [(each.name, each.config_operation) for each in asked.resources[0].configs] == [("a", 2), ("b", 3), ("c", 1)]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("alter", "topic/t"), "give --set, --append, --subtract or --reset"),
        (("alter", "topic/t", "--set", "a=1", "--reset", "a"), "in one way at a time"),
        (("describe", "flights"), "is not KIND/NAME"),
        (("describe", "user/x"), "a kind of topic, broker"),
        (("describe", "broker/x"), "a broker is named by its id"),
        (("describe", "broker/" + "9" * 5000), "there is no such broker"),
        (("alter", "topic/t", "--set", "retention.ms=bad"), "no number"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(ran, arguments, says):
    found = ran("configs", *arguments)
    assert (found.code, found.out) == (2, "")
    assert says in found.err
    assert found.err.count("\n") == 1


@pytest.mark.parametrize("as_json", [True, False])
def test_groups_that_other_brokers_list_are_told_beside_the_error_of_one(run, monkeypatch, as_json):
    def partly(self, **_):
        listed = {1: [GroupListing("b", "consumer", "Empty", "classic", 1), GroupListing("a", "", "", "", 1)]}
        raise PartlyRefusedError(31, "list groups of broker 2", {2: KafkaError(31, "list groups of broker 2")}, listed)

    monkeypatch.setattr(Admin, "list_groups", partly)
    found = run("groups", *["--json"] * as_json)
    assert (found.code, found.err) == (2, "tagwire: CLUSTER_AUTHORIZATION_FAILED (31): list groups of broker 2\n")
    if as_json:
        assert [json.loads(line)["group"] for line in found.out.splitlines()] == ["a", "b"]
    else:
        assert [line.split()[0] for line in found.out.splitlines()] == ["group", "a", "b"]
