"""The format of the broker's log: text for people, JSON lines for programs."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Final, Literal

from tagwire.escaping import printable

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]

TEXT = "%(asctime)s %(levelname)s %(message)s"


class TextLines(logging.Formatter):
    """A line for each record, and tracebacks below: a client's name for itself ends no line and steers no terminal."""

    def __init__(self) -> None:
        super().__init__(TEXT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        record.message = printable(record.message)
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        kept, record.exc_text = record.exc_text, None  # as another formatter wrote the traceback
        try:
            return super().format(record)
        finally:
            record.exc_text = kept

    def formatException(self, ei: _ExcInfo) -> str:  # noqa: N802
        return "\n".join(map(_lines, traceback.format_exception(*ei)))


_ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
_OURS: Final = ("Traceback ", "  File ", "\n")
"""What parts of a traceback begin with that have line breaks of their own; in an error's text they are whoever's."""


def _lines(part: str) -> str:
    """A part of a traceback, without the line break at its end."""
    told = part.removesuffix("\n")
    return "\n".join(map(printable, told.split("\n"))) if part.startswith(_OURS) else printable(told)


class JsonLines(logging.Formatter):
    """One JSON object for each record: time (UTC), level, logger, message, error where there is one, and what else it
    carries in `fields`."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


@contextmanager
def logging_to_stderr(form: LogFormat, level: LogLevel) -> Iterator[None]:
    """Sends what this program logs to stderr, inside the `with` block."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    ours = logging.getLogger("tagwire")
    before = ours.level
    logging.getLogger().addHandler(handler)
    ours.setLevel(level.upper())
    try:
        yield
    finally:
        ours.setLevel(before)
        logging.getLogger().removeHandler(handler)
