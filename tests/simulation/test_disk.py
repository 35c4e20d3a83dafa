"""Laws of the simulated disk, over operations that are drawn."""

from __future__ import annotations

import errno
import time
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire.broker.storage.data_directory import DataDirectory
from tagwire.broker.storage.files import read_file, replace_file
from tagwire.errors import StorageError

from .world.disk import DiskFault, SimulatedDisk

PLACE = Path("/disk")
FILE = PLACE / "file"


def disk_of(seed=0, **options):
    disk = SimulatedDisk(seed, **options)
    disk.make_directories(PLACE)
    return disk


def put(disk, data, path=FILE, position=0):
    fd = disk.open(path, write=True)
    disk.write(fd, [data], position)
    return fd


def test_what_is_in_memory_is_what_is_in_the_file_and_takes_no_step():
    disk = disk_of(cached=1.0)
    put(disk, b"abcdef")
    steps = disk.steps
    assert disk.read_cached(FILE, 3, 2) == b"cde"
    assert disk.read_cached(FILE, 3, 4) is None  # the file ends before that
    with pytest.raises(FileNotFoundError):
        disk.read_cached(PLACE / "other", 1, 0)
    assert disk.steps == steps


def test_a_system_that_cannot_tell_what_is_in_memory_says_so():
    disk = disk_of()
    put(disk, b"abcdef")
    assert disk.read_cached(FILE, 3, 2) is None


writes = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 50), st.binary(max_size=40)),
        st.tuples(st.just("truncate"), st.integers(0, 60), st.none()),
        st.tuples(st.just("sync"), st.none(), st.none()),
    ),
    max_size=15,
)


@given(st.integers(0, 1000), writes, st.integers(1, 3))
def test_what_was_synced_survives_every_loss_of_power(seed, writes, losses):
    disk = disk_of(seed)
    fd = disk.open(FILE, write=True)
    disk.sync_directory(PLACE)
    content, safe, unsafe = bytearray(), b"", False
    for act, where, data in writes:
        if act == "write":
            disk.write(fd, [data], where)
            content.extend(bytes(max(where - len(content), 0)))
            content[where : where + len(data)] = data
            unsafe = True
        elif act == "truncate":
            disk.truncate(fd, where)
            del content[where:]
            content.extend(bytes(where - len(content)))
            unsafe = True
        else:
            disk.sync(fd)
            safe, unsafe = bytes(content), False
        assert disk.read(fd, 1000, 0) == content
    found = set()
    for _ in range(losses):
        disk.lose_power()
        found.add(read_file(disk, FILE))
    assert len(found) == 1, "what one loss has left, the next leaves"
    if not unsafe:
        assert found == {safe}


@given(st.integers(0, 1000), st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=10))
def test_of_appends_after_a_sync_a_loss_of_power_leaves_bytes_that_were_written_or_zeros(seed, appends):
    disk = disk_of(seed)
    fd = put(disk, b"safe")
    disk.sync(fd)
    disk.sync_directory(PLACE)
    content = b"safe"
    for data in appends:
        disk.write(fd, [data], len(content))
        content += data
    disk.lose_power()
    found = read_file(disk, FILE)
    assert found.startswith(b"safe")
    assert len(found) <= len(content)
    assert all(byte in (0, expected) for byte, expected in zip(found, content))


def test_a_write_that_was_not_synced_is_lost_torn_or_kept():
    found = set()
    for seed in range(200):
        disk = disk_of(seed)
        put(disk, b"abc")
        disk.sync_directory(PLACE)
        disk.lose_power()
        found.add(read_file(disk, FILE))
    assert found == {b"", b"a", b"ab", b"abc"}


@given(st.integers(0, 1000), st.lists(st.sampled_from(["one", "two", "three"]), max_size=8), st.booleans())
def test_names_are_as_their_directory_was_synced_or_as_they_were_changed_since(seed, renames, synced):
    disk = disk_of(seed)
    disk.sync(put(disk, b"x", PLACE / "one"))
    disk.sync_directory(PLACE)
    name = "one"
    for other in renames:
        if other != name:
            disk.rename(PLACE / name, PLACE / other)
            name = other
    if synced:
        disk.sync_directory(PLACE)
    disk.lose_power()
    found = disk.names(PLACE)
    if synced:
        assert found == [name]
    for each in found:
        assert read_file(disk, PLACE / each) == b"x"


@given(st.integers(0, 300), st.integers(1, 12))
def test_a_file_that_is_replaced_has_the_old_content_or_the_new_wherever_power_is_lost(seed, step):
    disk = disk_of(seed)
    replace_file(disk, FILE, b"old")
    disk.crash_at = disk.steps + step
    try:
        replace_file(disk, FILE, b"new")
        wanted = {b"new"}
    except OSError:
        wanted = {b"old", b"new"}
    disk.lose_power()
    assert read_file(disk, FILE) in wanted


def test_what_a_killed_process_has_written_stays_and_its_locks_and_descriptors_do_not():
    now = ["first"]
    disk = disk_of(process=lambda: now[0])
    data = DataDirectory(disk, PLACE / "data")
    fd = put(disk, b"written")
    now[0] = "second"
    with pytest.raises(StorageError, match="in use"):
        DataDirectory(disk, PLACE / "data")
    assert disk.descriptors("second") == []
    disk.process_ended("first")
    again = DataDirectory(disk, PLACE / "data")
    assert again.cluster_id == data.cluster_id
    assert read_file(disk, FILE) == b"written"
    with pytest.raises(OSError, match="Bad file descriptor"):
        disk.write(fd, [b"x"], 0)
    again.close(clean=True)
    assert disk.descriptors("second") == []
    DataDirectory(disk, PLACE / "data").close(clean=True)


@pytest.mark.parametrize("operation", ["write", "sync", "truncate", "read"])
def test_operations_fail_as_often_as_was_said_and_no_more(operation):
    disk = disk_of()
    fd = put(disk, b"abc")
    other = put(disk, b"abc", PLACE / "other")
    disk.inject(DiskFault([operation], errno.EIO, count=2, after=1, part="file"))
    acts = {
        "write": lambda fd: disk.write(fd, [b"abc"], 0),
        "sync": disk.sync,
        "truncate": lambda fd: disk.truncate(fd, 3),
        "read": lambda fd: disk.read(fd, 3, 0),
    }
    outcomes = []
    for _ in range(5):
        try:
            acts[operation](fd)
            outcomes.append(None)
        except OSError as error:
            outcomes.append(error.errno)
        acts[operation](other)
    assert outcomes == [None, errno.EIO, errno.EIO, None, None]


@pytest.mark.parametrize(
    ("operation", "act"),
    [
        ("create", lambda disk: disk.open(PLACE / "new", write=True)),
        ("open", lambda disk: disk.open(FILE)),
        ("rename", lambda disk: disk.rename(FILE, PLACE / "other")),
        ("remove", lambda disk: disk.remove(FILE)),
        ("make_directory", lambda disk: disk.make_directory(PLACE / "new")),
        ("sync_directory", lambda disk: disk.sync_directory(PLACE)),
    ],
)
def test_a_name_that_could_not_be_changed_is_as_it_was_until_the_disk_is_well(operation, act):
    disk = disk_of()
    put(disk, b"abc")
    disk.inject(DiskFault([operation], count=None))
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output error"):
            act(disk)
    assert disk.names(PLACE) == ["file"]
    disk.heal()
    act(disk)


def test_a_sync_that_failed_drops_what_was_written_and_the_next_one_says_that_all_is_well():
    seen, kept = set(), set()
    for seed in range(40):
        disk = disk_of(seed)
        fd = put(disk, b"old")
        disk.sync(fd)
        disk.sync_directory(PLACE)
        disk.write(fd, [b"new"], 0)
        disk.inject(DiskFault(["sync"]))
        with pytest.raises(OSError, match="Input/output error"):
            disk.sync(fd)
        disk.sync(fd)
        seen.add(disk.read(fd, 3, 0))
        disk.lose_power()
        kept.add(read_file(disk, FILE))
    assert seen == kept == {b"old", b"new"}


def test_a_full_disk_takes_what_fits_until_something_is_removed():
    disk = disk_of()
    disk.capacity = 10
    fd = put(disk, b"12345678")
    with pytest.raises(OSError, match="No space left") as caught:
        disk.write(fd, [b"abcdef"], 8)
    assert caught.value.errno == errno.ENOSPC
    assert disk.read(fd, 100, 0) == b"12345678ab"
    assert disk.space(PLACE) == (10, 0)
    disk.write(fd, [b"xy"], 0)
    with pytest.raises(OSError, match="No space left"):
        disk.open(PLACE / "new", write=True)
    disk.remove(FILE)
    assert disk.used == 10, "it is open"
    disk.close(fd)
    put(disk, b"abc", PLACE / "new")
    assert disk.used == 3


def test_operations_take_the_time_of_the_world_and_writes_are_seen_by_halves():
    pauses, sizes = [], set()
    disk = disk_of(Random(1), pause=lambda operation, seconds: pauses.append((operation, seconds)), sync_s=0.01)
    fd = disk.open(FILE, write=True)
    disk._pause = lambda operation, seconds: (pauses.append((operation, seconds)), sizes.add(disk.size(FILE)))
    for _ in range(200):
        disk.truncate(fd, 0)
        disk.write(fd, [b"0123456789"], 0)
        disk.sync(fd)
    assert sizes > {0, 10}
    assert all(0 < seconds <= 0.01 for operation, seconds in pauses if operation == "sync")
    assert all(seconds == 0 for operation, seconds in pauses if operation == "write")
    heal = disk.slow(5.0, 0.5)
    pauses.clear()
    for _ in range(50):
        disk.read(fd, 1, 0)
    assert 0 < sum(seconds > 0.1 for _, seconds in pauses) < 50
    heal()
    pauses.clear()
    disk.read(fd, 1, 0)
    assert pauses == [("read", 0.0)]


def test_the_time_of_a_file_is_when_it_was_written(monkeypatch):
    disk = disk_of()
    monkeypatch.setattr(time, "time", lambda: 1234.5)
    put(disk, b"x")
    monkeypatch.setattr(time, "time", lambda: 2000.0)
    assert disk.modified_ms(FILE) == 1_234_500


def test_what_stands_in_the_place_of_another_kind_is_refused_as_by_a_system():
    disk = disk_of()
    put(disk, b"x")
    disk.make_directory(PLACE / "directory")
    for act, wanted in [
        (lambda: disk.open(PLACE / "directory"), IsADirectoryError),
        (lambda: disk.remove(PLACE / "directory"), IsADirectoryError),
        (lambda: disk.names(FILE), NotADirectoryError),
        (lambda: disk.open(FILE / "below"), NotADirectoryError),
        (lambda: disk.make_directory(PLACE / "directory"), FileExistsError),
        (lambda: disk.open(PLACE / "missing"), FileNotFoundError),
        (lambda: disk.remove_tree(PLACE / "missing"), FileNotFoundError),
    ]:
        with pytest.raises(wanted):
            act()
    assert not disk.is_directory(PLACE / "missing")
    put(disk, b"x", PLACE / "directory" / "below")
    disk.remove_tree(PLACE)
    assert disk.names(Path("/")) == []


def test_what_is_to_be_done_at_an_operation_is_done_once_before_it_and_can_be_taken_back():
    disk, seen = disk_of(), []
    fd = put(disk, b"abc")
    disk.upon("sync", lambda: seen.append("once"))
    disk.upon("sync", lambda: seen.append("never"))()
    disk.write(fd, [b"d"], 3)
    assert seen == []
    disk.sync(fd)
    disk.sync(fd)
    assert seen == ["once"]


def test_what_is_to_be_done_at_an_operation_on_a_path_waits_for_that_path():
    disk, seen = disk_of(), []
    disk.upon("create", lambda: seen.append("created"), "other")
    disk.upon("sync", lambda: seen.append("synced"), "other")
    disk.upon("sync", lambda: seen.append("any"))
    fd = put(disk, b"abc")
    disk.sync(fd)
    assert seen == ["any"]
    other = put(disk, b"abc", PLACE / "other")
    assert seen == ["any", "created"]
    disk.sync(other)
    disk.sync(other)
    assert seen == ["any", "created", "synced"]


def test_a_loss_of_power_spares_what_it_is_told_to_once():
    found = {}
    for spares in ("nothing", "all", "sectors", None):
        found[spares] = set()
        for seed in range(60):
            disk = disk_of(seed)
            disk.sync_directory(PLACE)
            fd = put(disk, b"")
            disk.sync_directory(PLACE)
            disk.write(fd, [b"abc"], 0)
            disk.spares = spares
            disk.lose_power()
            assert disk.spares is None
            found[spares].add(read_file(disk, FILE))
    assert found["nothing"] == {b""}
    assert found["all"] == {b"abc"}
    assert found["sectors"] == {b"", b"abc"}, "a sector is there whole, or not at all"
    assert found[None] > found["sectors"]
