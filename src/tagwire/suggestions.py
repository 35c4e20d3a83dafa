"""What somebody may have meant who named something that is not there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tagwire.escaping import printable

# How alike two names are that are meant to be the same (difflib's ratio).
_ALIKE: Final = 0.6
_MOST: Final = 2


def near(name: str, known: Iterable[str]) -> list[str]:
    """Those of the `known` that look like `name`, the likeliest first; upper and lower case are alike."""
    from difflib import get_close_matches

    folded = {one.lower(): one for one in known}
    return [folded[found] for found in get_close_matches(name.lower(), sorted(folded), _MOST, _ALIKE)]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`. Did you mean 'orders'?`, to stand behind what is wrong; "" where nothing known looks like it."""
    found = " or ".join(repr(printable(one)) for one in near(name, known))
    return f". Did you mean {found}?" if found else ""
