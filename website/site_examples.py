"""The gallery: a page for each program below examples/, with what its docstring says and its source.

A program of several files is a directory whose run.py runs it.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

EXAMPLES: Final = Path(__file__).parents[1] / "examples"
LANGUAGES: Final = {".py": "python", ".sql": "sql", ".yml": "yaml", ".conf": "text"}


def programs() -> list[Path]:
    return sorted([*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*/run.py")])


def name_of(program: Path) -> str:
    return program.parent.name if program.parent != EXAMPLES else program.stem


def files_of(program: Path) -> list[Path]:
    """What a program of several files has beside its run.py."""
    if program.parent == EXAMPLES:
        return []
    found = program.parent.rglob("*.*")
    return sorted(path for path in found if path.suffix in LANGUAGES and path != program)


def pages() -> dict[str, str]:
    """{path of the page: its Markdown}, and their index."""
    found: dict[str, str] = {}
    rows = []
    for path in programs():
        source = path.read_text(encoding="utf-8")
        title, _, about = (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")
        code = source.split('"""\n', 1)[1].lstrip("\n")
        more = "".join(
            f"\n`{file.relative_to(path.parent)}`:\n\n```{LANGUAGES[file.suffix]}\n{file.read_text(encoding='utf-8')}```\n"
            for file in files_of(path)
        )
        found[f"examples/{name_of(path)}.md"] = (
            f"# {title.rstrip('.')}\n\n{about}\n\n"
            f"`examples/{path.relative_to(EXAMPLES)}`, which the tests run:\n\n```python\n{code}```\n{more}"
        )
        rows.append(f"| [{title.rstrip('.')}]({name_of(path)}.md) | {' '.join(about.split())} |")
    listed = "\n".join(name_of(path) for path in programs())
    found["examples/index.md"] = (
        "# Examples\n\nWhole programs, each on a broker that it starts itself: copy one, and run it.\n\n"
        "| program | what it shows |\n|---|---|\n"
        + "\n".join(rows)
        + f"\n\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
    )
    return found
