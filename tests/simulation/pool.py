"""Runs plans in processes of their own, several at once."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Final, Self

from .outcome import Found, Outcome, Plan

ROOT: Final = Path(__file__).parents[2]
PROGRAM: Final = "tests.simulation.one_run"
# Of a processor's time, for one seed: most need a second or two.
SECONDS: Final = 120.0
ENVIRONMENT: Final = {
    "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
    "TAGWIRE_CHECK_LOCKS": "1",  # see tagwire.broker.storage.log_lock
}
CRASHED: Final = "crash"
HUNG: Final = "hang"


class Stem:
    """A process of `tests.simulation.stem`, which runs one plan at a time."""

    def __init__(
        self,
        program: str = PROGRAM,
        *,
        seconds: float = SECONDS,
        env: Mapping[str, str] | None = None,
        python: str = sys.executable,
    ) -> None:
        self._seconds = seconds
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._process = subprocess.Popen(
            [python, "-m", "tests.simulation.stem", program, str(seconds)],
            cwd=ROOT,
            env={**os.environ, **ENVIRONMENT, **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # with what it forks; who interrupts us interrupts us alone
        )

    def run(self, order: dict[str, Any]) -> Outcome:
        """What `order` gives; a crash or a hang is an outcome as well.

        Raises:
            RuntimeError: the stem itself has ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._errors.truncate(0)
        try:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise RuntimeError(self._complaint()) from None
        ended = self._told()
        answer = self._process.stdout.read(ended["size"])
        if ended["status"] == 0:
            return Outcome.from_json(answer)
        complaint = self._complaint()
        if ended["status"] == -signal.SIGXCPU or "Timeout (" in complaint:  # faulthandler's word
            found = Found(HUNG, f"nothing came of it in {self._seconds:g} s\n{_awake(complaint)}")
        else:
            found = Found(CRASHED, f"the process ended with {ended['status']}\n{complaint}")
        plan = order.get("plan") or {"seed": order["seed"]}
        return Outcome(plan, 0.0, "", [found], history=[], trace=[])

    def _told(self) -> dict[str, int]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            raise RuntimeError(self._complaint())
        return json.loads(line)

    def _complaint(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace").strip()

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()
        self._errors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _awake(stacks: str) -> str:
    """The threads that do not wait for the baton of a simulated world."""
    waiting = re.compile(r'world/scheduler\.py", line \d+ in (_switch|park)')
    threads = stacks.split("\n\n")
    return "\n\n".join(thread for thread in threads if not waiting.search("\n".join(thread.split("\n")[:2])))


class Pool:
    """Several stems."""

    def __init__(self, processes: int | None = None, **of_stem: Any) -> None:
        self.processes = processes or os.cpu_count() or 1
        self._stems = [Stem(**of_stem) for _ in range(self.processes)]
        self._free: SimpleQueue[Stem] = SimpleQueue()
        for stem in self._stems:
            self._free.put(stem)
        self._threads = ThreadPoolExecutor(self.processes)

    def _run(self, order: dict[str, Any]) -> Outcome:
        stem = self._free.get()
        try:
            return stem.run(order)
        finally:
            self._free.put(stem)

    def as_they_end(self, orders: Iterable[dict[str, Any]]) -> Iterator[Outcome]:
        """The outcomes of orders without end: the next order is taken when a process is free."""
        running: set[Future[Outcome]] = set()
        for order in orders:
            running.add(self._threads.submit(self._run, order))
            if len(running) >= self.processes:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)

    def in_order(self, orders: list[dict[str, Any]]) -> list[Outcome]:
        """The outcomes of these orders, in their order."""
        return list(self._threads.map(self._run, orders))

    def close(self) -> None:
        # Killing the stems first ends what their threads wait for.
        for stem in self._stems:
            stem.close()
        self._threads.shutdown(cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def order_of(
    seed: int | None = None,
    plan: Plan | None = None,
    *,
    plants: Iterable[str] = (),
    history: bool = False,
    trace: bool = False,
) -> dict[str, Any]:
    """An order for a stem: the plan of a seed, or a plan that was changed."""
    return {"seed": seed, "plan": plan, "plants": list(plants), "history": history, "trace": trace}
