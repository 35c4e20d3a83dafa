"""The stresses, by name: each is handed a directory, seconds and a seed, and says what was wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .core_threads import stress_core_thread
from .logs import stress_logs
from .producers import stress_accumulator

STRESSES: dict[str, Callable[[Path, float, int], list[str]]] = {
    "logs": stress_logs,
    "accumulator": lambda directory, seconds, seed: stress_accumulator(seconds),
    "core-thread": lambda directory, seconds, seed: stress_core_thread(seconds),
}
