"""The bytes that README, guides and pages of the site show in hexadecimal, found in their text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .doc_blocks import PAGES as GUIDES
from .doc_blocks import ROOT

PAGES: Final = (*GUIDES, *sorted((ROOT / "website" / "pages").glob("*.md")))

_HEX: Final = r"(?:[0-9a-f]{2})+(?: +(?:[0-9a-f]{2})+)*"
_PYTHON: Final = re.compile(r"^```python\n.*?^```$", re.MULTILINE | re.DOTALL)
_FENCED: Final = re.compile(r"^```[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_BLOCK: Final = re.compile(rf"^ {{4,}}(?P<told>(?=.*[^0-9a-f ].*  )\S.*?  +)?(?P<hex>{_HEX})$")
_OPTION: Final = re.compile(r"--hex ([0-9a-f]+)\b")
_INLINE: Final = re.compile(rf"`({_HEX})`")


def shown(page: Path) -> list[str]:
    """Each run of bytes that a page shows, without its spaces: a block, what an indented line says after two spaces,
    the argument of `--hex`, and hexadecimal within a sentence. Python is not searched: it is run."""
    text = _PYTHON.sub("", page.read_text(encoding="utf-8"))
    text = _FENCED.sub(lambda found: re.sub("^", "    ", found[1], flags=re.MULTILINE), text)
    return ["".join(each.split()) for each in _shown(text)]


def _shown(text: str) -> Iterator[str]:
    block = ""
    for line in text.split("\n"):
        found = _BLOCK.match(line)
        if block and (found is None or found["told"]):
            yield block
            block = ""
        if found is None:
            yield from (_OPTION if line.startswith("    ") else _INLINE).findall(line)
        elif found["told"]:
            yield found["hex"]
        else:
            block += found["hex"]
    if block:
        yield block
