"""What objects do that nobody closed, as the interpreter ends."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any


def quiet_at_exit(collected: Callable[[Any], None]) -> Callable[[Any], None]:
    """A `__del__` that fails without a word while the interpreter ends: it may have let go by then of the modules whose
    names the method uses, and would print a traceback that says nothing. What is still whole is warned of as ever."""
    is_finalizing = sys.is_finalizing

    @functools.wraps(collected)
    def __del__(self: Any) -> None:  # noqa: N807
        try:
            collected(self)
        except Exception:
            if not is_finalizing():
                raise

    return __del__
