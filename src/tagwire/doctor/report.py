"""The doctor's findings as lines for people, or as JSON for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict

from tagwire.doctor.findings import PROBLEM, WARNING, Finding

_INDENT = " " * 21


def print_findings(findings: Iterable[Finding], *, as_json: bool) -> int:
    """Prints each finding when it comes.

    Returns:
        The exit code: 1 where there is a problem, 0 where there is none.
    """
    counted: Counter[str] = Counter()
    for finding in findings:
        counted[finding.state] += 1
        if as_json:
            print(json.dumps(asdict(finding)), flush=True)
            continue
        print(f"{finding.state:<8} {finding.check:<11} {finding.said}", flush=True)
        if finding.advice:
            print(f"{_INDENT}-> {finding.advice}", flush=True)
    if not as_json:
        problems, warnings = counted[PROBLEM], counted[WARNING]
        told = [_counted(problems, PROBLEM), _counted(warnings, WARNING)]
        print(" and ".join(filter(None, told)) or "all is well")
    return 1 if counted[PROBLEM] else 0


def _counted(count: int, name: str) -> str:
    return f"{count} {name}{'' if count == 1 else 's'}" if count else ""
