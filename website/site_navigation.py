"""What the site's navigation lists: a guide that no page of it names stands at the end of the guides."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_TREE: Final = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def listed(text: str) -> list[str]:
    """The pages that a page's table of contents names."""
    lines = [line for found in _TREE.findall(text) for line in found.split("\n")]
    return [line for line in lines if line and not line.startswith(":")]


def with_unlisted(pages: dict[str, bytes], guides: list[Path]) -> dict[str, bytes]:
    """The pages, `guides.md` among them, with every guide in one of the tables of contents."""
    named = {name for path, text in pages.items() if path.endswith(".md") for name in listed(text.decode("utf-8"))}
    missing = sorted(path.stem for path in guides if path.stem not in named)
    text = pages["guides.md"].decode("utf-8")
    before, _, after = text.rpartition("```")
    return {**pages, "guides.md": "".join([before, *(f"{name}\n" for name in missing), "```", after]).encode()}
