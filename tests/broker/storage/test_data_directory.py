"""Whose a data directory is, and what is found in it at a start."""

from __future__ import annotations

import json
import os

import pytest

from tagwire.broker import Broker
from tagwire.broker.storage.data_directory import DataDirectory
from tagwire.broker.storage.files import Files
from tagwire.errors import StorageError


def contents(path):
    return sorted(str(found.relative_to(path)) for found in path.rglob("*"))


@pytest.fixture
def data(tmp_path, connect, make):
    """A data directory with one topic of one record, left in order."""
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        wire.create("t")
        wire.produce("t", make.records(b"v"))
    return tmp_path / "data"


def refusal(path):
    with pytest.raises(StorageError) as caught:
        Broker(path).start()
    return str(caught.value)


def test_a_missing_directory_and_an_empty_one_are_set_up(tmp_path):
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "deep" / "missing"):
        with Broker(path):
            assert "meta.properties" in contents(path)


@pytest.mark.parametrize("name", ["notes.txt", "topic-0/00000000000000000000.log", ".hidden"])
def test_a_directory_that_is_not_ours_is_refused_and_left_alone(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    before = contents(tmp_path)
    assert str(tmp_path) in refusal(tmp_path)
    assert contents(tmp_path) == before


def test_a_kafka_brokers_directory_is_refused_by_name(tmp_path):
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=x\n")
    assert "Kafka broker" in refusal(tmp_path)


def test_a_file_is_no_data_directory(tmp_path):
    (tmp_path / "file").write_text("")
    assert str(tmp_path / "file") in refusal(tmp_path / "file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_cannot_be_written_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    assert "Permission denied" in refusal(tmp_path)


def test_a_setup_that_was_interrupted_is_finished(tmp_path, failing_files):
    for step in range(20):
        path = tmp_path / str(step)
        failing_files.fail("sync", times=1) if step % 2 else failing_files.fail("sync_directory", times=1)
        with pytest.raises(StorageError):
            DataDirectory(failing_files, path)
        failing_files.mend()
        DataDirectory(Files(), path).close(clean=True)


def test_a_list_of_topics_of_a_newer_version_is_refused_by_name(data):
    (data / "tagwire-topics.json").write_text('{"version": 1, "topics": []}')
    assert "tagwire-topics.json: version 1 was written by a newer" in refusal(data)


def test_a_topic_with_a_configuration_this_version_does_not_know_is_refused(data):
    path = data / "tagwire-topics.json"
    document = json.loads(path.read_text())
    document["topics"][0]["configs"] = {"no.such.thing": "1"}
    path.write_text(json.dumps(document))
    said = refusal(data)
    assert "no.such.thing is unknown" in said
    assert "tagwire-topics.json" in said


def test_after_a_refusal_the_directory_can_be_used_once_it_is_mended(data):
    text = (data / "meta.properties").read_text()
    (data / "meta.properties").write_text("")
    refusal(data)
    (data / "meta.properties").write_text(text)
    with Broker(data):
        pass


@pytest.mark.parametrize("text", ["", "0\n1\n", "0\n1\nt 0 x\n", "\xff"])
def test_broken_recovery_points_only_cost_time(data, connect, text):
    (data / "recovery-point-offset-checkpoint").write_text(text)
    (data / ".kafka_cleanshutdown").unlink()
    with Broker(data) as broker:
        assert connect(broker.bootstrap).offset_at("t", -1).offset == 1


def test_deletions_are_finished_and_directories_of_no_topic_set_aside(data, connect):
    (data / f"gone-0.{'0' * 32}-delete").mkdir()
    (data / f"gone-0.{'0' * 32}-delete" / "00000000000000000000.log").write_text("")
    (data / "half-made-0").mkdir()
    (data / "half-made-0" / "note").write_text("kept")
    with Broker(data) as broker:
        wire = connect(broker.bootstrap)
        assert [topic.name for topic in wire.metadata().topics] == ["t"]
        assert wire.create("half-made").error_code == 0
    assert not list(data.glob("*-delete"))
    (stray,) = data.glob("half-made-0.*-stray")
    assert (stray / "note").read_text() == "kept"


def test_a_deletion_that_was_cut_short_before_its_directories_went_is_finished(data, connect):
    document = json.loads((data / "tagwire-topics.json").read_text())
    document["topics"] = []
    (data / "tagwire-topics.json").write_text(json.dumps(document))
    with Broker(data) as broker:
        wire = connect(broker.bootstrap)
        assert wire.metadata().topics == []
        assert wire.create("t").error_code == 0
        assert wire.offset_at("t", -1).offset == 0


def test_the_longest_topic_name_can_be_deleted(tmp_path, connect):
    from tagwire import messages

    name = "n" * 249
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        wire.create(name, 11)
        answer = wire.ask(messages.DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000), 5).responses[0]
        assert answer.error_code == 0
    assert not list((tmp_path / "data").glob("n*"))
