"""Changes that nobody has thought of: a condition turned round, a bound moved by one, a statement left out, anywhere in
the broker and in the client's core. A mutant is planted as other defects are; its name says where it is, as long as
its function stays as it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

from .defect import Defect, Edit, PlantError

Function = ast.FunctionDef | ast.AsyncFunctionDef
Change = tuple[str, ast.expr | ast.stmt, str]
"""Its kind, what is changed, and the text that stands there instead."""

PREFIX: Final = "mutant:"
_NAME: Final = re.compile(PREFIX + r"(?P<function>[\w.]+:[\w.]+)@\d+:\d+:[a-z-]+")
_BOUNDS: Final = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
_EXTREMES: Final = {"min": "max", "max": "min"}


@dataclass(frozen=True)
class Mutant:
    """A change of one function.

    Attributes:
        name: "mutant:MODULE:FUNCTION@LINE:COLUMN:CHANGE", its line counted from the function's.
        line: the line of the file.
        told: what stood there, and what stands there instead.
    """

    name: str
    line: int
    told: str
    edit: Edit

    @property
    def defect(self) -> Defect:
        """It as what is planted. Nobody has said what it breaks, nor that it breaks anything."""
        return Defect(self.name, (self.edit,), self.told, (), 1, "")


def mutant(name: str) -> Mutant:
    """The one of this name.

    Raises:
        PlantError: there is none, or none any more.
    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise PlantError(f"{name} is no name of a mutant")
    for each in mutants(found["function"].partition(":")[0]):
        if each.name == name:
            return each
    raise PlantError(f"{name} is not there any more")


def mutants(module: str) -> Iterator[Mutant]:
    """All those of a module's functions."""
    source = Path(import_module(module).__file__ or "").read_bytes()
    for names, function in _functions(ast.parse(source), ()):
        if names[-1] == "__init__":  # what is left out there is missed by whoever comes first
            continue
        yield from _of_function(f"{module}:{'.'.join(names)}", function, source)


def _functions(tree: ast.AST, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Function]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, (*names, node.name))
        elif isinstance(node, Function):
            yield (*names, node.name), node


def _of_function(name: str, function: Function, source: bytes) -> Iterator[Mutant]:
    lines = source.splitlines(keepends=True)[function.lineno - 1 : function.end_lineno]
    whole = b"".join(lines)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def span(node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        first = starts[node.lineno - function.lineno] + node.col_offset
        return first, starts[node.end_lineno - function.lineno] + node.end_col_offset

    def text(node: ast.expr | ast.stmt) -> str:
        first, last = span(node)
        return whole[first:last].decode()

    for statement in function.body:
        for node in ast.walk(statement):
            for change, target, new in _changes(node, text):
                first, last = span(target)
                changed = whole[:first] + new.encode() + whole[last:]
                yield Mutant(
                    f"{PREFIX}{name}@{target.lineno - function.lineno}:{target.col_offset}:{change}",
                    target.lineno,
                    f"{' '.join(text(target).split())}  ->  {' '.join(new.split())}",
                    Edit(name, whole.decode(), changed.decode()),
                )


def _changes(node: ast.AST, text: Callable[[ast.expr | ast.stmt], str]) -> Iterator[Change]:
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield "turned", test, f"(not ({text(test)}))"
        case ast.comprehension(ifs=[test]):
            yield "turned", test, f"(not ({text(test)}))"
        case ast.Compare(left=left, ops=[bound], comparators=[right]) if type(bound) in _BOUNDS:
            yield "bound", node, f"{text(left)} {_BOUNDS[type(bound)]} {text(right)}"
        case ast.BoolOp(op=operator, values=values):
            word = " and " if isinstance(operator, ast.And) else " or "
            for number in range(len(values)):
                left = [f"({text(each)})" for each in values[:number] + values[number + 1 :]]
                yield f"without-{'abcdefgh'[min(number, 7)]}", node, f"({word.join(left)})"
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield "left-out", node, "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.AugAssign() | ast.Delete():
            yield "left-out", node, "pass"
        case ast.Call(func=ast.Name(id=name)) if name in _EXTREMES:
            yield "other-extreme", node.func, _EXTREMES[name]
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=ast.Constant(value=1)):
            yield "one-less", node, f"({text(left)})"
        case ast.keyword(value=ast.Constant(value=bool(value)) as constant):
            yield "flipped", constant, repr(not value)
