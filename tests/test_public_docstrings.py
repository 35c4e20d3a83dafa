"""What the site's API pages show has a docstring: found here in a second, and not only where the site is built."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def documented() -> list[str]:
    """The modules that have a page: the keys of MODULES, read without Sphinx's packages, which are not here."""
    tree = ast.parse((ROOT / "website" / "site_api.py").read_text(encoding="utf-8"))
    [modules] = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.target.id == "MODULES"
        and node.value
    ]
    return [f"tagwire.{name}" for name in modules]


@cache
def body(module: str) -> list[ast.stmt]:
    source = ROOT / "src" / Path(*module.split("."))
    path = source / "__init__.py" if source.is_dir() else source.with_suffix(".py")
    return list(_statements(ast.parse(path.read_text(encoding="utf-8")).body))


def _statements(block: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Those of `if TYPE_CHECKING` and the like as well."""
    for statement in block:
        yield statement
        if isinstance(statement, ast.If):
            yield from _statements(statement.body)


def has_docstring(module: str, name: str) -> bool:
    """Whether `name` has one where it is defined."""
    statements = body(module)
    for n, statement in enumerate(statements):
        match statement:
            case ast.ImportFrom(module=str(origin), names=names, level=0):
                for alias in names:
                    if (alias.asname or alias.name) == name:
                        return has_docstring(origin, alias.name)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if statement.name == name:
                return ast.get_docstring(statement) is not None
            case ast.Assign(targets=[ast.Name(id=assigned)]) | ast.AnnAssign(target=ast.Name(id=assigned)) if (
                assigned == name
            ):
                match statements[n + 1 : n + 2]:
                    case [ast.Expr(value=ast.Constant(value=str()))]:
                        return True
                return False
    raise LookupError(f"{module} does not say where {name} comes from")


@pytest.mark.parametrize("module", documented())
def test_every_public_name_of_a_documented_module_has_a_docstring(module: str) -> None:
    names = getattr(importlib.import_module(module), "__all__", None)
    if names is None:
        names = [
            statement.name
            for statement in body(module)
            if isinstance(statement, ast.FunctionDef | ast.ClassDef) and not statement.name.startswith(("_", "pytest_"))
        ]
    assert names
    assert [name for name in names if not has_docstring(module, name)] == []
