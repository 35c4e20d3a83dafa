"""What the commands print: text that cannot steer the terminal, and rows in columns.

Keys, values, header names and even topic names come from the wire. Nothing of theirs reaches a person's terminal but
printable characters: an escape sequence in a record must not move the cursor, set the title or hide a line.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from tagwire.errors import PartlyRefusedError
from tagwire.escaping import cut, printable
from tagwire.extras import Needs

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Printable to Python's eye, yet able to reorder or hide what stands beside them: in JSON only these and C1 need care.
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
_NOT_ASCII = re.compile("[\x7f-\U0010ffff]")


def readable(data: bytes | None, limit: int | None = None) -> str:
    r"""Bytes from the wire as a person reads them: UTF-8 text, other bytes as `\xff`, null as `<null>`.

    Args:
        limit: how many characters at most; a longer text is cut and ends in an ellipsis. None cuts nothing.
    """
    if data is None:
        return "<null>"
    if limit is not None:
        data = data[: 4 * limit + 4]  # enough bytes for limit characters and one more, whatever they are
    return cut(printable(data.decode("utf-8", "backslashreplace")), limit)


def safe_json(line: str) -> str:
    """JSON text with the characters that could steer a terminal written as JSON's own escapes. Means the same.

    Where standard output is not Unicode these are all that ASCII lacks: JSON's reader takes no other encoding, and has
    not the escapes that Python would write.
    """
    unicode = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    return (_UNSAFE_IN_JSON if unicode else _NOT_ASCII).sub(_json_escape, line)


def _json_escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD7C0 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def utc(milliseconds: int) -> str:
    """A record timestamp (ms since 1970, -1 for none) in UTC, as short as it can be told: `2013-07-04 06:00`."""
    if milliseconds == -1:
        return "no timestamp"
    try:
        at = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    if at.microsecond:
        return f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03}"
    return f"{at:%Y-%m-%d %H:%M:%S}" if at.second else f"{at:%Y-%m-%d %H:%M}"


def print_json(rows: Iterable[Any]) -> None:
    """One JSON document a line."""
    for row in rows:
        print(safe_json(json.dumps(row, ensure_ascii=False)))


def print_rows(titles: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = ()) -> None:
    """Rows under their titles: a table on a terminal, aligned plain text anywhere else.

    Args:
        numbers: the columns, counted from 0, that are aligned to the right.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _print_table(titles, rows, numbers)
        return
    widths = [max(len(row[column]) for row in [titles, *rows]) for column in range(len(titles))]
    for row in [titles, *rows]:
        cells = [
            cell.rjust(width) if column in numbers else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        ]
        print("  ".join(cells).rstrip())


def _print_table(titles: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int]) -> None:
    with Needs("cli"):
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column, title in enumerate(titles):
        table.add_column(Text(title), justify="right" if column in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(highlight=False).print(table)


@contextmanager
def progress(
    what: str, total: float | None = None, *, unit: str = "records", visible: bool = True
) -> Iterator[Callable[[float], None]]:
    """A count of records, or of another `unit`, that grows on stderr while the work runs.

    Nothing at all is shown where stderr is no terminal.

    Args:
        total: how many there will be, None when nobody knows.
        visible: False shows nothing either, for work whose output already moves on the terminal.

    Returns:
        What to call with how many more are done.
    """
    if not (visible and sys.stderr.isatty()):
        yield lambda more: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = [
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        TextColumn(f"{{task.completed:,.0f}} {unit}"),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
    ]
    # Rich would send what is printed meanwhile to the display's own stream, away from a redirected stdout.
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as bar:
        task = bar.add_task(printable(what), total=total, rate="")

        def advance(more: float) -> None:
            bar.advance(task, more)
            speed = bar.tasks[0].speed
            bar.update(task, rate=f"{speed:,.0f}/s" if speed else "")

        yield advance


def print_deleted(kind: str, names: Iterable[str], *, as_json: bool) -> None:
    """What was deleted, a line each. `kind`: what it is, as JSON calls it."""
    if as_json:
        print_json({kind: name, "deleted": True} for name in names)
    else:
        for name in names:
            print(f"deleted {printable(name)}")


@contextmanager
def showing_what_succeeded(show: Callable[[Mapping[Any, Any]], None]) -> Iterator[None]:
    """What a call about several things has done of them is shown before the error says what was refused.

    Args:
        show: takes {which of them: what the call gives of it}; it is not called where all were refused.
    """
    try:
        yield
    except PartlyRefusedError as error:
        if error.succeeded:
            show(error.succeeded)
        raise
