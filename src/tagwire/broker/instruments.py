"""What a program that runs a broker may reach while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from tagwire.broker.observing.requests import RequestLog
from tagwire.broker.storage.files import Files
from tagwire.broker.testing.interception import Interceptions


@dataclass(frozen=True, slots=True)
class Instruments:
    """Made before the broker is started, and the same when it is started again.

    Attributes:
        files: its file operations.
        requests: what clients asked.
        interceptions: what takes requests before they are handled.
    """

    files: Files = field(default_factory=Files)
    requests: RequestLog = field(default_factory=lambda: RequestLog(0))
    interceptions: Interceptions = field(default_factory=Interceptions)
