r"""What `tagwire produce` reads: bytes that end in a delimiter, each a record in one of three forms.

A plain line is a value, or a key and a value with something between them. A line of JSON is what `consume --json`
writes. A formatted line has the fields that a format names, in its order, with what the format has between them:

    %k key   %v or %s value   %h headers as k=v,k=v   %T timestamp, ms since 1970   %p partition   %t, %o anything

Each field but the last ends where what follows it in the format first comes, the last one at the end of the line. What
the format ends with may be missing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from io import FileIO
from itertools import pairwise
from selectors import EVENT_READ, PollSelector
from typing import Final

import typer

from tagwire.cli.record_formats import split_format
from tagwire.cli.record_lines import Headers, Line
from tagwire.errors import DecodeError

Read = Callable[[bytes, int], Line]
"""From a record's bytes and its number, from 1, to what they say. Raises DecodeError naming the line."""

_CHUNK: Final = 1 << 16
_PAUSE: Final = 0.1  # seconds without input after which somebody is thinking, not a program writing
_LONGEST_LINE: Final = 64 * 1024 * 1024
_FIELDS: Final = "kvshTpto"


def plain(key: str | None, separator: str | None, headers: Headers, null: str | None) -> Read:
    """A line is a value, or a key and a value with `separator` between them. `null`: what stands for null."""
    fixed_key = None if key is None else os.fsencode(key)
    parting = os.fsencode(separator or "")
    nulls = _nulls(null)

    def read(text: bytes, number: int) -> Line:
        if not parting:
            return Line(fixed_key, nulls(text), headers, None, None)
        own_key, found, value = text.partition(parting)
        if not found:
            raise DecodeError(f"no {separator!r} in it", path=f"line {number}")
        return Line(nulls(own_key), nulls(value), headers, None, None)

    return read


def formatted(text: str, headers: Headers, null: str | None, delimiter: bytes) -> Read:
    """A line as the format `text` says; `headers` come before its own.

    Raises:
        typer.BadParameter: the format means nothing, or its fields cannot be told apart.
    """
    parts = _joined(split_format(text, _FIELDS))
    if parts and isinstance(parts[-1], bytes) and parts[-1].endswith(delimiter):
        parts[-1] = parts[-1].removesuffix(delimiter)  # the line ends there anyway
    fields = [part for part in parts if isinstance(part, str)]
    if not fields:
        raise _bad("names no field, such as %v")
    kept = ["v" if part == "s" else part for part in fields if part not in "ot"]
    if len(set(kept)) < len(kept):
        raise _bad("names a field twice")
    for part, following in pairwise(parts):
        if isinstance(part, str) and isinstance(following, str):
            raise _bad(f"has nothing between %{part} and %{following}")
    nulls = _nulls(null)
    after = [part if isinstance(part, bytes) else b"" for part in [*parts[1:], b""]]

    def read(line: bytes, number: int) -> Line:
        found: dict[str, bytes] = {}
        at = 0
        for index, part in enumerate(parts):
            if isinstance(part, bytes):
                if line.startswith(part, at):
                    at += len(part)
                elif index < len(parts) - 1 or at < len(line):
                    raise DecodeError(f"no {part!r} where the format has it", path=f"line {number}")
                continue
            following = after[index]
            if index + 2 >= len(parts):  # all that is left is its own, also where that has what the format ends with
                end = max(len(line) - len(following), at) if line.endswith(following) else len(line)
            else:
                end = line.find(following, at)
            if end < 0:
                raise DecodeError(f"no {following!r} after %{part}", path=f"line {number}")
            found[part], at = line[at:end], end
        value = found.get("v", found.get("s"))
        return Line(
            nulls(found["k"]) if "k" in found else None,
            None if value is None else nulls(value),
            headers + _headers(found.get("h", b""), nulls, number),
            _whole(found.get("T"), "timestamp", -1, 2**63 - 1, number),
            _whole(found.get("p"), "partition", 0, 2**31 - 1, number),
        )

    return read


def records_of(source: FileIO, delimiter: bytes, before_waiting: Callable[[], None]) -> Iterator[bytes]:
    """The records of `source` without what ends them, as they come.

    Args:
        before_waiting: called when all that was there is read and nothing more comes for a while, so that what became
            of what a person typed is told before the next line is read.

    Raises:
        DecodeError: one is longer than any record may be.
    """
    rest, number = b"", 0
    pieces: list[bytes] = []
    size = 0
    waiting = PollSelector()  # which has no descriptor of its own, and takes regular files
    waiting.register(source, EVENT_READ)
    while True:
        if not waiting.select(_PAUSE):
            before_waiting()
        chunk = source.read(_CHUNK)
        if chunk is None:  # whoever shares standard input may have set it not to block: that is no end
            continue
        if not chunk:
            break
        # A delimiter of several bytes may be cut by the end of a chunk.
        *whole, rest = (rest + chunk).split(delimiter)
        if whole:
            yield b"".join([*pieces, whole[0]])
            yield from whole[1:]
            pieces, size, number = [], 0, number + len(whole)
        kept = max(len(rest) - len(delimiter) + 1, 0)
        pieces.append(rest[:kept])
        rest = rest[kept:]
        size += kept
        if size > _LONGEST_LINE:
            raise DecodeError(f"longer than {_LONGEST_LINE} bytes", path=f"line {number + 1}")
    if size or rest:
        yield b"".join([*pieces, rest])


def delimiter_of(text: str) -> bytes:
    """The bytes of --delimiter, with the escapes that formats have. Raises typer.BadParameter."""
    parts = split_format(text.replace("%", "%%"), "")
    found = b"".join(part for part in parts if isinstance(part, bytes))
    if not found:
        raise typer.BadParameter("needs at least one character", param_hint="'--delimiter'")
    return found


def _joined(parts: list[bytes | str]) -> list[bytes | str]:
    """What stands between two fields in one piece: an escape is a part of its own."""
    found: list[bytes | str] = []
    for part in parts:
        last = found[-1] if found else ""
        if isinstance(part, bytes) and isinstance(last, bytes):
            found[-1] = last + part
        else:
            found.append(part)
    return found


def _nulls(null: str | None) -> Callable[[bytes], bytes | None]:
    if null is None:
        return lambda text: text
    stands_for_null = os.fsencode(null)
    return lambda text: None if text == stands_for_null else text


def _headers(text: bytes, nulls: Callable[[bytes], bytes | None], number: int) -> Headers:
    found: Headers = []
    for pair in text.split(b",") if text else []:
        key, equals, value = pair.partition(b"=")
        if not equals:
            raise DecodeError(f"header {pair!r} is not KEY=VALUE", path=f"line {number}")
        try:
            found.append((key.decode(), nulls(value)))
        except UnicodeDecodeError:
            raise DecodeError(f"the header key {key!r} is not UTF-8", path=f"line {number}") from None
    return found


def _whole(text: bytes | None, what: str, lowest: int, highest: int, number: int) -> int | None:
    if not text:
        return None
    digits = text.removeprefix(b"-")
    if not digits.isdigit() or len(digits) > 19 or not lowest <= int(text) <= highest:
        raise DecodeError(f"{what} {text!r} is not a number from {lowest} to {highest}", path=f"line {number}")
    return int(text)


def _bad(problem: str) -> typer.BadParameter:
    return typer.BadParameter(problem, param_hint="'--format'")
