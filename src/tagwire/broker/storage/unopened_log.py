"""A partition whose directory is damaged: it is there and offline, so that the others can be served."""

from __future__ import annotations

from pathlib import Path

from tagwire.broker.storage.files import Files
from tagwire.broker.storage.leader_epochs import LeaderEpochs
from tagwire.broker.storage.log import PartitionLog
from tagwire.broker.storage.segment import LogSegment
from tagwire.broker.topic_config import TopicConfig


class UnopenedLog(PartitionLog):
    """A log that could not be opened; it is offline from the start, and none of its files are touched."""

    was_opened = False

    def __init__(self, files: Files, directory: Path, config: TopicConfig, start_offset: int, reason: str) -> None:
        # A leader epoch of -1 is none. An older one than clients know would be passed over.
        epochs = LeaderEpochs([(-1, 0)])
        segment = LogSegment.without_files(files, directory, start_offset, config.index_interval_bytes, config.dialect)
        super().__init__(files, directory, [segment], config, epochs, start_offset=start_offset)
        self.abandon(reason)

    def close(self) -> None:
        """There is nothing to bring to the disk."""
