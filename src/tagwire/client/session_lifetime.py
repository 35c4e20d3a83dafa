"""How long a broker takes requests before it wants to be authenticated to again, and when that is begun (KIP-368)."""

from __future__ import annotations

from random import Random
from typing import Final

from tagwire.client.scheduling import NEVER

# When it is begun, as a share of the lifetime: early enough for the network and for clocks that drift, and not on all
# connections at once. Source: Kafka's SaslClientAuthenticator.
FACTOR: Final = 0.85
JITTER: Final = 0.10

# And so many seconds before the end, where the lifetime has them: a broker holds a fetch for half a second, and what
# was sent behind it counts when it is read.
MARGIN: Final = 1.0

# So many seconds before the end nothing else is asked any more, where what the renewal needs is still to be had: it
# would be read behind a fetch that is held, after the end, and the connection closed for it.
QUIET: Final = 0.5

# Brokers refuse more than one authentication a second on a connection. Source: Kafka's KafkaChannel.
_SHORTEST: Final = 1.0

# Seconds for a broker to answer each request of SASL, after it has answered what was sent before; and for a token to be
# had after the session's end.
PATIENCE: Final = 10.0


class SessionLifetime:
    """Times of one connection's session; seconds of the driver's clock.

    Attributes:
        renewal_at: when to authenticate again; infinity for a session without an end.
        quiet_at: when nothing but that is asked any more, begun or not.
        ends_at: when the broker takes nothing but that any more.
        renewal_began: when the last renewal began.
        asked_at: when the last request of SASL was sent. The session counts from there: the broker's began after that,
            and when its response is read may be much later on a machine that is busy.

    Args:
        random: where jitter is drawn from.
    """

    def __init__(self, random: Random) -> None:
        self.renewal_at = NEVER
        self.quiet_at = NEVER
        self.ends_at = NEVER
        self.renewal_began = 0.0
        self.asked_at = 0.0
        self._random = random

    def begin(self, lifetime_ms: int) -> None:
        """Takes what the broker told; 0 is a session without an end."""
        self.renewal_at = self.quiet_at = self.ends_at = NEVER
        if lifetime_ms:
            lifetime = lifetime_ms / 1000
            share = FACTOR + JITTER * self._random.random()
            begins = max(min(lifetime * share, lifetime - MARGIN), _SHORTEST)
            self.renewal_at, self.ends_at = self.asked_at + begins, self.asked_at + lifetime
            self.quiet_at = min(max(self.renewal_at, self.ends_at - QUIET), self.ends_at)
