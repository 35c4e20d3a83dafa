"""`tagwire topics`: list, create, delete."""

from __future__ import annotations

import json
import os

import pytest

from tagwire.broker import Broker
from tagwire.client import Admin, Client, NewTopic
from tagwire.errors import Error, RequestTimeoutError
from tagwire.records import Record


def _listed(run) -> dict[str, dict]:
    return {topic["topic"]: topic for topic in map(json.loads, run("topics", "--json").out.splitlines())}


def test_a_list_tells_partitions_offsets_and_records(run, fill):
    topic = fill([Record(None, b"v")] * 10, partitions=3, partition=1)
    empty = fill()
    lines = run("topics").out.splitlines()
    assert lines[0].split() == ["topic", "partitions", "offsets", "records"]
    rows = {name: cells for name, *cells in map(str.split, lines)}
    assert rows[topic] == ["3", "0-9", "10"]
    assert rows[empty] == ["1", "-", "0"]


def test_the_json_list_tells_each_partition(run, fill):
    topic = fill([Record(None, b"v")] * 4, partitions=2, partition=1)
    assert _listed(run)[topic] == {
        "topic": topic,
        "internal": False,
        "error": None,
        "records": 4,
        "partitions": [
            {"partition": 0, "leader": 1, "replicas": [1], "in_sync": [1], "start": 0, "end": 0},
            {"partition": 1, "leader": 1, "replicas": [1], "in_sync": [1], "start": 0, "end": 4},
        ],
    }


def test_a_partition_that_is_not_told_of_keeps_no_other_from_being_listed(run):
    async def refuse_one(call):
        response = await call.proceed()
        for partition in (each for topic in response.topics for each in topic.partitions if each.partition_index == 1):
            partition.error_code = Error.KAFKA_STORAGE_ERROR
        return response

    with Broker() as broker, Admin(broker.bootstrap, timeout=5) as admin:
        admin.create_topics([NewTopic("flights", num_partitions=2)])
        with broker.intercept("ListOffsets", refuse_one):
            ran = run("topics", "--bootstrap", broker.bootstrap)
            assert (ran.code, ran.out.splitlines()[1].split()[:3]) == (0, ["flights", "2", "-"])
            assert "(1 not told)" in ran.out
            assert "flights-1" in ran.err
            assert "KAFKA_STORAGE_ERROR" in ran.err
            told = json.loads(run("topics", "--bootstrap", broker.bootstrap, "--json").out)["partitions"]
            assert [(each["start"], each["end"]) for each in told] == [(0, 0), (None, None)]


def test_a_cluster_without_topics_says_so(run):
    with Broker() as empty:
        ran = run("topics", "--bootstrap", empty.bootstrap)
        assert (ran.code, ran.out) == (0, f"no topics on {empty.bootstrap}\n")
        assert run("topics", "--json", "--bootstrap", empty.bootstrap).out == ""


def test_a_topic_is_created_listed_and_deleted(run):
    made = run("topics", "create", "made", "--partitions", 4, "--config", "retention.ms=-1")
    assert (made.code, made.out) == (0, "created made with 4 partitions\n")
    assert len(_listed(run)["made"]["partitions"]) == 4
    gone = run("topics", "delete", "made")
    assert (gone.code, gone.out) == (0, "deleted made\n")
    assert "made" not in _listed(run)


def test_a_list_may_be_asked_for_by_name(run, fill):
    topic = fill()
    assert run("topics", "list", "--json").out == run("topics", "--json").out
    assert topic in run("topics", "list").out


def test_a_topic_that_is_deleted_while_topics_are_listed_is_left_out(run, monkeypatch):
    run("topics", "create", "stays", "goes")
    listed = Client.list_offsets

    def deletes_first(self, *arguments, **options):
        monkeypatch.undo()
        with Admin(self) as admin:
            admin.delete_topics(["goes"])
        return listed(self, *arguments, **options)

    bootstrap = os.environ["TAGWIRE_BOOTSTRAP"]
    monkeypatch.setattr(Client, "list_offsets", deletes_first)
    told = run("topics", "list", "--json", "--bootstrap", bootstrap)
    assert told.code == 0, told.err
    names = {json.loads(line)["topic"] for line in told.out.splitlines()}
    assert ("stays" in names, "goes" in names) == (True, False)


def test_several_topics_are_created_described_and_deleted(run):
    assert run("topics", "create", "one", "two", "--partitions", 2).out.count("with 2 partitions") == 2
    out = run("topics", "describe", "one", "two").out.splitlines()
    assert out[0].split() == ["topic", "partition", "leader", "replicas", "in", "sync", "start", "end", "bytes"]
    assert [line.split()[:7] for line in out[1:5]] == [
        [name, str(index), "1", "1", "1", "0", "0"] for name in ("one", "two") for index in (0, 1)
    ]
    told = [json.loads(line) for line in run("topics", "describe", "one", "two", "--json").out.splitlines()]
    assert [(topic["topic"], len(topic["partitions"])) for topic in told] == [("one", 2), ("two", 2)]
    gone = run("topics", "delete", "one", "two", "--json")
    assert [json.loads(line) for line in gone.out.splitlines()] == [
        {"topic": name, "deleted": True} for name in ("one", "two")
    ]


def test_a_topic_that_exists_can_be_left_as_it_is(run):
    first = run("topics", "create", "again", "--if-not-exists", "--json")
    assert json.loads(first.out) == {"topic": "again", "partitions": 1, "created": True}
    second = run("topics", "create", "again", "--if-not-exists")
    assert (second.code, second.out) == (0, "again exists\n")


def test_a_topic_that_comes_into_being_meanwhile_is_left_as_it_is_too(run, monkeypatch):
    run("topics", "create", "meanwhile")
    monkeypatch.setattr(Admin, "list_topics", lambda self: [])
    told = run("topics", "create", "sooner", "meanwhile", "later", "--if-not-exists")
    assert told.out.splitlines() == [
        "created sooner with 1 partition",
        "meanwhile exists",
        "created later with 1 partition",
    ]
    assert told.code == 0


def test_a_dry_run_creates_nothing(run):
    assert run("topics", "create", "dry", "--dry-run").out == "could create dry with 1 partition\n"
    assert "dry" not in _listed(run)


def test_who_may_describe_a_topic_alone_is_told_what_there_is_to_tell(run):
    """DescribeLogDirs is of the cluster, and configs have a right of their own."""

    async def refuse_dirs(call):
        response = await call.proceed()
        response.error_code, response.results = Error.CLUSTER_AUTHORIZATION_FAILED, []
        return response

    async def refuse_configs(call):
        response = await call.proceed()
        for result in response.results:
            result.error_code, result.configs = Error.TOPIC_AUTHORIZATION_FAILED, []
        return response

    with Broker() as broker, Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic("flights")])
        with broker.intercept("DescribeLogDirs", refuse_dirs), broker.intercept("DescribeConfigs", refuse_configs):
            ran = run("topics", "describe", "flights", "--json", "--bootstrap", broker.bootstrap)
    assert (ran.code, ran.err) == (0, "")
    told = json.loads(ran.out)
    assert told["configs"] is None
    assert [(each["end"], each["bytes"]) for each in told["partitions"]] == [(0, None)]


def test_configs_of_a_topic_that_are_not_told_keep_no_others_from_being_described(run):
    async def refuse_one(call):
        response = await call.proceed()
        for result in response.results:
            if result.resource_name == "delays":
                result.error_code, result.configs = Error.TOPIC_AUTHORIZATION_FAILED, []
        return response

    with Broker() as broker, Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(name, configs={"retention.ms": "5"}) for name in ("flights", "delays")])
        with broker.intercept("DescribeConfigs", refuse_one):
            ran = run("topics", "describe", "flights", "delays", "--json", "--bootstrap", broker.bootstrap)
    assert (ran.code, ran.err) == (0, "")
    assert [json.loads(line)["configs"] for line in ran.out.splitlines()] == [None, {"retention.ms": "5"}]


def test_a_missing_topic_is_not_described(run):
    ran = run("topics", "describe", "missing")
    assert (ran.code, ran.out) == (2, "")
    assert "topic 'missing'" in ran.err


def test_brokers_may_be_named_before_or_after_the_subcommand(run, bootstrap, monkeypatch):
    monkeypatch.setenv("TAGWIRE_BOOTSTRAP", "127.0.0.1:1")
    assert run("topics", "--bootstrap", bootstrap, "create", "before").code == 0
    assert run("topics", "create", "after", "--bootstrap", bootstrap).code == 0
    assert run("topics", "create", "neither").code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["delete", "missing"], "UNKNOWN_TOPIC_OR_PARTITION (3): delete topic 'missing'"),
        (["create", "a b"], "INVALID_TOPIC_EXCEPTION (17): create topic 'a b'"),
        (["create", "t", "--config", "no.such.config=1"], "INVALID_CONFIG (40): create topic 't'"),
        (["create", "t", "--replication-factor", "3"], "INVALID_REPLICATION_FACTOR (38): create topic 't'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_refusal_names_the_topic_in_one_line(run, arguments, said):
    ran = run("topics", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"tagwire: {said}")
    assert ran.err.count("\n") == 1


def test_what_was_done_is_told_beside_what_was_refused(run):
    made = run("topics", "create", "beside", "a b")
    assert (made.code, made.out) == (2, "created beside with 1 partition\n")
    assert "create topic 'a b'" in made.err
    some = run("topics", "create", "beside", "besides", "a b", "--if-not-exists")
    assert (some.code, some.out) == (2, "beside exists\ncreated besides with 1 partition\n")
    gone = run("topics", "delete", "missing", "beside", "besides", "--json")
    assert [json.loads(line)["topic"] for line in gone.out.splitlines()] == ["beside", "besides"]
    assert "delete topic 'missing'" in gone.err


def test_what_was_created_is_told_where_the_broker_goes_away_before_the_rest(run, monkeypatch):
    create = Admin.create_topics

    def away(self, topics, **options):
        if topics[0].name == "next":
            raise RequestTimeoutError("no response")
        return create(self, topics, **options)

    monkeypatch.setattr(Admin, "create_topics", away)
    ran = run("topics", "create", "made", "next", "last", "--if-not-exists", "--json")
    assert (ran.code, ran.err) == (2, "tagwire: no response\n")
    assert [json.loads(line) for line in ran.out.splitlines()] == [{"topic": "made", "partitions": 1, "created": True}]


def test_a_topic_that_exists_is_not_created_again(run, fill):
    topic = fill([Record(None, b"v")])
    ran = run("topics", "create", topic)
    assert ran.code == 2
    assert f"TOPIC_ALREADY_EXISTS (36): create topic {topic!r}" in ran.err
    assert _listed(run)[topic]["records"] == 1
