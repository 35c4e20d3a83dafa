"""The reference as files: pages, the same as JSON, the table of releases as CSV, a style sheet and a script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tagwire.reference.blocks import Page, plain
from tagwire.reference.html import HtmlRenderer
from tagwire.reference.markup import Markup, element
from tagwire.reference.release_pages import CSV, releases_csv
from tagwire.reference.shelf import Shelf

STYLE: Final = "reference.css"
SCRIPT: Final = "reference.js"
_ASSETS: Final = Path(__file__).with_name("assets")


@dataclass(frozen=True, slots=True)
class Entry:
    """One page, for a table of contents.

    Attributes:
        path: its directory below the reference's, such as `apis/Fetch`; "" for the front page.
        group: what it is listed under.
        summary: what it is about, as plain text.
        fragment: its HTML from `<h1>` on; links in it are relative to its directory.
    """

    title: str
    path: str
    group: str
    summary: str
    fragment: str


def entries(shelf: Shelf | None = None) -> Iterator[Entry]:
    """Every page of the reference, in the order of a table of contents; all of Kafka's where no shelf is given."""
    renderer = HtmlRenderer()
    return (entry_of(page, renderer) for page in shelf or Shelf())


def write(directory: Path, shelf: Shelf | None = None, *, fragments: bool = False) -> list[Entry]:
    """Writes the reference below `directory`, which is made where it is missing.

    For each page `PATH/index.html` and the same for programs, `PATH/index.json`; once `releases.csv`, `reference.css`
    and `reference.js`.

    Args:
        fragments: `PATH/fragment.html`, without head and navigation, for a site that has its own, in the place of
            `index.html`.
    """
    shelf = shelf or Shelf()
    renderer = HtmlRenderer("" if fragments else "index.html")
    found = []
    for page in shelf:
        entry = entry_of(page, renderer)
        found.append(entry)
        folder = directory / page.path
        folder.mkdir(parents=True, exist_ok=True)
        shown = entry.fragment if fragments else whole(entry, renderer)
        (folder / ("fragment.html" if fragments else "index.html")).write_text(f"{shown}\n", encoding="utf-8")
        (folder / "index.json").write_text(facts_json(page), encoding="utf-8")
    for name, data in files().items():
        (directory / name).write_bytes(data)
    return found


def files() -> dict[str, bytes]:
    """The files beside the pages, by name."""
    assets = {name: (_ASSETS / name).read_bytes() for name in (STYLE, SCRIPT)}
    return {CSV: releases_csv().encode(), **assets}


def facts_json(page: Page) -> str:
    """What `index.json` beside a page holds."""
    return json.dumps(page.facts, ensure_ascii=False, separators=(",", ":")) + "\n"


def whole(entry: Entry, renderer: HtmlRenderer) -> str:
    """A page with head and a way back to the front page."""
    renderer.path = entry.path
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{entry.title} - tagwire"),
        element("link", rel="icon", href="data:,"),  # else a browser asks for one
        element("link", rel="stylesheet", href=f"{renderer.up()}{STYLE}"),
        element("script", src=f"{renderer.up()}{SCRIPT}", defer=True),
    )
    ways = (
        ("", "Reference"),
        ("releases", "Releases"),
        ("diff", "What changed"),
        ("errors", "Errors"),
        ("kips", "KIPs"),
    )
    links = [element("a", title, href=renderer.to(path)) for path, title in ways]
    body = element(
        "body",
        element("nav", *links, class_="tagwire-nav", aria_label="Reference"),
        element("main", Markup(entry.fragment)),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}"


def entry_of(page: Page, renderer: HtmlRenderer) -> Entry:
    """A page with its HTML."""
    return Entry(page.title, page.path, page.group, plain(page.summary), renderer.fragment(page))
