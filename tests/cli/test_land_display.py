"""What `tagwire land` says while it runs."""

from __future__ import annotations

import signal
import threading

from tagwire.cli.land_display import PlainDisplay
from tagwire.cli.land_topics import stopped_by_signals
from tagwire.errors import ConnectError


def test_an_error_that_is_waited_out_is_one_line_that_steers_no_terminal(capsys):
    PlainDisplay().pause(ConnectError("kafka-1:9092: \x1b[2Jno\nanswer"), 4.0)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.endswith("again in 4 s\n")
    assert "\x1b" not in said


def test_a_signal_that_is_ignored_stops_no_landing():
    """As a shell has it of SIGINT for what it runs in the background: Ctrl-C is meant for somebody else."""
    stop, before = threading.Event(), signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stopped_by_signals(stop):
            signal.raise_signal(signal.SIGINT)
            assert not stop.is_set()
            signal.raise_signal(signal.SIGTERM)
            assert stop.is_set()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
