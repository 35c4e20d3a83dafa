"""`tagwire reassign`, `elect-leaders` and `features`: what is planned, moved and elected in a cluster of three."""

from __future__ import annotations

import json

import pytest

from tagwire import messages
from tagwire.broker import Cluster
from tagwire.cli.reassignment_files import planned
from tagwire.client import Admin, Client, NewTopic, PartitionReassignment, TopicPartition
from tagwire.errors import RequestTimeoutError

from ..client.fake_broker import FakeCluster


@pytest.fixture(scope="module")
def cluster():
    with Cluster(3, fsync="never") as three:
        with Admin(three.bootstrap) as admin:
            admin.create_topics([NewTopic("flights", 3, 2), NewTopic("delays", 2, 1)])
        yield three


@pytest.fixture
def ran(run, cluster):
    def ran(*arguments):
        return run(*arguments, "--bootstrap", cluster.bootstrap)

    return ran


def told(found, code=0):
    assert (found.code, found.err) == (code, "")
    return [json.loads(line) for line in found.out.splitlines()]


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.json"

    def written(*partitions, **more):
        rows = [{"topic": topic, "partition": index, "replicas": replicas} for topic, index, replicas in partitions]
        path.write_text(json.dumps({"version": 1, "partitions": rows, **more}))
        return path

    return written


def test_a_plan_is_generated_carried_out_verified_and_taken_back(ran, tmp_path):
    path, before = tmp_path / "plan.json", tmp_path / "before.json"
    path.write_text(ran("reassign", "generate", "flights", "--brokers", "1,2,3", "--replication-factor", 3).out)
    wanted = {row["partition"]: row["replicas"] for row in json.loads(path.read_text())["partitions"]}
    assert sorted(replicas[0] for replicas in wanted.values()) == [1, 2, 3]  # each leads one
    assert {tuple(sorted(replicas)) for replicas in wanted.values()} == {(1, 2, 3)}
    assert {row["state"] for row in told(ran("reassign", "verify", path, "--json"), 1)} == {"elsewhere"}
    dry = told(ran("reassign", "execute", path, "--dry-run", "--save-current", before, "--json"))
    assert not before.exists()
    done = told(ran("reassign", "execute", path, "--save-current", before, "--wait", "--json"))
    assert [row["before"] for row in done] == [row["before"] for row in dry]
    assert {row["partition"]: row["after"] for row in done} == wanted
    assert [row["begun"] for row in dry + done] == [False] * 3 + [True] * 3
    assert {row["state"] for row in told(ran("reassign", "verify", path, "--json"))} == {"done"}
    assert ran("reassign", "execute", path).out == "nothing to move: all replicas are where the plan has them\n"
    assert ran("reassign", "execute", before).code == 0
    assert [line.split()[-1] for line in ran("reassign", "verify", before).out.splitlines()] == ["state", *["done"] * 3]
    assert ran("reassign", "cancel", before).out == "nothing of the plan is under way\n"
    assert ran("reassign").out.startswith("nothing is being moved on ")


def test_a_plan_without_a_version_is_of_the_first(ran, tmp_path):
    """As Kafka's own command has it."""
    path = tmp_path / "plan.json"
    path.write_text('{"partitions": [{"topic": "delays", "partition": 0, "replicas": [1]}]}')
    assert [row["after"] for row in told(ran("reassign", "execute", path, "--dry-run", "--json"))] in ([], [[1]])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[]", 'is not {"version": 1, "partitions": [...]}'),
        ('{"version": 2, "partitions": []}', 'is not {"version": 1, "partitions": [...]}'),
        ('{"version": 1, "partitions": []}', "names no partition"),
        ('{"version": 1, "partitions": [{"topic": "t"}]}', "partition 1 of the list: needs a topic and a partition"),
        ('{"version": 1, "partitions": [{"topic": "t", "partition": true}]}', "needs a topic and a partition"),
        ('{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [-1]}]}', "needs replicas"),
        ('{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]}', "named twice"),
        (
            '{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": ["/d"]}]}',
            "names a log directory",
        ),
        (
            '{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": 7}]}',
            "log_dirs is no list",
        ),
    ],
)
def test_a_file_that_is_no_plan_is_told_with_the_place(ran, tmp_path, text, says):
    path = tmp_path / "plan.json"
    path.write_text(text)
    for command in ("execute", "verify", "cancel"):
        found = ran("reassign", command, path)
        assert (found.code, found.out) == (2, "")
        assert says in found.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("generate", "flights", "--brokers", "1,x"), "'1,x' is not ID,ID,..., each once"),
        (("generate", "flights", "--brokers", "1,1"), "each once"),
        (("generate", "flights", "--brokers", "1,01"), "each once"),
        (("generate", "flights", "--brokers", "1,7"), "there is no broker 7; there are 1, 2, 3"),
        (("generate", "flights", "--brokers", "1"), "1 brokers cannot have 2 replicas"),
        (("generate", "flihgts", "--brokers", "1,2"), "Did you mean 'flights'"),
    ],
)
def test_what_cannot_be_planned_is_told(ran, words, says):
    found = ran("reassign", *words)
    assert (found.code, found.out) == (2, "")
    assert says in found.err


def test_partitions_that_cannot_be_moved_are_named(ran, plan):
    found = ran("reassign", "execute", plan(("flights", 0, [1, 9]), ("flights", 7, [1])))
    assert (found.code, found.out) == (2, "")
    assert "INVALID_REPLICA_ASSIGNMENT (39): reassign partition flights-0" in found.err
    assert "UNKNOWN_TOPIC_OR_PARTITION (3): reassign partition flights-7" in found.err


def at(index):
    return TopicPartition("t", index)


def test_replicas_are_spread_evenly_and_stay_where_they_can():
    current = {at(index): [1, 2] for index in range(6)}
    found = planned(current, [1, 2, 3], dict.fromkeys((1, 2, 3)))
    load = [sum(broker in replicas for replicas in found.values()) for broker in (1, 2, 3)]
    leads = [sum(broker == replicas[0] for replicas in found.values()) for broker in (1, 2, 3)]
    assert (load, leads) == ([4, 4, 4], [2, 2, 2])
    assert sum(len({1, 2} - set(replicas)) for replicas in found.values()) == 4  # only what broker 3 needs has moved
    assert planned(found, [1, 2, 3], dict.fromkeys((1, 2, 3))) == found


def test_a_rack_is_not_used_twice_where_there_are_enough():
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    found = planned({at(index): [] for index in range(8)}, [1, 2, 3, 4], racks, 2)
    assert all({racks[broker] for broker in replicas} == {"a", "b"} for replicas in found.values())
    load = [sum(broker in replicas for replicas in found.values()) for broker in racks]
    assert load == [4, 4, 4, 4]
    mended = planned({at(0): [1, 2], at(1): [3, 4]}, [1, 2, 3, 4], racks)
    assert all({racks[broker] for broker in replicas} == {"a", "b"} for replicas in mended.values())


@pytest.fixture
def moving(run):
    """A cluster with a partition that never arrives until it is cancelled."""
    with FakeCluster() as one:
        one.topic("t", 2)
        under_way = [0]

        def listed(request):
            kind = messages.ListPartitionReassignmentsResponse
            each = kind.OngoingPartitionReassignment
            partitions = [
                each(partition_index=index, replicas=[1, 2], adding_replicas=[2], removing_replicas=[1])
                for index in under_way
            ]
            return kind(error_message=None, topics=[kind.OngoingTopicReassignment(name="t", partitions=partitions)])

        def altered(request):
            kind = messages.AlterPartitionReassignmentsResponse
            assert [each.replicas for topic in request.topics for each in topic.partitions] == [None]
            under_way.clear()
            done = kind.ReassignablePartitionResponse(partition_index=0, error_message=None)
            return kind(error_message=None, responses=[kind.ReassignableTopicResponse(name="t", partitions=[done])])

        one.serve(
            {45: (0, 1), 46: (0, 0)},
            {"ListPartitionReassignments": listed, "AlterPartitionReassignments": altered},
        )
        yield lambda *arguments: run("reassign", *arguments, "--bootstrap", one.bootstrap)


def test_what_is_under_way_is_listed_and_cancelled(moving, plan):
    wanted = plan(("t", 0, [2]))
    assert [line.split() for line in moving().out.splitlines()] == [
        ["topic", "partition", "replicas", "adding", "removing"],
        ["t", "0", "1,2", "2", "1"],
    ]
    assert told(moving("--json")) == [
        {"topic": "t", "partition": 0, "replicas": [1, 2], "adding": [2], "removing": [1]}
    ]
    assert [row["state"] for row in told(moving("verify", wanted, "--json"), 1)] == ["moving"]
    assert moving("cancel", wanted, "--dry-run").out == "could cancel the move of t-0\n"
    assert moving("cancel", wanted).out == "cancelled the move of t-0\n"
    assert told(moving("cancel", wanted, "--json")) == []


def test_a_plan_of_what_a_partition_has_while_it_is_moved_elsewhere_is_carried_out(ran, plan, cluster, monkeypatch):
    with Client(cluster.bootstrap) as client:
        first, second = client.topic("flights").partitions[0].replicas
    at = TopicPartition("flights", 0)
    away = PartitionReassignment((first, second), (first,), (second,))  # from the second to the first alone
    asked = []
    monkeypatch.setattr(Admin, "list_partition_reassignments", lambda self, partitions=None: {at: away})
    monkeypatch.setattr(Admin, "alter_partition_reassignments", lambda self, changes: asked.append(changes))
    stay = plan(("flights", 0, [first, second]))
    assert [row["after"] for row in told(ran("reassign", "execute", stay, "--json"))] == [[first, second]]
    assert asked == [{at: [first, second]}]
    go = plan(("flights", 0, [first]))
    assert told(ran("reassign", "execute", go, "--json")) == []
    assert len(asked) == 1


# Leaders -------------------------------------------------------------------------------------------------------------


def test_preferred_leaders_are_elected_where_others_lead(ran, cluster):
    with Admin(cluster.bootstrap) as admin:
        (topic,) = [one for one in admin.list_topics() if one.name == "flights"]
        first, second = topic.partitions[0].replicas[:2]
    cluster.move_leader("flights", 0, second)
    (row,) = [row for row in told(ran("elect-leaders", "flights", "--json")) if row["elected"]]
    assert row == {"topic": "flights", "partition": 0, "elected": True, "leader": first}
    assert ran("elect-leaders", "--all").out == "no election was needed: 5 partitions are led as they should be\n"
    cluster.move_leader("flights", 0, second)
    (_, line) = ran("elect-leaders", "flights", "--partition", 0).out.splitlines()
    assert line.split() == ["flights", "0", str(first)]
    assert not any(
        row["elected"] for row in told(ran("elect-leaders", "delays", "--election-type", "unclean", "--json"))
    )


def test_an_election_that_is_refused_for_some_tells_of_the_others(ran, cluster):
    with Admin(cluster.bootstrap) as admin:
        (topic,) = [one for one in admin.list_topics() if one.name == "flights"]
    first, second = topic.partitions[0].replicas[:2]
    cluster.move_leader("flights", 0, second)
    found = ran("elect-leaders", "flights", *(word for index in (0, 1, 9) for word in ("--partition", index)))
    assert (found.code, found.err.count("\n")) == (2, 1)
    assert "elect preferred leader of partition flights-9" in found.err
    _, line, others = found.out.splitlines()
    assert line.split() == ["flights", "0", str(first)]
    assert others == "no election was needed: 1 partition is led as it should be"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "name topics, or give --all"),
        (("flights", "--all"), "name topics, or give --all"),
        (("flights", "delays", "--partition", 0), "it goes with one topic"),
        (("flights", "--election-type", "dirty"), "'dirty' is not preferred or unclean"),
        (("flihgts",), "Did you mean 'flights'"),
        (
            ("flights", "--partition", 9),
            "UNKNOWN_TOPIC_OR_PARTITION (3): elect preferred leader of partition flights-9",
        ),
    ],
)
def test_an_election_that_means_nothing_is_told_in_one_line(ran, words, says):
    found = ran("elect-leaders", *words)
    assert (found.code, found.out) == (2, "")
    assert says in found.err
    assert found.err.count("\n") == 1


# Features ------------------------------------------------------------------------------------------------------------


def test_features_are_listed_with_what_all_brokers_support(ran):
    rows = {row["feature"]: row for row in told(ran("features", "--json"))}
    assert rows["group.version"] == {"feature": "group.version", "level": 1, "lowest": 0, "highest": 1, "epoch": 0}
    assert ran("features").out.splitlines()[0].split() == ["feature", "level", "lowest", "highest"]


def test_a_broker_that_is_away_keeps_no_features_of_the_others_from_being_listed(run):
    kind = messages.ApiVersionsResponse
    told_by_all = kind(
        api_keys=[kind.ApiVersion(api_key=api, min_version=0, max_version=high) for api, high in ((3, 12), (18, 4))],
        supported_features=[kind.SupportedFeatureKey(name="a", min_version=0, max_version=2)],
        finalized_features=[kind.FinalizedFeatureKey(name="a", max_version_level=1, min_version_level=0)],
        finalized_features_epoch=7,
    )
    with FakeCluster(nodes=2) as two:
        two.serve({}, {"ApiVersions": lambda _: told_by_all})
        two.brokers[1].stop()
        found = run("features", "--json", "--bootstrap", two.bootstrap, "-X", "request.timeout.ms=3000")
    assert (found.code, json.loads(found.out)) == (
        0,
        {"feature": "a", "level": 1, "lowest": 0, "highest": 2, "epoch": 7},
    )
    assert found.err.startswith("not counted: ")
    assert f"127.0.0.1:{two.brokers[1].port}" in found.err


def test_a_broker_that_cannot_update_features_is_named(ran):
    found = ran("features", "upgrade", "group.version=1")
    assert (found.code, found.out) == (2, "")
    assert "does not serve UpdateFeatures; tagwire needs 1-2 (Kafka 3.3 or newer)" in found.err


@pytest.mark.parametrize(
    ("words", "sent", "out"),
    [
        (("upgrade", "a=3", "b=1"), [("a", 3, 1), ("b", 1, 1)], "a is at level 3 now\nb is at level 1 now\n"),
        (("downgrade", "a=0"), [("a", 0, 2)], "a is off now\n"),
        (("downgrade", "a=1", "--unsafe", "--dry-run"), [("a", 1, 3)], "a could be at level 1 now\n"),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_features_go_up_and_down(run, words, sent, out, version):
    kind = messages.UpdateFeaturesResponse
    with FakeCluster() as cluster:
        results = [kind.UpdatableFeatureResult(feature=name, error_message=None) for name, _, _ in sent]
        cluster.serve({57: (0, version)}, {"UpdateFeatures": lambda _: kind(error_message=None, results=results)})
        assert run("features", *words, "--bootstrap", cluster.bootstrap) == (0, out, "")
        (request,) = cluster.requests("UpdateFeatures")
    found = [(each.feature, each.max_version_level, each.upgrade_type) for each in request.feature_updates]
    assert (found, request.validate_only) == (sent, "--dry-run" in words)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("upgrade", "a"), "'a' is not KEY=VALUE"),
        (("upgrade", "a=high"), "a='high': a level is a whole number"),
        (("upgrade", "a=0"), "to switch a feature off is a downgrade"),
        (("upgrade", "a=40000"), "level of a=40000: allowed is a whole number, 0 to 32767"),
        (("upgrade", "a=1", "a=2"), "a feature is named twice"),
    ],
)
def test_a_level_that_means_nothing_is_refused(ran, words, says):
    found = ran("features", *words)
    assert (found.code, found.out) == (2, "")
    assert says in found.err


@pytest.mark.parametrize("as_json", [True, False])
def test_moves_that_have_begun_are_told_beside_one_that_is_refused(ran, plan, cluster, as_json):
    name = f"half-moved-{as_json}".lower()
    assert ran("topics", "create", name, "--partitions", 2).code == 0
    first = plan((name, 0, [1]), (name, 1, [1]))
    here = {row["partition"]: row["before"] for row in told(ran("reassign", "execute", first, "--dry-run", "--json"))}
    there = next(node for node in (1, 2, 3) if [node] != here.get(0, [1]))
    found = ran("reassign", "execute", plan((name, 0, [there]), (name, 1, [9])), *["--json"] * as_json)
    assert found.code == 2
    assert f"reassign partition {name}-1" in found.err
    if as_json:
        (row,) = [json.loads(line) for line in found.out.splitlines()]
        assert (row["partition"], row["after"], row["begun"]) == (0, [there], True)
    else:
        assert [line.split()[:2] for line in found.out.splitlines()] == [["topic", "partition"], [name, "0"]]


def test_moves_that_have_begun_are_told_before_they_are_waited_for(ran, plan, cluster, monkeypatch):
    looks = []

    def listed(self, partitions=None):
        looks.append(partitions)
        if len(looks) > 1:
            raise RequestTimeoutError("no response")
        return {}

    with Client(cluster.bootstrap) as client:
        here = client.topic("delays").partitions[0].replicas
    monkeypatch.setattr(Admin, "list_partition_reassignments", listed)
    there = [next(node for node in (1, 2, 3) if node not in here)]
    found = ran("reassign", "execute", plan(("delays", 0, there)), "--wait", "--json")
    assert (found.code, found.err) == (2, "tagwire: no response\n")
    (row,) = [json.loads(line) for line in found.out.splitlines()]
    assert (row["before"], row["after"], row["begun"]) == (list(here), there, True)
