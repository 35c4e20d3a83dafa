"""Which clients speak which versions of an API: Kafka's own by what is inside its releases, and tagwire's."""

from __future__ import annotations

from dataclasses import dataclass

from tagwire.client.versions import OURS
from tagwire.rpc.ranges import range_text


@dataclass(frozen=True, slots=True)
class Speaker:
    """A client and the versions of one API that it can use."""

    name: str
    versions: str
    note: str = ""


def speakers(api: int) -> list[Speaker]:
    """The clients that are known to speak an API."""
    return [Speaker("tagwire", range_text(OURS[api]))] if api in OURS else []
