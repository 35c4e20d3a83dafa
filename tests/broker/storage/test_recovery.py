"""Opening a partition's directory after a clean shutdown, a crash, and damage."""

from __future__ import annotations

import shutil
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwire.broker.fault_injection import FaultyFiles
from tagwire.broker.storage.batch import Appended
from tagwire.broker.storage.checkpoints import read_epochs
from tagwire.broker.storage.files import Files
from tagwire.broker.storage.loading import create_log, open_log
from tagwire.broker.topic_config import TopicConfig
from tagwire.errors import Error, StorageError
from tagwire.records import batch_headers, read

SMALL = TopicConfig(segment_bytes=2000, index_interval_bytes=150)
FIRST = f"{0:020d}"


def values(log):
    """(offset, value) of every record, read in pieces."""
    found, offset = [], log.start_offset
    while offset < log.end_offset:
        data = log.read(offset, 500)
        assert data, f"nothing at offset {offset} of {log.end_offset}"
        for stored in read(data):
            found += [(record.offset, record.value) for record in stored.records()]
            offset = stored.next_offset
    return found


def offsets(log):
    return [offset for offset, _ in values(log)]


@pytest.fixture
def written(tmp_path, batch):
    """A directory with 60 batches of 2 records in several segments, left as a crash leaves it."""
    directory = tmp_path / "t-0"
    directory.mkdir()
    log = create_log(Files(), directory, SMALL)
    for number in range(60):
        log.append([batch(2, timestamp=1000 + 2 * number)])
        log.flush()
    log.abandon("the test crashes it")
    return directory


def logs(directory):
    return sorted(directory.glob("*.log"))


def test_after_a_clean_shutdown_everything_is_there_and_appending_goes_on(tmp_path, batch):
    log = create_log(Files(), tmp_path, SMALL)
    for number in range(50):
        log.append([batch(2, timestamp=number)])
    log.flush()
    log.close()
    again = open_log(Files(), tmp_path, SMALL, clean=True)
    assert offsets(again) == list(range(100))
    assert again.newest() == (50, 99)
    assert again.leader_epoch == 0
    assert again.append([batch(1)]) == [Appended(100, -1)]


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_without_records_opens(tmp_path, batch, clean):
    create_log(Files(), tmp_path, SMALL).close()
    log = open_log(Files(), tmp_path, SMALL, clean=clean)
    assert (log.start_offset, log.end_offset) == (0, 0)


def test_a_log_emptied_by_retention_keeps_its_offsets_over_a_restart(tmp_path, batch):
    log = create_log(Files(), tmp_path, SMALL)
    log.append([batch(5)])
    log.flush()
    log.delete_before(log.expired_before(10**15), lambda start: None)
    log.close()
    for clean in (True, False):
        log = open_log(Files(), tmp_path, SMALL, clean=clean)
        assert (log.start_offset, log.end_offset) == (5, 5)


def test_after_a_crash_everything_is_there(written):
    log = open_log(Files(), written, SMALL, clean=False)
    assert offsets(log) == list(range(120))
    assert log.offset_for_timestamp(1050) == (1050, 50)


def test_recovery_rebuilds_the_indexes_that_a_clean_shutdown_writes(tmp_path, batch):
    log = create_log(Files(), tmp_path, SMALL)
    for number in range(60):
        log.append([batch(1 + number % 3, timestamp=1000 + number * 7 % 40, size=number % 50)])
        log.flush()
    log.close()
    indexes = {path.name: path.read_bytes() for path in tmp_path.glob("*index")}
    for path in tmp_path.glob("*index"):
        path.write_bytes(b"\xff" * 24)
    open_log(Files(), tmp_path, SMALL, clean=False)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*index")} == indexes
    assert any(indexes.values())


def test_a_torn_tail_is_cut_off_at_every_byte(tmp_path, batch):
    directory = tmp_path / "t-0"
    directory.mkdir()
    log = create_log(Files(), directory, SMALL)
    log.append([batch(2)])
    log.flush()
    whole = (directory / f"{FIRST}.log").stat().st_size
    log.append([batch(3)])
    log.flush()
    log.abandon("the test crashes it")
    data = (directory / f"{FIRST}.log").read_bytes()
    for size in range(whole, len(data)):
        (directory / f"{FIRST}.log").write_bytes(data[:size])
        log = open_log(Files(), directory, SMALL, clean=False)
        assert offsets(log) == [0, 1]
        assert (directory / f"{FIRST}.log").stat().st_size == whole
        assert log.append([batch(1)]) == [Appended(2, -1)]
        log.abandon("the test crashes it")


def test_a_changed_byte_anywhere_ends_the_log_before_its_batch(tmp_path, batch):
    directory = tmp_path / "t-0"
    directory.mkdir()
    log = create_log(Files(), directory, SMALL)
    log.append([batch(2), batch(1)])
    log.flush()
    log.abandon("the test crashes it")
    path = directory / f"{FIRST}.log"
    data = path.read_bytes()
    second = 12 + int.from_bytes(data[8:12], "big")
    # The leader epoch alone may be anything: it is outside the checksum.
    for position in [*range(second, second + 12), *range(second + 16, len(data))]:
        damaged = bytearray(data)
        damaged[position] ^= 0x40
        path.write_bytes(damaged)
        log = open_log(Files(), directory, SMALL, clean=False)
        assert offsets(log) == [0, 1], position
        log.abandon("the test crashes it")


@pytest.mark.parametrize("tail", [b"\0" * 5, b"\0" * 61, b"\0" * 5000, b"\xff" * 500, b"GET / HTTP/1.1\r\n" * 9])
def test_zeros_or_garbage_after_the_last_batch_are_cut_off(written, tail):
    last = logs(written)[-1]
    size = last.stat().st_size
    with last.open("ab") as file:
        file.write(tail)
    log = open_log(Files(), written, SMALL, clean=False)
    assert offsets(log) == list(range(120))
    assert last.stat().st_size == size


def test_a_batch_written_twice_is_not_read_twice(written):
    last = logs(written)[-1]
    data = last.read_bytes()
    with last.open("ab") as file:
        file.write(data[: 12 + int.from_bytes(data[8:12], "big")])
    assert offsets(open_log(Files(), written, SMALL, clean=False)) == list(range(120))


def test_damage_in_an_older_segment_takes_all_later_segments_with_it(written):
    first, second, *later = logs(written)
    data = bytearray(second.read_bytes())
    data[-1] ^= 1
    second.write_bytes(data)
    log = open_log(Files(), written, SMALL, clean=False)
    assert logs(written) == [first, second]
    assert later
    assert offsets(log) == list(range(log.end_offset))
    assert int(second.stem) < log.end_offset < int(later[0].stem)


@pytest.mark.parametrize("lost", ["the last batch", "all of them"])
def test_batches_missing_between_two_segments_end_the_log(written, lost):
    first, second, *_ = logs(written)
    data = second.read_bytes()
    ends = [header.position for header in batch_headers(data)]
    second.write_bytes(data[: ends[-1] if lost == "the last batch" else 0])
    log = open_log(Files(), written, SMALL, clean=False)
    assert logs(written) == [first, second]
    assert log.end_offset == int(second.stem) + (2 * (len(ends) - 1) if lost == "the last batch" else 0)
    assert offsets(log) == list(range(log.end_offset))


def test_segments_before_the_recovery_point_are_taken_as_they_are(written):
    first, second, *_ = logs(written)
    data = bytearray(first.read_bytes())
    data[-1] ^= 1
    first.write_bytes(data)
    log = open_log(Files(), written, SMALL, clean=False, recovery_point=int(second.stem) + 1)
    assert log.end_offset == 120


def test_a_segment_closed_right_after_the_recovery_point_gets_its_indexes(tmp_path, batch):
    log = create_log(Files(), tmp_path, SMALL)
    log.append([batch(1, timestamp=1000, size=1500)])
    log.flush()
    log.append([batch(1, timestamp=1001, size=1500)])
    log.abandon("the test crashes it")
    log = open_log(Files(), tmp_path, SMALL, clean=False, recovery_point=log.recovery_point)
    assert log.offset_for_timestamp(1000) == (1000, 0)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("suffix", ["index", "timeindex"])
@pytest.mark.parametrize("harm", ["missing", "cut short", "ahead of the log", "zeros", "of another log"])
def test_a_damaged_index_does_not_hide_records(tmp_path, batch, clean, suffix, harm):
    log = create_log(Files(), tmp_path, SMALL)
    for number in range(60):
        log.append([batch(2, timestamp=1000 + 2 * number)])
    log.flush()
    log.close()
    for path in tmp_path.glob(f"*.{suffix}"):
        data = path.read_bytes()
        if harm == "missing":
            path.unlink()
        elif harm == "cut short":
            path.write_bytes(data[: len(data) - 3])
        elif harm == "ahead of the log" and suffix == "index":
            path.write_bytes(data + bytes.fromhex("7fffffff 7fffffff"))
        elif harm == "zeros":
            path.write_bytes(data + bytes(240))
        elif harm == "of another log" and suffix == "index":
            entries = [data[at : at + 8] for at in range(0, len(data), 8)]
            path.write_bytes(b"".join(entry[:7] + bytes([entry[7] ^ 1]) for entry in entries))
        elif harm == "of another log":
            entries = [data[at : at + 12] for at in range(0, len(data), 12)]
            path.write_bytes(b"".join(entry[:11] + bytes([entry[11] ^ 1]) for entry in entries))
    log = open_log(Files(), tmp_path, SMALL, clean=clean)
    assert offsets(log) == list(range(120))
    assert log.offset_for_timestamp(1077) == (1077, 77)


def test_a_clean_mark_over_a_torn_tail_is_not_believed(written, batch):
    last = logs(written)[-1]
    log = open_log(Files(), written, SMALL, clean=False)
    log.close()
    last.write_bytes(last.read_bytes()[:-1])
    assert offsets(open_log(Files(), written, SMALL, clean=True)) == list(range(118))


def test_index_files_without_a_log_and_unfinished_replacements_are_swept_away(written):
    (written / f"{10**9:020d}.index").write_bytes(b"")
    (written / f"{10**9:020d}.timeindex").write_bytes(b"")
    (written / "leader-epoch-checkpoint.tmp").write_bytes(b"0\n")
    open_log(Files(), written, SMALL, clean=False)
    assert not list(written.glob(f"{10**9:020d}*"))
    assert not list(written.glob("*.tmp"))


def test_each_recovery_begins_a_leader_epoch_where_the_log_then_ends(written, batch):
    log = open_log(Files(), written, SMALL, clean=False)
    assert log.leader_epoch == 1
    log.append([batch(1)])
    log.flush()
    assert next(iter(read(log.read(120, 1)))).partition_leader_epoch == 1
    log.abandon("the test crashes it")
    log = open_log(Files(), written, SMALL, clean=False)
    assert log.leader_epoch == 2
    assert read_epochs(Files(), written / "leader-epoch-checkpoint") == [(0, 0), (1, 120), (2, 121)]


def test_a_leader_epoch_begins_behind_what_is_written_and_not_on_the_disk_yet(written, batch):
    log = open_log(Files(), written, SMALL, clean=True)
    log.append([batch(2)])
    log.begin_epoch(1)
    log.flush()
    log.append([batch(1)])
    log.flush()
    assert log.end_of_epoch(0) == (0, 122)
    assert [next(iter(read(log.read(at, 1)))).partition_leader_epoch for at in (120, 122)] == [0, 1]


@pytest.mark.parametrize("times", [1, 9], ids=["it can be put back", "it cannot"])
def test_nothing_is_written_in_a_leader_epoch_that_a_start_may_find_over(written, batch, failing_files, times):
    log = open_log(failing_files, written, SMALL, clean=True)
    failing_files.fail("sync_directory", times=times)
    with pytest.raises(StorageError, match="a leader epoch was not stored"):
        log.begin_epoch(1)
    failing_files.mend()
    try:
        (appended,) = log.append([batch(1)])
        log.flush()
    except StorageError:
        assert times > 1
    else:
        assert (times, appended.base_offset) == (1, 120)
    log.abandon("the test crashes it")
    log = open_log(Files(), written, SMALL, clean=True)
    assert log.end_of_epoch(0)[1] == log.end_offset  # else who has read it is told that it was cut off


def test_leader_epochs_of_what_was_deleted_are_forgotten(written, batch):
    start = 0
    for _ in range(5):  # each crash begins one
        log = open_log(Files(), written, SMALL, clean=False, start_offset=start)
        log.append([batch(1)])
        log.flush()
        start = log.end_offset
        log.delete_before(start, lambda offset: None)
        log.abandon("the test crashes it")
    assert read_epochs(Files(), written / "leader-epoch-checkpoint") == [(4, 123), (5, 124)]
    log = open_log(Files(), written, SMALL, clean=True, start_offset=start)
    assert log.end_of_epoch(1) == (1, 125)
    for _ in range(2):  # so does each leader
        log.append([batch(1)])
        log.flush()
        log.delete_before(log.end_offset, lambda offset: None)
        log.begin_epoch(0)
    assert log.epochs.starts == [(6, 126), (7, 127)]


class _Counted(FaultyFiles):
    """Files that know which of them are open."""

    def __init__(self):
        super().__init__()
        self.opened = {}

    def open(self, path, *, write=False):
        fd = super().open(path, write=write)
        self.opened[fd] = path.name
        return fd

    def close(self, fd):
        super().close(fd)
        del self.opened[fd]


def test_a_log_that_cannot_be_opened_keeps_no_file_open(written):
    with logs(written)[-1].open("ab") as file:
        file.write(b"torn")
    files = _Counted()
    files.fail("sync")
    with pytest.raises(StorageError):
        open_log(files, written, SMALL, clean=False)
    assert list(files.opened.values()) == []


def test_what_recovery_found_is_on_the_disk_before_the_log_is_used(written, batch, failing_files):
    failing_files.fail("sync")
    with pytest.raises(StorageError, match="Input/output error"):
        open_log(failing_files, written, SMALL, clean=False)


STEPS = st.lists(st.sampled_from(["append", "append", "flush", "kill", "power"]), max_size=25)


@settings(max_examples=80)
@given(st.data())
def test_neither_a_kill_nor_loss_of_power_takes_a_batch_that_was_flushed(
    tmp_path_factory, batch, forgetful_files, data
):
    directory = tmp_path_factory.mktemp("t-0")
    files = forgetful_files()
    log = create_log(files, directory, SMALL)
    files.sync_directory(directory)
    flushed, written, recovery_point = [], [], 0
    for step in data.draw(STEPS):
        if step == "append":
            sizes = data.draw(st.lists(st.integers(0, 600), min_size=1, max_size=4))
            batches = [batch(1, timestamp=1000 + len(written) + i, size=size) for i, size in enumerate(sizes)]
            written += [b"v" * size for size in sizes]
            assert all(isinstance(one, Appended) for one in log.append(batches))
        elif step == "flush":
            log.flush()
            flushed = list(written)
            recovery_point = log.recovery_point
        else:
            log.abandon("the test crashes it")
            if step == "power":
                files.lose_power(Random(data.draw(st.integers(0, 2**32))))
                files = forgetful_files()
            log = open_log(files, directory, SMALL, clean=False, recovery_point=recovery_point)
            found = values(log)
            assert [offset for offset, _ in found] == list(range(len(found)))
            assert [value for _, value in found][: len(flushed)] == flushed
            assert [value for _, value in found] == written[: len(found)]
            assert all(log.offset_for_timestamp(1000 + i) == (1000 + i, i) for i in range(len(found)))
            # What was found, and so can be read, is as safe as what was flushed.
            flushed, written = written[: len(found)], written[: len(found)]
    shutil.rmtree(directory)


def everything_in(directory):
    return sorted(path for path in directory.iterdir() if path.stat().st_size)


@pytest.mark.parametrize("seed", range(60))
def test_a_flipped_bit_anywhere_is_refused_or_ends_the_log_and_alters_nothing(tmp_path, batch, monkeypatch, seed):
    monkeypatch.setattr("os.fsync", lambda fd: None)  # nothing here depends on it, and it takes most of the time
    directory = tmp_path / "t-0"
    directory.mkdir()
    log = create_log(Files(), directory, SMALL)
    for number in range(30):
        log.append([batch(2, timestamp=1000 + 2 * number, size=number * 7 % 90)])
        log.flush()
    before = values(log)
    random = Random(seed)
    if seed % 2:
        log.close()
    else:
        log.abandon("the test crashes it")
    path = random.choice(everything_in(directory))
    data = bytearray(path.read_bytes())
    position = random.randrange(len(data))
    data[position] ^= 1 << random.randrange(8)
    path.write_bytes(data)
    refusal = ""
    try:
        log = open_log(Files(), directory, SMALL, clean=False)
    except StorageError as error:
        refusal = str(error)
    if refusal:
        assert path.name in refusal
        return
    found = values(log)
    times = [log.offset_for_timestamp(1000 + offset) for offset, _ in found]
    assert found == before[: len(found)]
    assert times == [(1000 + offset, offset) for offset, _ in found]
    assert len(found) == len(before) or path.suffix == ".log"


def test_a_log_whose_offsets_are_used_up_takes_no_more_and_keeps_what_it_has(tmp_path, batch):
    directory = tmp_path / "t-0"
    directory.mkdir()
    first = 2**63 - 4
    (directory / f"{first:020d}.log").write_bytes(b"")
    log = open_log(Files(), directory, SMALL, clean=False)
    taken, refused, last, later = log.append([batch(2), batch(2), batch(1), batch(1)])
    log.flush()
    assert taken == Appended(first, -1)
    assert last == Appended(first + 2, -1)
    assert [refused.error, later.error] == [Error.POLICY_VIOLATION] * 2
    assert offsets(log) == [first, first + 1, first + 2]
    log.abandon("the test crashes it")
    assert open_log(Files(), directory, SMALL, clean=False).end_offset == 2**63 - 1


def test_a_batch_after_whose_offsets_there_is_none_is_damage(tmp_path, batch, written):
    last = logs(written)[-1]
    sound = last.read_bytes()
    moved = bytearray(sound)
    moved[:8] = (2**63 - 1).to_bytes(8, "big")  # offsets lie outside of the checksum
    last.write_bytes(sound + moved)
    log = open_log(Files(), written, SMALL, clean=False)
    assert log.end_offset == 120
    assert log.append([batch(1)]) == [Appended(120, -1)]
