"""The protocol reference as pages of the site: `tagwire.reference` makes the content, Sphinx gets headings from it.

A page below reference/ is a stub whose directive puts the blocks of one page of the reference: sections become
Sphinx's, so that they stand in its navigation and its search, and everything below them is HTML as `tagwire.reference`
renders it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from tagwire import reference
from tagwire.reference.blocks import Block, Bytes, FieldMatrix, Section, Table
from tagwire.reference.html import HtmlRenderer
from tagwire.reference.text import plain
from tagwire.reference.writing import facts_json


@cache
def shelf() -> reference.Shelf:
    return reference.Shelf()


def pages() -> dict[str, str]:
    """{path: Markdown} of the stubs."""
    found = {}
    for page in shelf():
        found[f"reference/{page.path}/index.md".replace("//", "/")] = (
            f"# {page.title}\n\n```{{reference-page}} {page.path or '/'}\n```\n"
        )
    listed = "\n".join(f"/{page}" for entries in _groups().values() for _, page in entries)
    found["reference/index.md"] += f"\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
    return found


@cache
def _groups() -> dict[str, list[tuple[str, str]]]:
    """{group: title and page of each} for the sidebar: the theme's own takes a quarter of a second for each page."""
    found: dict[str, list[tuple[str, str]]] = {}
    for page in shelf():
        if page.path:
            found.setdefault(page.group, []).append((page.title, f"reference/{page.path}/index"))
    return found


def _sidebar(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    if page.startswith("reference/"):
        context["reference_groups"] = _groups()


def files() -> dict[str, bytes]:
    """{path below the site: content} of what stands beside the pages."""
    facts = {f"reference/{page.path}/index.json".replace("//", "/"): facts_json(page).encode() for page in shelf()}
    return facts | {f"reference/{name}": content for name, content in reference.files().items()}


class ReferencePage(SphinxDirective):
    """`reference-page PATH`: the content of a page of the reference, under the heading that stands before."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()  # what it shows is not in its page
        page = shelf().page(self.arguments[0].strip("/"))
        renderer = HtmlRenderer("index.html")
        renderer.path = page.path
        told = [nodes.meta(name="description", content=plain(page.summary))] if page.summary else []
        names = ", ".join(dict.fromkeys(_names(page.blocks)))
        if names:
            told.append(nodes.meta(name="keywords", content=names))
        summary = [_html(renderer.paragraph(page.summary))] if page.summary else []
        return [*told, *summary, *_nodes(page.blocks, renderer, 1)]


def _nodes(blocks: Sequence[Block], renderer: HtmlRenderer, level: int) -> Iterator[nodes.Node]:
    for block in blocks:
        if isinstance(block, Section) and level < 3:
            section = nodes.section("", nodes.title(block.title, block.title), ids=[block.anchor], slug=block.anchor)
            section.extend(_nodes(block.blocks, renderer, level + 1))
            yield section
        else:
            renderer.level = level
            yield _html(renderer.block(block), searched=not isinstance(block, Bytes | FieldMatrix | Table | Section))


def _html(text: str, *, searched: bool = True) -> nodes.raw:
    """A piece of HTML. What bytes say in every version would drown what else is searched for."""
    node = nodes.raw("", f'<div class="tagwire-reference">{text}</div>', format="html")
    if not searched:
        node["classes"].append("no-search")
    return node


def _names(blocks: Sequence[Block]) -> Iterator[str]:
    """The fields that a page is found by."""
    for block in blocks:
        if isinstance(block, FieldMatrix):
            yield from (row.name for row in block.fields)
        elif isinstance(block, Section):
            yield from _names(block.blocks)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("reference-page", ReferencePage)
    app.connect("html-page-context", _sidebar)
    app.add_css_file("../reference/reference.css")
    app.add_js_file("../reference/reference.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
