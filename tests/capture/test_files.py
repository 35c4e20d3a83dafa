"""Files of evidence: found by path or pattern, known by how they begin, gzipped or not, whole or in pieces."""

from __future__ import annotations

import gzip
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tagwire.capture import Losses, Piece, exchanged, kind_of, observe, paths_of, pieces
from tagwire.capture.files import PASSED_OVER
from tagwire.capture.opening import CUT_GZIP
from tagwire.errors import CaptureError

from .traffic import pcap, talk_frames

LINE = (
    b"[2025-11-20 03:04:05,678] DEBUG Completed request:RequestHeader(apiKey=FETCH, apiVersion=%d, clientId=c, "
    b"correlationId=6) -- {} from connection 10.0.0.1:9092-10.0.0.8:1-0;totalTime:2.4,principal:User:a,listener:L\n"
)
CAPTURE = pcap(talk_frames())


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


@pytest.mark.parametrize("packed", [False, True])
def test_captures_and_logs_are_told_by_their_beginning_gzipped_or_not(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "evidence"
    for data, kind, seen in ((CAPTURE, "packets", [3]), (LINE % 11, "log", [11]), (b"", "log", [])):
        path.write_bytes(gzip.compress(data) if packed else data)
        assert kind_of(path) == kind
        assert versions(path) == seen


def test_a_gzipped_file_cut_anywhere_gives_what_is_before_and_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "evidence.gz"
    for data in (CAPTURE, LINE % 1 + LINE % 2 + LINE % 3):
        whole = gzip.compress(data)
        for cut in range(2, len(whole), 7):
            path.write_bytes(whole[:cut])
            losses = Losses()
            assert len(versions(path, losses)) <= 3
            assert losses.counts[CUT_GZIP] == 1 or cut < 10


def test_damage_inside_a_gzipped_file_is_counted_and_raises_nothing(tmp_path: Path) -> None:
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


def test_captures_and_gzipped_logs_stay_whole(tmp_path: Path) -> None:
    for name, data in (("a.pcap", CAPTURE), ("a.log.gz", gzip.compress(LINE % 1))):
        (tmp_path / name).write_bytes(data)
        assert pieces(tmp_path / name, 10) == [Piece(tmp_path / name)]


def test_only_packets_have_exchanges(tmp_path: Path) -> None:
    (tmp_path / "request.log").write_bytes(LINE % 1)
    with pytest.raises(CaptureError, match="begin neither a pcap nor a pcapng file"):
        list(exchanged(tmp_path / "request.log", Losses()))


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


@pytest.mark.parametrize("packed", [False, True])
def test_a_named_pipe_is_read_as_what_is_written_to_it(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    for data, seen in ((CAPTURE, [3]), (LINE % 11 + LINE % 12, [11, 12])):
        data = gzip.compress(data) if packed else data
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


@pytest.mark.parametrize("packed", [False, True])
def test_the_commands_read_their_standard_input_as_a_file(tmp_path: Path, packed: bool) -> None:
    data = gzip.compress(CAPTURE) if packed else CAPTURE
    for command in (["audit", "/dev/stdin", "--json"], ["capture", "show", "/dev/stdin", "--json"]):
        ran = subprocess.run([sys.executable, "-m", "tagwire", *command], input=data, capture_output=True)
        assert b'"Metadata"' in ran.stdout or b'"client_id"' in ran.stdout, ran.stderr
