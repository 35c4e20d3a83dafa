"""The two clocks: one that only grows, for timeouts, and the wall's, for what is written down."""

from __future__ import annotations

import time


def monotonic_ms() -> int:
    """Milliseconds on a clock that is never set back."""
    return time.monotonic_ns() // 1_000_000


def wall_ms() -> int:
    """Milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000
