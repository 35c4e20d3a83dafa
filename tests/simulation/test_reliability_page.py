"""docs/reliability.md says what the judge judges, and names tests that are there."""

from __future__ import annotations

import re

from .reliability_page import BEGIN, END, PAGE, page_with, promises

ROOT = PAGE.parents[1]


def test_the_page_has_every_promise_that_is_judged() -> None:
    text = PAGE.read_text("utf-8")
    assert text.count(BEGIN) == text.count(END) == 1
    assert page_with(promises()) == text, "python -m tests.simulation.reliability_page writes it anew"


def test_every_test_that_the_page_names_is_there() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)`", PAGE.read_text("utf-8"))
    assert named
    assert [path for path in named if not (ROOT / path).is_file()] == []
