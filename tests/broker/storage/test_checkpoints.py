"""Kafka's small text files, byte for byte."""

from __future__ import annotations

from uuid import UUID

import pytest

from tagwire.broker.storage import checkpoints
from tagwire.broker.storage.checkpoints import OffsetCheckpoint
from tagwire.broker.storage.files import Files
from tagwire.errors import StorageError

TOPIC_ID = UUID("1f728a3b-8353-44f6-825a-d1269b7bd6ec")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file"


def test_offsets_are_written_as_kafka_writes_them(path):
    offsets = {("t", 1): 5, ("a.b", 0): 2**62}
    OffsetCheckpoint(Files(), path).save(lambda: offsets)
    assert path.read_bytes() == b"0\n2\na.b 0 4611686018427387904\nt 1 5\n"
    assert OffsetCheckpoint(Files(), path).offsets == offsets


def test_epochs_are_written_as_kafka_writes_them(path):
    checkpoints.write_epochs(Files(), path, [(0, 0), (3, 120)])
    assert path.read_bytes() == b"0\n2\n0 0\n3 120\n"
    assert checkpoints.read_epochs(Files(), path) == [(0, 0), (3, 120)]


def test_a_missing_or_empty_checkpoint_has_no_entries(path):
    assert OffsetCheckpoint(Files(), path).offsets == {}
    path.write_bytes(b"")
    assert checkpoints.read_epochs(Files(), path) == []


def test_any_white_space_separates_columns(path):
    path.write_bytes(b"0\n1\nt\t1   5")
    assert OffsetCheckpoint(Files(), path).offsets == {("t", 1): 5}


@pytest.mark.parametrize(
    "data",
    [b"1\n0\n", b"0\n", b"0\n1\n", b"0\n0\nt 1 5\n", b"0\n1\nt 1\n", b"0\n1\nt 1 5 6\n", b"0\n1\nt 1 x\n", b"\xff\n"],
)
def test_a_broken_checkpoint_of_offsets_says_nothing_and_that_is_logged(path, data, caplog):
    path.write_bytes(data)
    found = OffsetCheckpoint(Files(), path, when_broken=9)
    assert (found.offsets, found.get("t", 1)) == ({}, 9)
    assert str(path) in caplog.text


@pytest.mark.parametrize("data", [b"1\n0\n", b"0\n", b"0\n1\n", b"0\n1\n1\n", b"0\n1\n1 x\n", b"\xff\n"])
def test_a_broken_checkpoint_of_epochs_is_an_error_that_names_it(path, data):
    path.write_bytes(data)
    with pytest.raises(StorageError, match=str(path)):
        checkpoints.read_epochs(Files(), path)


def test_offsets_that_are_added_never_go_back_and_a_forgotten_topic_leaves_nothing(path):
    found = OffsetCheckpoint(Files(), path)
    found.raise_to({("t", 0): 5, ("u", 0): 1})
    found.raise_to({("t", 0): 4, ("t", 1): 2})
    assert OffsetCheckpoint(Files(), path).offsets == {("t", 0): 5, ("t", 1): 2, ("u", 0): 1}
    found.forget({"t"})
    assert OffsetCheckpoint(Files(), path).offsets == {("u", 0): 1}


def test_a_topic_id_is_written_as_kafka_writes_it(path):
    checkpoints.write_topic_id(Files(), path, TOPIC_ID)
    assert path.read_bytes() == b"version: 0\ntopic_id: H3KKO4NTRPaCWtEmm3vW7A"
    assert checkpoints.read_metadata(Files(), path) == (TOPIC_ID, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "version: 0",
        "version: -1\ntopic_id: H3KKO4NTRPaCWtEmm3vW7A",
        "version: 0\ntopic_id: short",
        "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
    ],
)
def test_a_broken_topic_id_is_an_error_that_names_the_file(path, text):
    path.write_text(text)
    with pytest.raises(StorageError, match=str(path)):
        checkpoints.read_metadata(Files(), path)


def test_the_dialect_of_a_log_stands_beside_the_topics_id(path):
    checkpoints.write_topic_id(Files(), path, TOPIC_ID, "int-headers")
    assert checkpoints.read_metadata(Files(), path) == (TOPIC_ID, "int-headers")


def test_properties_are_read_with_comments_and_blanks(path):
    path.write_text("#Sat Nov 21\n\n cluster.id = a=b\n!also a comment\nversion=1")
    assert checkpoints.read_properties(Files(), path) == {"cluster.id": "a=b", "version": "1"}


def test_a_file_is_replaced_whole_or_not_at_all(path, failing_files):
    checkpoints.write_epochs(Files(), path, [(0, 0)])
    for operation in ("create", "write", "sync"):
        failing_files.fail(operation, times=1)
        with pytest.raises(OSError, match="Input/output error"):
            checkpoints.write_epochs(failing_files, path, [(1, 1)])
        failing_files.mend()
        assert checkpoints.read_epochs(Files(), path) == [(0, 0)]
        path.with_name("file.tmp").unlink(missing_ok=True)
