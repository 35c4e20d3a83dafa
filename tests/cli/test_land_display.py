"""What `tagwire land` says while it runs."""

from __future__ import annotations

from tagwire.cli.land_display import PlainDisplay
from tagwire.errors import ConnectError


def test_an_error_that_is_waited_out_is_one_line_that_steers_no_terminal(capsys):
    PlainDisplay().pause(ConnectError("kafka-1:9092: \x1b[2Jno\nanswer"), 4.0)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.endswith("again in 4 s\n")
    assert "\x1b" not in said
