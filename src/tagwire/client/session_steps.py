"""How far a connection has come with its setup, or with renewing its session (KIP-368), step by step."""

from __future__ import annotations

from random import Random
from typing import Any

from tagwire.client.aside import Aside
from tagwire.client.connection_settings import ConnectionState
from tagwire.client.connection_setup import ConnectionSetup, Step, Steps
from tagwire.client.in_flight_request import InFlightRequest
from tagwire.client.scheduling import NEVER
from tagwire.client.session_lifetime import PATIENCE, SessionLifetime
from tagwire.rpc import Response, Unsupported


class SessionSteps:
    """The steps of one connection, one at a time, and when they are due. Times are seconds of the driver's clock.

    Attributes:
        aside: what has to be had elsewhere before the next step.
        request: the last step's, until its steps are done.
        responded_at: when the broker last answered anything on the connection.
        is_busy: whether a setup or a renewal has begun that is not done.
        renewal_at: when to authenticate again; infinity for a session without an end. ends: whether it has one.

    Args:
        random: where jitter is drawn from.
    """

    def __init__(self, random: Random) -> None:
        self.aside: Aside | None = None
        self.request: InFlightRequest[Any] | None = None
        self.responded_at = 0.0
        self.is_busy = self.ends = False
        self.renewal_at = NEVER
        self._lifetime = SessionLifetime(random)
        self._setup: ConnectionSetup | None = None
        self._steps: Steps | None = None

    @property
    def setup(self) -> ConnectionSetup:
        """What was begun last."""
        assert self._setup is not None
        return self._setup

    @property
    def renewal_began(self) -> float:
        """When the last renewal began."""
        return self._lifetime.renewal_began

    def is_renewing(self, now: float) -> bool:
        """Whether the exchange is on its way, or overdue, of a session that ends. While a token is had for it, requests
        go on, but for the last moments."""
        return self.request is not None or now >= self._lifetime.quiet_at

    def takes_nothing_else(self, now: float) -> bool:
        """Whether the broker would end the connection for another request, of a session that ends."""
        return self.request is not None or now >= self._lifetime.ends_at

    def deadline(self, oldest: InFlightRequest[Any] | None, throttled_until: float) -> float:
        """When the session is to be renewed; while it is, when that is given up.

        Args:
            oldest: the request whose response comes next.
            throttled_until: until when the broker reads nothing (KIP-219).
        """
        if not self.is_busy:
            return self.renewal_at
        if self.aside is not None:
            return max(self._lifetime.renewal_began, self._lifetime.ends_at) + PATIENCE
        if oldest is not None and oldest is self.request:
            return max(oldest.sent_at, self.responded_at, throttled_until) + PATIENCE
        return NEVER  # what was sent before has times of its own

    def begin(self, setup: ConnectionSetup) -> None:
        """Begins a connection's setup."""
        self._setup, self._steps, self.is_busy = setup, setup.requests(), True

    def renew(self, now: float) -> None:
        """Begins to authenticate again."""
        self._lifetime.renewal_began = now
        self._steps, self.is_busy = self.setup.authentication(), True

    def next(self, event: Response | Unsupported | None) -> Step | None:
        """The next step, after the response to the last one; None where none is left, and the session begins.

        Raises:
            TagwireError: as `ConnectionSetup.requests`.
        """
        assert self._steps is not None
        try:
            step = self._steps.send(event)
        except StopIteration:
            self._steps, self.request, self.is_busy = None, None, False
            self._lifetime.begin(self.setup.session_lifetime_ms)
            self.renewal_at = self._lifetime.renewal_at
            self.ends = self.renewal_at != NEVER
            return None
        if not isinstance(step, tuple):
            self.aside = step
        return step

    def requested(self, request: InFlightRequest[Any]) -> None:
        """Takes the request that a step became."""
        self.request = request
        if self.setup.state is ConnectionState.AUTHENTICATING:
            self._lifetime.asked_at = request.sent_at

    def had(self, aside: Aside) -> bool:
        """Takes what was had elsewhere; whether that is still waited for."""
        if aside is not self.aside:
            return False
        self.aside = None
        return True

    def give_up(self) -> None:
        """Forgets the setup: another is begun from the start."""
        self._setup = self._steps = self.request = self.aside = None
        self.is_busy = False
