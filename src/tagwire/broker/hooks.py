"""What a program that runs a broker may reach while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from tagwire.broker.interception import Interceptions
from tagwire.broker.storage.files import Files
from tagwire.broker.telemetry.requests import RequestLog


@dataclass(frozen=True, slots=True)
class Hooks:
    """Made before the broker is started, and the same when it is started again.

    Attributes:
        files: its file operations.
        requests: what clients sent.
        interceptions: what takes requests before they are handled.
    """

    files: Files = field(default_factory=Files)
    requests: RequestLog = field(default_factory=lambda: RequestLog(0))
    interceptions: Interceptions = field(default_factory=Interceptions)
