"""Loops over bytes: Cython in pure-Python mode. Imports no other room; every room may import it.

Each module here is valid Python that also compiles. A build compiles all of them; TAGWIRE_PURE=1 in the
environment runs the same source uncompiled, which is how one test-suite covers both. Where there is no compiled one
for the interpreter, the source runs as well, and a RuntimeWarning says so once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

_DIRECTORY = Path(__file__).parent


class _Uncompiled:
    """Finds the kernels' sources where a compiled build stands beside them."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        parent, _, stem = name.rpartition(".")
        source = _DIRECTORY / f"{stem}.py"
        return spec_from_file_location(name, source) if parent == __name__ and source.is_file() else None


_pure = os.environ.get("TAGWIRE_PURE") == "1"
if _pure:
    sys.meta_path.insert(0, _Uncompiled)
elif not any((_DIRECTORY / f"raw_bytes{suffix}").exists() for suffix in EXTENSION_SUFFIXES):
    import warnings

    warnings.warn(
        f"tagwire's kernels are not compiled for this Python ({sys.implementation.name} "
        f"{'.'.join(map(str, sys.version_info[:2]))}, {sys.platform}): all is right, and slow. "
        "TAGWIRE_PURE=1 asks for this.",
        RuntimeWarning,
        stacklevel=2,
    )
    _pure = True
if _pure and find_spec("cython") is None:
    from tagwire.extras import MissingExtraError

    raise MissingExtraError("cython", "pure")

compiled: bool
"""Whether every kernel runs as machine code; asking loads them all. Printed by both test runs."""


def __getattr__(name: str) -> bool:
    if name != "compiled":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    names = sorted(path.stem for path in _DIRECTORY.glob("*.py") if path.name != "__init__.py")
    found = globals()[name] = all(import_module(f"{__name__}.{each}").COMPILED for each in names)
    return found
