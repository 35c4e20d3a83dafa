"""What a partition's directory holds once the replacements are finished that a broker had begun when it ended.

Segments that replace others are made as `.cleaned`, become `.swap` when all of them are whole, and get their names when
what they replace is gone. Until then what is in a `.swap` may stand nowhere else, so that a reader takes what a broker
that starts would take. Source: Kafka's LogLoader; docs/log-files.md#recovery.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tagwire.records.files.names import kind_of, offset_of

CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"

_OF_SEGMENTS: Final = ("log", "index", "timeindex", "txnindex")


def final_name(name: str) -> str:
    """The name that a file has when it has replaced what it is to replace."""
    return name.removesuffix(SWAP)


def finished(names: Sequence[str], end_of: Callable[[str], int]) -> dict[str, str]:
    """The files of a directory by the names that they will have, each with the name that it has now. What is replaced
    is not among them.

    Args:
        end_of: the offset after the last one of the log that has a name now; where it begins if it is empty.
    """
    unready = [base for name in names if (base := _base(name, CLEANED)) is not None]
    ready = [name for name in names if (base := _base(name, SWAP)) is not None and all(base < each for each in unready)]
    logs = [name for name in ready if kind_of(final_name(name)) == "log"]
    first = min((_base(name, SWAP) or 0 for name in logs), default=0)
    end = max(map(end_of, logs), default=0)
    found = {name: name for name in names if not (kind_of(name) in _OF_SEGMENTS and first <= _of(name) < end)}
    for name in ready:
        del found[name]
        found[final_name(name)] = name
    return dict(sorted(found.items()))


def _base(name: str, suffix: str) -> int | None:
    return offset_of(name.removesuffix(suffix)) if name.endswith(suffix) else None


def _of(name: str) -> int:
    return offset_of(name) or 0
