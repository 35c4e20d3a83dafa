"""The gallery: a page for each program below examples/, with what its docstring says and its source."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

EXAMPLES: Final = Path(__file__).parents[1] / "examples"


def programs() -> list[Path]:
    return sorted(EXAMPLES.glob("*.py"))


def pages() -> dict[str, str]:
    """{path of the page: its Markdown}, and their index."""
    found: dict[str, str] = {}
    rows = []
    for path in programs():
        source = path.read_text(encoding="utf-8")
        title, _, about = (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")
        code = source.split('"""\n', 1)[1].lstrip("\n")
        found[f"examples/{path.stem}.md"] = (
            f"# {title.rstrip('.')}\n\n{about}\n\n"
            f"`examples/{path.name}`, which the tests run:\n\n```python\n{code}```\n"
        )
        rows.append(f"| [{title.rstrip('.')}]({path.stem}.md) | {' '.join(about.split())} |")
    listed = "\n".join(path.stem for path in programs())
    found["examples/index.md"] = (
        "# Examples\n\nWhole programs, each on a broker that it starts itself: copy one, and run it.\n\n"
        "| program | what it shows |\n|---|---|\n"
        + "\n".join(rows)
        + f"\n\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
    )
    return found
