"""What is plain on a command line is read at once; what is not, or wrong, is typer's, as if nothing stood between."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
import typer.core

from tagwire.cli import plain_values

OPTION = {
    "parser": None,
    "min": None,
    "max": None,
    "exists": False,
    "file_okay": True,
    "dir_okay": True,
    "readable": True,
    "writable": False,
    "resolve_path": False,
    "allow_dash": False,
    "path_type": None,
}
HERE = Path(__file__).parent
TYPERS = object()

Read = Callable[..., Any]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    """Reads a value of an annotation, with what is told of it; `TYPERS` is what typer reads."""
    typers = SimpleNamespace(coerce=lambda value, param, ctx: TYPERS)
    monkeypatch.setattr(typer.core, "build_runtime_param", lambda descriptor: typers, raising=False)
    plain_values.install()

    def reading(value: Any, kind: Any, *, multiple: bool = False, nargs: int = 1, **told: Any) -> Any:
        descriptor = SimpleNamespace(annotation=kind, parameter_info=SimpleNamespace(**{**OPTION, **told}))
        made: Any = typer.core.build_runtime_param(descriptor)  # type: ignore[attr-defined]
        return made.coerce(value, SimpleNamespace(multiple=multiple, nargs=nargs), None)

    return reading


@pytest.mark.parametrize(
    ("value", "kind", "told", "is_read"),
    [
        ("12", int, {}, 12),
        ("-3", int, {}, -3),
        (7, int, {"min": 7, "max": 7}, 7),
        ("orders", str, {}, "orders"),
        (True, bool, {}, True),
        ("json", Literal["text", "json"], {}, "json"),
        ("nowhere", Path, {}, Path("nowhere")),
        (str(HERE), Path, {"exists": True, "file_okay": False}, HERE),
        (None, int, {}, None),
        (None, list[int], {"multiple": True}, ()),
        (["1", "2"], list[int], {"multiple": True}, [1, 2]),
        (("a",), list[Path], {"nargs": -1}, [Path("a")]),
    ],
)
def test_a_plain_value_is_read(read: Read, value: Any, kind: Any, told: dict[str, Any], is_read: object) -> None:
    found = read(value, kind, **told)
    assert found == is_read
    assert type(found) is type(is_read)


@pytest.mark.parametrize(
    ("value", "kind", "told"),
    [
        ("x", int, {}),
        ("1_000", int, {}),
        ("٣", int, {}),
        (True, int, {}),
        ("6", int, {"min": 7}),
        ("8", int, {"max": 7}),
        ("yes", bool, {}),
        ("JSON", Literal["text", "json"], {}),
        ("nowhere", Path, {"exists": True}),
        (str(HERE), Path, {"dir_okay": False}),
        (__file__, Path, {"file_okay": False}),
        ("nul\0", Path, {}),
        ("-", Path, {"allow_dash": True}),
        ("2026-01-01", complex, {}),
        ("1", int, {"parser": int}),
        ("1", list[int], {"multiple": True}),
        (["1", "x"], list[int], {"multiple": True}),
    ],
)
def test_what_is_wrong_or_not_plain_is_typers_to_read(read: Read, value: Any, kind: Any, told: dict[str, Any]) -> None:
    assert read(value, kind, **told) is TYPERS


def test_a_typer_without_the_place_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(typer.core, "build_runtime_param", raising=False)
    plain_values.install()
    assert not hasattr(typer.core, "build_runtime_param")


@pytest.mark.parametrize(
    "arguments",
    [
        ["decode", "MetadataRequest", "--version", "9", "--hex", "0208666c69676874730000000000"],
        ["log", str(HERE), "--limit", "5", "--offset", "3"],
        ["spec", "list", "--type", "request"],
        ["audit", str(HERE / "nowhere")],
        ["topics", "--bootstrap", "127.0.0.1:1"],
    ],
)
def test_a_command_that_was_typed_right_does_not_load_pydantic(arguments: list[str]) -> None:
    code = "import sys; from tagwire.cli import main; main(sys.argv[1:]); sys.exit('pydantic' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
