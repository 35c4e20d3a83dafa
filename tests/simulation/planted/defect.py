"""What a planted defect is, and how it gets into a function and out again."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType


class PlantError(Exception):
    """A defect that cannot be planted: the function is not there, or does not hold the text, or holds it twice."""


@dataclass(frozen=True)
class Edit:
    """A change of one function.

    Attributes:
        function: "module:qualified name".
        old: what stands in its source, once. new: what stands there instead.
    """

    function: str
    old: str
    new: str


@dataclass(frozen=True)
class Defect:
    """A planted defect.

    Attributes:
        name: what `--plant` calls it.
        edits: what is changed, all of it together.
        told: what goes wrong, in a sentence.
        breaks: what the judge may call that; one of them has to be found.
        seeds: within how many seeds it has to be found.
        shown_by: a test that holds the rule by itself, without the simulator, and fails with the defect; "" where none
            is known.
    """

    name: str
    edits: tuple[Edit, ...]
    told: str
    breaks: tuple[str, ...]
    seeds: int
    shown_by: str

    @property
    def file(self) -> str:
        """Where it is, from the root of the sources."""
        return self.edits[0].function.partition(":")[0].replace(".", "/") + ".py"

    @property
    def room(self) -> str:
        """In which part of which package it is: `broker/storage`."""
        parts = self.edits[0].function.partition(":")[0].split(".")[1:-1]
        return "/".join(parts)


def plant(defect: Defect) -> Callable[[], None]:
    """Carries a defect out in this process; call what it returns to take it back.

    Everybody who has the function, imported or bound, has the changed one from then on: it is its code that is
    replaced.

    Raises PlantError, and changes nothing.
    """
    functions = dict.fromkeys(edit.function for edit in defect.edits)
    changed = [_changed(name, [edit for edit in defect.edits if edit.function == name]) for name in functions]
    before = [(function, function.__code__) for function, _ in changed]
    for function, code in changed:
        function.__code__ = code

    def take_back() -> None:
        for function, code in before:
            function.__code__ = code

    return take_back


@contextmanager
def planted(defects: Iterable[Defect]) -> Iterator[None]:
    """Plants defects for as long as it is entered."""
    with ExitStack() as stack:
        for defect in defects:
            stack.callback(plant(defect))
        yield


def _changed(function_name: str, edits: list[Edit]) -> tuple[FunctionType, CodeType]:
    module_name, _, name = function_name.partition(":")
    try:
        module = import_module(module_name)
        function = _function(module, name)
    except (ImportError, AttributeError) as error:
        raise PlantError(f"{function_name} is not there any more: {error}") from error
    path = Path(inspect.getsourcefile(module) or "")
    lines = path.read_text("utf-8").splitlines(keepends=True)
    first_line = function.__code__.co_firstlineno
    node = _definition(ast.parse("".join(lines)), name.split("."), first_line)
    if node is None or node.end_lineno is None:
        raise PlantError(f"{function_name} is not defined in {path.name}")
    before, source = "".join(lines[: node.lineno - 1]), "".join(lines[node.lineno - 1 : node.end_lineno])
    for edit in edits:
        if source.count(edit.old) != 1:
            raise PlantError(f"{function_name} holds {source.count(edit.old)} times, not once: {edit.old!r}")
        source = source.replace(edit.old, edit.new)
    text = "".join((before, source, *lines[node.end_lineno :]))
    code = _code(compile(text, str(path), "exec", dont_inherit=True), name, first_line)
    if code is None or code.co_freevars != function.__code__.co_freevars:
        raise PlantError(f"{function_name}: the change is not one of this function alone")
    return function, code


def _function(module: object, name: str) -> FunctionType:
    found = module
    for part in name.split("."):
        found = inspect.getattr_static(found, part)
    if isinstance(found, property):
        found = found.fget
    if isinstance(found, (classmethod, staticmethod)):
        found = found.__func__
    found = inspect.unwrap(found)  # type: ignore[arg-type]
    if not isinstance(found, FunctionType):
        raise AttributeError(f"{name} is no function")
    return found


def _definition(tree: ast.AST, names: list[str], first_line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef) and node.name == names[0] and len(names) > 1:
            found = _definition(node, names[1:], first_line)
            if found is not None:
                return found
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and [node.name] == names:
            decorated = [decorator.lineno for decorator in node.decorator_list]
            if first_line == min([node.lineno, *decorated]):
                return node
    return None


def _code(module: CodeType, name: str, first_line: int) -> CodeType | None:
    for constant in module.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_qualname == name and constant.co_firstlineno == first_line:
                return constant
            if (found := _code(constant, name, first_line)) is not None:
                return found
    return None
