"""Topics that a group subscribes to and that do not exist: who has misspelt one would poll for ever without a word."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from tagwire.client.metadata import ClusterMetadata
from tagwire.errors import Error

logger = logging.getLogger("tagwire.client")

# Seconds after which a topic that does not exist is looked for again.
MISSING_TOPIC_INTERVAL: Final = 1.0

_LOOKS_BEFORE_A_WORD: Final = 2


class MissingTopics:
    """Says once of each that it does not exist: not at the first look at metadata, which may have had it created."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._looks: dict[str, int] = {}  # topics that do not exist, and how many looks have found none

    def note(self, cluster: ClusterMetadata, names: Iterable[str]) -> frozenset[str]:
        """Takes what a look at metadata has told of these topics. Those that may be there by the next one."""
        missing = sorted(
            name
            for name in names
            if (topic := cluster.topics.get(name)) is not None and topic.error is Error.UNKNOWN_TOPIC_OR_PARTITION
        )
        self._looks = {name: self._looks.get(name, 0) + 1 for name in missing}
        for name, looks in self._looks.items():
            if looks == _LOOKS_BEFORE_A_WORD:
                logger.warning("group %r: topic %r does not exist, and is waited for", self._group, name)
        return frozenset(name for name, looks in self._looks.items() if looks < _LOOKS_BEFORE_A_WORD)
