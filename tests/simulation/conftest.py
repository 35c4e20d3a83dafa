"""What a run of the suite says of the seeds that it has simulated."""

from __future__ import annotations

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = (report for reports in terminalreporter.stats.values() for report in reports)
    told = (dict(getattr(report, "user_properties", ())).get("simulated") for report in reports)
    for line in dict.fromkeys(filter(None, told)):
        terminalreporter.write_line(f"Simulated: {line}.")
