"""The token of a client: had once for all its connections, and anew before it ends (KIP-255, KIP-768).

Whoever needs a token asks `TokenLogin.request`. Where a fresh one is there that is all; otherwise it is had in a
thread, once however many connections wait. A token is renewed when one is needed after its time to be renewed, not
before: a client that is idle asks nobody.
"""

from __future__ import annotations

import inspect
import logging
import math
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tagwire.client import process
from tagwire.client.aside import run_aside
from tagwire.client.oauth_endpoint import ClientCredentials
from tagwire.client.oauth_token import OAuthToken, UsableToken, usable
from tagwire.client.option_types import of_type
from tagwire.errors import ConfigError, ConnectError, TagwireError, TokenError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

logger = logging.getLogger("tagwire.client")

TokenCallback = Callable[[], "str | OAuthToken | Awaitable[str | OAuthToken]"]

# Seconds after which a token that is still not there is asked for once more, beside the call that hangs.
PATIENCE: Final = 60.0

# Seconds for which a good token is kept after a newer one could not be had. Source: Kafka's
# ExpiringCredentialRefreshingLogin.
PAUSE_AFTER_FAILURE: Final = 10.0

_CALLBACK: Final = "the token callback"


@dataclass(frozen=True, slots=True)
class TokenRefresh:
    """When a token is had anew, before it ends. Source: Kafka's ExpiringCredentialRefreshConfig.

    Attributes:
        window_factor: after this share of the token's lifetime (sasl.login.refresh.window.factor), 0.5 to 1.
        window_jitter: and a random share up to this one more, so that not all clients do it at once, 0 to 0.25.
        min_period: seconds that it is used at least, 0 to 900.
        buffer: seconds before its end by which it is replaced, 0 to 3600. Where a token lives shorter than `min_period`
            and `buffer` together, neither counts.

    Raises:
        ConfigError: one of them is out of bounds.
    """

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period: float = 60.0
    buffer: float = 300.0

    def __post_init__(self) -> None:
        for name, low, high in (
            ("window_factor", 0.5, 1.0),
            ("window_jitter", 0.0, 0.25),
            ("min_period", 0.0, 900.0),
            ("buffer", 0.0, 3600.0),
        ):
            value = getattr(self, name)
            of_type(name, value, (int, float), "a number")
            if not low <= value <= high:
                raise ConfigError(f"{name}={value}: allowed is {low:g} to {high:g}")

    def due(self, token: UsableToken, now: float, random: float) -> float:
        """When a token that was had at `now` is to be replaced.

        Args:
            random: 0 to 1, the share of the jitter.
        """
        if math.isinf(token.expires_at):
            return now
        share = self.window_factor + self.window_jitter * random
        if now + self.min_period + self.buffer > token.expires_at:
            return min(now + (token.expires_at - now) * share, token.expires_at)
        proposed = token.issued_at + (token.expires_at - token.issued_at) * share
        return max(min(proposed, token.expires_at - self.buffer), now + self.min_period)


class TokenRequest:
    """A token that one connection needs; an `Aside`.

    Attributes:
        is_done: whether it is there, or cannot be had.
    """

    def __init__(self, login: TokenLogin, token: UsableToken | None) -> None:
        self.is_done = token is not None
        self._login = login
        self._token = token
        self._error: TagwireError | None = None
        self._done: Callable[[], None] = lambda: None

    def begin(self, done: Callable[[], None], loop: AbstractEventLoop | None) -> None:
        self._done = done
        self._login.fetch(self, loop)

    def not_yet(self) -> str:
        return self._login.not_yet()

    def result(self) -> UsableToken:
        """The token. Raises TokenError, ConnectError: why there is none."""
        if self._token is None:
            raise self._error or TokenError("no token was asked for")
        return self._token

    def settle(self, token: UsableToken | None, error: TagwireError | None) -> None:
        """Called once, by the login."""
        self._token, self._error, self.is_done = token, error, True
        self._done()


class TokenLogin:
    """Where the connections of a client have their token. For any thread.

    Args:
        source: what gives tokens: a callback, with or without `async`, or an endpoint.
        refresh: when a token is replaced.
        clock: seconds since 1970 UTC.
        ticks: seconds that are never set back: by these a call hangs.
        random: where jitter is drawn from.
        run: runs in the background what may block, `run_aside`.
    """

    def __init__(
        self,
        source: TokenCallback | ClientCredentials,
        refresh: TokenRefresh,
        *,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
        random: Random | None = None,
        run: Callable[[Callable[[], None], str], None] = run_aside,
    ) -> None:
        self._source = source
        self._refresh = refresh
        self._clock = clock
        self._ticks = ticks
        self._random = random or Random()
        self._run = run
        self._asked_until = -math.inf
        self._begin_anew()

    def request(self) -> TokenRequest:
        """The token that a connection needs now; done at once where a fresh one is there."""
        self._look_at_process()
        token = self._token
        return TokenRequest(self, token if token is not None and self._clock() < self._due else None)

    def fetch(self, request: TokenRequest, loop: AbstractEventLoop | None) -> None:
        """Settles the request when a token is there, beside the others that wait for it."""
        with self._lock:
            self._waiting.append(request)
            now = self._ticks()
            if now < self._asked_until:
                return
            self._asked_until = now + PATIENCE
            self._calls += 1
            call = self._calls
        self._run(lambda: self._fetch(call, loop), "token")

    def not_yet(self) -> str:
        """Why a connection waits."""
        return f"no token in time from {self._name}{f', last: {self._failure}' if self._failure else ''}"

    @property
    def _name(self) -> str:
        return self._source.name if isinstance(self._source, ClientCredentials) else _CALLBACK

    def _begin_anew(self) -> None:
        self._process = process.current
        self._lock = threading.Lock()
        self._token: UsableToken | None = None
        self._due = 0.0
        self._asked_until = -math.inf
        self._failure = ""
        self._calls = self._answered = 0  # how many were begun, and the last of them that was answered
        self._waiting: list[TokenRequest] = []

    def _look_at_process(self) -> None:
        """A process that was forked off has none of the threads that its parent's requests wait for."""
        if self._process is not process.current:
            self._begin_anew()

    def _fetch(self, call: int, loop: AbstractEventLoop | None) -> None:
        token: UsableToken | None = None
        failure: TagwireError | None = None
        try:
            token = self._ask(loop)
        except TagwireError as error:
            failure = error
        except BaseException as error:  # whoever waits has to hear of it, whatever it is
            failure = TokenError(f"{_CALLBACK} raised {type(error).__name__}")
            failure.__cause__ = error
        with self._lock:
            if call < self._answered:
                return  # it hung: a later one was answered, and whoever waits now waits for the next
            self._answered = call
            now = self._clock()
            if token is not None:
                self._token, self._due = token, self._refresh.due(token, now, self._random.random())
            elif self._token is not None and now < self._token.expires_at < math.inf:
                logger.warning("the token is kept, for no newer one can be had: %s", failure)
                token, failure = self._token, None
                self._due = min(now + PAUSE_AFTER_FAILURE, token.expires_at)
            self._asked_until, self._failure = -math.inf, ""
            waiting, self._waiting = self._waiting, []
        for request in waiting:
            request.settle(token, failure)

    def _ask(self, loop: AbstractEventLoop | None) -> UsableToken:
        if isinstance(self._source, ClientCredentials):
            return self._source.token(self._clock, self._tell)
        given = self._source()
        if inspect.isawaitable(given):
            given = _awaited(given, loop)
        if not isinstance(given, str | OAuthToken):
            raise TokenError(f"{_CALLBACK} gave {type(given).__name__}, not text or an OAuthToken")
        token = OAuthToken(given) if isinstance(given, str) else given
        return usable(token, self._clock(), _CALLBACK)

    def _tell(self, failure: ConnectError) -> None:
        """Takes why an attempt failed, before the next one."""
        self._failure = str(failure)


def _awaited(given: Awaitable[Any], loop: AbstractEventLoop | None) -> Any:
    """What an `async` callback gives, in the client's event loop where it has one."""
    import asyncio  # only clients with such a callback need it

    async def bounded() -> Any:
        return await asyncio.wait_for(given, PATIENCE)

    if loop is None:
        return asyncio.run(bounded())
    return asyncio.run_coroutine_threadsafe(bounded(), loop).result(PATIENCE + 1)
