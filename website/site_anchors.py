"""The anchors that others may link to: kept in anchors.txt, and never lost.

    python website/site_anchors.py      # adds those that are new

A line is `page.html#anchor`. Where a heading has another name by now, `page.html#anchor = new-anchor` lets the old one
lead there too: the build puts both on the heading. Headings of guides and of the pages of this directory are listed;
those of generated pages are named by what they are about, which has the name that Kafka or the code gave it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
KEPT: Final = HERE / "anchors.txt"
FOLDERS: Final = (HERE.parent / "docs", HERE / "pages")


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub and MyST make it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w -]", "", text).strip().lower().replace(" ", "-")


def there() -> set[str]:
    """The anchors that headings have now."""
    found = set()
    for path in (path for folder in FOLDERS for path in sorted(folder.glob("*.md"))):
        text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        found |= {f"{path.stem}.html#{slug(heading)}" for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}
    return found


def kept() -> dict[str, str]:
    """{anchor that is kept: the anchor that it has by now}."""
    lines = KEPT.read_text(encoding="utf-8").split("\n") if KEPT.exists() else []
    found = {}
    for line in lines:
        if line and not line.startswith("#"):
            old, _, new = line.partition(" = ")
            found[old] = f"{old.partition('#')[0]}#{new}" if new else old
    return found


def former(page: str) -> dict[str, list[str]]:
    """{anchor on a page: the names that it had before}."""
    found: dict[str, list[str]] = {}
    for old, new in kept().items():
        if old != new and old.partition("#")[0] == f"{page}.html":
            found.setdefault(new.partition("#")[2], []).append(old.partition("#")[2])
    return found


def main() -> None:
    listed = kept()
    lines = [old if old == new else f"{old} = {new.partition('#')[2]}" for old, new in listed.items()]
    lines += sorted(there() - set(listed))
    KEPT.write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")


if __name__ == "__main__":
    main()
