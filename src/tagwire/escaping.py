"""Text from the wire in one line of an error, a log or a terminal.

Whoever listens on a port may put anything into a host name, an error's text or a topic's name. Nothing of that reaches
a person but printable characters: an escape sequence must not move the cursor, set the title or hide a line, and a line
break must not pass for another line of a log.
"""

from __future__ import annotations

from typing import Final

ELLIPSIS: Final = "…"

MAX_TOLD: Final = 1024
"""Characters that an error gives to a text of the other side's: an explanation, not a document."""

_NAMED: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def printable(text: str) -> str:
    r"""`text` with every control, format and separator character but the space written as an escape, such as `\x1b`."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _NAMED.get(char) or _escape(char) for char in text)


def told(text: str, limit: int = MAX_TOLD) -> str:
    """A text of the other side's as part of an error: printable, and at most `limit` characters long."""
    return cut(printable(text[: limit + 1]), limit)


def html_text(text: str) -> str:
    """`text` as HTML shows it: printable, so that none of it reorders what stands beside it, and no markup."""
    from html import escape  # its table of entities is large, and only reports need it

    return escape(printable(text))


def cut(text: str, limit: int | None) -> str:
    """`text`, or its first `limit - 1` characters and an ellipsis. None cuts nothing."""
    if limit is None or len(text) <= limit:
        return text
    return text[: max(limit - 1, 0)] + ELLIPSIS


def _escape(char: str) -> str:
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"  # from 0x80 on this form is left to bytes that are not UTF-8
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
