"""Standard output whose reader may go away before all is said."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter, FileIO, TextIOWrapper, UnsupportedOperation
from typing import Any


class _LetGo(FileIO):
    """Drops what nobody reads any more."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            return len(memoryview(data).cast("B"))


@contextmanager
def answering() -> Iterator[None]:
    """A reader of standard output that has seen enough ends nothing: what is told ends in an exit code that answers.

    One that ended the command early would leave it without its answer, and 0 says that all is well.
    """
    before = sys.stdout
    try:
        number = before.fileno()
    except (UnsupportedOperation, AttributeError):  # no file: a test's, or a notebook's
        yield
        return
    before.flush()
    raw = BufferedWriter(_LetGo(number, "wb", closefd=False))
    sys.stdout = TextIOWrapper(
        raw, encoding=before.encoding, errors=before.errors, line_buffering=getattr(before, "line_buffering", False)
    )
    try:
        yield
    finally:
        try:
            sys.stdout.flush()
        finally:
            sys.stdout = before
