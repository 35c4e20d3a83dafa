"""What Sphinx reads: the guides under docs/, the pages of this directory, and those that are generated."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent


def assemble(root: Path, into: Path) -> None:
    """Puts every page of the site below `into`. What has not changed keeps its time, so that Sphinx passes it over."""
    kept = set()
    for folder, names in ((root / "docs", ("*.md", "pictures/*")), (HERE / "pages", ("**/*.md",))):
        for path in (path for name in names for path in sorted(folder.glob(name))):
            target = into / path.relative_to(folder)
            put(target, path.read_bytes())
            kept.add(target)
    for path in into.rglob("*"):
        if path.is_file() and path not in kept:
            path.unlink()


def put(target: Path, content: bytes) -> None:
    if not target.is_file() or target.read_bytes() != content:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
