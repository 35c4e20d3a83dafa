"""Files of evidence: found by path or pattern, known by how they begin, packed or not, whole or in pieces."""

from __future__ import annotations

import gzip
import json
import os
import resource
import socket
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tagwire.capture import (
    Exchange,
    Logged,
    Losses,
    Piece,
    exchanged,
    exchanges_in,
    kind_of,
    observe,
    paths_of,
    pieces,
    seen_in,
)
from tagwire.capture.census import Offers
from tagwire.capture.files import PASSED_OVER
from tagwire.capture.opening import CUT_GZIP, CUT_ZSTD
from tagwire.capture.tables import loss_batch, observation_batch
from tagwire.errors import CaptureError

from .traffic import pcap, talk_frames

LINE = (
    b"[2025-11-20 03:04:05,678] DEBUG Completed request:RequestHeader(apiKey=FETCH, apiVersion=%d, clientId=c, "
    b"correlationId=6) -- {} from connection 10.0.0.1:9092-10.0.0.8:1-0;totalTime:2.4,principal:User:a,listener:L\n"
)
CAPTURE = pcap(talk_frames())


@pytest.mark.parametrize("data", [CAPTURE, LINE % 1 + b"noise\n"], ids=["packets", "log"])
def test_a_file_whose_name_is_no_text_is_evidence_that_tables_can_name(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / os.fsdecode(b"a\xff")
    path.write_bytes(data)
    losses = Losses()
    told = Offers()
    for seen in seen_in(path, losses):
        files = observation_batch(seen, told).column("file").to_pylist()
        assert set(files) == {f"{tmp_path}/a\\xff"}
    loss_batch(losses)


def as_it_is(data: bytes) -> bytes:
    return data


def zstd(data: bytes) -> bytes:
    return zstandard.compress(data)


PACKINGS = pytest.mark.parametrize("packing", [as_it_is, gzip.compress, zstd])
CUT = {gzip.compress: CUT_GZIP, zstd: CUT_ZSTD}


def versions(path: Path | Piece, losses: Losses | None = None) -> list[int]:
    return [seen.api_version for seen in observe(path, losses or Losses())]


def test_paths_directories_and_patterns_name_files_each_once_in_order(tmp_path: Path) -> None:
    for name in ("b.log", "a/c.log", "a/d.pcap"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    names = [
        path.relative_to(tmp_path).as_posix() for path in paths_of([tmp_path / "b.log", tmp_path, f"{tmp_path}/*/c*"])
    ]
    assert names == ["b.log", "a/c.log", "a/d.pcap"]


@pytest.mark.parametrize("name", ["missing.log", "*.nothing", "empty"])
def test_a_path_that_names_nothing_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(CaptureError, match="no such file, and no file in it"):
        paths_of([tmp_path / name])


@PACKINGS
def test_captures_and_logs_are_told_by_their_beginning_packed_or_not(
    tmp_path: Path, packing: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "evidence"
    for data, kind, seen in ((CAPTURE, "packets", [3]), (LINE % 11, "log", [11]), (b"", "log", [])):
        path.write_bytes(packing(data))
        assert kind_of(path) == kind
        assert versions(path) == seen


@pytest.mark.parametrize("packing", [gzip.compress, zstd])
def test_a_packed_file_cut_anywhere_gives_what_is_before_and_is_counted(
    tmp_path: Path, packing: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "evidence"
    for data in (CAPTURE, LINE % 1 + LINE % 2 + LINE % 3):
        whole = packing(data)
        for cut in range(4, len(whole), 7):
            path.write_bytes(whole[:cut])
            losses = Losses()
            assert len(versions(path, losses)) <= 3
            assert losses.counts[CUT[packing]] == 1 or cut < 10


@pytest.mark.parametrize("packing", [gzip.compress, zstd])
def test_of_a_packed_file_that_is_cut_short_the_pieces_before_the_cut_are_read(
    tmp_path: Path, packing: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "evidence"
    lines = [LINE % at for at in range(1000)]
    path.write_bytes(packing(b"".join(lines[:900])) + packing(b"".join(lines[900:]))[:-1])
    losses = Losses()
    found = versions(path, losses)
    assert found == list(range(len(found)))
    assert len(found) >= 860  # of what stands before the cut, less than 8 KiB may go with it
    assert losses.counts[CUT[packing]] == 1


@pytest.mark.parametrize("packing", [gzip.compress, zstd])
def test_a_file_may_be_packed_in_several_pieces(tmp_path: Path, packing: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "evidence"
    losses = Losses()
    path.write_bytes(packing(LINE % 1) + packing(b"") + packing(LINE % 2))
    assert versions(path, losses) == [1, 2]
    path.write_bytes(packing(CAPTURE[:30]) + packing(CAPTURE[30:]))
    assert versions(path, losses) == [3]
    assert not losses.counts


def test_a_zstd_file_may_begin_with_what_a_reader_skips(tmp_path: Path) -> None:
    path = tmp_path / "evidence"
    path.write_bytes(b"\x50\x2a\x4d\x18\4\0\0\0size" + zstd(LINE % 1) + b"\x5f\x2a\x4d\x18\0\0\0\0" + zstd(LINE % 2))
    assert versions(path) == [1, 2]


def test_a_zstd_file_that_asks_for_a_gigabyte_to_be_unpacked_is_not_given_it(tmp_path: Path) -> None:
    path = tmp_path / "evidence"
    window_of_2_gib = bytes([0, 21 << 3])
    run = (100_000 << 3 | 0b11).to_bytes(3, "little") + b"x"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + window_of_2_gib + run)
    losses = Losses()
    assert versions(path, losses) == []
    assert losses.counts == {CUT_ZSTD: 1}


@pytest.mark.parametrize("packing", [gzip.compress, zstd])
def test_a_small_file_that_unpacks_to_gigabytes_takes_little_memory(
    tmp_path: Path, packing: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "evidence"
    path.write_bytes(packing(b"\0" * (32 << 20)) * 24 + packing(b"\n" + LINE % 7))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert versions(path) == [7]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 512 << 10  # KiB; a line may have 64 MiB


def test_damage_inside_a_packed_file_is_counted_and_raises_nothing(tmp_path: Path) -> None:
    path = tmp_path / "evidence.gz"
    whole = gzip.compress(b"".join(LINE % at for at in range(50)))
    for at in range(10, len(whole), 11):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        losses = Losses()
        versions(path, losses)


@pytest.mark.parametrize("size", [1, 50, 200, 333, 10_000])
def test_a_log_in_pieces_gives_every_line_once_where_it_stands(tmp_path: Path, size: int) -> None:
    path = tmp_path / "request.log"
    path.write_bytes(b"".join(LINE % at for at in range(40)))
    whole = list(observe(path, Losses()))
    found = [seen for piece in pieces(path, size) for seen in observe(piece, Losses())]
    assert found == whole
    assert [seen.place.position for seen in found][:2] == [0, len(LINE % 0)]


def test_a_line_that_is_longer_than_memory_is_passed_over_by_the_piece_that_begins_in_it(tmp_path: Path) -> None:
    path = tmp_path / "request.log"
    with open(path, "wb") as file:
        file.truncate(128 << 20)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + LINE % 7)
    tracemalloc.start()
    try:
        (seen,) = observe(Piece(path, 1 << 20), Losses())
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
    assert (seen.api_version, seen.place.position) == (7, (128 << 20) + 1)


def test_captures_and_packed_logs_stay_whole(tmp_path: Path) -> None:
    packed = LINE % 1 + LINE % 2
    for name, data in (("a.pcap", CAPTURE), ("a.log.gz", gzip.compress(packed)), ("a.log.zst", zstd(packed))):
        (tmp_path / name).write_bytes(data)
        assert pieces(tmp_path / name, 10) == [Piece(tmp_path / name)]


def test_only_packets_have_exchanges(tmp_path: Path) -> None:
    (tmp_path / "request.log").write_bytes(LINE % 1)
    with pytest.raises(CaptureError, match="begin neither a pcap nor a pcapng file"):
        list(exchanged(tmp_path / "request.log", Losses()))


@PACKINGS
def test_requests_come_with_what_a_file_of_either_kind_tells_of_their_answers(
    tmp_path: Path, packing: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "evidence"
    for data, kind in ((CAPTURE, Exchange), (LINE % 1, Logged)):
        path.write_bytes(packing(data))
        (found,) = exchanges_in(path, Losses())
        assert type(found) is kind


# Pipes ----------------------------------------------------------------------------------------------------------------


@contextmanager
def written(path: Path, *pieces: bytes) -> Iterator[None]:
    """Somebody writes to a named pipe, piece by piece."""

    def write() -> None:
        with open(path, "wb", buffering=0) as pipe:
            for piece in pieces:
                pipe.write(piece)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    yield
    thread.join(20)
    assert not thread.is_alive()


@PACKINGS
def test_a_named_pipe_is_read_as_what_is_written_to_it(tmp_path: Path, packing: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    for data, seen in ((CAPTURE, [3]), (LINE % 11 + LINE % 12, [11, 12])):
        data = packing(data)
        assert paths_of([path]) == [path]
        with written(path, *(data[at : at + 1] for at in range(10)), data[10:]):
            assert versions(path) == seen


def test_a_writer_that_is_slow_to_begin_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    begin = threading.Event()

    def write() -> None:
        with open(path, "wb", buffering=0) as pipe:
            begin.wait(0.3)
            pipe.write(LINE % 1)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    assert versions(path) == [1]
    thread.join(20)


def test_a_named_pipe_that_nobody_writes_to_is_an_error_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tagwire.capture.opening.WRITER_WITHIN_S", 0.1)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    for read in (versions, lambda path: list(exchanged(path, Losses()))):
        with pytest.raises(CaptureError, match="pipe: a named pipe that nobody writes to"):
            read(path)


def test_devices_and_sockets_hold_no_capture(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        for strange in (path, Path("/dev/zero")):
            with pytest.raises(CaptureError, match=r"a (socket|device), which holds no capture"):
                versions(strange)


def test_what_is_no_file_in_a_directory_is_passed_over_and_counted(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.log")
    (tmp_path / "b.log").write_bytes(LINE % 1)
    for given in (tmp_path, f"{tmp_path}/*.log"):
        losses = Losses()
        assert paths_of([given], losses) == [tmp_path / "b.log"]
        assert losses.counts == {PASSED_OVER: 1}
        assert losses.first[PASSED_OVER].file == str(tmp_path / "a.log")


def test_a_pipe_is_not_shared_by_tasks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.log")
    with pytest.raises(CaptureError, match="a named pipe, which tasks of Spark cannot share"):
        pieces(tmp_path / "a.log", 10)


def ran(*command: str, **how: Any) -> tuple[list[Any], str]:
    """What a command in a process of its own said as JSON, and on stderr."""
    process = subprocess.run(
        [sys.executable, "-m", "tagwire", *command, "--json"], capture_output=True, check=False, **how
    )
    return [json.loads(line) for line in process.stdout.splitlines()], process.stderr.decode()


@pytest.mark.parametrize("name", ["-", pytest.param("/dev/stdin", marks=pytest.mark.nightly)])
@PACKINGS
def test_the_commands_read_their_standard_input_as_a_file(name: str, packing: Callable[[bytes], bytes]) -> None:
    """More lines than a buffer takes, so that none is read twice or left out."""
    log = b"".join(LINE % (at % 10) for at in range(500))
    for data, count in ((CAPTURE, 1), (log, 500)):
        (client,), _ = ran("audit", name, input=packing(data))
        assert client["requests"] == count
        rows, _ = ran("capture", "show", name, input=packing(data))
        assert (len(rows), rows[0]["file"]) == (count, name)


def test_standard_input_is_read_from_where_it_stands_and_may_be_a_socket(tmp_path: Path) -> None:
    path = tmp_path / "request.log"
    path.write_bytes(LINE % 1 + LINE % 2)
    with open(path, "rb", buffering=0) as file:
        file.seek(len(LINE % 1))
        rows, _ = ran("capture", "show", "-", stdin=file)
    assert [row["version"] for row in rows] == [2]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(LINE % 3)
        ours.shutdown(socket.SHUT_WR)
        rows, _ = ran("capture", "show", "-", stdin=theirs)
    assert [row["version"] for row in rows] == [3]


def test_a_terminal_holds_no_capture() -> None:
    ours, theirs = os.openpty()
    try:
        rows, said = ran("capture", "show", "-", stdin=theirs)
    finally:
        os.close(ours)
        os.close(theirs)
    assert (rows, said.count("\n")) == ([], 1)
    assert "a terminal, which holds no capture" in said


def test_several_pipes_are_each_read_from_their_start(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a", "b", "c")]
    for path in paths:
        os.mkfifo(path)
    log = b"".join(LINE % (at % 10) for at in range(200))
    with written(paths[0], log), written(paths[1], gzip.compress(log)), written(paths[2], zstd(log)):
        (client,), _ = ran("audit", *map(str, paths))
    assert client["requests"] == 600


def test_a_file_that_is_called_as_standard_input_is_still_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "-").write_bytes(LINE % 5)
    monkeypatch.chdir(tmp_path)
    for given in (["./-"], ["."], ["*"]):
        (path,) = paths_of(given)
        assert versions(path) == [5]


def test_standard_input_is_not_shared_by_tasks() -> None:
    (path,) = paths_of(["-"])
    with pytest.raises(CaptureError, match="standard input, which tasks of Spark cannot share"):
        pieces(path, 10)
