"""Pages as HTML: a fragment to stand inside any page, with ids and classes that its style sheet and script know.

The fragment is whole without either: tables stay tables, and beside each run of bytes stands a table of what they mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import singledispatchmethod

from tagwire.reference.blocks import (
    Block,
    Bytes,
    Code,
    Compare,
    Download,
    FieldMatrix,
    FieldRow,
    Inline,
    Items,
    Link,
    Mark,
    Page,
    Paragraph,
    Section,
    Table,
    Text,
    plain,
)
from tagwire.reference.markup import Markup, breakable, element, joined
from tagwire.spec.versions import Versions

_MATRIX = 8
"""Columns from which on the first one stays in sight."""
_SHORT, _LONG = 16, 40
"""Characters up to which a cell is one line, and from which on it needs room."""


class HtmlRenderer:
    """Renders pages of one reference.

    Args:
        index: what a link to a page ends with: "" where a server finds the page of a directory, `index.html` for files
            that a browser opens by themselves.
    """

    def __init__(self, index: str = "") -> None:
        self.index = index
        self.path = ""
        self.level = 1

    def fragment(self, page: Page) -> str:
        """The page's content, from its `<h1>` on."""
        self.path, self.level = page.path, 1
        parts = [element("h1", page.title), self.paragraph(page.summary) if page.summary else Markup()]
        parts += [self.block(block) for block in page.blocks]
        return element("div", *parts, class_="tagwire-reference")

    def to(self, page: str, anchor: str = "") -> str:
        """The address of a page of the reference, as seen from the one that is rendered."""
        if page == self.path:
            return f"#{anchor}" if anchor else "./" + self.index
        where = f"{page}/" if page else ""
        return (f"{self.up()}{where}{self.index}" or "./") + (f"#{anchor}" if anchor else "")

    def up(self) -> str:
        """The way from the page that is rendered to the first one."""
        return "../" * (len(self.path.split("/")) if self.path else 0)

    # -- text

    def inline(self, text: Text) -> Markup:
        if isinstance(text, str):
            return joined([text])
        return joined(self.piece(one) for one in text)

    def piece(self, one: Inline) -> Markup:
        if isinstance(one, Code):
            return element("code", one.text)
        if isinstance(one, Link):
            return element("a", one.text, href=self.to(one.page, one.anchor))
        if isinstance(one, Download):
            return element("a", one.text, href=f"{self.up()}{one.file}")
        if isinstance(one, Mark):
            return element("strong", one.text, class_=f"mark {one.kind}")
        return joined([one])

    def paragraph(self, text: Text) -> Markup:
        return element("p", self.inline(text))

    # -- blocks

    @singledispatchmethod
    def block(self, block: Block) -> Markup:
        raise TypeError(f"no block of a page: {block!r}")

    @block.register
    def _(self, block: Paragraph) -> Markup:
        return self.paragraph(block.text)

    @block.register
    def _(self, block: Items) -> Markup:
        return element("ul", *(element("li", self.inline(item)) for item in block.items)) if block.items else Markup()

    @block.register
    def _(self, block: Section) -> Markup:
        self.level += 1
        name = f"h{min(self.level, 6)}"
        parts = [element(name, block.title, id=block.anchor), *map(self.block, block.blocks)]
        self.level -= 1
        return element("section", *parts, class_=f"level-{self.level}")

    @block.register
    def _(self, block: Table) -> Markup:
        head = [element("th", title, scope="col") for title in block.titles] if any(block.titles) else []
        rows = []
        for row in block.rows:
            cells = [self.cell(cell, is_first=not at) for at, cell in enumerate(row.cells)]
            rows.append(element("tr", *cells, id=row.anchor or None, class_=row.kind or None))
        parts = [element("caption", block.caption), element("tbody", *rows)]
        if head:
            parts.insert(1, element("thead", element("tr", *head)))
        kind = "matrix" if len(block.titles) > _MATRIX else None
        return _scrolled(block.caption, element("table", *parts, class_=kind, data_filter=block.can_filter))

    def cell(self, text: Text, *, is_first: bool) -> Markup:
        size = len(plain(text))
        width = "short" if size <= _SHORT else "long" if size >= _LONG else None
        if is_first:
            return element("th", breakable(self.inline(text)), scope="row")
        return element("td", self.inline(text), class_=width)

    @block.register
    def _(self, block: FieldMatrix) -> Markup:
        versions = list(block.versions)
        head = [element("th", title, scope="col") for title in ("field", "type", *map(str, versions), "notes")]
        rows = [_field(row, versions, block.anchor) for row in block.fields]
        table = element(
            "table",
            element("caption", block.caption),
            element("thead", element("tr", *head)),
            element("tbody", *rows),
            class_="fields",
            data_filter=True,
        )
        legend = element("p", "● present, ∅ may be null, T1 in tag 1, – absent", class_="legend")
        return joined([legend, _scrolled(block.caption, table)])

    @block.register
    def _(self, block: Compare) -> Markup:
        return element("div", class_="compare", hidden=True, data_facts="index.json")

    @block.register
    def _(self, block: Bytes) -> Markup:
        hex_runs = []
        rows = []
        for at, span in enumerate(block.spans):
            raw = block.data[span.start : span.end]
            hex_runs.append(element("span", raw.hex(" "), data_at=at))
            shown = [span.path, str(span.start), span.type, span.value, span.rule]
            rows.append(
                element(
                    "tr",
                    *(element("td" if n else "th", cell, scope=None if n else "row") for n, cell in enumerate(shown)),
                )
            )
        titles = ("field", "offset", "type", "value", "rule")
        table = element(
            "table",
            element("caption", f"What each byte of {block.caption} means"),
            element("thead", element("tr", *(element("th", title, scope="col") for title in titles))),
            element("tbody", *rows),
        )
        return element(
            "figure",
            element("figcaption", block.caption),
            element("div", joined(hex_runs, " "), class_="hex", data_label=block.caption),
            element("p", class_="meaning", hidden=True),
            element("details", element("summary", "Byte by byte"), _scrolled(f"Bytes of {block.caption}", table)),
            class_="bytes",
            id=block.anchor,
        )


def _scrolled(label: str, table: Markup) -> Markup:
    """A table that may be wider than the page: reached and moved by the keyboard, too."""
    return element("div", table, class_="scrolled", role="region", tabindex=0, aria_label=label)


def _field(row: FieldRow, versions: Sequence[int], anchor: str) -> Markup:
    name = element("code", row.name, title=row.path)
    cells = [
        element(
            "th",
            name,
            *([element("small", row.about)] if row.about else []),
            scope="row",
            class_=f"depth-{min(row.depth, 6)}",
        ),
        element("td", element("code", row.type)),
        *(_cell(row.at(version)) for version in versions),
        element("td", "; ".join(field_notes(row))),
    ]
    return element("tr", *cells, id=f"{anchor}{row.path}")


def _cell(said: str) -> Markup:
    """What a version has of a field, in a sign or two; what they mean stands with the table."""
    if not said:
        return element("td", "–", class_="none")
    shown = said.replace("tag ", "T").replace("null", "∅").replace("yes", "●")
    return element("td", f"● {shown}" if shown == "∅" else shown, class_="there", title=said)


def field_notes(row: FieldRow) -> Iterator[str]:
    """What holds for a field besides where it is: tag, default, ignorable, map key, entity type."""
    if row.nullable and row.nullable != row.versions:
        yield f"nullable {row.nullable}"
    elif row.nullable:
        yield "nullable"
    if row.tag is not None:
        yield f"optional, tag {row.tag}" if row.optional else f"tag {row.tag} in {row.tagged}"
    if row.default is not None:
        yield f"default {row.default}"
    if row.ignorable:
        yield "ignorable"
    if row.map_key:
        yield "map key"
    if row.entity_type:
        yield row.entity_type
    if row.compact is not None:
        yield f"compact in {_none_told(row.compact)}"


def _none_told(versions: Versions) -> str:
    return str(versions) if versions else "no version"
