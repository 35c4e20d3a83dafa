"""By which SCRAM mechanisms the users of a broker can come in, by Kafka's numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tagwire.broker.settings import Settings

SCRAM_NUMBERS: Final[Mapping[str, int]] = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""KIP-554's."""


def scram_mechanisms(settings: Settings) -> set[int]:
    """Those that any listener asks for: every user has a credential of each."""
    requested = {mechanism for listener in settings.listeners for mechanism in listener.sasl}
    return {number for mechanism, number in SCRAM_NUMBERS.items() if mechanism in requested}
