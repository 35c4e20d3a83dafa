"""Circles of imports are found, however a file imports: at its top, inside a function, or for types alone."""

from __future__ import annotations

import grimp
import import_cycles
from import_cycles import circles


def test_each_circle_is_told_once_with_all_that_are_in_it() -> None:
    imported = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert circles(imported) == {frozenset("abc"), frozenset("de")}
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == set()


def test_lazy_and_type_only_imports_make_a_circle_too(tmp_path, monkeypatch) -> None:
    package = tmp_path / "circled"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "first.py").write_text("def late():\n    from circled import second\n")
    (package / "second.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from circled.first import late\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    graph = grimp.build_graph("circled", cache_dir=None)
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert circles(imported) == {frozenset({"circled.first", "circled.second"})}


def test_the_project_has_no_circle_but_those_that_are_named() -> None:
    assert import_cycles.main() == 0
