"""The thread that a producer's or a consumer's connections belong to: it does what is due, and runs what callers ask.

Callers hand over what they want done and wait; nothing of theirs touches a socket. The thread holds no reference to its
owner, so that one that nobody closed can be collected, which ends the thread and nothing else.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, TypeVar

from tagwire.call_result import CallResult
from tagwire.client import process
from tagwire.client.blocking_driver import BlockingDriver
from tagwire.client.core_host import CoreWork, broken_down
from tagwire.client.scheduling import Tasks
from tagwire.client.scheduling import Work as Coroutine
from tagwire.errors import RequestTimeoutError, TagwireError

logger = logging.getLogger("tagwire.client")

Result = TypeVar("Result")

# A caller's deadline is also that of what the thread does for it; this is how much later the result may be there.
_GRACE: Final = 1.0

# Seconds that the end of the thread is waited for: it may hang in a connection, and ends when that does.
_PATIENCE: Final = 5.0

# Seconds that one wait takes at most: systems have bounds of their own.
_LONGEST_WAIT: Final = 3600.0


class _Waiter:
    """A caller who waits until something is there.

    Attributes:
        is_ready: whether it is. found: given by who finds that it is there.
    """

    __slots__ = ("found", "is_ready")

    def __init__(self, is_ready: Callable[[], bool]) -> None:
        self.is_ready = is_ready
        self.found: CallResult[None] = CallResult()


class CoreThread:
    """A daemon thread that begins when it is first needed. Methods are for any thread.

    Args:
        tasks: where what callers ask of it runs, beside the work.
        driver: what runs the connections of both; the thread closes it.
        owner: what the thread works for, "producer" or "consumer", as its name and its errors say.
    """

    def __init__(self, work: CoreWork, tasks: Tasks, driver: BlockingDriver, owner: str) -> None:
        self._owner = owner
        self._work = work
        self._tasks = tasks
        self._driver = driver
        self._calls: deque[tuple[Callable[[], Coroutine[Any]], CallResult[Any]]] = deque()
        # In the order in which they came: no address of an object decides who goes on first.
        self._begun: dict[CallResult[Any], None] = {}
        self._waiters: dict[_Waiter, None] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._failure: BaseException | None = None
        self._process = process.current

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or is about to."""
        return self._stopping

    @property
    def is_of_this_process(self) -> bool:
        """Whether this process made it, and was not forked off from the one that did."""
        return self._process is process.current

    def require_waitable(self) -> None:
        """Raises TagwireError where waiting for this thread would not end: in a callback, which it runs itself, and in
        a process that was forked off, which has no such thread."""
        if threading.current_thread() is self._thread:
            raise TagwireError(f"a callback cannot wait for the {self._owner} whose thread runs it")
        self.require_process()

    def require_process(self) -> None:
        """Raises TagwireError in a process that was forked off."""
        if self._process is not process.current:
            process.require(self._process, self._owner)

    def call(self, function: Callable[[], Coroutine[Result]], deadline: float) -> Result:
        """What the coroutine that `function` begins gives or raises when the thread runs it.

        Raises:
            RequestTimeoutError: the thread did not come to it by the deadline.
        """
        self.require_waitable()
        called: CallResult[Result] = CallResult()
        self._calls.append((function, called))
        self.wakeup()
        if self._stopping:
            self._refuse_calls()
        if not called.wait(max(deadline - time.monotonic(), 0) + _GRACE):
            called.is_given_up = True
            raise RequestTimeoutError(f"the {self._owner} was busy with brokers that do not respond")
        return called.result()

    async def result(self, function: Callable[[], Coroutine[Result]], deadline: float) -> Result:
        """`call`, for what may be awaited elsewhere; it blocks."""
        return self.call(function, deadline)

    async def aside(self, call: Callable[[], None]) -> None:
        """Calls it, in the caller's thread."""
        call()

    async def wait_for(self, is_ready: Callable[[], bool], until: float) -> None:
        """Blocks until the thread finds `is_ready` true, or until a time (`time.monotonic`). The thread is not woken
        for it: whoever has changed what it goes by does that.

        Raises:
            TagwireError: the thread has ended.
        """
        self.require_waitable()
        waiter = _Waiter(is_ready)
        try:
            self._waiters[waiter] = None  # before it is looked at: what comes after that is told
            if self._stopping:
                raise self._closed()
            if not is_ready():
                waiter.found.wait(min(until - time.monotonic(), _LONGEST_WAIT))
        finally:
            self._waiters.pop(waiter, None)

    def notify(self) -> None:
        """Lets those go on who `wait_for` something that is there by now. For the thread."""
        for waiter in self._waiters.copy():
            if waiter.is_ready():
                self._let_go(waiter)

    def wakeup(self) -> None:
        """Lets the thread look for something to do."""
        if self._thread is None:
            self._start()
        self._driver.wakeup()

    def stop(self, *, wait: bool = True) -> None:
        """Ends the thread after its current step, which is waited for, if not for ever."""
        if not self.is_of_this_process:  # the thread is its parent's, and so may be the lock
            self._stopping = True
            return
        with self._lock:  # from here on none begins
            self._stopping = True
            thread = self._thread
        self._driver.wakeup()
        if thread is None:
            self._work.close()
            self._driver.close()
        elif wait and thread is not threading.current_thread():
            thread.join(_PATIENCE)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._stopping:
                self._thread = threading.Thread(target=self._run, name=f"tagwire-{self._owner}", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stopping:
                if self._calls:
                    self._begin_calls()
                self._work.step()
                if self._waiters:
                    self.notify()
                if not self._calls and not self._stopping:
                    self._driver.poll(self._work.until())
        except BaseException as error:
            logger.exception("the %s's thread failed", self._owner)
            self._failure = error
            self._work.failed(error)
        finally:
            self._stopping = True
            self._refuse_calls()
            for waiter in self._waiters.copy():
                self._let_go(waiter)
            for called in self._begun:
                called.fail(self._closed())
            self._work.close()
            self._driver.close()

    def _let_go(self, waiter: _Waiter) -> None:
        if waiter in self._waiters:
            self._waiters.pop(waiter, None)
            waiter.found.give(None)

    def _begin_calls(self) -> None:
        for function, called in self._waiting_calls():
            self._begun[called] = None
            self._tasks.start(called, function(), partial(self._settle, called))

    def _settle(self, called: CallResult[Any], result: Any, error: Exception | None) -> None:
        self._begun.pop(called, None)
        if error is None:
            called.give(result)
        else:
            called.fail(error)  # it is the caller's

    def _refuse_calls(self) -> None:
        for _, called in self._waiting_calls():
            called.fail(self._closed())

    def _closed(self) -> TagwireError:
        """Why nothing more is done: it was closed, or broke down."""
        if self._failure is not None:
            return broken_down(self._owner, self._failure)
        return TagwireError(f"the {self._owner} is closed")

    def _waiting_calls(self) -> Iterator[tuple[Callable[[], Coroutine[Any]], CallResult[Any]]]:
        """Takes what callers still wait for. At the end several threads may do so at a time."""
        while True:
            try:
                function, called = self._calls.popleft()
            except IndexError:
                return
            if not called.is_given_up:
                yield function, called
