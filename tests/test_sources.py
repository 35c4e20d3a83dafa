"""What the code cites can be opened by whoever has the repository: pages under docs/, and their headings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CITED = re.compile(r"docs/(?P<page>[\w-]+\.md)(?:#(?P<anchor>[\w-]+))?")
LINKED = re.compile(r"\]\((?P<page>[\w-]+\.md)?(?:#(?P<anchor>[\w-]+))?\)")
ELSEWHERE = re.compile(r"\b(?:facts/[\w]+\.md|facts \d|draft_dialects|seeds?/\d|seed 00\d)")
FILES = sorted(path for folder in ("src", "tests", "bench", "scripts") for path in (ROOT / folder).rglob("*.py"))
PAGES = sorted((ROOT / "docs").glob("*.md"))


def anchor_of(heading: str) -> str:
    """How a link names a heading: lower case, dashes for spaces, nothing else but letters, digits and dashes."""
    return re.sub(r"[^\w -]", "", heading.replace("`", "")).strip().lower().replace(" ", "-")


def anchors_of(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return {anchor_of(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


HEADINGS = {page.name: anchors_of(page) for page in PAGES}


def missing(page: str, anchor: str | None) -> bool:
    return page not in HEADINGS or (anchor is not None and anchor not in HEADINGS[page])


def test_every_page_and_heading_that_the_code_cites_exists() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in FILES
        for found in CITED.finditer(path.read_text(encoding="utf-8"))
        if path != Path(__file__) and missing(found["page"], found["anchor"])
    ]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_page_and_heading_that_a_page_links_to_exists(page: Path) -> None:
    links = LINKED.finditer(page.read_text(encoding="utf-8"))
    assert [link[0] for link in links if missing(link["page"] or page.name, link["anchor"])] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_links_to_other_pages_alone(page: Path) -> None:
    """The site has no files of the source: they are named, not linked to."""
    assert re.findall(r"\]\((\.\./[^)]*)\)", page.read_text(encoding="utf-8")) == []


def test_nothing_is_cited_that_is_not_in_the_repository() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in (*FILES, *PAGES)
        for found in ELSEWHERE.finditer(path.read_text(encoding="utf-8"))
        if path != Path(__file__)
    ]
    assert wrong == []


def test_a_heading_is_named_as_a_link_names_it() -> None:
    assert anchor_of("What `Reader` is, and isn't (2.0)") == "what-reader-is-and-isnt-20"
