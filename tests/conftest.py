"""What every run of the suite says of itself."""

from __future__ import annotations

import pytest

from tagwire import kernel


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    mode = "compiled" if kernel.compiled else "uncompiled (TAGWIRE_PURE=1)"
    terminalreporter.write_line(f"This suite ran on kernels that are {mode}.")
