"""Work on whole arrays that fails as a whole: halved until what fails is a few rows, which are worked on alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tagwire.extras import Needs

with Needs("arrow"):
    import pyarrow as pa


class NotAsAWhole(Exception):
    """Some row of an array needs to be looked at alone."""


_FEW: Final = 8


def by_halves(
    values: pa.Array, whole: Callable[[pa.Array], pa.Array], alone: Callable[[pa.Array], pa.Array]
) -> list[pa.Array]:
    """What `whole` makes of an array, in pieces. Of a few rows that it does not take `alone` makes one; of more, where
    most of what was tried has failed."""
    made = []
    waiting = [values]
    few = _FEW
    while waiting:
        piece = waiting.pop()
        try:
            made.append(whole(piece))
            continue
        except NotAsAWhole:
            pass
        if len(piece) <= few:
            made.append(alone(piece))
            few += _FEW
        else:
            half = len(piece) // 2
            waiting += [piece[half:], piece[:half]]
    return made
