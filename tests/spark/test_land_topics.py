"""Landing of several topics, and landing that goes on: one Spark, a table each, and an end when it is told."""

from __future__ import annotations

import threading
from pathlib import Path

import deltalake
import pytest

from tagwire.client import Admin, NewTopic
from tagwire.errors import ConfigError, ConnectError, Error, KafkaError, StorageError, StorageUnavailableError
from tagwire.records import Record
from tagwire.spark.jobs.land import Follow, LandListener, land
from tagwire.spark.jobs.land_topics import land_topics, topics_like
from tagwire.spark.jobs.landed import LandReport
from tagwire.spark.tables.table_settings import TableSettings

from ..client.fake_broker import FakeCluster

NOON = 1_372_939_200_000  # 2013-07-04 12:00 UTC


def numbered(start: int, end: int) -> list[Record]:
    return [Record(b"k%d" % i, b"v%d" % i, (), NOON) for i in range(start, end)]


def offsets_of(out: Path) -> list[tuple[int, int]]:
    found = deltalake.DeltaTable(out).to_pyarrow_table()
    return sorted(zip(found["partition"].to_pylist(), found["offset"].to_pylist()))


def test_no_topic_that_is_alike_leads_out_of_the_directory():
    with FakeCluster() as one:
        for name in ("..", ".", "../up", "/etc/up", "a/up", "up\0", "..up", "up-1"):
            one.topic(name)
        assert topics_like(one.bootstrap, r"(?s).*") == ["..up", "up-1"]


@pytest.mark.long
@pytest.mark.spark
def test_topics_that_are_alike_land_in_a_table_each_and_one_that_fails_is_named(
    spark, broker, topic, produce, tmp_path
):
    others = [f"{topic}-b", f"{topic}-c"]
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(name, num_partitions=1, configs={"retention.ms": "-1"}) for name in others])
    for name in (topic, *others):
        produce(name, {0: numbered(0, 3)})
    named = topics_like(broker.bootstrap, f"{topic}(-.)?")
    assert named == [topic, *others]
    (tmp_path / others[0]).mkdir()
    (tmp_path / others[0] / "thesis.doc").write_text("mine")
    ended = []
    done = land_topics(broker.bootstrap, named, str(tmp_path), spark=spark, on_topic=lambda name, _: ended.append(name))
    assert ended == named == list(done)
    assert "holds other files" in str(done[others[0]])
    for name in (topic, others[1]):
        report = done[name]
        assert isinstance(report, LandReport)
        assert (report.rows, report.where) == (3, str(tmp_path / name))
        assert offsets_of(tmp_path / name) == [(0, 0), (0, 1), (0, 2)]
    with pytest.raises(ConfigError, match="matches none of"):
        topics_like(broker.bootstrap, "nosuch.*")
    with pytest.raises(ConfigError, match=r"topics_like='\('"):
        topics_like(broker.bootstrap, "(")
    with pytest.raises(ConfigError, match="is named twice"):
        land_topics(broker.bootstrap, [topic, topic], str(tmp_path), spark=spark)
    with pytest.raises(StorageError, match="metrics are written into a directory"):
        land_topics(broker.bootstrap, [topic], str(tmp_path / "no"), spark=spark, metrics=tmp_path / "nosuch")
    with pytest.raises(ConfigError, match=r"follow.seconds=0: needs a number"):
        land_topics(
            broker.bootstrap,
            [topic],
            str(tmp_path / "no"),
            spark=spark,
            follow=Follow(stop=threading.Event(), seconds=0),
        )
    assert not (tmp_path / "no").exists()


@pytest.mark.long
@pytest.mark.spark
def test_landing_that_follows_a_topic_goes_on_until_it_is_to_stop_and_over_brokers_that_were_away(
    spark, broker, topic, produce, tmp_path, monkeypatch
):
    produce(topic, {0: numbered(0, 5)})
    stop, landed = threading.Event(), threading.Semaphore(0)
    pauses = []
    told = LandListener(
        on_batch=lambda batch: landed.release(), on_pause=lambda error, seconds: pauses.append((str(error), seconds))
    )
    from tagwire.spark.jobs.land_run import LandRun

    run, runs = LandRun.run, []

    def away_at_first(self, *given):
        runs.append(self)
        if len(runs) == 1:
            raise ConnectError("no broker")
        return run(self, *given)

    monkeypatch.setattr(LandRun, "run", away_at_first)
    reports = []
    arguments = {"format": "parquet", "spark": spark, "follow": Follow(stop=stop, seconds=0.1), "listener": told}
    table = TableSettings(headers=["h"])
    job = threading.Thread(
        target=lambda: reports.append(land(broker.bootstrap, topic, tmp_path / "t", table=table, **arguments))
    )
    job.start()
    assert landed.acquire(timeout=60)
    produce(topic, {1: numbered(0, 4)})
    assert landed.acquire(timeout=60)
    stop.set()
    job.join(60)
    assert reports[0].rows == 9
    assert pauses == [("no broker", 2.0)]
    produce(topic, {1: numbered(4, 6)})
    assert land(broker.bootstrap, topic, tmp_path / "t", spark=spark).table_rows == 11


@pytest.mark.spark
def test_landing_that_goes_on_after_a_pause_looks_at_the_topic_anew(
    spark, broker, topic, produce, tmp_path, monkeypatch
):
    from tagwire.spark.jobs.land_run import LandRun

    asked = []

    def away(self, session, properties, topic_there, follow):
        asked.append(topic_there.partitions())
        with Admin(broker.bootstrap) as admin:
            if len(asked) == 1:
                admin.create_partitions({topic: 5})
            else:
                admin.delete_topics([topic])
                admin.create_topics([NewTopic(topic, num_partitions=1)])
        raise ConnectError("no broker")

    monkeypatch.setattr(LandRun, "run", away)
    follow = Follow(stop=threading.Event(), seconds=0.1)
    with pytest.raises(StorageError, match="was deleted and created again while it was landed"):
        land(broker.bootstrap, topic, tmp_path / "t", spark=spark, follow=follow)
    assert asked[1] == [0, 1, 2, 3, 4] != asked[0]


@pytest.mark.spark
def test_what_nobody_thought_of_ends_its_own_topic_alone(spark, broker, tmp_path, monkeypatch):
    from tagwire.spark.jobs import land_topics as several

    def broken(bootstrap, topic, to, **given):
        raise {"a": ValueError("unforeseen"), "b": StorageError("b: no room")}[topic]

    monkeypatch.setattr(several, "land", broken)
    for follow in (None, Follow(stop=threading.Event())):
        done = land_topics(broker.bootstrap, ["a", "b"], str(tmp_path), spark=spark, follow=follow)
        assert [str(outcome) for outcome in done.values()] == ["ValueError: unforeseen", "b: no room"]


class Session:
    """What of a session is asked for where nothing is landed."""

    def __init__(self) -> None:
        self.conf = self

    def newSession(self) -> Session:  # noqa: N802
        return self

    def set(self, name: str, value: str) -> None:
        pass


@pytest.mark.parametrize(
    "away",
    [ConnectError("no broker"), KafkaError(Error.LEADER_NOT_AVAILABLE), StorageUnavailableError("no room")],
    ids=["broker", "leader", "store"],
)
def test_a_topic_that_could_not_be_begun_for_what_was_away_is_begun_again(tmp_path, monkeypatch, away):
    from tagwire.spark.jobs import land_topics as several

    follow, begun, ended = Follow(stop=threading.Event(), seconds=0.01), [], []

    def land(bootstrap, topic, to, **given):
        begun.append(topic)
        if topic == "wrong":
            raise StorageError("holds another topic")
        if begun.count(topic) == 1:
            raise away
        follow.stop.set()
        return "landed"

    monkeypatch.setattr(several, "land", land)
    monkeypatch.setattr(several, "topics_like", lambda *given: ["t", "wrong"])
    monkeypatch.setattr(several, "_LOOK_SECONDS", 0.01)
    at_last = threading.Timer(10, follow.stop.set)
    at_last.start()
    done = land_topics(
        "",
        [],
        str(tmp_path),
        like=".*",
        follow=follow,
        spark=Session(),
        on_topic=lambda topic, outcome: ended.append((topic, str(outcome))),
    )
    at_last.cancel()
    assert (done["t"], begun.count("t"), begun.count("wrong")) == ("landed", 2, 1)
    assert [outcome for topic, outcome in ended if topic == "t"] == [str(away), "landed"]
