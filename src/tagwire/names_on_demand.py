"""Names of a package that are imported when they are first asked for: a program loads what it uses, and no more."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def names_on_demand(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """What a package takes for its `__getattr__` and `__dir__` (PEP 562).

        if not TYPE_CHECKING:
            __getattr__, __dir__ = names_on_demand(__name__, {"tagwire.rpc.frames": ["Frames", "Limits"]})

    What is found stays in the package, so that it is looked for once.

    Args:
        package: its name.
        modules: for each module, the names that it has.

    Raises:
        AttributeError: by what is returned first: no module has such a name.
    """
    module_of = {name: module for module, names in modules.items() for name in names}
    found = sys.modules[package].__dict__

    def get(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = found[name] = getattr(import_module(module_of[name]), name)
        return value

    return get, lambda: sorted({*found, *module_of})
