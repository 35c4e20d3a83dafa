r"""Records written as a format says: what `consume --format` takes, in the letters that people know from kcat.

    %t topic   %p partition   %o offset   %T timestamp, ms since 1970   %h headers as k=v,k=v
    %k key     %v or %s value  %K key's length   %V or %S value's length   %% a percent sign

`\n`, `\r`, `\t`, `\0`, `\\` and `\xHH` stand for those bytes. Lengths are in bytes, -1 for null. What stands between is
written as it is, and keys and values are written byte for byte, unless the output is a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container

import typer

from tagwire.cli.record_lines import ReadRecord
from tagwire.cli.terminal import readable

_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}
_PART = re.compile(r"%(.?)|\\(x[0-9a-fA-F]{2}|.?)|[^%\\]+", re.DOTALL)

Text = Callable[[bytes | None], bytes]
Part = Callable[[ReadRecord, Text], bytes]


def formatted(text: str, null: str = "", *, for_people: bool = False) -> Callable[[ReadRecord], bytes]:
    """How a record is written by the format `text`.

    Args:
        null: what stands for a null key, value or header value.
        for_people: whether what comes from records must not steer a terminal: then it is written as `readable` does.

    Raises:
        typer.BadParameter: it holds a letter that means nothing.
    """
    parts = [_constant(part) if isinstance(part, bytes) else _FIELDS[part] for part in split_format(text, _FIELDS)]
    instead = null.encode(errors="surrogateescape")

    def shown(data: bytes | None) -> bytes:
        if data is None:
            return instead
        return readable(data).encode() if for_people else data

    return lambda record: b"".join([part(record, shown) for part in parts])


def split_format(text: str, letters: Container[str]) -> list[bytes | str]:
    """The parts of a format: letters of fields as str, what stands between as bytes.

    Raises:
        typer.BadParameter: it holds a letter that is not one of `letters`, or an escape that means nothing.
    """
    return [_part(found, letters) for found in _PART.finditer(text)]


def _part(found: re.Match[str], letters: Container[str]) -> bytes | str:
    text = found[0]
    if text == "%%":
        return b"%"
    if text.startswith("%"):
        if text == "%" or text[1:] not in letters:
            known = " ".join("%" + letter for letter in [*_FIELDS, "%"] if letter == "%" or letter in letters)
            raise typer.BadParameter(f"{text!r} means nothing; there are {known}", param_hint="'--format'")
        return text[1:]
    if not text.startswith("\\"):
        return text.encode(errors="surrogateescape")
    if text[1:2] == "x" and len(text) == 4:
        return bytes([int(text[2:], 16)])
    if text[1:] in _ESCAPES:
        return _ESCAPES[text[1:]]
    raise typer.BadParameter(f"{text!r} means nothing; there are \\n \\r \\t \\0 \\\\ \\xHH", param_hint="'--format'")


def _constant(text: bytes) -> Part:
    return lambda record, shown: text


def _size(data: bytes | None) -> bytes:
    return b"%d" % (-1 if data is None else len(data))


def _headers(record: ReadRecord, shown: Text) -> bytes:
    return b",".join(shown(str(key).encode()) + b"=" + shown(value) for key, value in record.headers)


_FIELDS: dict[str, Part] = {
    "t": lambda record, shown: shown((record.topic or "").encode()),
    "p": lambda record, shown: b"%d" % (-1 if record.partition is None else record.partition),
    "o": lambda record, shown: b"%d" % record.offset,
    "T": lambda record, shown: b"%d" % record.timestamp,
    "k": lambda record, shown: shown(record.key),
    "v": lambda record, shown: shown(record.value),
    "s": lambda record, shown: shown(record.value),
    "h": _headers,
    "K": lambda record, shown: _size(record.key),
    "V": lambda record, shown: _size(record.value),
    "S": lambda record, shown: _size(record.value),
}
