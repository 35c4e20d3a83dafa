"""What one process measures of a row at one size: the time, the processor's time and the memory of each line.

Memory is what a line took beyond what its process had before: the peak is reset when a line begins, so that it is the
line's own. A line may be about another process, such as a broker, which is then asked for in /proc.
"""

from __future__ import annotations

import gc
import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

_TICK = os.sysconf("SC_CLK_TCK")
_RESET_PEAK = "5"


@dataclass
class Line:
    """What a line took at one size.

    Attributes:
        seconds: from its begin to its end.
        cpu: the processor's, of the process it is about and of those that it started and waited for.
        mib: at most, beyond what the process had before.
        notes: what else is told, by its name with its unit.
    """

    seconds: float = 0.0
    cpu: float = 0.0
    mib: float = 0.0
    notes: dict[str, float] = field(default_factory=dict)


class Lines:
    """The lines of a row, by name."""

    def __init__(self) -> None:
        self._taken: dict[str, Line] = {}

    @contextmanager
    def line(self, name: str, process: int | None = None) -> Iterator[Line]:
        """Measures what is done inside.

        Args:
            process: whose processor time and memory is told; None is this one's.
        """
        gc.collect()
        line = self._taken[name] = Line()
        own = process is None
        pid = os.getpid() if process is None else process
        with suppress(OSError):  # where it is not allowed, the peak is since the process began
            Path(f"/proc/{pid}/clear_refs").write_text(_RESET_PEAK)
        before = resident(pid, "VmRSS")
        cpu_of: Callable[[], float] = own_cpu if own else lambda: cpu_of_process(pid)
        cpu, started = cpu_of(), time.perf_counter()
        yield line
        line.seconds, line.cpu = time.perf_counter() - started, cpu_of() - cpu
        line.mib = max(resident(pid, "VmHWM") - before, 0.0)

    def add(self, name: str, line: Line) -> None:
        """A line that was measured elsewhere."""
        self._taken[name] = line

    def told(self) -> dict[str, Any]:
        """All of them, for JSON."""
        return {name: asdict(line) for name, line in self._taken.items()}


def own_cpu() -> float:
    """Seconds of the processor that this process, and those that it has waited for, have had."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def cpu_of_process(pid: int) -> float:
    """Seconds of the processor that another process, and those that it has waited for, have had."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, after_name[11:15])) / _TICK


def resident(pid: int, name: str) -> float:
    """MiB of a process: `VmRSS` now, `VmHWM` at most since its peak was reset."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    return 0.0


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def raise_open_files() -> None:
    """As many open files as this process may have at most."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
