"""Histories that a judge has to find something in, and such that are near to those and innocent."""

from tests.simulation.stories import (
    audits,
    compaction,
    groups,
    guards,
    logs,
    others,
    progress,
    quotas,
    reads,
    sinks,
    staying,
    transactions,
    writes,
)
from tests.simulation.stories.telling import BOTH, INNOCENT, PLANTED, Story, Telling

__all__ = ["BOTH", "INNOCENT", "PLANTED", "Story", "Telling"]
__all__ += ["audits", "compaction", "groups", "guards", "logs", "others", "progress", "quotas", "reads", "sinks"]
__all__ += ["staying", "transactions", "writes"]
