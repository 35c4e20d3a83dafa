"""Loops over bytes: Cython in pure-Python mode. Imports no other room; every room may import it.

Each module here is valid Python that also compiles. A build compiles all of them; TAGWIRE_PURE=1 in the
environment runs the same source uncompiled, which is how one test-suite covers both.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


def _uncompiled(name: str, path: Path) -> ModuleType:
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _load() -> bool:
    directory = Path(__file__).parent
    pure = os.environ.get("TAGWIRE_PURE") == "1"
    compiled = True
    for path in sorted(directory.glob("*.py")):
        if path.name == "__init__.py":
            continue
        name = f"{__name__}.{path.stem}"
        module = _uncompiled(name, path) if pure else import_module(name)
        globals()[path.stem] = module
        compiled = compiled and bool(module.COMPILED)
    return compiled


compiled: bool = _load()
"""Whether every kernel runs as machine code. Printed by both test runs."""
