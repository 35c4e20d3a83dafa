"""Every Python block of the documentation runs, in the order of its page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted(page for page in DOCS.glob("*.md") if BLOCK.search(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_blocks_of_a_page_run_as_they_stand(page: Path) -> None:
    scope: dict[str, object] = {}
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        exec(compile(block, str(page), "exec"), scope)


def test_there_are_pages_to_run() -> None:
    assert "messages.md" in [page.name for page in PAGES]
