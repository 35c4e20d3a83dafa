"""Pages as text for a terminal: as wide as it is, with nothing in it that could steer it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from tagwire.escaping import printable
from tagwire.reference.blocks import (
    Block,
    Bytes,
    FieldMatrix,
    Items,
    Page,
    Paragraph,
    Section,
    Table,
    plain,
)
from tagwire.reference.html import field_notes

_NARROWEST = 40
_LEAST_ROOM = 24
_MOST_COLUMNS = 8
_HEX_SHOWN = 8


def lines(page: Page, width: int, *, with_bytes: bool = True) -> Iterator[str]:
    """The page, line by line.

    Args:
        width: columns; less than 40 count as 40.
        with_bytes: whether encoded examples are shown; of a page with many versions they are most of it.
    """
    width = max(width, _NARROWEST)
    yield printable(page.title)
    yield "=" * min(len(page.title), width)
    if page.summary:
        yield from _wrapped(plain(page.summary), width)
    for block in page.blocks:
        yield from _block(block if with_bytes else _without_bytes(block), width, 1)


def _without_bytes(block: Block) -> Block:
    if not isinstance(block, Section):
        return block
    kept = [_without_bytes(inner) for inner in block.blocks if not isinstance(inner, Bytes)]
    return Section(block.title, block.anchor, kept)


def _block(block: Block, width: int, level: int) -> Iterator[str]:
    if isinstance(block, Section):
        yield ""
        yield printable(block.title)
        yield ("-" if level == 1 else "~") * min(len(block.title), width)
        for inner in block.blocks:
            yield from _block(inner, width, level + 1)
        return
    if isinstance(block, Paragraph):
        yield from _wrapped(plain(block.text), width)
    elif isinstance(block, Items):
        for item in block.items:
            yield from _wrapped(plain(item), width, "- ", "  ")
    elif isinstance(block, Table):
        yield from table(block.titles, [[plain(cell) for cell in row.cells] for row in block.rows], width)
    elif isinstance(block, FieldMatrix):
        yield from _fields(block, width)
    elif isinstance(block, Bytes):
        yield from _bytes(block, width)


def _fields(block: FieldMatrix, width: int) -> Iterator[str]:
    rows = [
        [f"{'  ' * row.depth}{row.name}", row.type, str(row.versions), "; ".join(field_notes(row)), row.about]
        for row in block.fields
    ]
    yield from table(("field", "type", "versions", "notes", "about"), rows, width)


def _bytes(block: Bytes, width: int) -> Iterator[str]:
    yield ""
    yield from _wrapped(block.caption, width)
    rows = []
    for span in block.spans:
        raw = block.data[span.start : span.end]
        hexed = raw.hex(" ") if len(raw) <= _HEX_SHOWN else f"{raw[:_HEX_SHOWN].hex(' ')} …"
        rows.append([str(span.start), hexed, span.path, span.type, span.value, span.rule])
    titles: tuple[str, ...] = ("byte", "bytes", "field", "type", "value", "rule")
    if sum(max(len(row[at]) for row in [titles, *rows]) + 2 for at in range(5)) + _LEAST_ROOM > width:
        titles = ("byte", "bytes", "field", "value", "type: rule")
        rows = [[start, raw, _own(path), value, f"{kind}: {rule}"] for start, raw, path, kind, value, rule in rows]
    yield from table(titles, rows, width)
    # Whole, in one line, so that it can be copied from here into `tagwire decode --hex`.
    yield f"hex: {block.data.hex()}"


def _own(path: str) -> str:
    """A field by its own name, behind a space for each field that it stands in: those are above it."""
    outer, _, own = path.rpartition(".")
    return " " * len(outer.split(".")) + own if outer else own


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Rows in columns; the last column is wrapped under itself, and where not even a word of it has room, it stands
    beneath its row, with those before it that have none either. A table of so many columns that the terminal is too
    narrow for is told row by row, each cell with its title."""
    cells = [[printable(cell) for cell in row] for row in rows]
    head = [list(titles)] if any(titles) else []
    used = [at for at in range(len(titles)) if any(row[at] for row in cells)] or [0]
    shown = [[row[at] for at in used] for row in [*head, *cells]]
    widths = [max((len(row[at]) for row in shown), default=0) for at in range(len(used))]
    before = sum(widths[:-1]) + 2 * (len(widths) - 1)
    room = width - before
    if before > width and len(used) > _MOST_COLUMNS:
        for row in shown[1:]:
            told = ", ".join(f"{title} {cell}" for title, cell in zip(shown[0][1:], row[1:]) if cell)
            yield from _wrapped(f"{row[0]}: {told}", width, "", "    ")
        return
    if widths[-1] <= room or room >= _LEAST_ROOM:
        for row in shown:
            front = "  ".join(cell.ljust(wide) for cell, wide in zip(row[:-1], widths))
            first, *more = textwrap.wrap(row[-1], max(room, 1)) or [""]
            yield f"{front}  {first}".rstrip() if len(row) > 1 else first
            yield from (" " * before + line for line in more)
        return
    beside = 1
    while beside < len(widths) - 1 and sum(widths[: beside + 1]) + 2 * beside <= width:
        beside += 1
    for row in shown:
        front = "  ".join(cell.ljust(wide) for cell, wide in zip(row[:beside], widths))
        yield from _wrapped(front.rstrip(), width, "", "  ") if len(front.rstrip()) > width else [front.rstrip()]
        under = [cell for cell in row[beside:] if cell]
        together = ["  ".join(under)] if sum(map(len, under)) + 2 * len(under) + 4 <= width else under
        for cell in together:
            yield from _wrapped(cell, width, "    ", "    ")


def _wrapped(text: str, width: int, first: str = "", rest: str = "") -> Iterator[str]:
    yield from textwrap.wrap(
        printable(text), width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )
