"""A broker that is a program's only business keeps the memory of a response for the next one."""

from __future__ import annotations

import platform
import time
from pathlib import Path

import pytest

PARTITIONS, MIB, PAGE = 6, 1 << 20, 4096
WITHIN_S = 60.0


def faults(pid):
    """How often the process was given a page of memory so far."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[7])


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="others have rules of their own")
def test_large_responses_one_after_the_other_are_read_into_the_same_memory(tmp_path, start, make, connect):
    broker = start(tmp_path, "never")
    wire = connect(broker.bootstrap)
    wire.create("t", PARTITIONS)
    for partition in range(PARTITIONS):
        wire.produce("t", make.records(b"v" * (MIB - PAGE)), partition=partition)
    request = make.fetch("t", 0)
    for partition in range(1, PARTITIONS):
        request.topics[0].partitions += make.fetch("t", 0, partition).topics[0].partitions
    until, given = time.monotonic() + WITHIN_S, PARTITIONS * MIB // PAGE
    while given > PARTITIONS * MIB // PAGE // 4 and time.monotonic() < until:  # not yet in its first second
        before = faults(broker.pid)
        for _ in range(4):
            found = wire.ask(request, 12).responses[0].partitions
            assert sum(len(one.records) for one in found) > PARTITIONS * (MIB - PAGE)
        given = (faults(broker.pid) - before) // 4
        time.sleep(0.05)
    assert given <= PARTITIONS * MIB // PAGE // 4
