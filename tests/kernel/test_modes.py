"""The kernels run compiled unless they are told not to: a slow build never passes for a fast one."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from tagwire import kernel

SOURCES = sorted(path.stem for path in Path(kernel.__file__).parent.glob("*.py") if path.name != "__init__.py")


def test_the_kernels_run_as_the_environment_asks() -> None:
    assert kernel.compiled is (os.environ.get("TAGWIRE_PURE") != "1")


def test_every_kernel_runs_in_the_same_way() -> None:
    assert SOURCES
    for name in SOURCES:
        module = import_module(f"tagwire.kernel.{name}")
        assert bool(module.COMPILED) is kernel.compiled
        assert module.__file__.endswith(tuple(EXTENSION_SUFFIXES)) is kernel.compiled
