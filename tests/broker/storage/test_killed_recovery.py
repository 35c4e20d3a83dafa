"""Recovery that is itself cut short: what the next start finds is as if it had been the first."""

from __future__ import annotations

import shutil
from itertools import count

import pytest

from tagwire.broker.storage.files import Files
from tagwire.broker.storage.loading import create_log, open_log
from tagwire.broker.topic_config import TopicConfig

from .compacted import in_transaction, marker
from .test_compaction_trouble import Crash, StumblingFiles

CONFIG = TopicConfig(segment_bytes=600, index_interval_bytes=150)
SAFE = 18
"""The recovery point: the segments before it are taken as they are, if they have indexes."""


class KilledFiles(StumblingFiles):
    """Such files of a process that ends: the system closes what it had open."""

    def __init__(self):
        super().__init__()
        self._open = set()

    def open(self, path, *, write=False):
        fd = super().open(path, write=write)
        self._open.add(fd)
        return fd

    def close(self, fd):
        self._open.discard(fd)
        super().close(fd)

    def end(self):
        for fd in list(self._open):
            self.close(fd)


@pytest.fixture
def written(tmp_path):
    """A directory of several segments, with transactions that were aborted in them."""
    directory = tmp_path / "t-0"
    directory.mkdir()
    log = create_log(Files(), directory, CONFIG)
    for number in range(10):
        log.append([in_transaction(number, (b"k", b"v" * 90)), marker(7, commit=number % 3 == 0)])
        log.flush()
    log.abandon("the test crashes it")
    return directory


def no_index(directory):
    (directory / f"{0:020d}.index").unlink()


def no_indexes(directory):
    for path in directory.glob("*index"):
        path.unlink()


def damaged(directory):
    for path in directory.glob("*.txnindex"):
        path.write_bytes(b"\1" + path.read_bytes())


def opened(files, directory, recovery_point=SAFE):
    return open_log(files, directory, CONFIG, clean=False, recovery_point=recovery_point)


@pytest.mark.parametrize("harm", [no_index, no_indexes, damaged])
def test_aborted_transactions_stay_aborted_wherever_a_recovery_is_killed(written, tmp_path, harm):
    log = opened(Files(), written)
    aborted = log.all_aborted()
    log.abandon("the test harms it")
    assert len(aborted) == 6
    harm(written)
    for step in count():
        scene = tmp_path / "scene"
        shutil.copytree(written, scene)
        files = KilledFiles()
        files.left = step
        try:
            opened(files, scene)
            is_over = True
        except Crash:
            is_over = False
        files.end()
        log = opened(Files(), scene)
        assert sorted(log.all_aborted()) == sorted(aborted), step
        log.abandon("the test has seen it")
        shutil.rmtree(scene)
        if is_over:
            break
    assert step > 10


def test_aborted_transactions_stay_aborted_wherever_a_truncation_is_killed(written, tmp_path):
    for step in count():
        scene = tmp_path / "scene"
        shutil.copytree(written, scene)
        files = KilledFiles()
        log = opened(files, scene)
        aborted = log.all_aborted()
        files.left = step
        try:
            log.cut(15)
            opened(files, scene, 0)
            is_over = True
        except Crash:
            is_over = False
        files.end()
        log = opened(Files(), scene)
        assert log.end_offset >= 14
        assert sorted(log.all_aborted()) == sorted(a for a in aborted if a.last_offset < log.end_offset), step
        log.abandon("the test has seen it")
        shutil.rmtree(scene)
        if is_over:
            break
    assert step > 10
