"""The Python blocks of README and docs, and what a reader of them has: a broker, files, functions of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))

Kind = Literal["program", "pytest", "spark"]

_BLOCK: Final = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ON_SPARK: Final = re.compile(r"\bspark\.|writeStream|\.write\.format|tagwire\.spark")
_BROKERS: Final = re.compile(r"\b(?:host|kafka-\d):90\d\d(?:,(?:host|kafka-\d):90\d\d)*")


@dataclass(frozen=True)
class Block:
    """A block as it stands on its page.

    Attributes:
        line: of the page, where its code begins.
        kind: what runs it: Python, pytest, or Python where `spark` is a session.
    """

    page: Path
    line: int
    kind: Kind
    source: str

    def placed(self, bootstrap: str, places: Mapping[str, str]) -> str:
        """Its source on the lines that it has on its page, where the brokers and directories that it names are."""
        source = _BROKERS.sub(bootstrap, self.source)
        for named, place in places.items():
            source = source.replace(named, place)
        return "\n" * (self.line - 1) + source


def blocks(page: Path) -> list[Block]:
    """The Python blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, found.start(1)) + 1, _kind(found[1]), found[1])
        for found in _BLOCK.finditer(text)
    ]


def _kind(source: str) -> Kind:
    if _ON_SPARK.search(source):
        return "spark"
    return "pytest" if re.search(r"^def test_", source, re.MULTILINE) else "program"


def pages_with(kind: Kind) -> list[Path]:
    """The pages that have blocks of a kind."""
    return [page for page in PAGES if any(block.kind == kind for block in blocks(page))]
