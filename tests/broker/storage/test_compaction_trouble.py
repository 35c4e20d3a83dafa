"""Compaction that is interrupted, refused by the disk, or raced by readers and deletions."""

from __future__ import annotations

import errno
import shutil
import threading

import pytest

from tagwire.broker.storage.checkpoints import OffsetCheckpoint
from tagwire.broker.storage.compaction import Compaction
from tagwire.broker.storage.files import Files
from tagwire.broker.storage.loading import open_log
from tagwire.broker.storage.log_reading import OffsetOutOfRangeError
from tagwire.errors import StorageError
from tagwire.records import read
from tagwire.records.files.transaction_index import ENTRY

from .compacted import CONFIG, WHERE, Compacted, batch, fill, in_transaction, marker


def test_it_gives_up_when_told_and_leaves_no_files(kept):
    fill(kept)
    before, state = kept.records(), kept.newest()
    left = iter(range(40))
    kept.compact(stop=lambda: next(left, None) is None)
    assert set(kept.records()) <= set(before)
    assert kept.newest() == state
    assert not list(kept.directory.glob("*.cleaned"))
    assert kept.cleaned.get(*WHERE) == 0


@pytest.mark.parametrize("operation", ["create", "write", "sync"])
def test_a_disk_that_refuses_while_the_new_segment_is_made_leaves_the_log_as_it_was(tmp_path, failing_files, operation):
    kept = Compacted(tmp_path, files=failing_files)
    fill(kept)
    before = kept.records()
    failing_files.fail(operation)
    with pytest.raises(StorageError, match="Input/output error"):
        kept.compact()
    failing_files.mend()
    assert kept.records() == before
    kept.add(batch((b"k", b"goes on")))
    kept.compact()
    assert len(kept.records()) < len(before)


@pytest.mark.parametrize("state", ["cleaned", "swap"])
def test_what_a_pass_left_that_the_disk_let_neither_end_nor_undo_becomes_no_part_of_the_next(kept, state):
    """Records of a producer whose transaction is told as aborted, and has no marker any more, are kept from readers."""
    fill(kept)
    (kept.directory / f"{0:020d}.txnindex.{state}").write_bytes(ENTRY.pack(0, 7, 0, 3, 4))
    kept.compact()
    assert not list(kept.directory.glob("*.txnindex*"))
    kept.reopen(clean=True)
    assert kept.log.all_aborted() == []


def test_a_segment_that_cannot_be_read_stops_compaction_and_nothing_is_lost(kept):
    fill(kept)
    first = min(kept.directory.glob("*.log"))
    data = bytearray(first.read_bytes())
    data[100] ^= 1
    first.write_bytes(data)
    with pytest.raises(StorageError, match="cannot read"):
        kept.compact()
    assert first.read_bytes() == data
    assert not list(kept.directory.glob("*.cleaned"))


def test_segments_that_retention_deletes_meanwhile_are_not_brought_back(kept):
    fill(kept)
    dirt = kept.dirt()
    compaction = Compaction(kept.files, kept.log, WHERE, kept.cleaned, kept.gaps, stop=lambda: deleted() or False)
    asked = iter(range(1000))

    def deleted():
        if next(asked) == 40:
            kept.log.delete_before(20, lambda start: None)

    compaction.run(dirt, 0)
    assert kept.log.start_offset == 20
    assert min(offset for offset, _, _ in kept.records()) >= 20
    assert not list(kept.directory.glob("*.cleaned"))


def test_a_reader_that_began_before_a_replacement_reads_on_after_it(kept):
    """Its segment's names are those of another file from then on."""
    fill(kept, rounds=60)
    before = kept.records()
    (old, *_) = kept.log.closed_segments()
    walk = old.batches()
    first = next(walk)
    kept.compact()
    assert first.base_offset == 0
    with pytest.raises(FileNotFoundError):
        old.read(0, 100, old.size, whole_first=True)
    assert set(kept.records()) < set(before)


class Crash(BaseException):
    """The power is gone."""


class UnsyncedFiles(Files):
    """Real files that are never synced: only the process dies here, not the machine."""

    def sync(self, fd):
        pass

    def sync_directory(self, path):
        pass


class StumblingFiles(UnsyncedFiles):
    """Such files of which the n-th change to the disk fails: with a Crash it and all that follow, with an error it
    alone."""

    def __init__(self, error=Crash):
        self.left = 10**9
        self.error = error

    def step(self):
        if self.left == 0:
            self.left = 0 if self.error is Crash else -1
            raise Crash if self.error is Crash else OSError(errno.EIO, "Input/output error")
        self.left -= 1

    def sync(self, fd):
        self.step()
        super().sync(fd)

    def sync_directory(self, path):
        self.step()
        super().sync_directory(path)

    def open(self, path, *, write=False):
        if write and not path.exists():
            self.step()
        return super().open(path, write=write)

    def write(self, fd, buffers, position):
        self.step()
        super().write(fd, buffers, position)

    def truncate(self, fd, size):
        self.step()
        super().truncate(fd, size)

    def rename(self, source, target):
        self.step()
        super().rename(source, target)

    def remove(self, path):
        self.step()
        super().remove(path)


@pytest.mark.parametrize("error", [Crash, OSError])
def test_a_crash_or_an_error_at_every_step_leaves_the_log_before_or_after(tmp_path, error):
    whole = Compacted(tmp_path, files=UnsyncedFiles())
    fill(whole, rounds=7)
    whole.add(in_transaction(0, (b"k", b"aborted")), marker(7, commit=False))
    whole.roll()
    state = whole.newest()
    committed = {key: value for key, value in state.items() if value != b"aborted"}
    whole.log.abandon("the test copies it")
    step, finished = 0, False
    while not finished:
        scene = tmp_path / "scene"
        shutil.copytree(tmp_path / "t-0", scene / "t-0")
        files = StumblingFiles(error)
        log = open_log(files, scene / "t-0", CONFIG, clean=False)
        stumbled = Compacted(scene, files=files, log=log)
        files.left = step
        try:
            stumbled.compact()
            finished = True
        except Crash:
            pass
        except StorageError:
            if not log.is_offline:
                assert stumbled.newest() in (state, committed), step
                stumbled.add(batch((b"k0", b"meanwhile")))
                files.left = 10**9
                stumbled.compact()
            log.abandon("the test opens it again")
        gaps = OffsetCheckpoint(UnsyncedFiles(), scene / "gaps").get(*WHERE)
        again = Compacted(
            scene,
            files=UnsyncedFiles(),
            log=open_log(UnsyncedFiles(), scene / "t-0", CONFIG, clean=False, gaps_before=gaps),
        )
        found = {key: value for key, value in again.newest().items() if value != b"meanwhile"}
        assert found.items() <= state.items(), step
        assert state.keys() - found.keys() <= {b"k", b"k0"}, step
        assert again.log.end_offset >= whole.log.end_offset
        assert not [path for path in (scene / "t-0").iterdir() if path.suffix in (".cleaned", ".swap", ".tmp")]
        again.add(batch((b"k0", b"after")))
        shutil.rmtree(scene)
        step += 1
    assert step > 20


def test_readers_see_whole_batches_in_order_while_a_log_is_written_compacted_and_cut(kept):
    failures, rounds, done = [], [], threading.Event()

    def read_on():
        try:
            while not done.is_set():
                offset, seen = kept.log.start_offset, {}
                try:
                    while offset < kept.log.end_offset:
                        for found in read(kept.log.read(offset, 1500)):  # verifies checksums
                            assert found.last_offset >= offset
                            seen.update((record.key, record.value) for record in found.records())
                            offset = found.next_offset
                    kept.log.offset_for_timestamp(5)
                except OffsetOutOfRangeError:
                    assert offset < kept.log.start_offset
                    continue
                rounds.append(len(seen))
        except Exception as error:
            failures.append(error)

    readers = [threading.Thread(target=read_on) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(120):
        kept.add(batch(*[(b"k%d" % (number % 7 + i), b"%d" % number + b"v" * 80) for i in range(4)], timestamp=number))
        if number % 8 == 7:
            kept.compact()
        if number % 50 == 49:
            kept.log.delete_before(kept.log.end_offset - 100, lambda start: None)
    while len(rounds) < 2 and not failures:
        done.wait(0.01)
    done.set()
    for reader in readers:
        reader.join()
    assert not failures
    assert kept.log.start_offset > 0
