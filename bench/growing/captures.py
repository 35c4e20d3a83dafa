"""A capture that is made as it is read: no file of its size is anywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from growing.lines import Lines
from growing.row import Row, thousandfold
from tagwire.capture import Census, Losses, seen_in, take_census
from tagwire.capture.opening import STDIN

BENCHES = Path(__file__).resolve().parents[1]

CLIENTS = 50
REQUESTS = 200


def write(size: int) -> None:
    """So many bytes of packets, to standard output: clients who connect, ask 200 times, and connect again. Told on
    standard error: how many requests that was."""
    sys.path[:0] = [str(BENCHES)]
    from audit import BROKER, START, exchanges

    from tagwire.capture import Endpoint
    from tagwire.capture.recording import FILE_HEADER, Recording

    (_, asked, offered), (_, sent, stored) = exchanges()
    block = bytearray()
    for client in range(1, CLIENTS + 1):
        recording = Recording(Endpoint(f"10.0.0.{client}", 20_000), BROKER)
        block += recording.opened(START) + recording.sent(asked, START, by_client=True)
        block += recording.sent(offered, START, by_client=False)
        for _ in range(REQUESTS):
            block += recording.sent(sent, START, by_client=True) + recording.sent(stored, START + 5, by_client=False)
        block += recording.closed(START)
    written, requests = os.write(1, FILE_HEADER), 0
    while written < size:
        view = memoryview(block)
        while view:
            view = view[os.write(1, view) :]
        written += len(block)
        requests += CLIENTS * (REQUESTS + 1)
    print(requests, file=sys.stderr)


def capture(size: int, folder: Path, lines: Lines) -> None:
    """Read from standard input, which is a pipe from whoever makes it."""
    command = f"from growing.captures import write; write({size})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(BENCHES), *sys.path])}
    read, written = os.pipe()
    writer = subprocess.Popen([sys.executable, "-c", command], stdout=written, stderr=subprocess.PIPE, env=environment)
    os.close(written)
    os.dup2(read, 0)
    os.close(read)
    census, losses = Census(), Losses()
    with lines.line("requests gathered") as line:
        for seen in seen_in(STDIN, losses):
            take_census(census, seen)
    _, told = writer.communicate()
    line.notes["requests"] = sum(usage.count for usage in census.usages())
    assert line.notes["requests"] == int(told), told
    assert not losses.counts, losses.counts


ROWS_OF_CAPTURES = (Row("capture", "bytes of a capture", thousandfold(30_000_000), capture, 900),)
