"""What docs/negotiation.md shows is what happens."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "negotiation.md"


def test_the_examples_of_the_page_print_what_they_show() -> None:
    results = doctest.testfile(str(PAGE), module_relative=False)
    assert results.attempted >= 6
    assert results.failed == 0
