"""Which process this is: one that was forked off is another, with copies of what its parent had.

It has none of its parent's threads, and so nobody who lets go of the locks that they held: whatever would take such a
lock asks here first. That may be for every record, and an object is compared much faster than the system is asked.
"""

from __future__ import annotations

import os
from typing import Final

from tagwire.errors import TagwireError

ADVICE: Final = "each process makes its own"


class Process:
    """A process; the same object as long as it is the same one."""

    __slots__ = ()


current = Process()


def require(made_in: Process, owner: str) -> None:
    """Raises TagwireError where this is not the process that something was made in.

    Args:
        owner: what was made, "producer" or "consumer".
    """
    if made_in is not current:
        raise TagwireError(f"the {owner} was made before this process was forked off; {ADVICE}")


def _forked() -> None:
    global current
    current = Process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
