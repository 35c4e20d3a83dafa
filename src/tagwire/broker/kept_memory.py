"""Memory that a program keeps when it has freed it, for what it needs next.

A response of several MiB is read into new memory, which is free again when it is sent. glibc gives what is so large
back to the system at once, and gets it anew for the next response, page by page, each of them cleared first: of a
broker that is read from as fast as it can, that took nearly half of the processor's time.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3

KEPT_BYTES: Final = 16 << 20
"""How much free memory each thread that reads from the disk keeps, at most."""

LARGE_BYTES: Final = 8 << 20
"""What is larger goes back to the system at once, as ever: a partition's part of a response is seldom as large."""


def keep_freed_memory() -> None:
    """Has all of this process keep it. Does nothing where the C library is not glibc. Source: mallopt(3)."""
    import ctypes  # some milliseconds, which no start need wait for

    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
        mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)
