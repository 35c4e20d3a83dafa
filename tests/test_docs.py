"""Every Python block of the documentation runs, in the order of its page; those about a cluster at least compile."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted(page for page in DOCS.glob("*.md") if BLOCK.search(page.read_text(encoding="utf-8")))

ABOUT_A_CLUSTER = ("spark.md", "exactly-once.md")
"""Pages whose blocks name brokers and directories that a reader has. What they show is tested in tests/spark."""


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in ABOUT_A_CLUSTER], ids=lambda page: page.name
)
def test_the_blocks_of_a_page_run_as_they_stand(page: Path) -> None:
    scope: dict[str, object] = {}
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        exec(compile(block, str(page), "exec"), scope)


@pytest.mark.parametrize("name", ABOUT_A_CLUSTER)
def test_the_blocks_of_a_page_about_a_cluster_compile(name: str) -> None:
    blocks = BLOCK.findall((DOCS / name).read_text(encoding="utf-8"))
    assert blocks
    for block in blocks:
        compile(block, name, "exec")


def test_there_are_pages_to_run() -> None:
    assert "messages.md" in [page.name for page in PAGES]
