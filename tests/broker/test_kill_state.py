"""kill -9 under load of groups and transactions: offsets and outcomes are what was acknowledged, all or nothing."""

from __future__ import annotations

import signal
import threading

from tagwire.errors import TagwireError

from ..limits import wait_until
from .asking import (
    add_partitions,
    begin,
    commit,
    commit_in_transaction,
    committed,
    committed_values,
    end,
    send_in_transaction,
)


class Committing(threading.Thread):
    """Commits ever higher offsets of a group until the broker is gone; `acked` is the last that was."""

    def __init__(self, wire, group, first):
        super().__init__(daemon=True)
        self.wire, self.group, self.acked = wire, group, first

    def run(self):
        try:
            while True:
                commit(self.wire, self.group, self.acked + 1)
                self.acked += 1
        except (OSError, TagwireError):
            return


class Transacting(threading.Thread):
    """Writes a number to two partitions and a group in one transaction after another, every third of them aborted.

    Attributes:
        outcomes: of each number whether it was committed; None while that is not known.
    """

    def __init__(self, wire, first):
        super().__init__(daemon=True)
        self.wire, self.first, self.outcomes = wire, first, {}

    def run(self):
        try:
            who, number = begin(self.wire, "tx"), self.first
            while True:
                commits = number % 3 != 0
                self.outcomes[number] = None if commits else False
                add_partitions(self.wire, "tx", who, "t", 0, 1)
                for partition in (0, 1):
                    send_in_transaction(self.wire, "tx", who, "t", partition, number - self.first, b"%d" % number)
                commit_in_transaction(self.wire, "tx", who, "in transactions", number)
                end(self.wire, "tx", who, commit=commits)
                self.outcomes[number] = commits
                number += 1
        except (OSError, TagwireError):
            return


def test_kill_9_takes_no_offset_and_no_outcome(tmp_path, connect, start):
    outcomes, groups = {}, {"g": 0, "h": 0}
    for generation in range(3):
        process = start(tmp_path / "data")
        if generation == 0:
            connect(process.bootstrap).create("t", 2, segment_bytes="3000")
        threads = [Committing(connect(process.bootstrap), group, acked) for group, acked in groups.items()]
        threads.append(Transacting(connect(process.bootstrap), len(outcomes)))
        for thread in threads:
            thread.start()
        wait_until(lambda: len(threads[-1].outcomes) >= 25)  # noqa: B023
        process.end(signal.SIGKILL)
        for thread in threads:
            thread.join()
        assert len(threads[-1].outcomes) >= 25
        outcomes.update(threads[-1].outcomes)

        process = start(tmp_path / "data")
        wire = connect(process.bootstrap)
        for thread in threads[:-1]:
            groups[thread.group] = committed(wire, thread.group)
            assert groups[thread.group] - thread.acked in (0, 1)
        begin(wire, "tx")  # what was left open is aborted now
        found = [[int(value) for value in committed_values(wire, "t", partition)] for partition in (0, 1)]
        assert found[0] == found[1] == sorted(set(found[0]))
        for number, outcome in outcomes.items():
            assert (number in found[0]) == outcome or outcome is None
            outcomes[number] = number in found[0]
        assert committed(wire, "in transactions") == max(found[0])
        assert process.end(signal.SIGTERM) == 0
