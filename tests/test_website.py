"""The site that `make docs` builds, as far as that can be told without building it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from site_links import broken_links

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "website" / "pages"
LISTS = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def listed() -> list[str]:
    """The pages that the site's navigation names."""
    return [
        line
        for page in sorted(PAGES.rglob("*.md"))
        for found in LISTS.findall(page.read_text(encoding="utf-8"))
        for line in found.split()
        if not line.startswith(":")
    ]


def test_every_guide_stands_once_in_the_sites_navigation() -> None:
    guides = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert guides - set(listed()) == set()
    assert len(listed()) == len(set(listed()))


def test_no_page_of_the_site_has_the_name_of_a_guide() -> None:
    assert {path.name for path in PAGES.glob("*.md")} & {path.name for path in (ROOT / "docs").glob("*.md")} == set()


@pytest.mark.parametrize(
    ("link", "broken"),
    [
        ('<a href="other.html#there">', []),
        ('<a href="other.html">', []),
        ('<a href="#here">', []),
        ('<a href="https://kafka.apache.org/protocol">', []),
        ('<a href="other.html#gone">', ["page.html: other.html#gone"]),
        ('<a href="gone.html">', ["page.html: gone.html"]),
        ('<a href="#gone">', ["page.html: #gone"]),
        ('<img src="gone.png">', ["page.html: gone.png"]),
    ],
)
def test_a_link_to_a_page_or_an_anchor_that_is_not_there_is_broken(
    tmp_path: Path, link: str, broken: list[str]
) -> None:
    (tmp_path / "page.html").write_text(f'<h1 id="here">A page</h1>{link}', encoding="utf-8")
    (tmp_path / "other.html").write_text('<h2 id="there">Another</h2>', encoding="utf-8")
    assert broken_links(tmp_path) == broken
