"""What the built pages link to within the site is there: files and anchors."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LEADS = {"href", "src"}


class _Page(HTMLParser):
    """The anchors of a page, and where it leads."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.targets: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name == "id":
                self.anchors.add(value)
            elif value and name in LEADS:
                self.targets.add(value)


def broken_links(site: Path) -> list[str]:
    """Each link that leads nowhere, as "page: target"."""
    pages: dict[Path, _Page] = {}
    for path in sorted(site.rglob("*.html")):
        pages[path.resolve()] = page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
    return [
        f"{path.relative_to(site.resolve())}: {target}"
        for path, page in pages.items()
        for target in sorted(page.targets)
        if not _leads(path, target, pages)
    ]


def _leads(page: Path, target: str, pages: dict[Path, _Page]) -> bool:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return parts.scheme in {"https", "http", "mailto", "data"}
    path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    anchor = unquote(parts.fragment)
    if path not in pages:
        return path.is_file()
    return not anchor or anchor in pages[path].anchors


def anchors(site: Path) -> Iterator[str]:
    """Every anchor of every page, as "page.html#anchor"."""
    for path in sorted(site.rglob("*.html")):
        page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
        yield from (f"{path.relative_to(site)}#{anchor}" for anchor in sorted(page.anchors))
