"""Packages whose names are imported when they are asked for."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest

from tagwire.names_on_demand import names_on_demand

PACKAGES = [
    "tagwire.broker",
    "tagwire.client",
    "tagwire.client.admin",
    "tagwire.records.files",
    "tagwire.rpc",
    "tagwire.spec",
]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_that_a_package_promises_is_found_and_listed(package: str) -> None:
    found = import_module(package)
    assert {name for name in found.__all__ if not hasattr(found, name)} == set()
    assert set(found.__all__) <= set(dir(found))


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_alone_loads_none_of_its_modules(package: str) -> None:
    program = f"import sys, {package}; print([name for name in sys.modules if name.startswith('{package}.')])"
    run = [sys.executable, "-c", program]
    assert subprocess.run(run, capture_output=True, check=True, text=True, timeout=60).stdout == "[]\n"


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_that_a_package_has_not_is_said_to_be_missing_from_it(package: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Nothing'"):
        _ = import_module(package).Nothing


def test_a_name_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType("package_of_this_test")
    monkeypatch.setitem(sys.modules, package.__name__, package)
    get, listed = names_on_demand(package.__name__, {"tagwire.rpc.frames": ("Frames",)})
    assert "Frames" not in vars(package)
    assert "Frames" in listed()
    assert get("Frames") is vars(package)["Frames"]
