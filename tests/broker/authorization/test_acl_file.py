"""ACLs on the disk: there again after every end, in whatever state that leaves the file."""

from __future__ import annotations

import errno
from contextlib import suppress
from pathlib import Path
from random import Random
from zlib import crc32

import pytest

from tagwire.broker.authorization.acl_file import FILE, MOST_WASTED_BYTES, AclFile, size_of
from tagwire.broker.authorization.acls import Acl, Operation, PatternType, Permission, ResourceType
from tagwire.broker.storage.files import Files
from tagwire.errors import StorageError

from ...simulation.world.disk import DiskFault, SimulatedDisk


def acl(name):
    return Acl(
        ResourceType.TOPIC,
        name,
        PatternType.LITERAL,
        "User:a",
        "*",
        Operation.READ,
        Permission.ALLOW,
    )


MARK = b"%08x {}\n" % crc32(b"{}")


class Kept:
    """A file, and the ACLs that whoever saved them was told are safe."""

    def __init__(self, directory, files=None):
        self.file = AclFile(files or Files(), directory)
        self.acls = dict.fromkeys(self.file.load())

    def change(self, added=(), removed=()):
        going = set(removed)
        after = {one: None for one in [*self.acls, *added] if one not in going}
        self.file.save(list(added), list(removed), after, sum(map(size_of, after)))
        self.acls = after


def test_what_was_saved_is_there_again(tmp_path):
    kept = Kept(tmp_path)
    assert kept.acls == {}
    kept.change([acl("a"), acl('b"\n\ud800')])
    kept.change([acl("c")], [acl("a")])
    assert list(Kept(tmp_path).acls) == [acl('b"\n\ud800'), acl("c")]


def test_a_change_adds_a_line_and_leaves_the_others(tmp_path):
    kept = Kept(tmp_path)
    kept.change([acl("a")])
    before = (tmp_path / FILE).read_bytes()
    kept.change([acl("b")])
    after = (tmp_path / FILE).read_bytes()
    assert before.endswith(MARK)
    assert after.endswith(MARK)
    assert after.startswith(before.removesuffix(MARK))
    assert after.count(b"\n") == before.count(b"\n") + 1


def test_the_file_is_written_anew_before_it_is_mostly_waste(tmp_path):
    kept = Kept(tmp_path)
    many = [acl(f"topic-{number}") for number in range(5000)]
    for _ in range(4):
        kept.change(many)
        kept.change((), many)
    most = 2 * sum(map(size_of, many)) + MOST_WASTED_BYTES
    assert (tmp_path / FILE).stat().st_size < most
    assert Kept(tmp_path).acls == {}


@pytest.mark.parametrize(
    "torn", [b"0", b"12345678 {", b"\0" * 50, b"\n\n\n", b"zzzzzzzz {}\nyyyyyyyy {}\n", b"\xff\n\0"]
)
@pytest.mark.parametrize("over_the_mark", [False, True])
def test_a_torn_end_is_left_out_and_the_next_change_is_safe_again(tmp_path, torn, over_the_mark, caplog):
    kept = Kept(tmp_path)
    kept.change([acl("a")])
    with open(tmp_path / FILE, "r+b") as file:
        file.seek(-len(MARK) if over_the_mark else 0, 2)
        file.write(torn)
    again = Kept(tmp_path)
    assert list(again.acls) == [acl("a")]
    assert "left out" in caplog.text
    again.change([acl("b")])
    again.change([acl("c")])
    assert list(Kept(tmp_path).acls) == [acl("a"), acl("b"), acl("c")]


def test_every_cut_of_the_last_line_is_left_out(tmp_path):
    kept = Kept(tmp_path)
    kept.change([acl("a")])
    whole = len((tmp_path / FILE).read_bytes()) - len(MARK)
    kept.change([acl("b")])
    data = (tmp_path / FILE).read_bytes().removesuffix(MARK)
    for size in range(whole, len(data)):
        (tmp_path / FILE).write_bytes(data[:size])
        assert list(Kept(tmp_path).acls) == [acl("a")]


def test_every_cut_of_a_mark_leaves_the_change_before_it(tmp_path):
    kept = Kept(tmp_path)
    kept.change([acl("a")])
    kept.change([acl("b")])
    data = (tmp_path / FILE).read_bytes()
    for size in range(len(data) - len(MARK), len(data)):
        (tmp_path / FILE).write_bytes(data[:size])
        again = Kept(tmp_path)
        assert list(again.acls) == [acl("a"), acl("b")]
        again.change([acl("c")])
        assert list(Kept(tmp_path).acls) == [acl("a"), acl("b"), acl("c")]


@pytest.mark.parametrize("changes", [1, 2])
def test_a_flipped_bit_in_what_was_on_the_disk_is_an_error_that_names_the_line(tmp_path, changes):
    kept = Kept(tmp_path)
    for number in range(changes):
        kept.change([acl(str(number))])
    data = (tmp_path / FILE).read_bytes()
    for place in range(len(data) - len(MARK)):
        flipped = bytearray(data)
        flipped[place] ^= 1 << place % 8
        (tmp_path / FILE).write_bytes(flipped)
        line = data.count(b"\n", 0, place) + 1
        with pytest.raises(StorageError, match=f"{FILE}, line {line}: .*checksum"):
            Kept(tmp_path)


def test_a_change_whose_mark_the_disk_refused_is_safe(tmp_path, failing_files, monkeypatch, caplog):
    def sync(fd):
        Files.sync(failing_files, fd)
        failing_files.fail("write", errno.ENOSPC, times=1)

    kept = Kept(tmp_path, failing_files)
    kept.change([acl("a")])
    monkeypatch.setattr(failing_files, "sync", sync)
    kept.change([acl("b")])
    monkeypatch.undo()
    assert "not marked" in caplog.text
    assert list(Kept(tmp_path).acls) == [acl("a"), acl("b")]
    kept.change([acl("c")])
    assert list(Kept(tmp_path).acls) == [acl("a"), acl("b"), acl("c")]


def test_a_broken_line_before_a_whole_one_is_an_error_that_names_it(tmp_path):
    kept = Kept(tmp_path)
    kept.change([acl("a")])
    kept.change([acl("b")])
    data = (tmp_path / FILE).read_bytes().replace(b'"a"', b'"x"')
    (tmp_path / FILE).write_bytes(data)
    with pytest.raises(StorageError, match=f"{FILE}, line 2: .*checksum"):
        Kept(tmp_path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"version": 7}', "a newer tagwire"),
        ("null", "line 1"),
        ("[]", "line 1"),
        ('{"version": 0, "add": [["TOPIC"]]}', "line 1"),
        ('{"version": 0, "add": [["TOPIC", 1, "LITERAL", "User:a", "*", "READ", "ALLOW"]]}', "no text"),
        ('{"version": 0, "add": [["SOUP", "a", "LITERAL", "User:a", "*", "READ", "ALLOW"]]}', "SOUP"),
    ],
)
def test_a_whole_line_that_is_no_change_of_acls_is_refused(tmp_path, text, problem):
    (tmp_path / FILE).write_bytes(b"%08x %s\n" % (crc32(text.encode()), text.encode()))
    with pytest.raises(StorageError, match=problem) as told:
        Kept(tmp_path)
    assert "who may do what" in str(told.value)


@pytest.mark.parametrize("content", [b"", b"not a file of ACLs\n"])
def test_a_file_that_does_not_begin_as_one_is_refused(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(StorageError, match=r"line 1: .*who may do what"):
        Kept(tmp_path)


def test_what_the_disk_refused_is_not_added_to(tmp_path, failing_files):
    kept = Kept(tmp_path, failing_files)
    kept.change([acl("a")])
    for operation in ("write", "sync", "open"):
        failing_files.fail(operation, errno.EIO, times=1)
        with pytest.raises(OSError, match="Input/output"):
            kept.change([acl(operation)])
    kept.change([acl("b")])
    assert list(Kept(tmp_path).acls) == [acl("a"), acl("b")]


def the_power_goes(fd):
    raise OSError(errno.EIO, "there is no power")


@pytest.mark.parametrize("seed", range(100))
def test_a_loss_of_power_takes_nothing_that_was_told_to_be_safe(tmp_path, forgetful_files, seed):
    random = Random(seed)
    for life in range(3):
        files = forgetful_files()
        kept = Kept(tmp_path, files)
        for number in range(random.randrange(4)):
            some = random.sample(list(kept.acls), min(len(kept.acls), random.randrange(3)))
            kept.change([acl(f"{seed}-{life}-{number}")], some)
        safe = list(kept.acls)
        if safe and random.random() < 0.8:
            files.sync = the_power_goes
            with suppress(OSError):
                kept.change([acl("unsynced")] * random.randrange(1, 5))
        files.lose_power(random)
        assert list(Kept(tmp_path).acls) == safe


@pytest.mark.parametrize("refused", [None, "sync"])
def test_what_a_killed_broker_left_in_memory_is_on_the_disk_before_it_counts(refused):
    """A loss of power after the next start takes nothing that it went by: also where the change that the killed one had
    under way is asked for again, which is done already then; and where the system dropped what it failed to sync, and
    says at the next sync that all is well."""
    reached = 0
    for seed in range(5):
        for step in range(1, 30):
            disk, directory = SimulatedDisk(seed), Path("/disk")
            disk.make_directories(directory)
            kept = Kept(directory, disk)
            kept.change([acl("a")])
            if refused:
                disk.inject(DiskFault({refused}, count=1))
            disk.crash_at = disk.steps + step
            with suppress(OSError):
                kept.change([acl("b")], [acl("a")])
            reached += disk.is_dead
            disk.heal()
            disk.kill()
            found = Kept(directory, disk).acls
            disk.lose_power()
            assert Kept(directory, disk).acls == found, (seed, step)
    assert reached


def test_a_disk_that_refuses_to_take_what_a_killed_broker_left_is_told(tmp_path, failing_files):
    Kept(tmp_path).change([acl("a")])
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes().removesuffix(MARK))
    failing_files.fail("sync")
    with pytest.raises(StorageError, match=FILE):
        Kept(tmp_path, failing_files)
    assert list(Kept(tmp_path).acls) == [acl("a")]
