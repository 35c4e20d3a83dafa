"""What is found wrong with a log or with a file beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong.

    Attributes:
        path: the file it is wrong in.
        text: what is wrong.
        position: at which byte of the file; None where there is no such byte.
        offset: at which offset of the partition; None where that is not known.
    """

    path: Path
    text: str
    position: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        where = str(self.path)
        if self.position is not None:
            where += f" at byte {self.position}"
        if self.offset is not None:
            where += f", offset {self.offset}"
        return f"{where}: {self.text}"
