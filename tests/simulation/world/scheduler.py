"""Who runs: simulated threads, of which one has the baton at a time, and the time that passes when none can.

Every simulated thread is a real one that waits for its gate, a real lock. Whoever gives the baton away draws the next
from the seed among those who can run, opens that one's gate and waits for its own. Where nobody can run, time goes to
the next timer. So a run is a sequence: the same seed, the same sequence.
"""

from __future__ import annotations

import heapq
import sys
import traceback
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any, Final

from . import real
from .errors import BusyLoop, Deadlock, TooLong, WorldError

if TYPE_CHECKING:
    from .processes import Process

EPOCH_S: Final = 1_900_000_000.0
"""What wall clocks tell when a world begins."""

UPTIME_S: Final = 10_000.0
"""What monotonic clocks tell then."""

MOST_STEPS_AT_A_TIME: Final = 500_000
"""More steps than any honest work takes before it waits for something."""

USUAL_STEPS: Final = 12.0
"""How many steps a thread takes on average before another may have its turn, though it does not wait."""

STALL_CHANCE: Final = 0.002
LONGEST_STALL_S: Final = 0.2
"""A thread that has to give way may, rarely, not come back for a while, as under a loaded system."""


class Timer:
    """What is done at a time, unless it is cancelled."""

    __slots__ = ("args", "callback", "is_cancelled")

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.callback = callback
        self.args = args
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Baton:
    """A simulated thread.

    Attributes:
        name: as the trace tells it.
        process: whose it is.
        waiting: what it waits for; None where it runs or could.
        was_woken: whether its last wait ended by `wake`, not by time.
        busy_steps: how many steps it has taken since it waited last.
        shields: how many locks it holds that are not of its process alone; it is not interrupted meanwhile.
        is_over: whether it has ended.
        joiners: who waits for that.
    """

    __slots__ = (
        "busy_steps",
        "function",
        "gate",
        "ident",
        "is_over",
        "joiners",
        "name",
        "process",
        "shields",
        "thread",
        "timer",
    )
    __slots__ += ("waiting", "was_woken")

    def __init__(self, name: str, process: Process, function: Callable[[], object], thread: Any = None) -> None:
        self.name = f"{process.title}/{name}"
        self.process = process
        self.function = function
        self.thread = thread
        self.gate = real.allocate_lock()
        self.gate.acquire()
        self.waiting: str | None = None
        self.was_woken = False
        self.timer: Timer | None = None
        self.busy_steps = 0
        self.shields = 0
        self.is_over = False
        self.ident = 0
        self.joiners: dict[Baton, None] = {}


class Scheduler:
    """The baton, the timers and the time.

    Args:
        random: who is next.
        tell: takes each line of the trace.
        most_seconds: after how much simulated time it ends with TooLong.

    Attributes:
        ns: the time, nanoseconds since the world began.
        current: who has the baton; None while what is due is done.
        switches, steps: how many there were.
        gives_way: how likely it is drawn anew who goes on when a lock is let go that others wait for.
    """

    def __init__(self, random: Random, tell: Callable[[str], None], most_seconds: float) -> None:
        self._random = random
        self.tell = tell
        self.ns = 0
        self.current: Baton | None = None
        self.switches = 0
        self.steps = 0
        self.gives_way = 0.0
        self._most_ns = int(most_seconds * 1e9)
        self._runnable: list[Baton] = []
        self._timers: list[tuple[int, int, Timer]] = []
        self._timer_count = 0
        self._countdown = 1
        self._alive: dict[Baton, None] = {}
        self._done = real.allocate_lock()
        self._done.acquire()
        self._is_over = False
        self.failure: BaseException | None = None

    @property
    def now(self) -> float:
        """Seconds since the world began."""
        return self.ns / 1e9

    def after(self, seconds: float, callback: Callable[..., object], *args: Any) -> Timer:
        """Has `callback` called at that time, while nobody runs; at one time in the order in which they were asked
        for. A time that is still to come never becomes now."""
        timer = Timer(callback, args)
        self._timer_count += 1
        # To the nearest nanosecond: one that floats have made of a difference is not a time of its own.
        wait_ns = max(1, round(seconds * 1e9)) if seconds > 0 else 0
        heapq.heappush(self._timers, (self.ns + wait_ns, self._timer_count, timer))
        return timer

    # Threads ---------------------------------------------------------------------------------------------------------

    def begin(self, baton: Baton) -> None:
        """Lets a new thread have its turns."""
        self._alive[baton] = None
        baton.process.batons[baton] = None
        real.start_new_thread(self._live, (baton,))
        self._let_run(baton)

    def run(self, begin: Callable[[], None]) -> None:
        """Returns when `end` was called. For the real thread that began the world.

        Args:
            begin: begins the first thread.
        """
        begin()
        self._hand_over()
        self._done.acquire()

    def end(self, failure: BaseException | None = None) -> None:
        """Nobody runs any more."""
        if not self._is_over:
            self._is_over = True
            self.failure = failure
            self._done.release()

    def _live(self, baton: Baton) -> None:
        baton.gate.acquire()
        baton.ident = real.get_ident()
        try:
            baton.function()
        except BaseException as error:
            baton.process.thread_failed(baton, error)
        self.finish(baton)

    def finish(self, baton: Baton) -> None:
        """The thread that runs has ended."""
        baton.is_over = True
        del self._alive[baton]
        del baton.process.batons[baton]
        for joiner in list(baton.joiners):
            self.wake(joiner)
        self._hand_over()

    def drop(self, process: Process) -> None:
        """Takes the baton from all threads of a process for ever. Does not return where the caller is one of them."""
        for baton in process.batons:
            self._alive.pop(baton, None)
        self._runnable = [baton for baton in self._runnable if baton.process is not process]
        if self.current is not None and self.current.process is process:
            self.park()

    def park(self) -> None:
        """Never comes back."""
        gate = self.current.gate if self.current is not None else real.allocate_lock()
        self._hand_over()
        while True:
            gate.acquire()

    def hold(self, process: Process) -> None:
        """Lets no thread of a process run until `release`."""
        for baton in [baton for baton in self._runnable if baton.process is process]:
            self._runnable.remove(baton)
            process.held[baton] = None
        current = self.current
        if current is not None and current.process is process:
            process.held[current] = None
            self._switch()

    def release(self, process: Process) -> None:
        held, process.held = process.held, {}
        self._runnable += held

    # Switch points ---------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """A place where another thread may have its turn, or the process its end."""
        current = self.current
        if current is None or current.shields:
            return
        process = current.process
        process.steps += 1
        if process.steps == process.dies_at:
            process.die()
        self.steps += 1
        current.busy_steps += 1
        if current.busy_steps > MOST_STEPS_AT_A_TIME:
            self._fail(BusyLoop, f"{current.name} has taken {MOST_STEPS_AT_A_TIME} steps without waiting")
        self._countdown -= 1
        if self._countdown <= 0:
            self._give_way(current)

    def _give_way(self, current: Baton) -> None:
        self._countdown = 1 + int(self._random.expovariate(1 / USUAL_STEPS))
        if self._random.random() < STALL_CHANCE:
            busy_steps = current.busy_steps
            self.block("stalled", self._random.random() ** 3 * LONGEST_STALL_S)
            current.busy_steps = busy_steps
        elif self._runnable:
            self._runnable.append(current)
            self._switch()

    def let_go(self) -> None:
        """Who has the baton has let go of a lock that others wait for."""
        current = self.current
        if current is None or current.shields or not self.gives_way:
            return
        if self._random.random() < self.gives_way and self._runnable:
            self._runnable.append(current)
            self._switch()

    def block(self, what: str, seconds: float | None = None) -> bool:
        """Gives the baton away until `wake`, or until so much time has passed; whether it was woken.

        Args:
            what: is waited for, in a word or two.
        """
        current = self.current
        if current is None:
            raise WorldError(f"what is done by the clock cannot wait ({what})")
        process = current.process
        process.steps += 1
        if process.steps == process.dies_at:
            process.die()
        current.busy_steps = 0
        current.waiting = what
        current.was_woken = False
        if seconds is not None:
            current.timer = self.after(seconds, self._time_is_over, current)
        self._switch()
        return current.was_woken

    def wake(self, baton: Baton) -> None:
        """Ends somebody's wait. Does nothing where it is over."""
        if baton.waiting is None:
            return
        baton.waiting = None
        baton.was_woken = True
        if baton.timer is not None:
            baton.timer.is_cancelled = True
            baton.timer = None
        self._let_run(baton)

    def _time_is_over(self, baton: Baton) -> None:
        if baton.waiting is not None:
            baton.waiting = None
            baton.timer = None
            self._let_run(baton)

    def _let_run(self, baton: Baton) -> None:
        process = baton.process
        if process.is_dead:
            return
        if process.is_paused:
            process.held[baton] = None
        else:
            self._runnable.append(baton)

    def _switch(self) -> None:
        """Gives the baton to somebody who can run, and waits until it comes back."""
        me = self.current
        assert me is not None
        after = self._next()
        if after is me:
            self.current = me
            return
        self._give(after)
        me.gate.acquire()

    def _hand_over(self) -> None:
        """Gives the baton away, and keeps no claim to it."""
        self._give(self._next())

    def _give(self, baton: Baton | None) -> None:
        if baton is None:
            return
        self.switches += 1
        self.current = baton
        self.tell(f"{self.ns / 1e9:.9f} {baton.name}")
        baton.gate.release()

    def _next(self) -> Baton | None:
        """Who runs now; None where the world is over."""
        if self._is_over:
            return None
        if not self._runnable:
            self.current = None
            try:
                self._pass_time()
            except BaseException as error:
                self.end(error)
            if self._is_over:
                return None
        runnable = self._runnable
        at = int(self._random.random() * len(runnable)) if len(runnable) > 1 else 0
        chosen = runnable[at]
        runnable[at] = runnable[-1]
        runnable.pop()
        return chosen

    def _pass_time(self) -> None:
        """Does what is due, at ever later times, until somebody can run."""
        timers = self._timers
        while not self._runnable and not self._is_over:
            while timers and timers[0][2].is_cancelled:
                heapq.heappop(timers)
            if not timers:
                raise Deadlock(f"at {self.now:.6f} s nobody can run, and nothing is due\n{self.stacks()}")
            at = timers[0][0]
            if at > self.ns:
                self.ns = at
                if at > self._most_ns:
                    raise TooLong(f"{self.now:.0f} s have passed\n{self.stacks()}")
            while timers and timers[0][0] <= at and not self._is_over:
                _, _, timer = heapq.heappop(timers)
                if not timer.is_cancelled:
                    timer.callback(*timer.args)

    # What it tells ---------------------------------------------------------------------------------------------------

    def _fail(self, kind: type[WorldError], text: str) -> None:
        self.end(kind(f"{text}\n{self.stacks()}"))
        self.park()

    def stacks(self) -> str:
        """What every thread waits for, and where."""
        frames = sys._current_frames()
        told: list[str] = []
        for baton in self._alive:
            state = f"waits for {baton.waiting}" if baton.waiting is not None else "could run"
            told.append(f"--- {baton.name} {state}{' (paused)' if baton.process.is_paused else ''}")
            frame = frames.get(baton.ident)
            if frame is not None:
                told += [line.rstrip() for line in traceback.format_stack(frame) if "/simulation/world/" not in line]
        return "\n".join(told)


running: Scheduler | None = None
"""The scheduler of the world that runs now in this process of the operating system."""
