"""`tagwire lag` of a cluster: what is told of every group, what is refused, and that it needs no Spark."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tagwire.client import Admin
from tagwire.records import Record

from ..client.admin_responses import SERVED, Looked
from ..client.fake_broker import FakeCluster


@pytest.fixture
def behind(bootstrap, fill):
    """A topic of ten records in two partitions, and a group that has read four of them."""
    topic = fill([Record(None, b"%d" % index) for index in range(10)], partitions=2, partition=0)
    with Admin(bootstrap) as admin:
        admin.alter_group_offsets(f"loader.{topic}", {(topic, 0): 4, (topic, 1): 0})
        admin.alter_group_offsets(f"audit.{topic}", {(topic, 0): 10})
    return topic


def told(ran):
    return [json.loads(line) for line in ran.out.splitlines()]


def test_every_group_is_told_without_spark(bootstrap, behind):
    code = (
        "import sys; from tagwire.cli import main; code = main(sys.argv[1:]);"
        "print(code, {'pyspark', 'pyarrow', 'rich'} & set(sys.modules), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, "lag", "--bootstrap", bootstrap, "--topic", behind]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stderr == "0 set()\n"
    assert [line.split() for line in ran.stdout.splitlines()] == [
        ["group", "topic", "partition", "offset", "end", "lag"],
        [f"audit.{behind}", behind, "0", "10", "10", "0"],
        [f"loader.{behind}", behind, "0", "4", "10", "6"],
        [f"loader.{behind}", behind, "1", "0", "0", "0"],
    ]


def test_programs_are_told_with_the_state_and_what_is_not_known(run, behind):
    (row,) = told(run("lag", "--group", f"audit.{behind}", "--json"))
    assert row == {
        "group": f"audit.{behind}",
        "state": "Empty",
        "type": "classic",
        "topic": behind,
        "partition": 0,
        "offset": 10,
        "end": 10,
        "lag": 0,
        "metadata": "",
        "note": None,
    }


def test_groups_are_summed_up(run, behind):
    ran = run("lag", "--topic", behind, "--summary", "--json")
    assert [(row["group"], row["partitions"], row["max_lag"], row["total_lag"]) for row in told(ran)] == [
        (f"audit.{behind}", 1, 0, 0),
        (f"loader.{behind}", 2, 6, 6),
    ]
    shown = run("lag", "--topic", behind, "--summary", "--at-least", 6).out
    assert [line.split()[0] for line in shown.splitlines()] == ["group", f"loader.{behind}"]


def test_what_is_named_and_not_there_is_an_error(run, behind):
    ran = run("lag", "--group", f"loader.{behind}", "--group", f"lodaer.{behind}")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert f"no group is called 'lodaer.{behind}'. Did you mean 'loader.{behind}'" in ran.err
    ran = run("lag", "--topic", f"{behind}x")
    assert (ran.code, ran.out) == (2, "")
    assert f"no committed offset in '{behind}x'. Did you mean '{behind}'" in ran.err
    assert run("lag", "--group", f"audit.{behind}", "--topic", "other").code == 2


def test_a_partition_of_which_nothing_is_known_has_a_row_and_a_note(run):
    looked = Looked()
    with FakeCluster() as cluster:
        cluster.topic("t")[0].end = 10
        cluster.serve(SERVED, looked.responses())
        looked.committed = {("gone", 0): 1, ("t", 0): 4}
        gone, row = told(run("lag", "--json", "--bootstrap", cluster.bootstrap))
        assert (gone["topic"], gone["end"], gone["lag"], gone["note"]) == (
            "gone",
            None,
            None,
            "the topic does not exist",
        )
        assert (row["lag"], row["note"]) == (6, None)
        shown = run("lag", "--bootstrap", cluster.bootstrap).out.splitlines()
        assert shown[1].split(maxsplit=6) == ["g", "gone", "0", "1", "-", "-", "the topic does not exist"]
        ran = run("lag", "--at-least", 7, "--bootstrap", cluster.bootstrap)
        assert ran.out == "nothing lags 7 records or more\n"
        assert ran.err == "left out: 1 whose lag is not known, see without --at-least\n"


def test_members_are_told_with_what_they_have(run):
    looked = Looked()
    with FakeCluster() as cluster:
        cluster.topic("t", 2)[0].end = 10
        cluster.serve(SERVED, looked.responses())
        looked.committed = {("t", 1): 0}
        rows = told(run("lag", "--members", "--json", "--bootstrap", cluster.bootstrap))
    assert [(row["partition"], row["offset"], row["end"], row["member_id"], row["client_id"]) for row in rows] == [
        (0, None, 10, "m", "app"),
        (1, 0, 0, None, None),
    ]
    assert (rows[0]["state"], rows[0]["host"], rows[0]["note"]) == ("Stable", "/h", "nothing committed")


@pytest.mark.parametrize("way", [("--spark",), ("--files", "somewhere")])
def test_only_brokers_know_members(run, way):
    assert run("lag", "--members", *way).code == 2


def test_what_is_not_there_is_told_before_spark_is_started(run, monkeypatch, tmp_path):
    def start():
        raise AssertionError("Spark is started")

    for command in ("lag", "replay"):
        monkeypatch.setattr(f"tagwire.cli.{command}.local_spark", start)
    missing, empty = str(tmp_path / "nosuch"), str(tmp_path)
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log").touch()
    several = tmp_path / "several"
    for name in ("orders-0", "orders-1", "__consumer_offsets-3"):
        (several / name).mkdir(parents=True)
        (several / name / f"{0:020}.log").touch()
    for arguments, said in (
        (("lag", "--files", missing), f"{missing}: No such file"),
        (("lag", "--files", ""), "'--files': names no directory"),
        (("replay", "t", "--files", " "), "'--files': names no directory"),
        (("lag", "--files", empty), "view offsets: its topic is not among the files"),
        (("replay", "t", "--files", missing), f"{missing}: No such file"),
        (("replay", "t", "--files", empty, "--of", "payments"), "--of: topic 'payments' is not among the files"),
        (("replay", "t", "--files", str(several)), "has files of 2 topics, __consumer_offsets, orders: name the one"),
        (("replay", "t", "--files", empty, "--of", ""), "--of=''"),
        (("replay", "t", "--table", empty), "holds no table that `tagwire land` began"),
        (("replay", "t", "--table", empty, "--of", "orders"), "'--of': needs --files"),
    ):
        ran = run(*arguments)
        assert (ran.code, said in ran.err) == (2, True), ran.err
