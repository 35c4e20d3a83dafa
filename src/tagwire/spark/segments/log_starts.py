"""Where logs begin for whoever asks a broker: behind what was deleted and still stands in their files.

DeleteRecords moves a log's start into the middle of a segment, whose file keeps what is before it until all of it may
go. A broker takes the start from `log-start-offset-checkpoint`, in the data directory that the partition's is in.
Source: Kafka's LogManager, UnifiedLog; docs/log-files.md#checkpoints.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from tagwire.errors import DecodeError, StorageError
from tagwire.partitions import TopicPartition
from tagwire.records.files.checkpoints import read_offsets
from tagwire.spark.file_systems import FileSystem, LocalFileSystem

log = logging.getLogger(__name__)

CHECKPOINT: Final = "log-start-offset-checkpoint"


class LogStarts:
    """The checkpoints of the data directories of a file system, each read once."""

    def __init__(self, file_system: FileSystem) -> None:
        self._file_system = file_system
        self._read: dict[str, Mapping[TopicPartition, int]] = {}

    def of_partition(self, directory: str, topic: str, partition: int) -> int:
        """Where the log in a partition's directory begins; 0 where the directory around it does not say."""
        if isinstance(self._file_system, LocalFileSystem):
            around = str(Path(directory).resolve().parent)
        else:
            around = str(PurePosixPath(directory.replace("\\", "/")).parent)
        try:
            return self.within(around).get(TopicPartition(topic, partition), 0)
        except StorageError:  # it is not there, or nobody's to read
            self._read[around] = {}
            return 0

    def within(self, directory: str) -> Mapping[TopicPartition, int]:
        """Where the logs in a data directory begin that has a checkpoint. Raises StorageError: it cannot be read."""
        if directory not in self._read:
            path = f"{directory.rstrip('/')}/{CHECKPOINT}"
            data = self._file_system.read(path)
            try:
                self._read[directory] = read_offsets(data)
            except DecodeError as error:
                log.warning("%s: %s; logs are read from their first segments on, as brokers do then", path, error)
                self._read[directory] = {}
        return self._read[directory]
