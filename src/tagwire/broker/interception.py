"""Requests taken out of the broker's hands: looked at, changed, given a response, delayed, or lost.

    with broker.intercept("Fetch", delay(0.5)): ...
    with broker.intercept("Produce", hang_up(handled=True), times=1): ...     # stored, but its response is lost

    async def throttle(call):
        response = await call.proceed()
        response.throttle_time_ms = 1000
        return response

    with broker.intercept("Metadata", throttle) as seen: ...

What acts runs on the broker's event loop, in its thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

from tagwire.broker.session import AnyResponse, HangUp
from tagwire.errors import ConfigError
from tagwire.rpc import api_key, api_name

CALLS_KEPT = 1000


class Intercepted:
    """A request that was intercepted.

    Attributes:
        api: the API's name, such as "Fetch"; `api_key` its number.
        version: in which version it came, and the response goes.
        client_id: the client's name for itself, "" for none.
        request: the decoded message. What is changed in it is what the broker then handles.
    """

    def __init__(
        self, key: int, version: int, client_id: str, request: Any, handle: Callable[[], Awaitable[AnyResponse]]
    ) -> None:
        self.api = api_name(key)
        self.api_key = key
        self.version = version
        self.client_id = client_id
        self.request = request
        self._handle = handle
        self._response: asyncio.Future[AnyResponse] | None = None

    def __repr__(self) -> str:
        return f"<{self.api} v{self.version} from client {self.client_id!r}>"

    async def proceed(self) -> Any:
        """Let the broker handle it: the response it gives; None where there is to be none (Produce with acks=0)."""
        if self._response is None:
            self._response = asyncio.ensure_future(self._handle())
        return await self._response


Act = Callable[[Intercepted], AnyResponse | Awaitable[AnyResponse]]
"""What to do with a request: a function, or a coroutine function. It may return a response object, which is sent
without the broker's doing, or None: then the broker handles the request, unless it has done so already."""


def delay(seconds: float) -> Act:
    """Hold requests back for a time before they are handled."""

    async def act(call: Intercepted) -> None:
        await asyncio.sleep(seconds)

    return act


def drop(*, handled: bool = False) -> Act:
    """Send no response, to the request or to any that follows on its connection, which stays open.

    Args:
        handled: carry the request out first: it is the response that gets lost.
    """

    async def act(call: Intercepted) -> None:
        if handled:
            await call.proceed()
        await asyncio.get_running_loop().create_future()

    return act


def hang_up(*, handled: bool = False) -> Act:
    """Close the connection instead of sending a response.

    Args:
        handled: carry the request out first: it is the response that gets lost.
    """

    async def act(call: Intercepted) -> None:
        if handled:
            await call.proceed()
        raise HangUp("an interception closes the connection")

    return act


class Interception:
    """Takes requests of one API, from when it is made until `stop`, or the end of its `with` block.

    Attributes:
        calls: what was intercepted, oldest first; of very many, the last.
    """

    def __init__(self, rules: Interceptions, key: int, act: Act, times: int | None) -> None:
        self.calls: deque[Intercepted] = deque(maxlen=CALLS_KEPT)
        self.key = key
        self._rules = rules
        self._act = act
        self._left = times
        self._error: Exception | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has taken as many requests as it should."""
        return self._left is not None and self._left <= 0

    def stop(self) -> None:
        """Let requests pass again. Those that were taken already go their way."""
        self._rules.remove(self)

    async def take(self, call: Intercepted) -> AnyResponse:
        """The response to `call`."""
        if self._left is not None:
            self._left -= 1
        self.calls.append(call)
        try:
            response = self._act(call)
            if isinstance(response, Awaitable):
                response = await response
        except HangUp:
            raise
        except Exception as error:
            self._error = self._error or error
            raise HangUp(f"what intercepts {call.api} raised {error!r}") from error
        return await call.proceed() if response is None else response

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stops it; an error that `act` raised, which closed the connection, is raised here again."""
        self.stop()
        if self._error is not None and error is None:
            raise self._error


class Interceptions:
    """What intercepts the requests of one broker. Any thread may add and remove.

    Args:
        others: what intercepts what these do not: those of a whole cluster.
    """

    def __init__(self, others: Interceptions | None = None) -> None:
        self._rules: tuple[Interception, ...] = ()  # replaced, and never changed: others read it meanwhile
        self._lock = threading.Lock()
        self._others = others

    def add(self, api: str | int, act: Act, times: int | None = None) -> Interception:
        """Let `act` take the requests of an API, named or numbered, `times` times or until it is stopped; of several,
        the newest takes.

        Raises:
            ConfigError: there is no such API.
        """
        key = api_key(api) if isinstance(api, str) else api
        if key is None:
            raise ConfigError(f"api={api!r} is no API of Kafka's")
        if not callable(act):
            raise ConfigError(f"act={act!r} is no function: write delay(0.5), drop(), hang_up(), or one of your own")
        rule = Interception(self, key, act, times)
        with self._lock:
            self._rules = (rule, *self._rules)
        return rule

    def remove(self, rule: Interception) -> None:
        with self._lock:
            self._rules = tuple(other for other in self._rules if other is not rule)

    def of(self, key: int) -> Interception | None:
        """What takes the next request of an API, if anything does."""
        if self._rules:
            found = next((rule for rule in self._rules if rule.key == key and not rule.is_over), None)
            if found is not None:
                return found
        return self._others.of(key) if self._others is not None else None
