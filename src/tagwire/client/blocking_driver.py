"""The blocking driver of the client's core: sockets, the clock, and whoever waits for them, in one thread.

It runs coroutines of the core in the calling thread, and meanwhile resolves, connects, writes and reads for every
connection that was registered with it.
"""

from __future__ import annotations

import socket
import time
from selectors import EVENT_READ, PollSelector
from typing import Final

from tagwire.client import process
from tagwire.client.scheduling import NEVER, Result, Work
from tagwire.client.socket_driver import Channel, SocketDriver
from tagwire.errors import TagwireError

# Seconds that one wait for sockets takes at most: more milliseconds than an int holds are an error of the system's.
_LONGEST_POLL: Final = 3600.0

# How often what has arrived is looked for, where that is not waited for: bytes, and the end of the connection after
# them.
_LOOKS: Final = 4


class BlockingDriver(SocketDriver):
    """Runs the core in the thread that calls it; `wakeup` is for any thread.

    Attributes:
        random: where the core draws jitter from.
    """

    def __init__(self) -> None:
        super().__init__()
        self._selector: PollSelector | None = None
        self._wakeup_sockets: tuple[socket.socket, socket.socket] | None = None
        self._is_woken = False
        self._opened_in = process.current

    # What the core calls -------------------------------------------------------------------------------------------

    now = staticmethod(time.monotonic)

    # What runs the core --------------------------------------------------------------------------------------------

    def run(self, work: Work[Result]) -> Result:
        """What `work` gives or raises. Blocks meanwhile.

        Raises:
            TagwireError: connections were opened before this process was forked off, and are its parent's.
        """
        try:
            self._require_process()
            if self._channels:
                self.look()
            while True:
                wait = work.send(None)
                while not wait.is_over(time.monotonic()):
                    self.poll(wait.until)
        except StopIteration as end:
            result: Result = end.value
            return result
        finally:
            work.close()

    def look(self) -> None:
        """Takes what has arrived, without waiting."""
        for _ in range(_LOOKS):
            if not self.poll(0.0):
                return

    def poll(self, until: float) -> bool:
        """Waits until something has happened on a connection, `wakeup` is called or a time has come (`time.monotonic`
        seconds), and does what there is to do then. Whether anything happened."""
        selector = self._selector or self._open_selector()
        happened = self._attend()
        if self._is_woken or happened:
            until = 0.0
        deadline = NEVER
        for connection in self._channels:
            if (due := connection.deadline) < deadline:
                deadline = due
        timeout = min(until, deadline) - time.monotonic() if until else 0.0
        ready = selector.select(min(max(timeout, 0.0), _LONGEST_POLL))
        for key, events in ready:
            channel: Channel | None = key.data
            if channel is None:
                self._take_wakeups()
            else:
                self._attend_socket(channel, events)
        self._is_woken = False
        if deadline <= time.monotonic():
            for connection in list(self._channels):
                connection.expire_setup()
        return self._attend() or happened or bool(ready)

    def wakeup(self) -> None:
        """Has the `poll` that waits, or else the next one, return at once. From any thread."""
        if self._is_woken:
            return
        try:
            self._is_woken = True
            if (sockets := self._wakeup_sockets) is not None:
                sockets[1].send(b"\0")
        except OSError:  # it is full of wake-ups already, or nobody listens any more
            return
        except BaseException:  # interrupted, perhaps before that: who comes next wakes it
            self._is_woken = False
            raise

    def close(self) -> None:
        """Closes the sockets of every connection. The driver may be used again."""
        self._close_channels()
        selector, self._selector = self._selector, None
        if selector is not None:
            selector.close()
        sockets, self._wakeup_sockets = self._wakeup_sockets, None
        for sock in sockets or ():
            sock.close()

    def _open_selector(self) -> PollSelector:
        if self._selector is None:
            ours, theirs = socket.socketpair()
            ours.setblocking(False)
            theirs.setblocking(False)
            # Not epoll: what it watches is the kernel's, so that a process that is forked off and closes its copies of
            # the sockets would take them from its parent's, too.
            selector = PollSelector()
            selector.register(ours, EVENT_READ, None)
            # In this order: who calls `wakeup` sets the flag first, and then looks for the sockets.
            self._wakeup_sockets = ours, theirs
            self._selector = selector
            self._opened_in = process.current
        return self._selector

    def _require_process(self) -> None:
        if self._selector is not None and self._opened_in is not process.current:
            raise TagwireError(
                "the connections of a client were opened before this process was forked off, and are its parent's; "
                f"{process.ADVICE}, or calls close() first"
            )

    def _take_wakeups(self) -> None:
        assert self._wakeup_sockets is not None
        try:
            self._wakeup_sockets[0].recv(4096)
        except OSError:
            return

    def _watch(self, channel: Channel, sock: socket.socket, events: int) -> None:
        if not events:
            if self._selector is not None:
                self._selector.unregister(sock)
            return
        selector = self._open_selector()
        if channel.events:
            selector.modify(sock, events, channel)
        else:
            selector.register(sock, events, channel)
