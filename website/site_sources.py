"""What Sphinx reads: the guides under docs/, the pages of this directory, and those that are generated.

python website/site_sources.py DIRECTORY BESIDE
"""

from __future__ import annotations

import sys
from pathlib import Path

import site_api
import site_commands
import site_decoder
import site_examples
import site_navigation
import site_reference

HERE = Path(__file__).parent
ROOT = HERE.parent


def pages() -> dict[str, bytes]:
    """{path: content} of all that Sphinx reads."""
    found: dict[str, bytes] = {}
    for folder, names in ((ROOT / "docs", ("*.md", "pictures/*")), (HERE / "pages", ("**/*.md",))):
        for path in (path for name in names for path in sorted(folder.glob(name))):
            found[str(path.relative_to(folder))] = path.read_bytes()
    found = site_navigation.with_unlisted(found, sorted((ROOT / "docs").glob("*.md")))
    for made in (site_api.pages(ROOT / "src"), site_commands.pages(), site_examples.pages(), site_reference.pages()):
        found |= {path: text.encode() for path, text in made.items()}
    return found


def put(into: Path, files: dict[str, bytes]) -> None:
    """Makes a directory hold these files alone. What has not changed keeps its time, so that Sphinx passes it over."""
    for path, content in files.items():
        target = into / path
        if not target.is_file() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    for found in into.rglob("*"):
        if found.is_file() and str(found.relative_to(into)) not in files:
            found.unlink()


if __name__ == "__main__":
    put(Path(sys.argv[1]), pages())
    put(Path(sys.argv[2]), site_reference.files() | site_decoder.files())
