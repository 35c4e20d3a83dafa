"""Lag of groups and replay of rows: as functions over a session and as commands."""

from __future__ import annotations

import json
import time

import pytest

from tagwire import messages
from tagwire.broker import Broker, delay
from tagwire.cli import main
from tagwire.client import Admin, Client, NewTopic, OffsetAndMetadata, Producer
from tagwire.errors import ConfigError
from tagwire.records import Record
from tagwire.spark.jobs.lag import lag_of_cluster
from tagwire.spark.jobs.land import TableSettings, land
from tagwire.spark.jobs.replay import landed_rows, replay
from tagwire.spark.segments.internal_state import SCHEMAS

from .log_files import LogDirectory, transactional
from .test_segments import offset_commit
from .test_topic import NOON, batch, numbered

pytestmark = pytest.mark.spark


def test_brokers_tell_the_lag_that_the_clusters_own_topic_holds(spark, broker, topic, produce, capsys):
    produce(topic, {0: numbered(0, 9), 1: numbered(0, 3)})
    group = f"group-of-{topic}"
    with Admin(broker.bootstrap) as admin:
        admin.alter_group_offsets(group, {(topic, 0): 1})
        admin.alter_group_offsets(group, {(topic, 0): 4, (topic, 1): 3})
        admin.alter_group_offsets(f"other-{group}", {(topic, 0): 9})
        admin.create_topics([NewTopic(f"{topic}-gone", num_partitions=1)])
        admin.alter_group_offsets(group, {(f"{topic}-gone", 0): OffsetAndMetadata(0, metadata="m")})
        admin.delete_topics([f"{topic}-gone"])
    names = ("group", "topic", "partition", "offset", "end", "lag", "metadata")
    told = []
    for way in (["--spark"], []):
        named = [option for name in (group, f"other-{group}") for option in ("--group", name)]
        assert main(["lag", "--bootstrap", broker.bootstrap, *named, *way, "--json"]) == 0
        lines = capsys.readouterr().out.splitlines()
        told.append([tuple(json.loads(line)[name] for name in names) for line in lines])
    assert told[0] == told[1]
    assert [row[:6] for row in told[0] if row[1] == topic] == [
        (group, topic, 0, 4, 9, 5),
        (group, topic, 1, 3, 3, 0),
        (f"other-{group}", topic, 0, 9, 9, 0),
    ]
    assert main(["lag", "--bootstrap", broker.bootstrap, "--spark", "--group", "nosuch"]) == 2
    assert "'nosuch'" in capsys.readouterr().err


def commit_none(bootstrap, group, topic, partition):
    kind = messages.OffsetCommitRequest
    of_partition = kind.OffsetCommitRequestPartition(partition_index=partition, committed_offset=-1)
    of_topic = kind.OffsetCommitRequestTopic(name=topic, partitions=[of_partition])
    with Client(bootstrap) as client:
        told = client.request(kind(group_id=group, topics=[of_topic]), version=9)
    assert told.topics[0].partitions[0].error_code == 0


def test_lag_is_told_of_offsets_behind_an_open_transaction_and_not_of_one_that_is_none(spark, broker, topic, produce):
    produce(topic, {0: numbered(0, 9), 1: numbered(0, 3)})
    group = f"group-of-{topic}"
    with Producer(broker.bootstrap, transactional_id=group) as producer, Admin(broker.bootstrap) as admin:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_offsets({(topic, 0): 8}, group)
        admin.alter_group_offsets(group, {(topic, 0): 4})
        commit_none(broker.bootstrap, group, topic, 1)
        rows = lag_of_cluster(spark, {"bootstrap.servers": broker.bootstrap}).where(f"group = '{group}'")
        assert sorted(tuple(row) for row in rows.select("partition", "offset", "lag").collect()) == [
            (0, 4, 5),
            (1, -1, None),
        ]


def test_lag_comes_from_files_alone(spark, tmp_path, capsys):
    LogDirectory(tmp_path, "flights-0").numbered(50)
    LogDirectory(tmp_path, "__consumer_offsets-1").append([offset_commit("g", "flights", 0, 20)])
    assert main(["lag", "--files", str(tmp_path)]) == 0
    titles, row = capsys.readouterr().out.splitlines()
    assert titles.split() == ["group", "topic", "partition", "offset", "end", "lag"]
    assert row.split() == ["g", "flights", "0", "20", "50", "30"]
    assert main(["lag", "--files", str(tmp_path), "--at-least", "31"]) == 0
    assert capsys.readouterr().out == "nothing lags 31 records or more\n"
    assert main(["lag", "--files", str(tmp_path), "--topic", "flights", "--at-least", "30", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lag"] == 30
    assert main(["lag", "--files", str(tmp_path), "--group", "f", "--group", "g"]) == 2
    assert "no group is called 'f'" in capsys.readouterr().err
    assert main(["lag", "--files", str(tmp_path), "--group", "g", "--topic", "flight"]) == 2
    assert "'flight'. Did you mean 'flights'?" in capsys.readouterr().err
    assert main(["lag", "--files", str(tmp_path / "none")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_a_landed_table_goes_back_into_a_topic(spark, broker, topic, produce, tmp_path, capsys):
    rows = [Record(b"k%d" % i, b"v%d" % i, (("a", b"%d" % i),) if i % 2 else (), NOON + i) for i in range(20)]
    produce(topic, {0: rows[:10], 1: rows[10:]})
    out, again = str(tmp_path / "out"), f"{topic}-again"
    assert main(["land", topic, "--bootstrap", broker.bootstrap, "--to", out, "--headers", "a"]) == 0
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(again, num_partitions=2, configs={"retention.ms": "-1"})])
    capsys.readouterr()
    assert main(["replay", again, "--table", out, "--bootstrap", broker.bootstrap, "--times", "60000"]) == 0
    assert "20 records" in capsys.readouterr().out
    columns = ["partition", "offset", "key", "value", "headers"]
    first, second = (
        sorted(map(tuple, batch(spark, broker, subscribe=name, includeHeaders="true").select(*columns).collect()))
        for name in (topic, again)
    )
    assert second == first
    (shifted,) = batch(spark, broker, subscribe=again).selectExpr("min(unix_millis(timestamp))").first()
    assert shifted == NOON + 60_000


@pytest.mark.long
def test_a_replay_keeps_to_its_rate_and_refuses_what_it_cannot_write(spark, broker, topic, tmp_path):
    log = LogDirectory(tmp_path, "flights-1")
    log.numbered(60)
    rows = spark.read.format("tagwire-segments").load(str(tmp_path))
    properties = {"bootstrap.servers": broker.bootstrap}
    begun = time.monotonic()
    assert replay(rows, properties, topic, rate=60, times="now", keep_partitions=False) == 60
    assert time.monotonic() - begun >= 0.9
    assert batch(spark, broker, subscribe=topic).count() == 60
    with pytest.raises(ConfigError, match="rate=1 and speed=1"):
        replay(rows, properties, topic, rate=1, speed=1)
    with pytest.raises(ConfigError, match="no column timestamp"):
        replay(rows.drop("timestamp"), properties, topic, speed=1)
    with pytest.raises(ConfigError, match="no column key, value"):
        replay(spark.range(1), properties, topic)
    with pytest.raises(ConfigError, match="rate=0"):
        replay(rows, properties, topic, rate=0)


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("replay t --table empty", "empty"),
        ("replay t --files nosuch", "nosuch"),
        ("replay t --files empty", "empty"),
        ("lag --files nosuch", "nosuch"),
        ("lag --files empty", "empty"),
        ("land present --to out --value-format message --message Nosuch --version 1", "Nosuch"),
    ],
)
def test_what_is_named_and_not_there_is_told_in_one_line(spark, tmp_path, monkeypatch, capsys, command, named):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert named in printed.err


@pytest.mark.long
def test_records_come_again_at_the_speed_at_which_they_once_came(spark, broker, topic, tmp_path, capsys):
    """Two partitions, a record in each every 30 seconds, one of them out of its time."""
    for partition in (0, 1):
        log = LogDirectory(tmp_path, f"flights-{partition}")
        ages = [0, 30, 20, 90] if partition else [15, 45, 75, 600]
        log.append([Record(b"k", b"%d" % age, (), NOON + 1000 * age) for age in ages])
    again = f"{topic}-again"
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(again, num_partitions=1, configs={"retention.ms": "-1"})])
    files = ["--files", str(tmp_path), "--bootstrap", broker.bootstrap, "--to", "2013-07-04T12:05"]
    assert main(["replay", again, *files, "--from", "2013-07-04T12:00:15", "--by-key", "--dry-run"]) == 0
    assert capsys.readouterr().out == f"6 records would go to {again}\n"
    told = {"topic": again, "partitions": 1, "created": False}
    assert main(["replay", again, *files, "--from", "2013-07-04T12:00:15", "--by-key", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {**told, "records": 6, "replayed": False}
    assert main(["replay", again, *files, "--speed", "90", "--times", "now", "--by-key", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {**told, "records": 7, "replayed": True}
    rows = batch(spark, broker, subscribe=again).selectExpr("int(string(value)) as age", "unix_millis(timestamp) as at")
    found = sorted(rows.collect(), key=lambda row: row.at)
    assert {row.age for row in found} == {0, 15, 20, 30, 45, 75, 90}
    ages = [row.age for row in found]
    assert ages.index(30) < ages.index(20) < ages.index(45)
    assert found[-1].at - found[0].at >= 900
    assert main(["replay", again, *files, "--from", "2013-07-04T12:04:59", "--json"]) == 0
    nothing = {"topic": again, "partitions": None, "created": False, "records": 0, "replayed": True}
    assert json.loads(capsys.readouterr().out) == nothing
    assert main(["replay", again, *files, "--from", "earliest"]) == 2
    assert "--from" in capsys.readouterr().err


def test_what_files_hold_of_aborted_and_open_transactions_is_replayed_only_when_asked_for(
    spark, broker, topic, tmp_path, capsys
):
    log = LogDirectory(tmp_path, "flights-0")
    log.numbered(1)
    aborted = log.numbered(2, **transactional(7))
    log.end_transaction(7, aborted, commit=False)
    log.numbered(1)
    log.numbered(1, **transactional(8))  # still open
    files = ["--files", str(tmp_path), "--bootstrap", broker.bootstrap]
    assert main(["replay", topic, *files]) == 0
    assert {bytes(row.value) for row in batch(spark, broker, subscribe=topic).collect()} == {b"0", b"4"}
    capsys.readouterr()
    every = ["--isolation", "read_uncommitted"]
    assert main(["replay", topic, *files, *every, "--dry-run"]) == 0
    assert capsys.readouterr().out == f"5 records would go to {topic}\n"
    assert main(["replay", topic, "--table", str(tmp_path), *every]) == 2
    assert "--isolation" in capsys.readouterr().err


def test_a_record_that_has_no_time_comes_with_the_one_before_it_and_holds_up_none(spark, broker, topic):
    times = [-1, NOON, None, NOON + 60_000, NOON + 30_000, -1]
    rows = spark.createDataFrame(
        [(b"k", b"%d" % number, number % 2, number // 2, at) for number, at in enumerate(times)],
        "key binary, value binary, partition int, offset bigint, at bigint",
    ).selectExpr("key", "value", "partition", "offset", "timestamp_millis(at) as timestamp")
    properties = {"bootstrap.servers": broker.bootstrap}
    assert replay(rows, properties, topic, speed=100_000_000, times="now") == 6  # from 1970 on it is a quarter minute
    columns = ["partition", "offset", "string(value) as value", "unix_millis(timestamp) as at"]
    found = sorted(batch(spark, broker, subscribe=topic).selectExpr(*columns).collect())
    assert [row.value for row in found] == ["0", "2", "4", "1", "3", "5"]
    assert max(row.at for row in found) - min(row.at for row in found) < 5000


def test_a_record_that_has_no_time_is_not_moved_in_time(spark, broker, topic):
    rows = spark.createDataFrame(
        [(b"k", b"v", 0, offset, at) for offset, at in enumerate([NOON, -1, -2])],
        "key binary, value binary, partition int, offset bigint, at bigint",
    ).selectExpr("key", "value", "partition", "offset", "timestamp_millis(at) as timestamp")
    assert replay(rows, {"bootstrap.servers": broker.bootstrap}, topic, times=60_000) == 3
    found = sorted(batch(spark, broker, subscribe=topic).selectExpr("offset", "unix_millis(timestamp)").collect())
    assert [row[1] for row in found] == [NOON + 60_000, -1, 59_998]


@pytest.mark.long
def test_a_table_goes_back_from_a_directory_that_is_named_as_a_pattern(spark, broker, topic, produce, tmp_path):
    produce(topic, {0: [Record(b"k", b"v", (("h", b"[x]*%d" % number),), NOON) for number in range(3)]})
    for format, apart in (("parquet", "none"), ("parquet", "h"), ("delta", "h")):
        out = tmp_path / f"{format} {apart} [1]* {{a,b}}?"
        table = TableSettings(headers=["h"], partition_by=apart)
        land(broker.bootstrap, topic, out, format=format, table=table, spark=spark)
        rows = landed_rows(spark, out).orderBy("offset").collect()
        assert [(row.offset, bytes(row.headers[0].value)) for row in rows] == [(i, b"[x]*%d" % i) for i in range(3)]


@pytest.mark.long
@pytest.mark.parametrize("pace", [{"speed": 30}, {"rate": 3}], ids=["speed", "rate"])
def test_the_clock_of_a_replay_begins_with_its_first_record(spark, broker, topic, tmp_path, pace):
    """Connecting takes as long as all of the records' times: they do not come all at once when it is done."""
    LogDirectory(tmp_path, f"{topic}-0").append([Record(None, b"", (), NOON + 10_000 * number) for number in range(4)])
    rows = spark.read.format("tagwire-segments").load(str(tmp_path))
    with broker.intercept("Metadata", delay(1.0)):
        replay(rows, {"bootstrap.servers": broker.bootstrap}, f"{topic}-late", times="now", **pace)
    at = batch(spark, broker, subscribe=f"{topic}-late").selectExpr("unix_millis(timestamp) as at").collect()
    assert max(at).at - min(at).at >= 900


def test_topics_of_int_headers_are_read_by_the_names_of_a_register(spark, broker, tmp_path):
    settings = {"tagwire.record.dialect": "int-headers", "retention.ms": "-1"}
    register = tmp_path / "register.toml"
    register.write_text('space = "local"\n[[entries]]\nkey = 1114000\nname = "app.name"\n')
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic("int-headed", num_partitions=1, configs=settings)])
    with Producer(broker.bootstrap, dialect="int-headers") as producer:
        producer.send("int-headed", b"v", headers=[(1114000, b"ig"), (7, b"x")], timestamp=NOON)
    options = {"subscribe": "int-headed", "includeHeaders": "true", "dialect": "int-headers"}
    (row,) = batch(spark, broker, **options, register=str(register)).collect()
    assert sorted(tuple(header) for header in row.headers) == [("7", b"x"), ("app.name", b"ig")]
    (row,) = batch(spark, broker, **options, **{"headers.columns": "1114000"}).select("`1114000`").collect()
    assert row[0] == b"ig"


def test_a_cluster_in_which_no_group_has_committed_has_no_lag(spark):
    with Broker(fsync="never") as empty:
        found = lag_of_cluster(spark, {"bootstrap.servers": empty.bootstrap})
        assert (found.collect(), found.schema) == ([], SCHEMAS["offsets"])
