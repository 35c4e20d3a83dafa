"""Steps of the core between those of the event loop's tasks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
Result = TypeVar("Result")


def core_step(function: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
    """What `function` gives, which runs coroutines of the core: the loop does not take their asynchronous generators
    for its own. What they await are no futures, so that it could not close them."""
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return function(*args, **kwargs)
    finally:
        sys.set_asyncgen_hooks(*hooks)
